# ruff: noqa: E501 - the text of a model stands on one line
"""GroupNormalization before TensorRT 11."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.group_norm import RULE

CASES = [
    Case(
        "a scale per group",
        "y = GroupNormalization<num_groups=4>(x, s4, b4)",
        opset=18,
        absent=("GroupNormalization",),
        target="tensorrt==8.6",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
    Case(
        "a scale per channel",
        "y = GroupNormalization<num_groups=2>(x, s8, b8)",
        opset=21,
        absent=("GroupNormalization",),
        target="tensorrt==8.6",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
    Case(
        "one axis more",
        "y = GroupNormalization<num_groups=4,epsilon=0.01>(x, s8, b8)",
        "float[N,8,H,W,2] x",
        "float[a,b,c,d,e] y",
        opset=21,
        absent=("GroupNormalization",),
        target="tensorrt==10",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
]
NEAR_MISSES = [
    Case(
        "channels not known",
        "y = GroupNormalization<num_groups=2>(x, s8, b8)",
        "float[N,C,H,W] x",
        opset=21,
        target="tensorrt==8.6",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
        skip="channels",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""InstanceNormalization for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.instance_norm import RULE

CASES = [
    Case(
        "constant scale",
        "y = InstanceNormalization<epsilon=0.001>(x, s8, b8)",
        absent=("InstanceNormalization",),
        target="tensorrt==8.6",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
    Case(
        "computed scale",
        "m = ReduceMax<axes=[0,2,3],keepdims=0>(x) y = InstanceNormalization(x, m, b8)",
        absent=("InstanceNormalization",),
        target="tensorrt==8.6",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
    Case(
        "one-dimensional",
        "y = InstanceNormalization(x, s8, b8)",
        "float[N,8,H] x",
        "float[a,b,c] y",
        absent=("InstanceNormalization",),
        target="tensorrt==8.6",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
]
NEAR_MISSES = [
    Case(
        "native elsewhere",
        "y = InstanceNormalization(x, s8, b8)",
        constants="float[4] s4 = {1,2,3,4}, float[4] b4 = {0.5,-1,2,0}, float[8] s8 = {1,2,3,4,5,6,7,8}, float[8] b8 = {0.5,-1,2,0,1,1,-3,2}",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

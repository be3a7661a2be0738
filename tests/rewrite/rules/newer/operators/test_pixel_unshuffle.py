# ruff: noqa: E501 - the text of a model stands on one line
"""Pixel unshuffle for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.pixel_unshuffle import RULE

CASES = [
    Case(
        "as exported",
        "h = Shape(x) n = Gather(h, i0) a = Gather(h, i2) b = Gather(h, i3) ha = Div(a, two) wb = Div(b, two) s = Concat<axis=0>(n, c8, ha, two, wb, two) r = Reshape(x, s) t = Transpose<perm=[0,1,3,5,2,4]>(r) k = Concat<axis=0>(n, c32, ha, wb) y = Reshape(t, k)",
        constants="int64[1] i0 = {0}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64[1] two = {2}, int64[1] c8 = {8}, int64[1] c32 = {32}",
        absent=("Transpose",),
        target="tensorrt==8.6",
        sizes=({"N": 1, "H": 4, "W": 6}, {"N": 3, "H": 10, "W": 14}, {"N": 2, "H": 22, "W": 26}),
    ),
    Case(
        "SpaceToDepth",
        "y = SpaceToDepth<blocksize=2>(x)",
        absent=("SpaceToDepth",),
        target="tensorrt==8.6",
        sizes=({"N": 1, "H": 4, "W": 6}, {"N": 3, "H": 10, "W": 14}, {"N": 2, "H": 22, "W": 26}),
    ),
]
NEAR_MISSES = [
    Case(
        "pixel shuffle",
        "r = Reshape(x, s) t = Transpose<perm=[0,1,4,2,5,3]>(r) y = Reshape(t, k)",
        "float[2,8,6,4] x",
        constants="int64[6] s = {2,2,2,2,6,4}, int64[4] k = {2,2,12,8}",
        target="tensorrt==8.6",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

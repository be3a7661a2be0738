"""AffineGrid."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.affine_grid import RULE

CASES = [
    Case(
        "centres",
        "h = Shape(x) y = AffineGrid(t, h)",
        "float[N,8,H,W] x, float[N,2,3] t",
        opset=20,
        absent=("AffineGrid",),
    ),
    Case(
        "corners",
        "h = Shape(x) y = AffineGrid<align_corners=1>(t, h)",
        "float[N,8,H,W] x, float[N,2,3] t",
        opset=20,
        absent=("AffineGrid",),
    ),
    Case("constant size", "y = AffineGrid(t, s)", "float[2,2,3] t", constants="int64[4] s = {2,3,5,7}", opset=20),
]
NEAR_MISSES = [
    Case(
        "three-dimensional",
        "y = AffineGrid(t, s)",
        "float[N,3,4] t",
        "float[a,b,c,d,e] y",
        constants="int64[5] s = {1,3,5,7,2}",
        opset=20,
        skip="theta",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

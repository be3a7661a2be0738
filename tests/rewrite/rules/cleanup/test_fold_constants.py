"""Arithmetic on constants."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.fold_constants import RULE

CASES = [
    Case(
        "sizes",
        "k = Add(a, b) s = Concat<axis=0>(k, k) y = Reshape(x, s)",
        "float[2,8,3,3] x",
        "float[c,d] y",
        constants="int64[1] a = {5}, int64[1] b = {7}",
        fires=2,
        absent=("Concat", "Add"),
    ),
    Case(
        "an epsilon is computed, not dropped",
        "e = Mul(a, b) y = Add(x, e)",
        constants="float a = {1e-5}, float b = {1e-5}",
        absent=("Mul",),
        present=("Add",),
    ),
]
NEAR_MISSES = [
    Case("an epsilon stays", "y = Add(x, e)", constants="float e = {1e-10}"),
    Case("one", "y = Mul(x, e)", constants="float e = {1.0}"),
    Case(
        "large results",
        "y = Expand(e, s)",
        "float[2,8,H,W] x",
        constants="float e = {1.0}, int64[4] s = {2, 8, 64, 64}",
        skip="elements",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

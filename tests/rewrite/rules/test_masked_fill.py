# ruff: noqa: E501 - the text of a model stands on one line
"""x[mask] = number."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.masked_fill import RULE

CASES = [
    Case(
        "a number by broadcast",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) s = Shape(t) c = Gather(s, i0) u = Unsqueeze(c, zero) v = Expand(five, u) y = ScatterND(x, t, v)",
        constants="float z = {0.0}, float five = {5.0}, int64 i0 = {0}, int64[1] zero = {0}",
        gone=("NonZero", "ScatterND"),
    ),
]
NEAR_MISSES = [
    Case(
        "values that differ",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) s = Shape(t) c = Gather(s, i0) r = Range(i0, c, i1) v = Cast<to=1>(r) y = ScatterND(x, t, v)",
        constants="float z = {0.0}, int64 i0 = {0}, int64 i1 = {1}",
        skip="number",
    ),
    Case(
        "a mask of rows",
        "q = ReduceMax<axes=[1,2,3],keepdims=0>(x) m = Less(q, z) n = NonZero(m) t = Transpose(n) y = ScatterND(x, t, w)",
        "float[N,8,H,W] x, float[K,8,H,W] w",
        constants="float z = {0.0}",
        skip="shape",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

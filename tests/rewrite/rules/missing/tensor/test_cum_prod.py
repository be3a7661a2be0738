"""CumProd."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.cum_prod import RULE

CASES = [
    Case(
        "second axis",
        "y = CumProd(x, a)",
        "float[N,H,4] x",
        "float[a,b,c] y",
        constants="int64 a = {1}",
        opset=26,
        absent=("CumProd",),
    ),
    Case(
        "reverse, exclusive",
        "y = CumProd<reverse=1,exclusive=1>(x, a)",
        "float[N,H] x",
        "float[a,b] y",
        constants="int64 a = {-1}",
        opset=26,
        absent=("CumProd",),
    ),
]
NEAR_MISSES = [
    Case("axis not constant", "y = CumProd(x, a)", "float[N,H] x, int64 a", "float[a,b] y", opset=26, skip="axis"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

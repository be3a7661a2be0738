
"""Operators that ONNX Runtime had first."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.own_domain import RULE

SIZES = ({"N": 2, "T": 4}, {"N": 1, "T": 7}, {"N": 3, "T": 1})

X = {"inputs": "float[N,T,4] x", "outputs": "float[a,b,c] y", "sizes": SIZES, "constants": "int64 k = {1}"}
CASES = [Case("a triangle", "y = com.microsoft.Trilu<upper=0>(x, k)", absent=("com.microsoft::Trilu",), **X)]
NEAR_MISSES = [
    Case("ONNX's", "y = Trilu<upper=0>(x, k)", **X),
    Case("too old", "y = com.microsoft.Trilu<upper=0>(x, k)", opset=13, skip="came with opset 14", **X),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

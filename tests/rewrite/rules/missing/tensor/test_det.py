"""Determinants."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.det import RULE

CASES = [
    Case("two rows", "y = Det(x)", "float[N,H,2,2] x", "float[a,b] y", absent=("Det",)),
    Case("three rows", "y = Det(x)", "float[N,3,3] x", "float[a] y", absent=("Det",)),
    Case("four rows", "y = Det(x)", "float[N,H,4,4] x", "float[a,b] y", absent=("Det",)),
    Case("seven rows", "y = Det(x)", "float[N,7,7] x", "float[a] y", absent=("Det",)),
    Case("one row", "y = Det(x)", "float[N,1,1] x", "float[a] y", absent=("Det",)),
    Case("8.6", "y = Det(x)", "float[N,4,4] x", "float[a] y", absent=("Det",), target="tensorrt==8.6"),
]
NEAR_MISSES = [
    Case("nine rows", "y = Det(x)", "float[N,9,9] x", "float[a] y", skip="rows"),
    Case("doubles", "y = Det(x)", "double[N,2,2] x", "double[a] y", skip="FP32"),
    Case("a size that moves", "y = Det(x)", "float[N,H,H] x", "float[a] y", skip="rows"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

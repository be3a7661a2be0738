"""Dropout and Pad by 0 that make an output."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.output_of_input import RULE

CASES = [
    Case("an output", "y = Dropout(x)", absent=("Dropout",)),
    Case("with a ratio", "y = Dropout(x, r, t)", constants="float r = {0.7}, bool t = {0}", absent=("Dropout",)),
    Case("its mask is used", "i, m = Dropout(x) f = Cast<to=1>(m) y = Mul(i, f)", absent=("Dropout",)),
    Case("Pad by nothing", "y = Pad(x, k)", constants="int64[8] k = {0,0,0,0,0,0,0,0}", absent=("Pad",)),
]
NEAR_MISSES = [
    Case("in training", "y = Dropout(x, r, t)", constants="float r = {0.0}, bool t = {1}"),
    Case("within the graph", "i, m = Dropout(x) y = Relu(i)"),
    Case("Pad by one", "y = Pad(x, k)", constants="int64[8] k = {0,0,0,0,0,0,0,1}"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_misses_stay(case):
    check_near_miss(RULE, case)

"""Hardmax where the target lacks it."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.hardmax import RULE

CASES = [
    Case("dynamic axis", "y = Hardmax<axis=3>(x)", absent=("Hardmax",), present=("ArgMax",)),
    Case("channels on 8.6", "y = Hardmax<axis=1>(x)", absent=("Hardmax",), target="tensorrt==8.6"),
    Case("the first axis", "y = Hardmax<axis=0>(x)", absent=("Hardmax",)),
]
NEAR_MISSES = [
    Case("fixed axis", "y = Hardmax<axis=1>(x)"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

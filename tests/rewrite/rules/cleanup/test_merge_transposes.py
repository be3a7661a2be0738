"""Transposes in a row."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.merge_transposes import RULE

CASES = [
    Case("there and back", "i = Transpose<perm=[0,2,3,1]>(x) j = Transpose<perm=[0,3,1,2]>(i) y = Relu(j)"),
    Case("two turns", "i = Transpose<perm=[0,2,3,1]>(x) y = Transpose<perm=[0,2,1,3]>(i)"),
]
NEAR_MISSES = [
    Case("something between", "i = Transpose<perm=[0,2,3,1]>(x) r = Relu(i) y = Transpose<perm=[0,3,1,2]>(r)"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

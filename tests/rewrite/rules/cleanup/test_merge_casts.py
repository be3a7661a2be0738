"""Casts in a row."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.merge_casts import RULE

CASES = [
    Case(
        "there and back",
        "i = Cast<to=1>(x) j = Cast<to=10>(i) y = Relu(j)",
        "float16[N,8,H,W] x",
        "float16[a,b,c,d] y",
        absent=("Cast",),
    ),
    Case("through int64", "s = Shape(x) k = Cast<to=6>(s) i = Cast<to=7>(k) y = Cast<to=1>(i)", outputs="float[4] y"),
]
NEAR_MISSES = [
    Case("through half precision", "i = Cast<to=10>(x) j = Cast<to=1>(i) y = Relu(j)"),
    Case("through integers", "i = Cast<to=7>(x) y = Cast<to=1>(i)"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

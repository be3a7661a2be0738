"""CastLike for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.cast_like import RULE

CASES = [
    Case("to int64", "s = Shape(x) i = CastLike(x, s) y = Cast<to=1>(i)", absent=("CastLike",), target="tensorrt==8.6"),
]
NEAR_MISSES = [
    Case("a Cast", "i = Cast<to=7>(x) y = Cast<to=1>(i)", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

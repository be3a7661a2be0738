"""Pad in mode wrap for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.pad_wrap import RULE

CASES = [
    Case(
        "two axes",
        'y = Pad<mode="wrap">(x, p)',
        opset=19,
        constants="int64[8] p = {0,0,1,2,0,0,3,0}",
        absent=("Pad",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case(
        "reflect",
        'y = Pad<mode="reflect">(x, p)',
        opset=19,
        constants="int64[8] p = {0,0,1,2,0,0,3,0}",
        target="tensorrt==8.6",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

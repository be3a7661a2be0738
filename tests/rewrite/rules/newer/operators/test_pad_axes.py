"""Pad with axes before TensorRT 11."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.pad_axes import RULE

CASES = [
    Case(
        "constant pads",
        "y = Pad(x, p, v, a)",
        opset=18,
        constants="int64[2] p = {1,2}, float v = {3.0}, int64[1] a = {3}",
        target="tensorrt==8.6",
    ),
    Case(
        "computed pads",
        's = Shape<start=2>(x) k = Div(s, four) y = Pad<mode="reflect">(x, k, , a)',
        opset=18,
        constants="int64 four = {4}, int64[1] a = {-1}",
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case("all axes", "y = Pad(x, p)", opset=18, constants="int64[8] p = {0,0,1,1,0,0,1,1}", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

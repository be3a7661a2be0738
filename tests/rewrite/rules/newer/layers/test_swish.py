"""Swish before TensorRT 11."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.swish import RULE

CASES = [
    Case("swish", "y = Swish(x)", opset=24, absent=("Swish",), target="tensorrt==10"),
    Case("with alpha", "y = Swish<alpha=1.5>(x)", opset=24, absent=("Swish",), target="tensorrt==8.6"),
]
NEAR_MISSES = [
    Case("written out already", "s = Sigmoid(x) y = Mul(x, s)", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

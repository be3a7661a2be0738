"""Mish for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.mish import RULE

CASES = [
    Case("mish", "y = Mish(x)", opset=18, absent=("Mish",), target="tensorrt==8.6"),
]
NEAR_MISSES = [
    Case("written out already", "s = Softplus(x) t = Tanh(s) y = Mul(x, t)", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

"""Gelu for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.gelu import RULE

CASES = [
    Case("exact", "y = Gelu(x)", opset=20, absent=("Gelu",), present=("Erf",), target="tensorrt==8.6"),
    Case(
        "tanh", 'y = Gelu<approximate="tanh">(x)', opset=20, absent=("Gelu",), present=("Tanh",), target="tensorrt==8.6"
    ),
]
NEAR_MISSES = [
    Case("written out already", "e = Erf(x) y = Mul(x, e)", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

"""Quantising by the range of the values."""

import pytest

from tests.rewrite.harness import Case, check_case
from trtconv.rewrite.rules.missing.quantized.dynamic_quantize import RULE

BODY = "y, s, z = DynamicQuantizeLinear(x)"
CASES = [
    Case("all three", BODY, outputs="uint8[a,b,c,d] y, float s, uint8 z", present=("Round", "Clip")),
    Case("opset 11", BODY, outputs="uint8[a,b,c,d] y, float s, uint8 z", opset=11),
    Case("a vector", BODY, "float[H] x", "uint8[a] y, float s, uint8 z", opset=18),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)

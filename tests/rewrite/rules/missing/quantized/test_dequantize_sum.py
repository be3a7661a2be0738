# ruff: noqa: E501 - the text of a model stands on one line
"""Sums of whole numbers with a scale."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.quantized.dequantize_sum import RULE

X = {"inputs": "int32[N,8,H] x", "outputs": "float[a,b,c] y", "absent": ("DequantizeLinear",), "ranges": {"x": (-100000, 100000)}}
CASES = [
    Case("one scale", "y = DequantizeLinear(x, s)", constants="float s = {0.003}", **X),
    Case("a scale for each channel", "y = DequantizeLinear<axis=1>(x, s)", constants="float[8] s = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}", **X),
    Case("a zero point", "y = DequantizeLinear(x, s, z)", constants="float s = {0.003}, int32 z = {0}", **X),
]
NEAR_MISSES = [
    Case("bytes", "y = DequantizeLinear(x, s)", "int8[N,8,H] x", "float[a,b,c] y", constants="float s = {0.003}"),
    Case("a bias", "b = DequantizeLinear(k, s) y = Add(x, b)", "float[N,8,H] x", "float[a,b,c] y", constants="float s = {0.003}, int32[1] k = {7}"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

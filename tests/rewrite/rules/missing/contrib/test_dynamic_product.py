# ruff: noqa: E501 - the text of a model stands on one line
"""Products of bytes that give floats."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.dynamic_product import RULE

SIZES = ({"N": 2}, {"N": 1}, {"N": 5})
X = {"inputs": "float[N,5,6] x", "outputs": "float[a,b,c] y", "sizes": SIZES}
W = "uint8[6,3] w = {129, 64, 83, 161, 181, 42, 141, 187, 17, 161, 45, 142, 98, 142, 35, 154, 177, 43}, float ws = {0.01}, uint8 wz = {125}, float[3] c = {0.5, -0.5, 0.0}"
INT8 = "int8[6,3] w = {29, 64, -83, 61, -81, 42, 41, -87, 17, 61, 45, -42, 98, 42, -35, 54, -77, 43}, float[3] ws = {0.01, 0.02, 0.005}, int8[3] wz = {0, 0, 0}"
PAIR = {"inputs": "uint8[N,5,6] x, uint8[N,6,3] u, float s", "outputs": "float[a,b,c] y", "sizes": SIZES, "ranges": {"x": (0, 255), "u": (0, 255), "s": (0.01, 0.1)}}
CASES = [
    Case("dynamic", "y = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz, c)", constants=W, present=("DynamicQuantizeLinear", "MatMulInteger"), **X),
    Case("columns of int8", "y = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz)", constants=INT8, **X),
    Case("bytes", "y = com.microsoft.MatMulIntegerToFloat(x, u, s, k, p, p, c)", constants="float k = {0.5}, uint8 p = {100}, float[3] c = {0.5, -0.5, 0.0}", **PAIR),
    Case("no points", "y = com.microsoft.MatMulIntegerToFloat(x, u, s, k)", constants="float k = {0.5}", **PAIR),
]
NEAR_MISSES = [Case("floats", "y = MatMul(x, v)", constants="float[6,1] v = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}", **X)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Weights of a few bits."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.matmul_bits import RULE

SIZES = ({"N": 2}, {"N": 1}, {"N": 5})
X = {"inputs": "float[N,2,32] x", "outputs": "float[a,b,c] y", "sizes": SIZES}
B = "uint8[3,2,8] b = {101, 41, 11, 112, 11, 138, 116, 141, 247, 84, 55, 107, 111, 235, 21, 123, 205, 131, 233, 39, 171, 162, 119, 129, 41, 242, 74, 136, 174, 247, 7, 126, 196, 133, 165, 196, 201, 109, 240, 240, 85, 116, 158, 140, 42, 138, 98, 188}, float[6] s = {0.0575, 0.0913, 0.0694, 0.0256, 0.0796, 0.0285}, uint8[3] z = {252, 22, 151}, float[3] c = {0.5, -1.0, 2.0}"
BITS = "com.microsoft.MatMulNBits<K=32, N=3, bits=4, block_size=16>"
CASES = [
    Case("zero points", f"y = {BITS}(x, b, s, z)", constants=B, absent=("MatMulNBits",), **X),
    Case("the middle", f"y = {BITS}(x, b, s)", constants=B, **X),
    Case("a bias", f"y = {BITS}(x, b, s, , , c)", constants=B, **X),
    Case("part of a block", "y = com.microsoft.MatMulNBits<K=20, N=3, bits=4, block_size=16>(x, b, s, z)", constants=B, **{**X, "inputs": "float[N,2,20] x"}),
]
NEAR_MISSES = [
    Case("computed", f"u = Mul(s, t) y = {BITS}(x, b, u)", constants=B.split(", float[6]")[0] + ", float[6] s = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0}", skip="computed", **{**X, "inputs": "float[N,2,32] x, float t"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

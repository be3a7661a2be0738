
"""ONNX Runtime's activations."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.bias_gelu import RULE

SIZES = ({"N": 2, "T": 4}, {"N": 1, "T": 7}, {"N": 3, "T": 1})

X = {"inputs": "float[N,T,4] x", "outputs": "float[a,b,c] y", "sizes": SIZES}
B = "float[4] b = {-0.38, -1.05, 0.405, 0.7}"
CASES = [
    Case("a bias", "y = com.microsoft.BiasGelu(x, b)", constants=B, present=("Erf",), **X),
    Case("by tanh", "y = com.microsoft.FastGelu(x, b)", constants=B, present=("Tanh",), **X),
    Case("by tanh alone", "y = com.microsoft.FastGelu(x)", **X),
    Case("by a sigmoid", "y = com.microsoft.QuickGelu<alpha=1.5>(x)", present=("Sigmoid",), **X),
    Case("its own", "y = com.microsoft.Gelu(x)", **X),
    Case("new", "y = com.microsoft.BiasGelu(x, b)", constants=B, opset=20, present=("Gelu",), **X),
]
NEAR_MISSES = [Case("ONNX's", "y = Gelu(x)", opset=20, **X)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

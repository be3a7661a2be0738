# ruff: noqa: E501 - the text of a model stands on one line
"""ONNX Runtime's products with more than a product."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.fused_product import RULE

SIZES = ({"N": 2, "T": 4}, {"N": 1, "T": 7}, {"N": 3, "T": 1})

X = {"inputs": "float[N,T,4] x, float[N,T,3] u", "outputs": "float[a,b,c] y", "sizes": SIZES}
W = "float[3,4] w = {-0.355, 0.498, -0.657, 0.493, -0.237, -0.372, 0.763, 1.05, -0.305, 0.184, -0.807, 0.05}, float[3] b = {-1.16, 0.05, -0.55}"
FLAT = {"inputs": "float[N,4] x", "outputs": "float[a,b] y", "sizes": ({"N": 2}, {"N": 5}, {"N": 1}), "constants": W}
IMAGE = {"inputs": "float[N,1,T] x, float[N,1,T] s", "outputs": "float[a,b,c] y", "sizes": SIZES, "constants": "float[1,1,3] k = {0.5, -1.0, 0.25}, float[1] b = {0.1}"}
CASES = [
    Case("a factor", "y = com.microsoft.FusedMatMul<alpha=0.25, transA=1>(x, u)", absent=("FusedMatMul",), **X),
    Case("the other", "y = com.microsoft.FusedMatMul<transB=1>(x, w)", constants=W, **X),
    Case("in a row", "z = com.microsoft.FusedMatMul<transA=1>(x, u) y = com.microsoft.FusedMatMul<alpha=2.0, transB=1>(u, z)", fires=2, **X),
    *(
        Case(name, f'y = com.microsoft.FusedGemm<activation="{name}", transB=1, beta=0.5{more}>(x, w, b)', **FLAT)
        for name, more in (("Relu", ""), ("LeakyRelu", ", activation_alpha=0.2"), ("Tanh", ""))
    ),
    *(
        Case(f"{name} of a convolution", f'y = com.microsoft.FusedConv<activation="{name}", pads=[1, 1]{more}>(x, k, b)', **IMAGE)
        for name, more in (("Relu", ""), ("Clip", ", activation_params=[-0.5, 1.0]"), ("LeakyRelu", ", activation_params=[0.1]"))
    ),
    Case("a sum", 'y = com.microsoft.FusedConv<activation="Relu", pads=[1, 1]>(x, k, b, s)', **IMAGE),
]
NEAR_MISSES = [
    Case("a moved batch", "y = com.microsoft.FusedMatMul<transBatchA=1>(x, u)", skip="batch", **X),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

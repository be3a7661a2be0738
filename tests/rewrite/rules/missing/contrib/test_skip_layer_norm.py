# ruff: noqa: E501 - the text of a model stands on one line
"""Normalization of a sum in ONNX Runtime's own operators."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.contrib.skip_layer_norm import RULE

SIZES = ({"N": 2, "T": 4}, {"N": 1, "T": 7}, {"N": 3, "T": 1})

X = {"inputs": "float[N,T,4] x, float[N,T,4] s", "outputs": "float[a,b,c] y", "sizes": SIZES}
G = "float[4] g = {-0.38, -1.05, 0.405, 0.7}, float[4] b = {-0.852, 0.291, -0.485, -0.74}, float[4] bi = {0.1, 0.634, 0.0862, -0.614}"
TWO = {"inputs": "float[N,T,4] x, float[N,T,4] s", "outputs": "float[a,b,c] y, float[d,e,f] u", "sizes": SIZES}
SKIP = "com.microsoft.SkipLayerNormalization"
CASES = [
    Case("all", f"y = {SKIP}<epsilon=1e-3>(x, s, g, b, bi)", constants=G, present=("LayerNormalization",), **X),
    Case("old", f"y = {SKIP}<epsilon=1e-5>(x, s, g, b)", opset=14, constants=G, absent=("LayerNormalization",), **X),
    Case("no shift", f"y = {SKIP}<epsilon=1e-3>(x, s, g)", constants=G, **X),
    Case("with the sum", f"y, m, i, u = {SKIP}<epsilon=1e-3>(x, s, g, b, bi)", constants=G, **TWO),
    Case("simplified", "y, m, i, u = com.microsoft.SkipSimplifiedLayerNormalization<epsilon=1e-3>(x, s, g, bi)", constants=G, **TWO),
    Case("simplified alone", "z = Add(x, s) y = SimplifiedLayerNormalization<epsilon=1e-3, axis=-1>(z, g)", constants=G, edit=lambda m: None, **X),
    Case("in a row", f"a1 = {SKIP}<epsilon=1e-3>(x, s, g, b, bi) a2, m, i, u = {SKIP}<epsilon=1e-3>(a1, x, g, b) y = {SKIP}<epsilon=1e-3>(u, a2, g, b)", constants=G, fires=3, **X),
]
NEAR_MISSES = [Case("another operator", "z = Add(x, s) y = LayerNormalization(z, g)", constants=G, **X)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

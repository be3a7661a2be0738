# ruff: noqa: E501 - the text of a model stands on one line
"""A scale by channel behind a grouped transposed convolution, which TensorRT 8.6 fuses wrongly."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.transposed_scale import RULE

W = "float[4,1,2,2] w = {1,2,3,4,-1,-2,-3,-4,0.5,0.25,0.75,1,2,2,3,3}, float[2] k = {0.5, -2.0}, float[1,2,1,1] f = {0.5, -2.0}"
BN = "float[2] s = {1.0,-2.0}, float[2] b = {0.1,0.2}, float[2] m = {0.3,0.1}, float[2] v = {0.2,0.5}"
X = {"inputs": "float[N,4,3,4] x", "outputs": "float[a,b,c,d] y", "sizes": ({"N": 2}, {"N": 1}, {"N": 3}),
     "constants": f"{W}, {BN}", "target": "tensorrt==8.6"}  # fmt: skip
FED = {**X, "inputs": "float[N,4,3,4] x, float[4,1,2,2] u", "sizes": ({"N": 2}, {"N": 1}, {"N": 3})}
CASES = [
    Case("batch norm", "c = ConvTranspose<group=2>(x, w) y = BatchNormalization(c, s, b, m, v)", absent=("BatchNormalization",), **X),
    Case("with a bias, steps and pads", "c = ConvTranspose<group=2, strides=[2,1], dilations=[1,2], pads=[1,0,0,1]>(x, w, k) y = BatchNormalization<epsilon=0.1>(c, s, b, m, v)", absent=("BatchNormalization",), **X),
    Case("factor", "c = ConvTranspose<group=2>(x, w, k) y = Mul(f, c)", absent=("Mul",), **X),
    Case("factor and another operator", "c = ConvTranspose<group=2>(x, w) e = Mul(c, f) y = Relu(e)", absent=("Mul",), **X),
    Case("weights that are fed", "c = ConvTranspose<group=2>(x, u) y = BatchNormalization(c, s, b, m, v)", absent=("BatchNormalization",), **FED),
    Case("several channels in a group", "c = ConvTranspose<group=2>(x, q) y = Mul(c, h)", absent=("Mul",), **{**X, "constants": "float[4,2,1,1] q = {1,2,3,4,-1,-2,-3,-4}, float[4,1,1] h = {0.5, -2.0, 3.0, 0.25}"}),
]
NEAR_MISSES = [
    Case("one group", "c = ConvTranspose(x, q) y = Mul(c, f)", **{**X, "constants": "float[4,2,1,1] q = {1,2,3,4,-1,-2,-3,-4}, float[1,2,1,1] f = {0.5, -2.0}"}),
    Case("a channel each", "c = ConvTranspose<group=4>(x, w) y = Mul(c, h)", **{**X, "constants": f"{W}, float[4,1,1] h = {{0.5, -2.0, 3.0, 0.25}}"}),
    Case("a number", "c = ConvTranspose<group=2>(x, w) y = Mul(c, n)", **{**X, "constants": f"{W}, float n = {{0.5}}"}),
    Case("by column", "c = ConvTranspose<group=2>(x, w) y = Mul(c, n)", **{**X, "constants": f"{W}, float[5] n = {{0.5, 1, 2, 3, 4}}"}),
    Case("two readers", "c = ConvTranspose<group=2>(x, w) e = Mul(c, f) y = Add(e, c)", **X),
    Case("a convolution", "c = Conv<group=2>(x, q) y = Mul(c, f)", **{**X, "constants": "float[2,2,1,1] q = {1,2,3,4}, float[1,2,1,1] f = {0.5, -2.0}"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Perceptrons with a depthwise convolution between their products."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from tests.rewrite.rules.faster.test_patch_products import constants
from trtconv.rewrite.rules.faster.products_around_convolution import RULE

ROWS, OUT = "float[N,12,3] x", "float[a,b,c] y"
IMAGE = "t = Transpose<perm=[0,2,1]>(q) i = Reshape(t, m) d = Conv<group=6, pads=[1,1,1,1]>(i, k) r = Reshape(d, n) z = Transpose<perm=[0,2,1]>(r)"
GELU = "e = Mul(z, h) f = Erf(e) g2 = Add(f, o) l = Mul(g2, z) y = MatMul(l, v)"
BIASED = "p = MatMul(x, w) q = Add(p, b)"
LAYOUT = {"m": (-1, 6, 4, 3), "n": (-1, 6, 12)}


def values(narrow=2, kernel=(6, 1, 3, 3), **more):
    text = constants((3, 6), (6,), (6, narrow), kernel, **{**LAYOUT, **more}).replace("] u =", "] k =")
    return f"{text}, float h = {{0.7}}, float[1] o = {{1}}"


OLD = {"target": "tensorrt==8.6", "absent": ("MatMul",), "present": ("Conv",)}
MISS = {"target": "tensorrt==8.6"}
CASES = [
    Case("a perceptron of PVTv2", f"{BIASED} {IMAGE} {GELU}", ROWS, OUT, constants=values(), **OLD),
    Case("no bias", f"q = MatMul(x, w) {IMAGE} {GELU}", ROWS, OUT, constants=values(), **OLD),
    Case("nothing between", f"{BIASED} {IMAGE} y = MatMul(z, v)", ROWS, OUT, constants=values(), **OLD),
    Case("a number of more axes", f"{BIASED} {IMAGE} l = Mul(z, s) y = MatMul(l, v)", ROWS, OUT, constants=values() + ", float[1,1,1] s = {0.3}", **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("a sum of two products", f"p = MatMul(x, w) p2 = Sin(p) q = Add(p, p2) {IMAGE} {GELU}", ROWS, OUT, constants=values(), **MISS),
    Case("rows that widen again", f"{BIASED} {IMAGE} {GELU}", ROWS, OUT, constants=values(narrow=7), skip="wider", **MISS),
    Case("the image is an output too", f"{BIASED} {IMAGE} {GELU}", ROWS, f"{OUT}, float[d1,d2,d3] l", constants=values(), skip="elsewhere", **MISS),
    Case("rows that other rows follow", f"{BIASED} {IMAGE} e = Softmax<axis=1>(z) y = MatMul(e, v)", ROWS, OUT, constants=values(), **MISS),
    Case("channels that meet", f"{BIASED} {IMAGE.replace('group=6, ', '')} {GELU}", ROWS, OUT, constants=values(kernel=(6, 6, 3, 3)), **MISS),
    Case("a factor for each column", f"{BIASED} {IMAGE} l = Mul(z, s) y = MatMul(l, v)", ROWS, OUT, constants=values() + ", float[6] s = {1,2,3,4,5,6}", **MISS),
    Case("rows that are mixed with the batch", f"{BIASED} {IMAGE} {GELU}", "float[N,6,3] x", OUT, constants=values(m=(-1, 6, 4, 3)), sizes=({"N": 2}, {"N": 4}, {"N": 6}), **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Products by a matrix as one of all rows."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.flat_products import RULE

W = "float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}"
V = "float[3,2] v = {1,2,3,4,5,6}, float[3] b = {1,2,3}, float h = {0.5}"
IMAGE = "float[N,H,W,4] x"
OLD = {"target": "tensorrt==8.6", "present": ("Reshape",)}
MLP = "a = MatMul(x, w) c = Add(a, b) e = Erf(c) f = Mul(c, h) k = Mul(e, f) y = MatMul(k, v)"
CASES = [
    Case("an image", "y = MatMul(x, w)", IMAGE, constants=W, **OLD),
    Case("fixed but for the batch", "y = MatMul(x, w)", "float[N,5,7,4] x", constants=W, absent=("Shape",), **OLD),
    Case("a perceptron stays flat", MLP, IMAGE, constants=f"{W}, {V}", **OLD),
    Case("products in a row", "a = MatMul(x, w) y = MatMul(a, v)", IMAGE, constants=f"{W}, {V}", **OLD),
    Case("something between that is not pointwise", "a = MatMul(x, w) s = Softmax<axis=2>(a) y = MatMul(s, v)", IMAGE, constants=f"{W}, {V}", fires=2, **OLD),
    Case("what is between is an output too", "a = MatMul(x, w) c = Relu(a) y = MatMul(c, v)", IMAGE, "float[a,b,c,d] y, float[e,f,g,h] c", constants=f"{W}, {V}", fires=2, **OLD),
    Case("a residual from before", "a = MatMul(x, u) c = Add(a, x) y = MatMul(c, w)", IMAGE, constants=f"{W}, float[4,4] u = {{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}}", fires=2, **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("a sequence", "y = MatMul(x, w)", "float[N,H,4] x", "float[a,b,c] y", constants=W, target="tensorrt==8.6"),
    Case("a matrix already", "y = MatMul(x, w)", "float[N,4] x", "float[a,b] y", constants=W, target="tensorrt==8.6"),
    Case("two activations", "t = Transpose<perm=[0,1,3,2]>(x) y = MatMul(x, t)", IMAGE, target="tensorrt==8.6"),
    Case("one matrix for each image", "y = MatMul(x, u)", "float[N,2,H,2] x", constants="float[2,2,2] u = {1,2,3,4,5,6,7,8}", target="tensorrt==8.6"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Layer scales in the matrices before them."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.faster.scale_into_product import RULE

W = "float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}"
S, B = "float[3] s = {0.5,2,-0.1}", "float[3] b = {1,-2,3}"
ROWS, OUT = "float[N,H,4] x", "float[a,b,c] y"
OLD = {"target": "tensorrt==8.6", "absent": ("Mul",)}
CASES = [
    Case("with a bias", "p = MatMul(x, w) q = Add(p, b) y = Mul(q, s)", ROWS, OUT, constants=f"{W}, {B}, {S}", **OLD),
    Case("without one", "p = MatMul(x, w) y = Mul(s, p)", ROWS, OUT, constants=f"{W}, {S}", **OLD),
    Case("an image, and factors of its rank", "p = MatMul(x, w) y = Mul(p, s)", "float[N,H,W,4] x", constants=f"{W}, float[1,1,1,3] s = {{0.5,2,-0.1}}", **OLD),
]  # fmt: skip
MISS = {"target": "tensorrt==8.6"}
NEAR_MISSES = [
    Case("one number", "p = MatMul(x, w) y = Mul(p, s)", ROWS, OUT, constants=f"{W}, float s = {{0.5}}", **MISS),
    Case("a factor for each row", "p = MatMul(x, w) y = Mul(p, s)", "float[N,3,4] x", OUT, constants=f"{W}, float[3,1] s = {{0.5,2,-0.1}}", **MISS),
    Case("too small for half precision", "p = MatMul(x, w) y = Mul(p, s)", ROWS, OUT, constants=f"{W}, float[3] s = {{0.5,0.000001,1}}", skip="half precision", **MISS),
    Case("a factor of nothing", "p = MatMul(x, w) y = Mul(p, s)", ROWS, OUT, constants=f"{W}, float[3] s = {{0.5,0,1}}", skip="half precision", **MISS),
    Case("the product is an output too", "p = MatMul(x, w) y = Mul(p, s)", ROWS, f"{OUT}, float[d,e,f] p", constants=f"{W}, {S}", skip="elsewhere", **MISS),
    Case("two activations", "p = MatMul(x, u) y = Mul(p, s)", f"{ROWS}, float[4,3] u", OUT, constants=S, **MISS),
    Case("factors that widen the result", "p = MatMul(x, w) y = Mul(p, s)", ROWS, "float[a,b,c,d] y", constants=f"{W}, float[1,1,1,3] s = {{0.5,2,-0.1}}", skip="each column", **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

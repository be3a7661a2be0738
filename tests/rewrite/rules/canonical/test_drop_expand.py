# ruff: noqa: E501 - the text of a model stands on one line
"""Expand before an operator that broadcasts."""

import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of
from trtconv.rewrite.rules.canonical.drop_expand import RULE
from trtconv.rewrite.rules.canonical.l2norm import RULE as L2NORM
from trtconv.rewrite.rules.plugin.plugin_l2norm import RULE as PLUGIN

W = "float[1,8,1,1] w = {1,2,3,4,5,6,7,8}"
SIZES = "s = Shape(x) n = Gather(s, i0) h = Gather(s, i2) v = Gather(s, i3) z = Concat<axis=0>(n, eight, h, v) "
INTS = ", int64[1] i0 = {0}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64[1] eight = {8}, int64[1] one = {1}"
CASES = [
    Case("shape of the other", "s = Shape(x) e = Expand(w, s) y = Mul(e, x)", constants=W, absent=("Expand", "Shape")),
    Case("on the right", "s = Shape(x) e = Expand(w, s) y = Sub(x, e)", constants=W, absent=("Expand",)),
    Case("sizes one by one", SIZES + "e = Expand(w, z) y = Mul(x, e)", constants=W + INTS, absent=("Expand",)),
    Case("ones among the sizes", SIZES + "q = Concat<axis=0>(one, eight, h, v) e = Expand(w, q) y = Mul(x, e)", constants=W + INTS, absent=("Expand",)),
    Case("fewer axes", "s = Shape(x) h = Gather(s, i2) v = Gather(s, i3) z = Concat<axis=0>(h, v) e = Expand(k, z) y = Add(x, e)",
         constants="float k = {2.0}" + INTS, absent=("Expand",)),
    Case("a condition", "c = Greater(x, o) s = Shape(x) e = Expand(m, s) y = And(e, c)", outputs="bool[a,b,c,d] y",
         constants="float o = {0.0}, bool[1,8,1,1] m = {1,0,1,1,0,1,0,1}", absent=("Expand",)),
    Case("a norm", "r = ReduceL2<axes=[1]>(x) s = Shape(x) e = Expand(r, s) k = Add(x, e) y = Relu(k)", absent=("Expand",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("to the shape of something larger", "s = Shape(t) e = Expand(w, s) y = Mul(x, e)", "float[1,8,H,W] x, float[N,8,H,W] t", constants=W, skip="not known"),
    Case("by a constant that is larger", "e = Expand(w, k) y = Mul(x, e)", "float[1,8,H,W] x", constants=W + ", int64[4] k = {3,8,1,1}", skip="not known"),
    Case("sizes that are twice as large", "s = Shape(x) d = Mul(s, k) e = Expand(w, d) t = Concat<axis=0>(x, x) y = Mul(e, t)",
         constants=W + ", int64[4] k = {2,1,1,1}", skip="not known"),
    Case("not expanded", "y = Mul(x, w)", constants=W),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_the_scale_of_an_ssd_reaches_the_plugin():
    text = "q = Pow(x, t) r = ReduceSum(q, a) n = Sqrt(r) d = Add(n, o) v = Div(x, d) s = Shape(x) e = Expand(w, s) y = Mul(e, v)"
    model = model_of(Case("ssd", text, constants=W + ", float t = {2.0}, float o = {1e-7}, int64[1] a = {1}"))
    record = apply(model, (RULE, L2NORM, PLUGIN), "tensorrt==10")
    assert not record.rejected
    assert [n.op_type for n in model.graph.node] == ["TrtconvL2Norm"]

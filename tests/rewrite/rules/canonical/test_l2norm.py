# ruff: noqa: E501 - the text of a model stands on one line
import dataclasses

import numpy as np
import pytest

from tests.rewrite.harness import Case, all_nodes, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.canonical.l2norm import RULE

C = "int64[1] axis = {1}, float two = {2.0}, float half = {0.5}, float eps = {1e-10}, float one = {1.0}, float big = {1e-3}"
SQUARES = {
    "pow": "q = Pow(x, two) s = ReduceSum(q, axis)",
    "mul": "q = Mul(x, x) s = ReduceSum(q, axis)",
    "abs then pow": "ab = Abs(x) q = Pow(ab, two) s = ReduceSum(q, axis)",
    "ReduceSumSquare": "s = ReduceSumSquare<axes=[1]>(x)",
}
ENDS = {
    "eps outside": "n = Sqrt(s) d = Add(n, eps) y = Div(x, d)",
    "eps first": "n = Sqrt(s) d = Add(eps, n) y = Div(x, d)",
    "eps inside": "e = Add(s, big) n = Sqrt(e) y = Div(x, n)",
    "eps clamp": "n = Sqrt(s) d = Clip(n, big) y = Div(x, d)",
    "eps clamp inside": "e = Max(s, big) n = Pow(e, half) y = Div(x, n)",
    "rsqrt": "e = Add(s, big) n = Sqrt(e) r = Reciprocal(n) y = Mul(r, x)",
    "one over": "n = Sqrt(s) d = Add(n, big) r = Div(one, d) y = Mul(x, r)",
    "expanded": "n = Sqrt(s) d = Max(n, eps) h = Shape(x) f = Expand(d, h) y = Div(x, f)",
}
EPSILON = {name: 1e-10 if name in ("eps outside", "eps first", "expanded") else 1e-3 for name in ENDS}
PLAIN = ("mul", "eps outside"), ("mul", "eps first"), ("mul", "eps inside")
CASES = [
    Case(f"{a}, {b}", SQUARES[a] + " " + ENDS[b], constants=C, present=("ReduceSum",), absent=("Pow", "Expand", "ReduceL2"))
    for a in SQUARES for b in ENDS if (a, b) not in PLAIN
] + [
    Case("ReduceL2", "n = ReduceL2<axes=[1]>(x) d = Add(n, eps) y = Div(x, d)", constants=C, absent=("ReduceL2",)),
    Case("ReduceL2 opset 18", "n = ReduceL2(x, axis) d = Add(n, eps) y = Div(x, d)", constants=C, opset=18, absent=("ReduceL2",)),
    Case("two axes", "n = ReduceL2<axes=[2,-1]>(x) d = Max(n, eps) y = Div(x, d)", constants=C, absent=("ReduceL2",)),
    Case("last axis, squeezed and unsqueezed",
         "n = ReduceL2<axes=[-1],keepdims=0>(x) u = Unsqueeze(n, last) d = Max(u, eps) y = Div(x, d)",
         constants=C + ", int64[1] last = {-1}", absent=("ReduceL2",)),
    Case("with a learnable scale", "q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) v = Div(x, d) y = Mul(w, v)",
         constants=C + ", float[1,8,1,1] w = {1,2,3,4,5,6,7,8}", absent=("Pow",)),
    Case("LpNormalization", "y = LpNormalization<axis=1,p=2>(x)", absent=("LpNormalization",)),
    Case("in a branch of If", """
        t = ReduceMax<keepdims=0>(x) c = Greater(t, eps)
        y = If(c) <then_branch = a () => (float[a,b,c,d] p) { q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) p = Div(x, d) },
                   else_branch = b () => (float[a,b,c,d] r) { r = Identity(x) }>""", constants=C, absent=("Pow",)),
    Case("in the body of a Loop", """
        three = Constant<value_int=3>() yes = Constant<value_int=1>() go = Cast<to=9>(yes)
        y = Loop(three, go, x) <body = l (int64 i, bool t, float[n,ch,h,w] v) => (bool k, float[n,ch,h,w] r) {
            k = Identity(t) q = Pow(v, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) r = Div(v, d) }>""",
         constants=C, absent=("Pow",)),
]  # fmt: skip
ONES = ", int64 i0 = {0}, int64 i2 = {2}, int64 i3 = {3}, int64[1] q0 = {0}, int64[1] q1 = {1}"
SIZED = "h = Shape(x) a0 = Gather(h, i0) b0 = Unsqueeze(a0, q0) a2 = Gather(h, i2) b2 = Unsqueeze(a2, q0) a3 = Gather(h, i3) b3 = Unsqueeze(a3, q0) z = Concat<axis=0>(b0, q1, b2, b3) "
W = C + ", float[1,8,1,1] w = {1,2,3,4,5,6,7,8}"
SQUARED = "q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, big) "
CASES += [
    Case("scale first", SQUARED + "p = Mul(w, x) y = Div(p, d)", constants=W, absent=("Pow",)),
    Case("scale first, the other way round", SQUARED + "p = Mul(x, w) y = Div(p, d)", constants=W, absent=("Pow",)),
    Case("scale first, else canonical", "q = Mul(x, x) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) p = Mul(x, w) y = Div(p, d)", constants=W),
    Case("scale first, ReduceL2 and clamp", "n = ReduceL2<axes=[1]>(x) d = Clip(n, big) p = Mul(w, x) y = Div(p, d)", constants=W, absent=("ReduceL2",)),
    Case("scale first, last axis by a negative number", "n = ReduceL2<axes=[-1]>(x) d = Max(n, big) p = Mul(w, x) y = Div(p, d)", constants=W, absent=("ReduceL2",)),
    Case("scale first, then times the inverse", SQUARED + "r = Reciprocal(d) p = Mul(w, x) y = Mul(p, r)", constants=W, absent=("Pow", "Reciprocal")),
    Case("scale on the inverse", SQUARED + "r = Reciprocal(d) p = Mul(w, r) y = Mul(p, x)", constants=W, absent=("Pow", "Reciprocal")),
    Case("scale over norm", SQUARED + "r = Div(w, d) y = Mul(x, r)", constants=W, absent=("Pow",)),
    Case("scale and rsqrt of a power", "q = Mul(x, x) s = ReduceSum(q, axis) e = Add(s, big) r = Pow(e, rs) p = Mul(x, w) y = Mul(r, p)",
         constants=W + ", float rs = {-0.5}", absent=("Pow",)),
    Case("one number as scale", SQUARED + "p = Mul(x, ten) y = Div(p, d)", constants=C + ", float ten = {10.0}", absent=("Pow",)),
    Case("scale that is computed", SQUARED + "z = ReduceMax<axes=[2]>(x) p = Mul(x, z) y = Div(p, d)", constants=C, absent=("Pow",)),
    Case("scale that is unsqueezed", SQUARED + "u = Unsqueeze(k, ends) p = Mul(x, u) y = Div(p, d)",
         constants=C + ", float[8] k = {1,2,3,4,5,6,7,8}, int64[3] ends = {0,2,3}", absent=("Pow",)),
    Case("squeezed norm that is an output too", "n = ReduceL2<axes=[-3],keepdims=0>(x) u = Unsqueeze(n, one1) d = Add(u, big) y = Div(x, d) m = Relu(n)",
         outputs="float[a,b,c,d] y, float[a,c,d] m", constants=C + ", int64[1] one1 = {1}"),
    Case("square root of ReduceSumSquare, squeezed", "s = ReduceSumSquare<axes=[1],keepdims=0>(x) n = Sqrt(s) u = Unsqueeze(n, m3) y = Div(x, u)",
         constants=C + ", int64[1] m3 = {-3}", absent=("ReduceSumSquare",)),
    Case("reshaped", "n = ReduceL2<axes=[1],keepdims=0>(x) " + SIZED + "r = Reshape(n, z) d = Add(r, big) y = Div(x, d)", constants=C + ONES, absent=("ReduceL2",)),
    Case("reshaped, one size open", "n = ReduceL2<axes=[1],keepdims=0>(v) r = Reshape(n, o1) d = Add(r, big) y = Div(v, d)", "float[N,8] v", "float[a,b] y",
         constants=C + ", int64[2] o1 = {-1, 1}", absent=("ReduceL2",)),
    Case("all axes", "n = ReduceL2<axes=[1,2,3]>(x) d = Add(n, big) y = Div(x, d)", constants=C, absent=("ReduceL2",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("the scale of another value", SQUARED + "t = Relu(x) p = Mul(t, w) y = Div(p, d)", constants=W),
    Case("computed scale, else canonical", "q = Mul(x, x) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) z = Relu(x) p = Mul(x, z) y = Div(p, d)", constants=C),
    Case("unsqueezed at another place", "n = ReduceL2<axes=[1],keepdims=0>(x) u = Unsqueeze(n, m1) d = Add(u, big) y = Div(x, d)",
         "float[N,8,8,8] x", constants=C + ", int64[1] m1 = {-1}"),
    Case("reshaped with rows and columns swapped", "n = ReduceL2<axes=[1],keepdims=0>(x) h = Shape(x) t = Gather(h, perm) z = Concat<axis=0>(t, q1) k = Gather(z, back) r = Reshape(n, k) d = Add(r, big) y = Div(x, d)",
         "float[N,8,H,H] x", constants=C + ", int64[3] perm = {0, 3, 2}, int64[1] q1 = {1}, int64[4] back = {0, 1, 3, 2}"),
    Case("kept and unsqueezed", "n = ReduceL2<axes=[1]>(x) u = Unsqueeze(n, axis) y = Div(x, u)", outputs="float[a,b,c,d,e] y", constants=C),
    Case("a computed number over the norm", SQUARED + "z = ReduceMax<axes=[2]>(x) r = Div(z, d) y = Mul(x, r)", constants=C),
    Case("canonical already", "q = Mul(x, x) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) y = Div(x, d)", constants=C),
    Case("another value is divided", "z = Relu(x) q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) y = Div(z, n)", constants=C),
    Case("a mean of squares", "q = Pow(x, two) s = ReduceMean<axes=[1]>(q) n = Sqrt(s) y = Div(x, n)", constants=C),
    Case("cubes", "q = Pow(x, three) s = ReduceSum(q, axis) e = Abs(s) n = Sqrt(e) y = Div(x, n)", constants=C + ", float three = {3.0}"),
    Case("exponent of another value", "q = Pow(x, k) s = ReduceSum(q, axis) n = Sqrt(s) y = Div(x, n)", constants=C + ", float k = {2.5}"),
    Case("epsilon that is not a constant", "q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, x) y = Div(x, d)", constants=C),
    Case("epsilon per channel", "q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, k) y = Div(x, d)",
         constants=C + ", float[1,8,1,1] k = {1,2,3,4,5,6,7,8}"),
    Case("p = 1", "y = LpNormalization<axis=1,p=1>(x)"),
]  # fmt: skip


@pytest.mark.sampled(29)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("end", ENDS)
def test_the_epsilon_stays_where_it_was(end):
    case = Case(end, SQUARES["pow"] + " " + ENDS[end], constants=C)
    after = check_case(RULE, case)
    makers = {o: n for n in all_nodes(after.graph) for o in n.output}
    div = makers["y"]
    below = makers[div.input[1]]
    inside = "inside" in end or end == "rsqrt"
    assert below.op_type == ("Sqrt" if inside else below.op_type)
    at = makers[below.input[0]] if inside else below
    assert at.op_type == ("Max" if "clamp" in end or end == "expanded" else "Add")
    value = next(t for t in after.graph.initializer if t.name == at.input[1])
    assert np.isclose(onnx_value(value), EPSILON[end], rtol=1e-6)


def onnx_value(tensor):
    from onnx import numpy_helper

    return float(numpy_helper.to_array(tensor))


def halves(model):
    from onnx import numpy_helper

    for name, value in (("two", 2.0), ("eps", 1e-4)):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.float16), name))


def test_half_precision_is_summed_in_float32():
    half = Case(
        "half",
        "q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) y = Div(x, d)",
        "float16[N,64,H,W] x",
        "float16[a,b,c,d] y",
        "int64[1] axis = {1}",
        edit=halves,
    )
    model = model_of(half)
    record = apply(model, (RULE,), "tensorrt-rtx")
    assert [e.rule for e in record.entries] == ["l2norm"], record.rejected
    x = (np.random.default_rng(0).standard_normal((1, 64, 5, 7)) * 60).astype(np.float16)
    actual = runner(model)({"x": x})["y"].astype(np.float32)
    wide = x.astype(np.float32)
    expected = wide / (np.sqrt((wide * wide).sum(1, keepdims=True)) + 1e-4)
    assert np.isinf((x * x).sum(1, dtype=np.float16)).any()
    assert np.abs(actual - expected).max() < 2e-3
    again = apply(model, (RULE,), "tensorrt-rtx")
    assert not again.entries


def test_without_an_epsilon_the_ledger_says_so():
    case = Case("bare", "q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) y = Div(x, n)", constants=C)
    record = apply(model_of(dataclasses.replace(case)), (RULE,), "tensorrt-rtx")
    assert "NaN" in record.entries[0].note

# ruff: noqa: E501 - the text of a model stands on one line
"""x[mask] = number."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.masked_fill import RULE

Z = "float z = {0.0}, float five = {5.0}"
C8 = ", int64[3] h3 = {8, 6, 6}, int64[1] i0 = {0}"
GONE = ("NonZero", "ScatterND", "GatherND")
OWN = "m = Less(x, z) n = NonZero(m) t = Transpose(n) g = GatherND(x, t) "
ROWS = "q = ReduceMean<axes=[1,2,3],keepdims=0>(x) m = Less(q, z) n = NonZero(m) t = Transpose(n) "
TOKENS = (
    "q = ReduceMean<axes=[2],keepdims=0>(x) m = Less(q, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) g = GatherND(x, t) "
)
WEIGHTS = "float z = {0.0}, float[4,4] w = {1,2,0,-1,0.5,1,1,0,-1,0,2,1,0.1,0.2,0.3,0.4}, float[4] c = {1,-1,0.5,2}, int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}"
CASES = [
    Case(
        "a number by broadcast",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) s = Shape(t) c = Gather(s, i0) u = Unsqueeze(c, zero) v = Expand(five, u) y = ScatterND(x, t, v)",
        constants="float z = {0.0}, float five = {5.0}, int64 i0 = {0}, int64[1] zero = {0}",
        absent=("NonZero", "ScatterND"),
    ),
    Case(
        "computed from itself", OWN + "v = Mul(g, five) w = Sub(v, z) y = ScatterND(x, t, w)", constants=Z, absent=GONE
    ),
    Case(
        "from another value",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) g = GatherND(o, t) y = ScatterND(x, t, g)",
        "float[N,8,H,W] x, float[N,8,H,W] o",
        constants=Z,
        absent=GONE,
    ),
    Case(
        "two selections",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) g = GatherND(o, t) k = NonZero(m) u = Transpose(k) h = GatherND(x, u) a = Max(g, h) e = Exp(z) d = Div(a, e) y = ScatterND(x, u, d)",
        "float[N,8,H,W] x, float[N,8,H,W] o",
        constants=Z,
        absent=GONE,
    ),
    Case(
        "what torch writes around it",
        OWN
        + "v = Add(g, five) f = Reshape(m, m1) i = Cast<to=7>(f) c = ReduceSum(i, zero) p = Expand(v, c) q = Reshape(p, m1) y = ScatterND(x, t, q)",
        constants=Z + ", int64[1] zero = {0}, int64[1] m1 = {-1}",
        absent=GONE,
    ),
    Case(
        "what TorchScript writes around it",
        OWN
        + "v = Mul(g, five) h = Shape(x) e = Expand(m, h) n2 = NonZero(e) t2 = Transpose(n2) r = Reshape(v, m1) k = Shape(t2) c = Gather(k, i0) u = Unsqueeze(c, zero) q = Slice(r, zero, u) y = ScatterND(x, t2, q)",
        constants=Z + ", int64[1] zero = {0}, int64[1] m1 = {-1}, int64 i0 = {0}",
        absent=GONE,
    ),
    Case(
        "rows",
        ROWS + "s = Shape(t) k = Gather(s, i0) h = Concat<axis=0>(k, h3) w = Expand(five, h) y = ScatterND(x, t, w)",
        "float[N,8,6,6] x",
        constants=Z + C8,
        absent=GONE,
        sizes=({"N": 5}, {"N": 7}, {"N": 12}),
    ),
    Case(
        "rows computed from themselves",
        ROWS + "g = GatherND(x, t) w = Relu(g) y = ScatterND(x, t, w)",
        "float[N,8,6,6] x",
        constants=Z + C8,
        absent=GONE,
        sizes=({"N": 5}, {"N": 7}, {"N": 12}),
    ),
    Case(
        "less a computed number",
        OWN + "c = ReduceMax<keepdims=0>(x) v = Sub(g, c) y = ScatterND(x, t, v)",
        constants=Z,
        absent=GONE,
    ),
    Case(
        "columns that are joined",
        "m = Less(i, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) a = Slice(t, i0, i1, i1) b = Slice(t, i1, i2, i1) a1 = Squeeze(a, i1) b1 = Squeeze(b, i1) a2 = Unsqueeze(a1, im) b2 = Unsqueeze(b1, im) q = Concat<axis=-1>(a2, b2) g = GatherND(o, t) y = ScatterND(i, q, g)",
        "float[N,H] i, float[N,H] o",
        "float[a,b] y",
        constants=Z + ", int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] im = {-1}",
        absent=GONE,
        opset=18,
    ),
    Case(
        "from a value of unknown sizes",
        "m = Less(i, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) w = Concat<axis=1>(i, i) g = GatherND(w, t) y = ScatterND(i, t, g)",
        "float[N,H] i",
        "float[a,b] y",
        constants=Z,
        absent=GONE,
    ),
    Case(
        "a layer on rows",
        TOKENS + "h = Gemm<transB=1>(g, w, c) r = Softmax<axis=1>(h) p = Mul(r, c) y = ScatterND(x, t, p)",
        "float[N,T,4] x",
        "float[a,b,d] y",
        constants=WEIGHTS,
        absent=GONE,
        sizes=({"N": 1, "T": 5}, {"N": 3, "T": 7}, {"N": 2, "T": 4}),
    ),
    Case(
        "parts of rows and their extremes",
        TOKENS
        + "l = Slice(g, i0, i2, i1) e = ReduceMax<axes=[1]>(g) f = MatMul(g, w) s = Slice(f, i1, i2, i1) p = Concat<axis=1>(l, s, e) y = ScatterND(x, t, p)",
        "float[N,T,4] x",
        "float[a,b,d] y",
        constants=WEIGHTS,
        absent=GONE,
        sizes=({"N": 1, "T": 5}, {"N": 3, "T": 7}, {"N": 2, "T": 4}),
    ),
    Case(
        "added",
        TOKENS + "h = Gemm<transB=1>(g, w, c) y = ScatterND<reduction=\"add\">(x, t, h)",
        "float[N,T,4] x",
        "float[a,b,d] y",
        constants=WEIGHTS,
        absent=GONE,
        sizes=({"N": 1, "T": 5}, {"N": 3, "T": 7}, {"N": 2, "T": 4}),
        opset=17,
    ),
    *(
        Case(
            f"a mixture of experts, {kind}",
            f"{mask} n = NonZero(m) t = Transpose<perm=[1,0]>(n) a = Slice(t, i0, i1, i1) b = Slice(t, i1, i2, i1) a1 = Squeeze(a, i1) b1 = Squeeze(b, i1) {order}"
            "s = GatherND(x, r) h = Gemm<transB=1>(s, w, c) u = Unsqueeze(p, i2) q = Concat<axis=-1>(r, k) g = GatherND(u, q) v = Mul(h, g) y = ScatterND<reduction=\"add\">(x, r, v)",
            inputs,
            "float[a,b] y",
            constants=WEIGHTS + ", int64[1] im = {-1}, int64 one = {1}",
            ranges={"e": (0, 3)},
            present=("ReduceSum",),
            absent=GONE,
            sizes=({"N": 1}, {"N": 5}, {"N": 12}),
            opset=18,
        )
        for kind, mask, order, inputs in (
            ("rows first", "m = Equal(e, one)", "r = Unsqueeze(a1, im) k = Unsqueeze(b1, im) ", "float[N,4] x, int64[N,2] e, float[N,2] p"),
            ("rows second, of a weight of unknown sizes", "m0 = Equal(e, one) m = Transpose<perm=[1,0]>(m0) p = Concat<axis=1>(p0, p0)", "r = Unsqueeze(b1, im) k = Unsqueeze(a1, im) ", "float[N,4] x, int64[N,2] e, float[N,2] p0"),
            ("rows second, of numbers", "m0 = Equal(e, one) m1 = Cast<to=7>(m0) m = Transpose<perm=[1,0]>(m1)", "r = Unsqueeze(b1, im) k = Unsqueeze(a1, im) ", "float[N,4] x, int64[N,2] e, float[N,2] p"),
        )
    ),
    Case(
        "rows by one index",
        "q = ReduceMean<axes=[1],keepdims=0>(x) m = Less(q, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) i = Squeeze(t, i1) s = Gather(x, i) h = MatMul(s, w) y = ScatterND(x, t, h)",
        "float[N,4] x",
        "float[a,b] y",
        constants=WEIGHTS,
        absent=("NonZero", "ScatterND", "Gather"),
        sizes=({"N": 1}, {"N": 5}, {"N": 12}),
    ),
    Case(
        "whole numbers by what is not 0 where it is selected",
        "m = Less(j, z) n = NonZero(m) t = Transpose<perm=[1,0]>(n) a = GatherND(i, t) b = GatherND(j, t) d = Div(a, b) y = ScatterND(i, t, d)",
        "int64[N,H] i, int64[N,H] j",
        "int64[a,b] y",
        constants="int64 z = {0}",
        ranges={"i": (-9, 9), "j": (-3, 3)},
        absent=GONE,
    ),
]
NEAR_MISSES = [
    Case(
        "values that differ",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) s = Shape(t) c = Gather(s, i0) r = Range(i0, c, i1) v = Cast<to=1>(r) y = ScatterND(x, t, v)",
        constants="float z = {0.0}, int64 i0 = {0}, int64 i1 = {1}",
        skip="number",
    ),
    Case(
        "rows from outside",
        "q = ReduceMax<axes=[1,2,3],keepdims=0>(x) m = Less(q, z) n = NonZero(m) t = Transpose(n) y = ScatterND(x, t, w)",
        "float[N,8,H,W] x, float[K,8,H,W] w",
        constants=Z,
        skip="same places",
    ),
    Case(
        "what another mask selects",
        OWN + "m2 = Greater(x, z) n2 = NonZero(m2) t2 = Transpose(n2) g2 = GatherND(x, t2) y = ScatterND(x, t, g2)",
        constants=Z,
        skip="same places",
    ),
    Case(
        "a mask of another size",
        "m = Less(o, z) n = NonZero(m) t = Transpose(n) g = GatherND(x, t) y = ScatterND(x, t, g)",
        "float[N,8,H,W] x, float[N,8,3,3] o",
        constants=Z,
        skip="shape of the value",
    ),
    Case(
        "sorted rows",
        "m = Less(x, z) n = NonZero(m) t = Transpose(n) g = GatherND(x, t) s = CumSum(g, a) y = ScatterND(x, t, s)",
        constants=Z + ", int32 a = {0}",
        skip="same places",
    ),
    Case(
        "rows that are normalised over all rows",
        TOKENS + "r = Softmax<axis=0>(g) y = ScatterND(x, t, r)",
        "float[N,T,4] x",
        "float[a,b,d] y",
        constants=WEIGHTS,
        skip="same places",
    ),
    Case(
        "rows in another order",
        TOKENS + "r = Slice(g, im, il, i0, im) y = ScatterND(x, t, r)",
        "float[N,T,4] x",
        "float[a,b,d] y",
        constants=WEIGHTS + ", int64[1] im = {-1}, int64[1] il = {-999}",
        skip="same places",
    ),
    Case(
        "rows of which some are there twice",
        "m = Equal(e, one) n = NonZero(m) t = Transpose<perm=[1,0]>(n) r = Slice(t, i0, i1, i1) s = GatherND(x, r) h = MatMul(s, w) y = ScatterND(x, r, h)",
        "float[N,4] x, int64[N,2] e",
        "float[a,b] y",
        constants=WEIGHTS + ", int64 one = {1}",
        ranges={"e": (0, 3)},
        sizes=({"N": 1}, {"N": 5}, {"N": 12}),
    ),
    Case(
        "a mixture of experts on 8.6, which selects",
        "m = Equal(e, one) n = NonZero(m) t = Transpose<perm=[1,0]>(n) r = Slice(t, i0, i1, i1) s = GatherND(x, r) h = MatMul(s, w) y = ScatterND<reduction=\"add\">(x, r, h)",
        "float[N,4] x, int64[N,2] e",
        "float[a,b] y",
        constants=WEIGHTS + ", int64 one = {1}",
        ranges={"e": (0, 3)},
        target="tensorrt==8.6",
        sizes=({"N": 1}, {"N": 5}, {"N": 12}),
        opset=18,
    ),
    Case("indices that no mask makes", "y = ScatterND(x, t, v)", "float[N,8,H,W] x, int64[K,4] t, float[K] v"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

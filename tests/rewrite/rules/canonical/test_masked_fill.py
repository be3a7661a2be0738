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
    Case("indices that no mask makes", "y = ScatterND(x, t, v)", "float[N,8,H,W] x, int64[K,4] t, float[K] v"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

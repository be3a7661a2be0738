# ruff: noqa: E501 - the text of a model stands on one line
"""Counting what a mask selects."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.selection_count import RULE

C = "float z = {0.5}, int64 i0 = {0}, int64 i1 = {1}"
ONES = "m = Greater(x, z) n = NonZero(m) "
NUMBER = {"outputs": "int64 y", "absent": ("NonZero",)}
CASES = [
    Case("ones", ONES + "s = Shape(n) y = Gather(s, i1)", constants=C, **NUMBER),
    Case("rows of indices", ONES + "t = Transpose(n) s = Shape(t) y = Gather(s, i0)", constants=C, **NUMBER),
    Case("rows of indices, a window of the shape", ONES + "t = Transpose(n) s = Shape<start=0,end=1>(t) y = Squeeze(s)", constants=C, **NUMBER),
    Case("number of values", ONES + "t = Transpose(n) g = GatherND(x, t) y = Size(g)", constants=C, **NUMBER),
    Case("shape of rows", "q = ReduceMax<axes=[1,2,3],keepdims=0>(x) m = Greater(q, z) n = NonZero(m) t = Transpose(n) g = GatherND(x, t) y = Shape(g)",
         outputs="int64[a] y", constants=C, absent=("NonZero", "GatherND")),
    Case("cast mask", "m = Greater(x, z) c = Cast<to=7>(m) n = NonZero(c) s = Shape(n) y = Gather(s, i1)", constants=C, **NUMBER),
]  # fmt: skip
NEAR_MISSES = [
    Case("the ones of numbers", "n = NonZero(x) s = Shape(n) y = Gather(s, i1)", outputs="int64 y", constants=C, skip="depends on the data"),
    Case("the indices themselves", ONES + "y = Abs(n)", outputs="int64[a,b] y", constants=C, skip="fixed size"),
    Case("suppression", "y = NonMaxSuppression(b, s, k)", "float[N,H,4] b, float[N,2,H] s", "int64[a,b] y", "int64[1] k = {5}", skip="suppress outside"),
    Case("compressed", "m = Greater(v, z) y = Compress<axis=1>(x, m)", "float[N,8,H,W] x, float[8] v", constants=C, skip="topk"),
    Case("a plain shape", "y = Shape(x)", outputs="int64[a] y"),
    Case("suppression elsewhere", "y = NonMaxSuppression(b, s, k)", "float[N,H,4] b, float[N,2,H] s", "int64[a,b] y", "int64[1] k = {5}", target="tensorrt==10"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_a_selection_that_is_used_stays():
    check_case(
        RULE,
        Case(
            "beside the selection",
            ONES + "s = Shape(n) y = Gather(s, i1) w = Abs(n)",
            outputs="int64 y, int64[a,b] w",
            constants=C,
            present=("NonZero",),
        ),
    )

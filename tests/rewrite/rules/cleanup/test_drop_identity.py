# ruff: noqa: E501 - the text of a model stands on one line
"""Nodes that hand their input on."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.drop_identity import RULE

CASES = [
    Case("Identity", "i = Identity(x) y = Relu(i)", absent=("Identity",)),
    Case("a chain", "i = Identity(x) j = Identity(i) k = Identity(j) y = Relu(k)", fires=3, absent=("Identity",)),
    Case("Cast to the same type", "i = Cast<to=1>(x) y = Relu(i)", absent=("Cast",)),
    Case("Transpose in order", "i = Transpose<perm=[0,1,2,3]>(x) y = Relu(i)", absent=("Transpose",)),
    Case("Pad by nothing", "i = Pad(x, k) y = Relu(i)", constants="int64[8] k = {0,0,0,0,0,0,0,0}", absent=("Pad",)),
    Case("Dropout", "i = Dropout(x) y = Relu(i)", absent=("Dropout",)),
    Case(
        "Slice of all",
        "i = Slice(x, o, e, a) y = Relu(i)",
        constants="int64[2] o = {0, 0}, int64[2] e = {9223372036854775807, 2147483647}, int64[2] a = {0, 2}",
        absent=("Slice",),
    ),
    Case(
        "Slice of all in steps",
        "i = Slice(x, o, e, a, a) y = Relu(i)",
        constants="int64[1] o = {0}, int64[1] e = {9223372036854775807}, int64[1] a = {1}",
        absent=("Slice",),
    ),
]
NEAR_MISSES = [
    Case("Pad by one", "i = Pad(x, k) y = Relu(i)", constants="int64[8] k = {0,0,0,0,0,0,0,1}"),
    Case("makes the output", "y = Identity(x)"),
    Case("Dropout in training", "i = Dropout(x, r, t) y = Relu(i)", constants="float r = {0.0}, bool t = {1}"),
    Case(
        "used in a body",
        "i = Identity(x) t = ReduceMax<keepdims=0>(x) z = Constant<value_float=0.0>() c = Greater(t, z) y = If(c) <then_branch = a () => (float[a,b,c,d] p) { p = Relu(i) }, else_branch = b () => (float[a,b,c,d] r) { r = Neg(i) }>",
    ),
    Case(
        "Slice of every second",
        "i = Slice(x, o, e, a, a) y = Relu(i)",
        constants="int64[1] o = {0}, int64[1] e = {9223372036854775807}, int64[1] a = {2}",
    ),
    Case(
        "Slice of a part",
        "i = Slice(x, o, e) y = Relu(i)",
        constants="int64[1] o = {1}, int64[1] e = {9223372036854775807}",
    ),
    Case(
        "Slice to a size",
        "s = Shape(x) h = Slice(s, two, three) i = Slice(x, o, h, two) y = Relu(i)",
        constants="int64[1] o = {0}, int64[1] two = {2}, int64[1] three = {3}",
    ),
    Case("Cast to another type", "i = Cast<to=10>(x) y = Cast<to=1>(i)"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

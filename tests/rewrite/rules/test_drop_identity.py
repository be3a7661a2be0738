# ruff: noqa: E501 - the text of a model stands on one line
"""Nodes that hand their input on."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.drop_identity import RULE

CASES = [
    Case("Identity", "i = Identity(x) y = Relu(i)", gone=("Identity",)),
    Case("a chain", "i = Identity(x) j = Identity(i) k = Identity(j) y = Relu(k)", fires=3, gone=("Identity",)),
    Case("Cast to the same type", "i = Cast<to=1>(x) y = Relu(i)", gone=("Cast",)),
    Case("Transpose in order", "i = Transpose<perm=[0,1,2,3]>(x) y = Relu(i)", gone=("Transpose",)),
    Case("Dropout", "i = Dropout(x) y = Relu(i)", gone=("Dropout",)),
]
NEAR_MISSES = [
    Case("makes the output", "y = Identity(x)"),
    Case("Dropout in training", "i = Dropout(x, r, t) y = Relu(i)", constants="float r = {0.0}, bool t = {1}"),
    Case(
        "used in a body",
        "i = Identity(x) t = ReduceMax<keepdims=0>(x) z = Constant<value_float=0.0>() c = Greater(t, z) y = If(c) <then_branch = a () => (float[a,b,c,d] p) { p = Relu(i) }, else_branch = b () => (float[a,b,c,d] r) { r = Neg(i) }>",
    ),
    Case("Cast to another type", "i = Cast<to=10>(x) y = Cast<to=1>(i)"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Branches that one size decides for all."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules.canonical.known_branch import RULE

SQUEEZED = "then_branch = t () => (float[a,b] u) { u = Squeeze(r, o) }, else_branch = e () => (float[a,b,c] w) { w = Identity(r) }"
SIZE = "s = Shape(r) d = Gather(s, o) "
ONES = "int64[1] o = {1}, int64[1] one = {1}"


# The last row of a height that moves, as TorchScript cuts it.
LAST = "t = Shape(x) h = Gather(t, o) g = Sub(h, one) r = Slice(x, g, h, o) "


def recorded(model):
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 H=13:17:40 W=13:23:40")


GONE = {"absent": ("If",), "edit": recorded}
CASES = [
    Case("a size of one", f"r = Relu(x) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED}>", "float[N,1,H] x", "float[p,q] y", ONES, present=("Squeeze",), **GONE),
    Case("another size", f"r = Relu(x) {SIZE} c = Equal(one, d) y = If(c) <{SQUEEZED}>", "float[N,3,H] x", "float[p,q,r] y", ONES, **GONE),
    Case("a range without the number", f"r = Relu(x) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED}>", "float[N,H,W] x", "float[p,q,r] y", ONES, **GONE),
    Case("turned round, and a linear size", f"r = Relu(x) {SIZE} m = Add(d, one) c = Equal(m, two) k = Not(c) y = If(k) <then_branch = t () => (float[a,b,c] w) {{ w = Neg(r) }}, else_branch = e () => (float[a,b] u) {{ u = Squeeze(r, o) }}>",
         "float[N,1,H] x", "float[p,q] y", ONES + ", int64[1] two = {2}", present=("Squeeze",), **GONE),
    Case("a constant of the branch, two nodes, two outputs", f"r = Relu(x) {SIZE} c = Equal(d, one) y, z = If(c) <then_branch = t () => (float[a,b] u, float[a,b] v) <float k = {{3}}> {{ u = Squeeze(r, o) v = Mul(u, k) }}, else_branch = e () => (float[a,b,c] w, float[a,b,c] q) {{ w = Identity(r) q = Neg(w) }}>",
         "float[N,1,H] x", "float[p,q] y, float[p,q] z", ONES, present=("Mul",), **GONE),
    Case("a known condition", "y = If(c) <then_branch = t () => (float[a,b,c,d] u) { u = Relu(x) }, else_branch = e () => (float[a,b,c,d] w) { w = Neg(x) }>", constants="bool c = {0}", present=("Neg",), **GONE),
]  # fmt: skip
CASES += [
    Case("the last of a size that moves", f"{LAST} {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED}>", "float[N,H,W] x", "float[p,q] y", ONES, present=("Squeeze",), **GONE),
    Case("the same without a range", f"{LAST} {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED}>", "float[N,H,W] x", "float[p,q] y", ONES, present=("Squeeze",), absent=("If",)),
    Case("two before the end", f"r = Slice(x, f, e, o) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED}>", "float[N,H,W] x", "float[p,q] y",
         ONES + ", int64[1] f = {-2}, int64[1] e = {-1}", present=("Squeeze",), **GONE),
    Case("all but the first two", f"r = Slice(x, f, e, o) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED}>", "float[N,3,W] x", "float[p,q] y",
         ONES + ", int64[1] f = {2}, int64[1] e = {9223372036854775807}", present=("Squeeze",), **GONE),
]  # fmt: skip
NEAR_MISSES = [
    Case("a slice that may be cut off", f"r = Slice(x, f, e, o) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED.replace('[a,b] u', '[a,b,c] u').replace('Squeeze(r, o)', 'Neg(r)')}>", "float[N,H,W] x", "float[p,q,r] y",
         ONES + ", int64[1] f = {20}, int64[1] e = {21}", edit=recorded),
    Case("a slice that grows", f"r = Slice(x, f, e, o) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED.replace('[a,b] u', '[a,b,c] u').replace('Squeeze(r, o)', 'Neg(r)')}>", "float[N,H,W] x", "float[p,q,r] y",
         ONES + ", int64[1] f = {2}, int64[1] e = {9223372036854775807}"),
    Case("one among others", f"r = Relu(x) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED.replace('[a,b] u', '[a,b,c] u').replace('Squeeze(r, o)', 'Neg(r)')}>", "float[H,N,W] x", "float[p,q,r] y", ONES, edit=recorded),
    Case("a size without a range", f"r = Relu(x) {SIZE} c = Equal(d, one) y = If(c) <{SQUEEZED.replace('[a,b] u', '[a,b,c] u').replace('Squeeze(r, o)', 'Neg(r)')}>", "float[N,H,W] x", "float[p,q,r] y", ONES),
    Case("a value", "m = ReduceSum<keepdims=0>(x) c = Equal(m, k) y = If(c) <then_branch = t () => (float[a,b,c,d] u) { u = Relu(x) }, else_branch = e () => (float[a,b,c,d] w) { w = Neg(x) }>", constants="float k = {1}", edit=recorded),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_the_values_of_the_branch_that_is_taken():
    model = model_of(CASES[4])
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    x = np.asarray([[[-1, 2, 5]]], np.float32)
    assert runner(model)({"x": x})["z"].tolist() == [[0, 6, 15]]

# ruff: noqa: E501 - the text of a model stands on one line
"""Sums before Transposes, where both summands have the other layout."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.transpose_after_sum import RULE

BACK, LAST = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
TWO = "float[N,H,W,8] u, float[N,H,W,8] v"
GAMMA = "float[1,8,1,1] gamma = {1,2,3,4,5,6,7,8}, float[8,1,1] delta = {8,7,6,5,4,3,2,1}, float two = {2.0}"
CASES = [
    Case("both transposed", f"a = {BACK}(u) r = {BACK}(v) y = Add(a, r)", TWO),
    Case("the second one", f"a = {BACK}(u) r = {BACK}(v) s = Add(r, a) y = Neg(s)", TWO),
    Case(
        "the other is used too, the sum only transposed",
        f"a = {BACK}(u) r = {BACK}(v) n = {LAST}(r) s = Add(r, a) l = {LAST}(s) y = Mul(l, n)",
        TWO,
    ),
    Case("a scale by channel", f"a = {BACK}(u) g = Mul(a, gamma) r = {BACK}(v) y = Add(g, r)", TWO, constants=GAMMA),
    Case(
        "several constants",
        f"a = {BACK}(u) g = Sub(delta, a) h = Div(g, two) i = Add(h, gamma) r = {BACK}(v) y = Add(r, i)",
        TWO,
        constants=GAMMA,
    ),
    Case("transposed elsewhere", f"l = {LAST}(x) e = Exp(l) a = {BACK}(e) s = Add(a, x) y = {LAST}(s)"),
]
NEAR_MISSES = [
    Case("nothing would be saved", f"a = {BACK}(u) r = {BACK}(v) n = Relu(r) s = Add(r, a) y = Mul(s, n)", TWO, skip="as many"),
    Case("nor where it is transposed elsewhere", f"l = {LAST}(x) e = Exp(l) a = {BACK}(e) y = Add(a, x)", skip="as many"),
    Case("the other has one layout", f"l = {LAST}(x) n = {BACK}(l) e = Exp(n) y = Add(e, x)"),
    Case("shapes that may differ", f"a = {BACK}(u) r = {BACK}(v) y = Add(a, r)", "float[N,H,W,8] u, float[N,1,W,8] v", skip="one shape"),
    Case("other orders", f"a = {BACK}(u) r = Transpose<perm=[0,3,2,1]>(v) y = Add(a, r)", "float[N,H,H,8] u, float[N,H,H,8] v"),
    Case("the Transpose is used twice", f"a = {BACK}(u) r = Relu(v) z = Exp(a) q = Add(z, r) y = Add(a, q)", "float[N,H,W,8] u, float[N,8,H,W] v"),
    Case("transposed only later", f"e = Exp(u) a = {BACK}(e) s = Add(a, x) l = {LAST}(x) m = {BACK}(l) y = Mul(s, m)", "float[N,H,W,8] u, float[N,8,H,W] x"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

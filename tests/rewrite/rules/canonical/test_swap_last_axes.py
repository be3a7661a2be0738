# ruff: noqa: E501 - the text of a model stands on one line
"""Two axes swapped behind a flattened batch."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.swap_last_axes import RULE

X = "float[N,6,8,4] x"
INTS = "int64[1] i0 = {0}, int64[1] six = {6}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] m = {-1}, int64[3] f = {-1,8,4}, int64[3] ff = {-1,4,8}"
FOLD = "r = Reshape(x, f) t = Transpose<perm=[0,2,1]>(r) "
BACK = "s = Shape(x) n = Gather(s, i0) "
CASES = [
    Case("a batch that moves", FOLD + BACK + "z = Concat<axis=0>(n, six, four, eight) y = Reshape(t, z)", X, constants=INTS, absent=("Reshape",)),
    Case("one size left open", FOLD + "y = Reshape(t, k)", X, constants=INTS + ", int64[4] k = {-1,6,4,8}", absent=("Reshape",)),
    Case("sizes that move", "s = Shape(x) a = Gather(s, i0) b = Gather(s, i2) c = Gather(s, i3) p = Concat<axis=0>(m, b, c) r = Reshape(x, p) t = Transpose<perm=[0,2,1]>(r) z = Concat<axis=0>(a, six, c, b) y = Reshape(t, z)",
         "float[N,6,H,W] x", constants=INTS + ", int64[1] i2 = {2}, int64[1] i3 = {3}", absent=("Reshape",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("axes regrouped", FOLD + "y = Reshape(t, k)", X, constants=INTS + ", int64[4] k = {-1,6,8,4}", skip="not known to come back"),
    Case("a batch split otherwise", FOLD + "y = Reshape(t, k)", X, constants=INTS + ", int64[4] k = {-1,3,4,8}", skip="not known to come back"),
    Case("folded otherwise", "r = Reshape(x, ff) t = Transpose<perm=[0,2,1]>(r) y = Reshape(t, k)", X, constants=INTS + ", int64[4] k = {-1,6,8,4}", skip="stay as they are"),
    Case("another order", "r = Reshape(x, f) t = Transpose<perm=[1,0,2]>(r) y = Reshape(t, k)", X, constants=INTS + ", int64[4] k = {-1,6,4,8}"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

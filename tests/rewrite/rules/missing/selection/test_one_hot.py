# ruff: noqa: E501 - the text of a model stands on one line
"""One-hot codes of a computed depth."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.selection.one_hot import RULE

DEPTH = "s = Shape(x) d = Gather(s, one) "
OLD = {"inputs": "int64[N,H] i, float[N,W] x", "outputs": "float[a,b,c] y", "constants": "int64 one = {1}, float[2] pair = {-0.5, 2.0}", "ranges": {"i": (-16, 15)}, "absent": ("OneHot",), "target": "tensorrt==8.6"}
CASES = [
    Case("the last axis", DEPTH + "y = OneHot(i, d, pair)", **OLD),
    Case("the axis in the middle", DEPTH + "y = OneHot<axis=1>(i, d, pair)", **OLD),
    Case("indices beyond the depth", DEPTH + "y = OneHot<axis=0>(i, d, pair)", **(OLD | {"ranges": {"i": (-99, 99)}})),
    Case("whole values, a depth of one element", "s = Shape(x) d = Slice(s, lo, hi) y = OneHot(i, d, pair)", **(OLD | {"outputs": "int64[a,b,c] y", "constants": "int64[1] lo = {1}, int64[1] hi = {2}, int64[2] pair = {0, 1}"})),
]  # fmt: skip
NEAR_MISSES = [
    Case("a constant depth", "y = OneHot(i, d, pair)", **(OLD | {"constants": "int64 d = {7}, float[2] pair = {0.0, 1.0}"})),
    Case("computed values", DEPTH + "y = OneHot(i, d, p)", **(OLD | {"inputs": "int64[N,H] i, float[N,W] x, float[2] p"}), skip="two values"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

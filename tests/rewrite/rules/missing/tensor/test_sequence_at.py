# ruff: noqa: E501 - the text of a model stands on one line
"""Elements of sequences."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.sequence_at import RULE

GONE = ("SplitToSequence", "SequenceAt", "SequenceConstruct", "ConcatFromSequence")
C = "int64 k = {4}, int64 i1 = {1}, int64 m1 = {-1}, int64 m2 = {-2}, int64[2] p = {3, 5}"
CASES = [
    Case("equal parts", "s = SplitToSequence<axis=2>(x, k) y = SequenceAt(s, i1)", constants=C, absent=GONE),
    Case("the last of equal parts", "s = SplitToSequence<axis=2>(x, k) y = SequenceAt(s, m1)", constants=C, absent=GONE),
    Case("the one before", "s = SplitToSequence<axis=-1>(x, k) y = SequenceAt(s, m2)", constants=C, absent=GONE),
    Case("given parts", "s = SplitToSequence<axis=1>(x, p) a = SequenceAt(s, i1) b = SequenceAt(s, m2) y = Concat<axis=1>(a, b)", constants=C, absent=GONE, fires=2),
    Case("rows", "s = SplitToSequence<axis=1,keepdims=0>(x) y = SequenceAt(s, i1)", outputs="float[a,b,c] y", constants=C, absent=GONE),
    Case("rows, kept", "s = SplitToSequence<axis=2>(x) y = SequenceAt(s, m1)", constants=C, absent=GONE),
    Case("constructed", "r = Relu(x) s = SequenceConstruct(x, r) y = SequenceAt(s, i1)", constants=C, absent=GONE),
    Case("joined", "r = Relu(x) s = SequenceConstruct(x, r) y = ConcatFromSequence<axis=1>(s)", absent=GONE),
    Case("stacked", "r = Relu(x) s = SequenceConstruct(x, r, r) y = ConcatFromSequence<axis=-1,new_axis=1>(s)", outputs="float[a,b,c,d,e] y", absent=GONE),
    Case("8.6", "s = SplitToSequence<axis=2>(x, k) y = SequenceAt(s, m1)", constants=C, absent=GONE, target="tensorrt==8.6"),
]  # fmt: skip
NEAR_MISSES = [
    Case("a computed place", "s = SplitToSequence<axis=1>(x, k) h = Shape(x) n = Size(h) q = Sub(n, k) y = SequenceAt(s, q)", constants=C, skip="which element"),
    Case("parts of computed size", "h = Shape(x) n = Size(h) s = SplitToSequence<axis=1>(x, n) y = SequenceAt(s, i1)", constants=C, skip="sizes of the parts"),
    Case("split and joined", "s = SplitToSequence<axis=1>(x, k) y = ConcatFromSequence<axis=1>(s)", constants=C, skip="joined again"),
    Case("inserted", "e = SequenceEmpty() s = SequenceInsert(e, x) z = SequenceAt(s, q) y = Relu(z)", constants="int64 q = {0}", skip="not made by"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Pads that cut, for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.pad_negative import RULE

EIGHT = {"target": "tensorrt==8.6"}
P = "int64[8] p = "
CASES = [
    Case("cut and padded", "y = Pad(x, p)", constants=P + "{0,0,-1,2,0,0,-1,2}", present=("Slice", "Pad"), **EIGHT),
    Case("one axis both ways", "y = Pad(x, p)", constants=P + "{0,0,-2,0,0,0,3,0}", **EIGHT),
    Case("a value", "y = Pad(x, p, v)", constants=P + "{0,-1,0,3,0,1,-4,0}, float v = {7.0}", **EIGHT),
    Case("cut only", "y = Pad(x, p)", constants=P + "{0,0,-1,-2,0,0,0,-3}", absent=("Pad",), **EIGHT),
    Case("mirrored on another axis", 'y = Pad<mode="reflect">(x, p)', constants=P + "{0,0,-1,2,0,0,-2,1}", **EIGHT),
    Case("edge", 'y = Pad<mode="edge">(x, p)', constants=P + "{0,0,-1,2,0,0,0,0}", **EIGHT),
]
NEAR_MISSES = [
    Case("no cut", "y = Pad(x, p)", constants=P + "{0,0,1,2,0,0,0,0}", **EIGHT),
    Case("cut and mirrored", 'y = Pad<mode="reflect">(x, p)', constants=P + "{0,0,-2,0,0,0,3,0}", skip="other", **EIGHT),
    Case("some axes", "y = Pad(x, p, , a)", constants="int64[2] p = {-1,1}, int64[1] a = {2}", opset=18, skip="some",
         **EIGHT),
    Case("computed", "s = Shape(x) z = Sub(s, s) c = Concat<axis=0>(z, z) y = Pad(x, c)", **EIGHT),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

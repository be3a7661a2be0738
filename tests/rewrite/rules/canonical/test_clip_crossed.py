
"""Bounds of a Clip that cross."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.clip_crossed import RULE

CASES = [
    Case("crossed", "y = Clip(x, lo, hi)", constants="float lo = {1.0}, float hi = {-1.0}", absent=("Clip",)),
    Case("attributes", "y = Clip<min=2.0, max=0.5>(x)", opset=9, absent=("Clip",)),
    Case("integers", "y = Clip(x, lo, hi)", inputs="int32[N,8,H,W] x", outputs="int32[a,b,c,d] y",
         constants="int32 lo = {5}, int32 hi = {-3}", absent=("Clip",)),
    Case("below infinity", "y = Clip(x, lo, hi)", constants="float lo = {inf}, float hi = {0.0}", absent=("Clip",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("in order", "y = Clip(x, lo, hi)", constants="float lo = {-1.0}, float hi = {1.0}"),
    Case("one number", "y = Clip(x, lo, hi)", constants="float lo = {1.0}, float hi = {1.0}"),
    Case("one bound", "y = Clip(x, lo)", constants="float lo = {1.0}"),
    Case("computed", "lo = ReduceMax<keepdims=0>(x) hi = ReduceMin<keepdims=0>(x) y = Clip(x, lo, hi)"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

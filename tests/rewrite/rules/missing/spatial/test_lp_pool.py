# ruff: noqa: E501 - the text of a model stands on one line
"""Pools by norms."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.lp_pool import RULE

VOLUME = {"inputs": "float[N,2,H,3,W] x", "outputs": "float[a,b,c,d,e] y"}
CASES = [
    Case("all of an image", "y = GlobalLpPool<p=3>(x)", absent=("GlobalLpPool",)),
    Case("all of a volume", "y = GlobalLpPool<p=3>(x)", **VOLUME),
    Case("absolute", "y = GlobalLpPool<p=1>(x)", absent=("Pow",)),
    Case("windows", "y = LpPool<kernel_shape=[2, 3], p=3>(x)", absent=("LpPool",)),
    Case("padded windows", "y = LpPool<kernel_shape=[3, 3], pads=[1, 1, 1, 0], strides=[2, 1], p=4>(x)"),
]
NEAR_MISSES = [
    Case("an even norm", "y = GlobalLpPool<p=2>(x)"),
    Case("norm 1 of windows", "y = LpPool<kernel_shape=[2, 2], p=1>(x)"),
    Case("an overhang", "y = LpPool<kernel_shape=[2, 2], strides=[2, 2], p=3, ceil_mode=1>(x)", opset=18, skip="hangs over"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

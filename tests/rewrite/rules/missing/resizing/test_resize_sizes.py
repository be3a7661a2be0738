# ruff: noqa: E501 - the text of a model stands on one line
"""Sizes that a difference is among, which TensorRT takes for possibly negative."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.resizing.resize_sizes import RULE

CONSTANTS = "int64[1] one = {1}, int64[1] i0 = {0}, int64[1] i2 = {2}, int64[1] i4 = {4}, int64[2] hw = {7,9}, int64[4] fixed = {2,8,7,9}, float[4] s = {1,1,2,2}"
NCHW = "h = Shape(x) nc = Slice(h, i0, i2) hw0 = Slice(h, i2, i4) "
LINEAR = 'Resize<mode="linear", coordinate_transformation_mode="half_pixel">'
CASES = [
    Case("one less", f"{NCHW} l = Sub(hw0, one) u = Concat<axis=0>(nc, l) y = {LINEAR}(x, , , u)", constants=CONSTANTS, present=("Max",)),
    Case("rounded", f"{NCHW} f = Cast<to=1>(hw0) n = Neg(f) k = Floor(n) a = Neg(k) i = Cast<to=7>(a) u = Concat<axis=0>(nc, i) y = {LINEAR}(x, , , u)", constants=CONSTANTS, present=("Max",)),
]
NEAR_MISSES = [
    Case("doubled", f"{NCHW} l = Mul(hw0, i2) u = Concat<axis=0>(nc, l) y = {LINEAR}(x, , , u)", constants=CONSTANTS),
    Case("bounded", f"{NCHW} l = Sub(hw0, one) b = Max(l, i0) u = Concat<axis=0>(nc, b) y = {LINEAR}(x, , , u)", constants=CONSTANTS),
    Case("fixed", f"y = {LINEAR}(x, , , fixed)", "float[2,8,H,W] x", constants=CONSTANTS),
    Case("scales", f"y = {LINEAR}(x, , s)", constants=CONSTANTS),
    Case("8.6", f"{NCHW} l = Sub(hw0, one) u = Concat<axis=0>(nc, l) y = {LINEAR}(x, , , u)", constants=CONSTANTS, target="tensorrt==8.6"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

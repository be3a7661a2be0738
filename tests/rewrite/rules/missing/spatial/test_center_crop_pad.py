# ruff: noqa: E501 - the text of a model stands on one line
"""CenterCropPad."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.center_crop_pad import RULE

CASES = [
    Case("crop and pad", "y = CenterCropPad<axes=[2,3]>(x, k)", constants="int64[2] k = {20, 21}", opset=18, absent=("CenterCropPad",)),
    Case("odd crop of an odd size", "y = CenterCropPad<axes=[2,3]>(x, k)", constants="int64[2] k = {11, 10}", opset=18),
    Case("all axes", "y = CenterCropPad(x, k)", constants="int64[4] k = {3, 5, 16, 33}", opset=18),
    Case("axes in another order, negative", "y = CenterCropPad<axes=[-1,1]>(x, k)", constants="int64[2] k = {16, 9}", opset=18),
    Case("to the size of another", "s = Shape<start=2>(t) y = CenterCropPad<axes=[2,3]>(x, s)", "float[N,8,H,W] x, float[N,1,W,H] t", opset=18),
    Case("int32 sizes", "y = CenterCropPad<axes=[3]>(x, k)", constants="int32[1] k = {20}", opset=18),
    Case("8.6", "y = CenterCropPad<axes=[2,3]>(x, k)", constants="int64[2] k = {20, 21}", opset=18, target="tensorrt==8.6"),
]  # fmt: skip
NEAR_MISSES = [Case("a pad", "y = Pad(x, k)", constants="int64[8] k = {0,0,1,1,0,0,1,1}", opset=18)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

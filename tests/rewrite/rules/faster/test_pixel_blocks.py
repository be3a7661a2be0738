# ruff: noqa: E501 - the text of a model stands on one line
"""Convolutions of few channels in strides of 4 over blocks of pixels."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from tests.rewrite.rules.faster.test_patch_products import constants
from trtconv.rewrite.rules.faster.pixel_blocks import RULE

OLD = {"target": "tensorrt==8.6", "present": ("Reshape", "Transpose")}
IMAGE = "float[N,3,16,24] x"
CASES = [
    Case("7 by 7, PVTv2", "y = Conv<strides=[4,4], pads=[3,3,3,3]>(x, w, b)", IMAGE, constants=constants((5, 3, 7, 7), (5,)), **OLD),
    Case("pads that are not even", "y = Conv<strides=[4,4], pads=[0,3,1,0], kernel_shape=[5,5]>(x, w)", IMAGE, constants=constants((2, 3, 5, 5)), **OLD),
    Case("6 by 6", "y = Conv<strides=[4,4], pads=[3,1,0,1]>(x, w)", IMAGE, constants=constants((5, 3, 6, 5)), **OLD),
]  # fmt: skip
MISS = {"target": "tensorrt==8.6"}
NEAR_MISSES = [
    Case("7 by 7, PoolFormer", "y = Conv<strides=[4,4], pads=[2,2,2,2]>(x, w)", IMAGE, constants=constants((5, 3, 7, 7)), skip="three blocks", **MISS),
    Case("patches", "y = Conv<strides=[4,4]>(x, w)", IMAGE, constants=constants((5, 3, 4, 4)), **MISS),
    Case("other strides", "y = Conv<strides=[2,2], pads=[3,3,3,3]>(x, w)", IMAGE, constants=constants((5, 3, 7, 7)), **MISS),
    Case("many channels", "y = Conv<strides=[4,4], pads=[3,3,3,3]>(x, w)", "float[N,8,16,24] x", constants=constants((5, 8, 7, 7)), **MISS),
    Case("sizes that move", "y = Conv<strides=[4,4], pads=[3,3,3,3]>(x, w)", "float[N,3,H,W] x", constants=constants((5, 3, 7, 7)), skip="not known", **MISS),
    Case("fewer blocks come out", "y = Conv<strides=[4,4]>(x, w)", IMAGE, constants=constants((5, 3, 7, 7)), skip="not known", **MISS),
    Case("gaps", "y = Conv<strides=[4,4], pads=[4,4,4,4], dilations=[2,2]>(x, w)", IMAGE, constants=constants((5, 3, 5, 5)), skip="gaps", **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Depthwise convolutions of rows as plugin nodes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from tests.rewrite.rules.faster.test_patch_products import constants
from trtconv.rewrite.rules.plugin.plugin_depthwise_conv import RULE

ROWS, OUT = "float[N,12,6] x", "float[a,b,c] y"
IMAGE = "t = Transpose<perm=[0,2,1]>(x) i = Reshape(t, m) d = Conv<group=6, pads=[1,1,1,1]>(i, w, b) r = Reshape(d, n)"
LAYOUT = {"m": (-1, 6, 4, 3), "n": (-1, 6, 12)}
W = constants((6, 1, 3, 3), (6,), **LAYOUT)
OLD = {"target": "tensorrt==8.6", "opset": 20, "absent": ("Conv",), "present": ("TrtconvDepthwiseConv",)}
MISS = {"target": "tensorrt==8.6", "opset": 20}
END = "z = Transpose<perm=[0,2,1]>(r) y = Gelu(z)"
CASES = [
    Case("with Gelu", f"{IMAGE} {END}", ROWS, OUT, constants=W, **{**OLD, "absent": ("Conv", "Gelu", "Transpose")}),
    Case("without", f"{IMAGE} y = Transpose<perm=[0,2,1]>(r)", ROWS, OUT, constants=W, **OLD),
    Case("another Gelu stays", f'{IMAGE} z = Transpose<perm=[0,2,1]>(r) y = Gelu<approximate="tanh">(z)', ROWS, OUT, constants=W, **{**OLD, "present": ("TrtconvDepthwiseConv", "Gelu")}),
    Case("without a bias", f"{IMAGE} {END}".replace(", w, b", ", w"), ROWS, OUT, constants=W, **OLD),
    Case("padded by name", f"{IMAGE} {END}".replace("pads=[1,1,1,1]", 'auto_pad="SAME_UPPER"'), ROWS, OUT, constants=W, **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("larger kernels", f"{IMAGE} {END}".replace("[1,1,1,1]", "[2,2,2,2]"), ROWS, OUT, constants=constants((6, 1, 5, 5), (6,), **LAYOUT), skip="3 by 3", **MISS),
    Case("dilations", f"{IMAGE} {END}".replace("pads=[1,1,1,1]", "pads=[2,2,2,2], dilations=[2,2]"), ROWS, OUT, constants=W, skip="dilation", **MISS),
    Case("the image is an output too", f"{IMAGE} {END}", ROWS, f"{OUT}, float[N,6,12] r", constants=W, skip="elsewhere", **MISS),
    Case("channels that meet", f"{IMAGE} {END}".replace("group=6, ", ""), ROWS, OUT, constants=constants((6, 6, 3, 3), (6,), **LAYOUT), **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

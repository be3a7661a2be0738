# ruff: noqa: E501 - the text of a model stands on one line
"""Col2Im, of columns that a convolution makes so that their number fits."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.col2im import RULE


def kernel(rows, size):
    def edit(model):
        weights = np.random.default_rng(0).standard_normal((rows, 2, size, size)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, "cw"))

    return edit


CASES = [
    Case(
        "three by three, stride 1",
        "c = Conv<pads=[1,1,1,1]>(r, cw) q = Reshape(c, flat) s = Shape(r) h = Slice(s, two, four) y = Col2Im<pads=[1,1,1,1]>(q, h, b)",
        "float[N,2,H,W] r",
        constants="int64[2] b = {3,3}, int64[1] two = {2}, int64[1] four = {4}, int64[3] flat = {0,18,-1}",
        edit=kernel(18, 3),
        opset=18,
        absent=("Col2Im",),
    ),
    Case(
        "stride 2",
        "c = Conv<pads=[1,1,1,1],strides=[2,2]>(r, cw) q = Reshape(c, flat) s = Shape(r) h = Slice(s, two, four) y = Col2Im<pads=[1,1,1,1],strides=[2,2]>(q, h, b)",
        "float[N,2,H,W] r",
        constants="int64[2] b = {3,3}, int64[1] two = {2}, int64[1] four = {4}, int64[3] flat = {0,18,-1}",
        edit=kernel(18, 3),
        opset=18,
        absent=("Col2Im",),
    ),
    Case(
        "stride 3 over 4",
        "c = Conv<strides=[3,3]>(r, cw) q = Reshape(c, flat) s = Shape(r) h = Slice(s, two, four) y = Col2Im<strides=[3,3]>(q, h, b)",
        "float[N,2,H,W] r",
        constants="int64[2] b = {4,4}, int64[1] two = {2}, int64[1] four = {4}, int64[3] flat = {0,32,-1}",
        edit=kernel(32, 4),
        opset=18,
        absent=("Col2Im",),
    ),
    Case(
        "dilation 2",
        "c = Conv<dilations=[2,2]>(r, cw) q = Reshape(c, flat) s = Shape(r) h = Slice(s, two, four) y = Col2Im<dilations=[2,2]>(q, h, b)",
        "float[N,2,H,W] r",
        constants="int64[2] b = {2,2}, int64[1] two = {2}, int64[1] four = {4}, int64[3] flat = {0,8,-1}",
        edit=kernel(8, 2),
        opset=18,
        absent=("Col2Im",),
    ),
]
NEAR_MISSES = [
    Case(
        "stride and dilation",
        "c = Conv<dilations=[2,2],strides=[2,2]>(r, cw) q = Reshape(c, flat) s = Shape(r) h = Slice(s, two, four) y = Col2Im<dilations=[2,2],strides=[2,2]>(q, h, b)",
        "float[N,2,H,W] r",
        constants="int64[2] b = {2,2}, int64[1] two = {2}, int64[1] four = {4}, int64[3] flat = {0,8,-1}",
        edit=kernel(8, 2),
        opset=18,
        skip="both",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""Pools with dilations."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.spatial.pool_dilated import RULE

EIGHT = "tensorrt==8.6"
LINE = {"inputs": "float[N,8,W] x", "outputs": "float[a,b,c] y"}
VOLUME = {"inputs": "float[N,2,9,H,W] x", "outputs": "float[a,b,c,d,e] y"}
CASES = [
    Case("3x3", "y = MaxPool<kernel_shape=[3,3],dilations=[2,2]>(x)", absent=("MaxPool",)),
    Case("padded", "y = MaxPool<kernel_shape=[3,3],dilations=[2,2],pads=[1,1,1,1]>(x)", absent=("MaxPool",)),
    Case("strided", "y = MaxPool<kernel_shape=[3,2],strides=[2,3],dilations=[1,4],pads=[1,0,0,2]>(x)"),
    Case("one row", "y = MaxPool<kernel_shape=[1,3],dilations=[1,5]>(x)"),
    Case("ceil mode", "y = MaxPool<kernel_shape=[3,3],strides=[2,2],dilations=[2,2],pads=[1,1,1,1],ceil_mode=1>(x)"),
    Case("valid", 'y = MaxPool<kernel_shape=[3,3],dilations=[3,2],auto_pad="VALID">(x)'),
    Case("8.6", "y = MaxPool<kernel_shape=[3,3],dilations=[2,2],pads=[2,2,2,2]>(x)", target=EIGHT),
    Case("average", "y = AveragePool<kernel_shape=[3,3],dilations=[2,2]>(x)", opset=19, absent=("AveragePool",)),
    Case("average, padded", "y = AveragePool<kernel_shape=[3,2],dilations=[2,3],pads=[1,0,2,1]>(x)", opset=19),
    Case("average, padding counts",
         "y = AveragePool<kernel_shape=[3,3],dilations=[2,2],strides=[2,1],pads=[1,1,1,1],count_include_pad=1>(x)", opset=19),
    Case("average, 8.6", "y = AveragePool<kernel_shape=[3,3],dilations=[2,2],pads=[2,2,2,2]>(x)", opset=19, target=EIGHT),
    Case("norm", "y = LpPool<kernel_shape=[3,3],dilations=[2,2],p=2>(x)", opset=18, absent=("LpPool",)),
    Case("line", "y = MaxPool<kernel_shape=[4],dilations=[3],strides=[2]>(x)", **LINE),
    Case("volume", "y = MaxPool<kernel_shape=[2,2,2],dilations=[3,2,1]>(x)", **VOLUME),
    Case(
        "half", "y = MaxPool<kernel_shape=[3,3],dilations=[2,2],pads=[1,1,1,1]>(x)", "float16[N,8,H,W] x",
        "float16[a,b,c,d] y",
    ),
]  # fmt: skip
NEAR_MISSES = [
    Case("no dilation", "y = MaxPool<kernel_shape=[3,3],dilations=[1,1]>(x)"),
    Case("automatic", 'y = MaxPool<kernel_shape=[3,3],dilations=[2,2],auto_pad="SAME_UPPER">(x)', skip="automatic"),
    Case("ceil mode with a stride over the window's reach",
         "y = MaxPool<kernel_shape=[2,2],strides=[4,4],dilations=[2,2],ceil_mode=1>(x)", skip="begin in the padding"),
    Case("with indices", "y, i = MaxPool<kernel_shape=[3,3],dilations=[2,2]>(x)",
         outputs="float[a,b,c,d] y, int64[a,b,c,d] i"),
    Case("average in ceil mode", "y = AveragePool<kernel_shape=[3,3],strides=[2,2],dilations=[2,2],ceil_mode=1>(x)",
         opset=19, skip="ceil_mode"),
    Case("bytes", "y = MaxPool<kernel_shape=[3,3],dilations=[2,2]>(x)", "uint8[N,8,H,W] x", "uint8[a,b,c,d] y",
         skip="not a float"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_the_padding_is_below_every_value():
    case = Case("padded", "y = MaxPool<kernel_shape=[3,3],dilations=[2,2],pads=[2,2,2,2]>(x)")
    model = model_of(case)
    apply(model, (RULE,), "tensorrt-rtx")
    x = np.full((1, 8, 5, 7), -3e38, np.float32)
    assert (runner(model)({"x": x})["y"] == x[:, :, :, :]).all()
    fills = [numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == 1]
    assert [float(f) for f in fills] == [-np.inf]

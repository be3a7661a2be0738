"""AveragePool with ceil_mode for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.pool_ceil_mode import RULE

CASES = [
    Case(
        "three by three",
        "y = AveragePool<kernel_shape=[3,3],strides=[2,2],ceil_mode=1>(x)",
        opset=19,
        target="tensorrt==8.6",
    ),
    Case(
        "two by two",
        "y = AveragePool<kernel_shape=[2,2],strides=[2,2],ceil_mode=1>(x)",
        opset=19,
        target="tensorrt==8.6",
    ),
    Case(
        "padded",
        "y = AveragePool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1],ceil_mode=1>(x)",
        opset=19,
        target="tensorrt==8.6",
    ),
    Case(
        "padding counted",
        "y = AveragePool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1],ceil_mode=1,count_include_pad=1>(x)",
        opset=19,
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case("floor", "y = AveragePool<kernel_shape=[3,3],strides=[2,2]>(x)", target="tensorrt==8.6"),
    Case("stride 1", "y = AveragePool<kernel_shape=[3,3],ceil_mode=1>(x)", target="tensorrt==8.6"),
    Case(
        "a window in the padding",
        "y = AveragePool<kernel_shape=[2,2],strides=[2,2],pads=[1,1,1,1],ceil_mode=1>(x)",
        target="tensorrt==8.6",
        skip="padding",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

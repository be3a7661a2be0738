# ruff: noqa: E501 - the text of a model stands on one line
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.pool_whole_axis import RULE

ROWS = "float[N,8,32,W] x"
CASES = [
    Case("average over the height", "y = AveragePool<kernel_shape=[32,1]>(x)", ROWS, absent=("AveragePool",), present=("ReduceMean",)),
    Case("opset 18", "y = AveragePool<kernel_shape=[32,1]>(x)", ROWS, opset=18, absent=("AveragePool",)),
    Case("opset 11", "y = AveragePool<kernel_shape=[32,1]>(x)", ROWS, opset=11, absent=("AveragePool",)),
    Case("strides as long", "y = AveragePool<kernel_shape=[32,1],strides=[32,1]>(x)", ROWS, absent=("AveragePool",)),
    Case("maximum over the width", "y = MaxPool<kernel_shape=[1,32]>(x)", "float[N,8,H,32] x", present=("ReduceMax",)),
    Case("both axes", "y = AveragePool<kernel_shape=[7,9]>(x)", "float[N,8,7,9] x", absent=("AveragePool",)),
    Case("one axis and a window", "y = AveragePool<kernel_shape=[32,3],strides=[2,2]>(x)", ROWS, present=("ReduceMean", "AveragePool")),
    Case("one-dimensional", "y = MaxPool<kernel_shape=[5]>(x)", "float[N,8,5] x", "float[a,b,c] y", present=("ReduceMax",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("window shorter than the axis", "y = AveragePool<kernel_shape=[31,1]>(x)", ROWS),
    Case("dynamic axis", "y = AveragePool<kernel_shape=[16,1]>(x)", skip="baked"),
    Case("padded", "y = AveragePool<kernel_shape=[32,1],pads=[1,0,1,0]>(x)", ROWS, skip="padded"),
    Case("dilated", "y = MaxPool<kernel_shape=[3,1],dilations=[2,1]>(x)", "float[N,8,3,W] x", skip="dilated", sizes=()),
    Case("indices used", "y, i = MaxPool<kernel_shape=[32,1]>(x)", ROWS, "float[a,b,c,d] y, int64[a,b,c,d] i", skip="indices"),
    Case("global pool is a reduction already", "y = GlobalAveragePool(x)"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

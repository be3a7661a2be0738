# ruff: noqa: E501 - the text of a model stands on one line
"""Windows that lie in the padding alone."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.spatial.pool_last_window import RULE

CASES = [
    Case("three by two", "y = MaxPool<kernel_shape=[3,2],strides=[3,2],ceil_mode=1,pads=[1,0,1,0]>(x)"),
    Case("far strides", "y = MaxPool<kernel_shape=[2,2],strides=[4,5],ceil_mode=1>(x)"),
    Case("8.6", "y = MaxPool<kernel_shape=[2,2],strides=[2,2],pads=[1,1,1,1],ceil_mode=1>(x)", target="tensorrt==8.6"),
]
NEAR_MISSES = [
    Case("every window begins in the value", "y = MaxPool<kernel_shape=[3,3],strides=[2,2],ceil_mode=1>(x)"),
    Case("floor", "y = MaxPool<kernel_shape=[2,2],strides=[2,2],pads=[1,1,1,1]>(x)"),
    Case("indices", "y, i = MaxPool<kernel_shape=[2,2],strides=[2,2],pads=[1,1,1,1],ceil_mode=1>(x)", outputs="float[a,b,c,d] y, int64[e,f,g,h] i", skip="indices"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)

# ruff: noqa: E501 - the text of a model stands on one line
"""The indices of a MaxPool."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.spatial.pool_indices import RULE

BOTH = "float[a,b,c,d] y, int64[a,b,c,d] i"
CASES = [
    Case("2x2", "y, i = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x)", outputs=BOTH, present=("ArgMax", "MaxPool")),
    Case("padded", "y, i = MaxPool<kernel_shape=[3,3],strides=[2,1],pads=[1,1,1,1]>(x)", outputs=BOTH),
    Case("dilated", "y, i = MaxPool<kernel_shape=[3,2],dilations=[2,3],pads=[1,0,1,0]>(x)", outputs=BOTH, absent=("MaxPool",)),
    Case("ceil mode", "y, i = MaxPool<kernel_shape=[3,3],strides=[2,2],ceil_mode=1>(x)", outputs=BOTH),
    Case("column major", "y, i = MaxPool<kernel_shape=[2,3],strides=[2,2],storage_order=1>(x)", outputs=BOTH),
    Case("indices only", "v, i = MaxPool<kernel_shape=[2,2]>(x)", outputs="int64[a,b,c,d] i", absent=("MaxPool",)),
    Case("8.6", "y, i = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x)", outputs=BOTH, target="tensorrt==8.6"),
    Case("line", "y, i = MaxPool<kernel_shape=[3],strides=[2],pads=[1,0]>(x)", "float[N,8,W] x", "float[a,b,c] y, int64[a,b,c] i"),
    Case("volume", "y, i = MaxPool<kernel_shape=[2,2,2],strides=[2,1,2]>(x)", "float[N,2,7,H,W] x",
         "float[a,b,c,d,e] y, int64[a,b,c,d,e] i"),
]  # fmt: skip
NEAR_MISSES = [
    Case("values only", "y = MaxPool<kernel_shape=[2,2]>(x)"),
    Case("indices that nobody uses", "y, i = MaxPool<kernel_shape=[2,2]>(x)"),
    Case("a large window", "y, i = MaxPool<kernel_shape=[17,17],pads=[8,8,8,8]>(x)", outputs=BOTH, skip="copied"),
    Case("automatic", 'y, i = MaxPool<kernel_shape=[3,3],auto_pad="SAME_LOWER">(x)', outputs=BOTH, skip="automatic"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_of_equal_values_the_first_is_taken():
    before = model_of(CASES[1])
    after = model_of(CASES[1])
    assert apply(after, (RULE,), "tensorrt-rtx").entries
    x = np.random.default_rng(0).integers(0, 2, (2, 8, 9, 11)).astype(np.float32)
    for name, array in runner(before)({"x": x}).items():
        assert (array == runner(after)({"x": x})[name]).all()

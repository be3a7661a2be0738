# ruff: noqa: E501 - the text of a model stands on one line
"""MaxUnpool."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.spatial.max_unpool import RULE
from trtconv.rewrite.rules.missing.spatial.pool_indices import RULE as INDICES

TWO = {"inputs": "float[N,8,H,W] x, int64[N,8,H,W] i", "ranges": {"i": (0, 60)}}
PLAIN = "y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(x, i)"
CASES = [
    Case("2x2", PLAIN, absent=("MaxUnpool",), present=("ScatterElements",), **TWO),
    Case("padded", "y = MaxUnpool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,0,0]>(x, i)", absent=("MaxUnpool",), **TWO),
    Case("no strides", "y = MaxUnpool<kernel_shape=[3,2]>(x, i)", absent=("MaxUnpool",), **TWO),
    Case("with the size", "h = Shape(x) s = Mul(h, k) y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(x, i, s)",
         constants="int64[4] k = {1,1,2,2}", absent=("MaxUnpool",), **TWO),
    Case("line", "y = MaxUnpool<kernel_shape=[2],strides=[2]>(x, i)", "float[N,8,W] x, int64[N,8,W] i", "float[a,b,c] y",
         ranges={"i": (0, 60)}, absent=("MaxUnpool",)),
    Case("8.6", PLAIN, absent=("MaxUnpool",), target="tensorrt==8.6", **TWO),
]  # fmt: skip
POOLED = "v, i = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(v, i)"
NEAR_MISSES = [Case("a pool", "y = MaxPool<kernel_shape=[2,2]>(x)")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_with_the_rule_for_indices_no_pool_with_two_outputs_is_left():
    before, after = model_of(Case("pooled", POOLED)), model_of(Case("pooled", POOLED))
    record = apply(after, (INDICES, RULE), "tensorrt-rtx")
    assert [e.rule for e in record.entries] == ["pool-indices", "max-unpool"]
    assert all(len(n.output) == 1 for n in after.graph.node)
    x = np.random.default_rng(0).standard_normal((3, 8, 18, 22)).astype(np.float32)
    assert (runner(before)({"x": x})["y"] == runner(after)({"x": x})["y"]).all()

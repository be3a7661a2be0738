# ruff: noqa: E501 - the text of a model stands on one line
"""ReduceLogSumExp."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.tensor.log_sum_exp import RULE

EIGHT = "tensorrt==8.6"
CASES = [
    Case("one axis", "y = ReduceLogSumExp<axes=[1]>(x)", absent=("ReduceLogSumExp",)),
    Case(
        "two axes, not kept",
        "y = ReduceLogSumExp<axes=[2,-1],keepdims=0>(x)",
        outputs="float[a,b] y",
        absent=("ReduceLogSumExp",),
    ),
    Case("all axes", "y = ReduceLogSumExp<keepdims=0>(x)", outputs="float y"),
    Case("axes as an input", "y = ReduceLogSumExp(x, k)", constants="int64[1] k = {-1}", opset=18),
    Case("8.6", "y = ReduceLogSumExp<axes=[3]>(x)", target=EIGHT),
    Case("half", "y = ReduceLogSumExp<axes=[1]>(x)", "float16[N,8,H,W] x", "float16[a,b,c,d] y"),
    Case("large values", "y = ReduceLogSumExp<axes=[1]>(x)", ranges={"x": (-1e4, 1e4)}),
]
NEAR_MISSES = [
    Case("a sum of logarithms", "y = ReduceLogSum<axes=[1]>(x)"),
    Case("nothing is reduced", "y = ReduceLogSumExp<noop_with_empty_axes=1>(x)", opset=18),
    Case("computed axes", "s = Shape(x) a = Slice(s, z, o) b = Sub(a, a) y = ReduceLogSumExp(x, b)", constants="int64[1] z = {0}, int64[1] o = {1}", opset=18, skip="computed"),
    Case("double", "y = ReduceLogSumExp<axes=[1]>(x)", "double[N,8,H,W] x", "double[a,b,c,d] y", skip="FP32"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_infinities_and_what_overflows():
    model = model_of(Case("rows", "y = ReduceLogSumExp<axes=[1],keepdims=0>(x)", "float[N,W] x", "float[a] y"))
    assert apply(model, (RULE,), "tensorrt-rtx").entries
    assert not any(n.op_type == "Exp" and n.input[0] == "x" for n in model.graph.node)
    inf = np.inf
    x = np.asarray([[500.0, 500.0], [-500.0, -inf], [-inf, -inf], [inf, 1.0], [inf, -inf]], np.float32)
    actual = runner(model)({"x": x})["y"]
    assert np.allclose(actual, [500 + np.log(2), -500, -inf, inf, inf])

"""Sin and Cos of large arguments."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.tensor.sin_cos import PARTS, RULE

EIGHT = "tensorrt==8.6"
CASES = [
    Case("sine", "y = Sin(x)", target=EIGHT),
    Case("cosine of large values", "y = Cos(x)", target=EIGHT, ranges={"x": (-2e4, 2e4)}),
    Case("both", "s = Sin(x) c = Cos(x) y = Add(s, c)", target=EIGHT, fires=2),
    Case(
        "the sine of a difference", "k = Mul(x, t) d = Sub(x, k) y = Sin(d)", constants="float t = {0.25}", target=EIGHT
    ),
    Case(
        "positions",
        "s = Shape(x) f = Cast<to=1>(s) m = Mul(x, x) p = ReduceSum<keepdims=0>(f) g = Mul(m, p) y = Sin(g)",
        target=EIGHT,
        ranges={"x": (-3, 3)},
    ),
]
NEAR_MISSES = [
    Case("half", "y = Sin(x)", "float16[N,8,H,W] x", "float16[a,b,c,d] y", target=EIGHT, skip="FP32"),
    Case("tangent", "y = Tan(x)", target=EIGHT),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("bound", [1e6, 1e7, 9e7])
@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_far_arguments_are_as_exact_as_near_ones(op, bound):
    model = model_of(Case("line", f"y = {op}(x)", "float[N] x", "float[a] y"))
    assert apply(model, (RULE,), EIGHT).entries
    x = np.random.default_rng(0).uniform(-bound, bound, 50_000).astype(np.float32)
    exact = (np.sin if op == "Sin" else np.cos)(x.astype(np.float64))
    assert np.abs(runner(model)({"x": x})["y"] - exact).max() < 1e-6


def test_the_argument_is_within_a_period_and_exact():
    model = model_of(Case("line", "y = Sin(x)", "float[N] x", "float[a] y"))
    assert apply(model, (RULE,), EIGHT).entries
    inner = next(n for n in model.graph.node if n.op_type == "Sin").input[0]
    model.graph.output[0].name = inner
    x = np.concatenate([np.linspace(-4e5, 4e5, 40001), np.linspace(-7, 7, 5001)]).astype(np.float32)
    actual = runner(model)({"x": x})[inner].astype(np.float64)
    exact = x.astype(np.float64)
    exact = exact - 2 * np.pi * np.round(exact / (2 * np.pi))
    near_edge = np.abs(np.abs(exact) - np.pi) < 1e-2
    assert np.abs(actual).max() < 3.2
    assert np.abs(actual - exact)[~near_edge].max() < 2e-6
    assert abs(sum(PARTS) - 2 * np.pi) < 1e-15

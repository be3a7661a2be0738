# ruff: noqa: E501 - the text of a model stands on one line
"""Pow with an exponent of another type."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.targets import parse_target
from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.rules.newer.operators.pow_exponent import RULE

OLD = {"target": "tensorrt==8.6"}
HALF = Tolerance(rtol=2**-10, atol=2**-10, why="ONNX Runtime keeps or drops a rounding to FP16 between two casts")
CASES = [
    Case("int64 constant", "y = Pow(x, e)", constants="int64 e = {3}", **OLD),
    Case("int64 constant, tensorrt==10", "y = Pow(x, e)", constants="int64 e = {3}", target="tensorrt==10"),
    Case("int32 constant of each column", "y = Pow(x, e)", "float[N,3] x", "float[a,b] y", "int32[3] e = {0, 1, 2}", **OLD),
    Case("int64 input", "y = Pow(x, e)", "float[N,H] x, int64[N,H] e", "float[a,b] y", ranges={"e": (0, 4)}, **OLD),
    Case("half base, whole exponent", "h = Cast<to=10>(x) p = Pow(h, e) y = Cast<to=1>(p)", constants="int64 e = {2}", **OLD),
    Case("half base, a third", "a = Abs(x) h = Cast<to=10>(a) p = Pow(h, e) y = Cast<to=1>(p)", constants="float e = {0.3}", tolerance=HALF, **OLD),
    Case("double exponent", "a = Abs(x) y = Pow(a, e)", constants="double e = {0.3333333333}", **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("the same type", "y = Pow(x, e)", constants="float e = {3}", **OLD),
    Case("integers", "y = Pow(i, e)", "int64[N,H] i", "int64[a,b] y", "int64 e = {3}", **OLD),
    Case("uint32", "y = Pow(x, e)", "float[N,H] x, uint32[N,H] e", "float[a,b] y", skip="element type", **OLD),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_a_third_beside_half_is_not_rounded():
    model = model_of(CASES[5])
    apply(model, (RULE,), "tensorrt==8.6")
    power = next(n for n in model.graph.node if n.op_type == "Pow")
    assert power.input[1] == "e", "the exponent stays in FP32"
    node = {o: n for n in model.graph.node for o in n.output}
    assert node[power.input[0]].attribute[0].i == 1, "the base is widened"


def test_not_needed_where_the_parser_casts():
    assert not RULE.needed(parse_target("tensorrt-rtx"))


def test_the_sign_of_a_power_is_that_of_its_parity_beyond_what_floats_hold():
    case = Case("int64 input", "y = Pow(x, e)", "float[N] x, int64[N] e", "float[a] y")
    before, after = model_of(case), model_of(case)
    assert apply(after, (RULE,), "tensorrt==8.6").entries
    inputs = {
        "x": np.float32([-1, -1, 1, -2, -0.5, -0.0, 0.0, -3, 3]),
        "e": np.int64([16777217, 16777218, 16777217, -3, 4, -3, -3, 0, -2]),
    }
    np.testing.assert_array_equal(runner(after)(inputs)["y"], runner(before)(inputs)["y"])

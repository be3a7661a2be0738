# ruff: noqa: E501 - the text of a model stands on one line
"""Powers of integers."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.rewrite.rules.newer.operators.integer_power import MOST, RULE

OLD = {"target": "tensorrt==8.6", "inputs": "int64[N,H] i", "outputs": "int64[a,b] y"}
CASES = [
    Case(f"to the {power}", "y = Pow(i, e)", constants=f"int64 e = {{{power}}}", absent=("Pow",), ranges={"i": (-4, 4)}, **OLD)
    for power in (0, 1, 2, 3, 5, 10, 15)
] + [
    Case("the most", "y = Pow(i, e)", constants=f"int64 e = {{{MOST}}}", absent=("Pow",), ranges={"i": (-2, 2)}, **OLD),
    Case("int32, tensorrt==10", "y = Pow(i, e)", "int32[N,H] i", "int32[a,b] y", "int32 e = {3}", absent=("Pow",), target="tensorrt==10", ranges={"i": (-50, 50)}),
    Case("a float exponent", "y = Pow(i, e)", constants="float e = {2}", absent=("Pow",), ranges={"i": (-50, 50)}, **OLD),
    Case("of a size", "s = Shape(x) g = Gather(s, one) p = Pow(g, e) d = Div(p, f) y = Unsqueeze(d, zero)", "float[N,H] x", "int64[a] y",
         "int64 one = {1}, int64 e = {2}, int64 f = {80}, int64[1] zero = {0}", absent=("Pow",), target="tensorrt==8.6"),
]  # fmt: skip
NEAR_MISSES = [
    Case("exponent of a value", "y = Pow(i, j)", "int64[N,H] i, int64[N,H] j", "int64[a,b] y", target="tensorrt==8.6", skip="not one constant"),
    Case("powers of two", "y = Pow(two, i)", constants="int64 two = {2}", skip="not one constant", **OLD),
    Case("exponents of each column", "y = Pow(i, e)", "int64[N,2] i", "int64[a,b] y", "int64[2] e = {1, 2}", target="tensorrt==8.6", skip="not one constant"),
    Case("a root", "y = Pow(i, e)", constants="float e = {0.5}", skip="0.5", **OLD),
    Case("negative", "y = Pow(i, e)", constants="int64 e = {-1}", skip="-1", ranges={"i": (1, 3)}, **OLD),
    Case("too large", "y = Pow(i, e)", constants="int64 e = {31}", skip="31", **OLD),
    Case("more axes", "y = Pow(i, e)", "int64[H] i", "int64[a,b] y", "int64[1,1] e = {2}", target="tensorrt==8.6", skip="axes"),
    Case("floats", "y = Pow(x, e)", "float[N,H] x", "float[a,b] y", "float e = {3}", target="tensorrt==8.6"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_products_wrap_around_as_integers_do():
    model = model_of(CASES[3])
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    i = np.asarray([[3_000_000, -(2**40), 2**31]], np.int64)
    with np.errstate(over="ignore"):
        assert (runner(model)({"i": i})["y"] == i * i * i).all()

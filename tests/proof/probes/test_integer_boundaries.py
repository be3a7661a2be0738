"""Integer inputs are led to where comparisons turn."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.proof.probes.boundaries import Boundaries
from trtconv.proof.probes.integer_boundaries import integer_turns, with_integers

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
NOTHING = Boundaries((), 0, ())


def model_of(body, inputs, constants):
    return parser.parse_model(f"{HEAD}g ({inputs}) => (bool[a] y) <{constants}> {{ {body} }}")


def run(model):
    return OnnxRuntimeRunner(model.SerializeToString(), threads=1)


@pytest.mark.parametrize(
    ("body", "constants", "even"),
    [
        ("y = Equal(i, t)", "int64 t = {9973}", 9973),
        ("y = Less(t, i)", "int64 t = {-12}", -12),
        ("a = Mul(i, f) b = Add(a, s) y = GreaterOrEqual(b, t)", "int64 f = {3}, int64 s = {5}, int64 t = {80}", 25),
        ("a = Neg(i) y = Greater(a, t)", "int64 t = {77}", -77),
        ("f = Cast<to=1>(i) y = Greater(f, t)", "float t = {40}", 40),
    ],
)
def test_elements_are_at_the_boundary_and_on_both_sides(body, constants, even):
    model = model_of(body, "int64[N] i", constants)
    (feed,) = with_integers(NOTHING, model, {"i": np.arange(100, 112)}, run).feeds
    assert {even - 1, even, even + 1} <= set(feed["i"].tolist())


def test_each_element_of_a_table_has_an_element_of_the_input():
    table = "int64[1] one = {1}, int64[3] t = {700, 31, 4}"
    model = model_of("u = Unsqueeze(i, one) y = Equal(u, t)", "int64[N] i", table)
    (feed,) = with_integers(NOTHING, model, {"i": np.zeros(6, np.int64)}, run).feeds
    assert feed["i"].tolist()[0] == 700
    assert {30, 5} <= set(feed["i"].tolist())


def test_values_stay_in_their_range():
    model = model_of("y = Equal(i, t)", "int64[N] i", "int64 t = {9973}")
    assert with_integers(NOTHING, model, {"i": np.arange(5)}, run, {"i": (0, 100)}) is NOTHING


def test_comparisons_of_sizes_and_floats_are_none_of_integers():
    body = "s = Shape(i) z = Squeeze(s) a = Equal(z, t) f = Cast<to=1>(i) g = Add(f, x) y = Greater(g, u)"
    model = model_of(body, "int64[N] i, float[N] x", "int64 t = {3}, float u = {1}")
    assert integer_turns(model.graph) == ()


@pytest.mark.parametrize("size", range(1, 9))
def test_inputs_of_few_elements_are_led_too(size):
    model = model_of("y = Equal(i, t)", "int64[N] i", "int64 t = {9973}")
    (feed,) = with_integers(NOTHING, model, {"i": np.arange(size)}, run).feeds
    assert feed["i"][0] == 9973


def test_an_index_is_led_to_the_rows_that_stand_out():
    rows = [[1.5, 2.0]] * 40
    rows[7], rows[21], rows[30] = [0.0, 0.0], [float("nan"), 1.0], [1e9, 1.0]
    model = model_of("y = Gather(t, i)", "int64[N] i", "float t = {0}")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.asarray(rows, np.float32), "t"))
    (feed,) = with_integers(NOTHING, model, {"i": np.arange(9)}, run, {"i": (0, 39)}).feeds
    assert {7, 21, 30} <= set(feed["i"].tolist())


def test_an_index_of_an_even_table_is_left():
    model = model_of("y = Gather(t, i)", "int64[N] i", "float t = {0}")
    even = np.random.default_rng(0).uniform(1, 2, (40, 2)).astype(np.float32)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(even, "t"))
    assert with_integers(NOTHING, model, {"i": np.arange(9)}, run, {"i": (0, 39)}) is NOTHING


def test_a_difference_that_becomes_a_float_is_led_to_zero():
    model = model_of("d = Sub(i, t) y = Cast<to=1>(d)", "int64[N] i", "int64 t = {3217}")
    (feed,) = with_integers(NOTHING, model, {"i": np.arange(4)}, run, {"i": (0, 4999)}).feeds
    assert 3217 in feed["i"].tolist()

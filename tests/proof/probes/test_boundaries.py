"""Operands of decisions are led to their boundaries and to both sides."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.proof.probes.boundaries import probe_boundaries
from trtconv.proof.probes.decisions import find_decisions

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def model_of(body, constants="", output="float[N,M] y"):
    text = f"{HEAD}g (float[N,M] x) => ({output}) {f'<{constants}>' if constants else ''} {{ {body} }}"
    return parser.parse_model(text)


def run(model):
    return OnnxRuntimeRunner(model.SerializeToString(), threads=1)


def base(shape=(6, 40)):
    return {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def test_a_floor_gets_steps_their_neighbours_and_numbers_as_people_write_them():
    model = model_of("a = Div(x, s) y = Floor(a)", "float s = {0.1}")
    probes = probe_boundaries(model, base(), run)
    assert str(probes) == "decisions probed: 1 of 1"
    (feed,) = probes.feeds
    fed = feed["x"].reshape(-1)
    steps = fed / np.float32(0.1)
    near = np.abs(steps - np.round(steps))
    assert ((near < 1e-6).sum(), (near > 1e-6).sum()) > (60, 100)
    assert {np.float32(v) for v in (0.0, 0.1, 0.2, 0.3, 0.7)} <= set(fed)
    assert (np.floor(steps) < np.round(steps)).any()


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_a_threshold_far_outside_random_values_is_met_exactly(op):
    model = model_of(f"m = {op}(x, t) y = Cast<to=1>(m)", "float t = {212.5}")
    (feed,) = probe_boundaries(model, base(), run).feeds
    fed = feed["x"]
    assert (fed == 212.5).any()
    assert (fed < 212.5).any()
    assert (fed > 212.5).any()
    assert np.abs(fed - 212.5).max() < 0.1


def test_halves_of_a_rounding_behind_a_curve():
    model = model_of("a = Exp(x) b = Round(a) y = Identity(b)")
    (feed,) = probe_boundaries(model, base(), run).feeds
    operand = np.exp(feed["x"].astype(np.float64))
    distance = np.abs(operand - np.floor(operand) - 0.5)
    assert (distance < 1e-3).mean() > 0.3


def test_decisions_share_the_elements():
    model = model_of(
        "a = Greater(x, t) b = Less(x, u) c = Cast<to=1>(a) d = Cast<to=1>(b) y = Add(c, d)",
        "float t = {5}, float u = {-3}",
    )
    probes = probe_boundaries(model, base(), run)
    assert str(probes) == "decisions probed: 2 of 2"
    fed = probes.feeds[0]["x"]
    assert {5.0, -3.0} <= set(fed.reshape(-1).tolist())


def test_an_operand_of_many_elements_passes_its_boundary_when_the_input_is_scaled():
    model = model_of("m = ReduceMax(x) a = Greater(m, t) c = Cast<to=1>(a) y = Mul(x, c)", "float t = {6}")
    probes = probe_boundaries(model, base(), run)
    assert str(probes) == "decisions probed: 1 of 1"
    assert {bool(f["x"].max() > 6) for f in probes.feeds} == {True}


def test_a_decision_that_cannot_be_reached_is_counted():
    model = model_of("s = Sigmoid(x) a = Greater(s, t) y = Cast<to=1>(a)", "float t = {2}")
    probes = probe_boundaries(model, base(), run)
    assert str(probes) == "decisions probed: 0 of 1"
    assert probes.feeds == ()


def test_values_stay_within_a_range():
    model = model_of("a = Div(x, s) y = Floor(a)", "float s = {0.25}")
    (feed,) = probe_boundaries(model, {"x": np.full((4, 30), 0.3, np.float32)}, run, {"x": (0.0, 1.0)}).feeds
    assert feed["x"].min() >= 0
    assert feed["x"].max() <= 1
    assert 0.75 in feed["x"]


def test_sizes_are_no_decisions_by_value():
    body = "n = Shape(x) f = Cast<to=1>(n) g = Floor(f) h = Cast<to=7>(g) z = Reshape(x, h) y = Identity(z)"
    assert find_decisions(model_of(body).graph) == ()


def test_quantisation_is_asked_for_both_sides_of_a_half_and_not_for_the_half():
    model = model_of("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)", "float s = {0.5}, int8 z = {0}")
    (feed,) = probe_boundaries(model, base(), run).feeds
    halves = feed["x"].astype(np.float64) / 0.5 - 0.5
    distance = np.abs(halves - np.round(halves))
    assert ((distance < 1e-3) & (distance > 0)).mean() > 0.5


@pytest.mark.parametrize("number", [0.3, 2048.0, -0.7])
def test_half_inputs_are_led_to_the_half_beside_the_boundary(number):
    text = f"{HEAD}g (float16[N] x) => (bool[N] y) <float t = {{{number}}}> {{ f = Cast<to=1>(x) y = Greater(f, t) }}"
    (feed,) = probe_boundaries(parser.parse_model(text), {"x": np.zeros(60, np.float16)}, run).feeds
    assert feed["x"].dtype == np.float16
    assert np.float16(number) in feed["x"]

"""A decision that compares an input as it was fed falls alike in every right graph: there no noise excuses a fault."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import parser
from torch import nn

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.tensors import parse_tensor
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise.pinned import as_written, near_numbers
from trtconv.proof.noise.rounding import larger, own_errors
from trtconv.proof.points import BOUNDARY, SamplePoint
from trtconv.proof.probes.boundaries import probe_boundaries
from trtconv.proof.probes.decisions import find_decisions

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
X = {"x": np.random.default_rng(0).standard_normal((4, 60)).astype(np.float32)}


def graph(body, constants):
    return parser.parse_model(f"{HEAD}g (float[N,M] x) => (float[N,M] y) <{constants}> {{ {body} }}")


class Missing(nn.Module):
    """Holes are marked by a number."""

    def __init__(self, mark, buffer=False, margin=0.0):
        super().__init__()
        self.margin = margin
        self.mark = torch.tensor(mark)
        if buffer:
            del self.mark
            self.register_buffer("mark", torch.tensor(mark))
        self.number = mark

    def forward(self, x):
        return torch.where(x == self.number, torch.zeros_like(x), x)


class Over(Missing):
    def forward(self, x):
        return (x >= self.number).float() + 0.5 * x


class OverBuffer(Over):
    def forward(self, x):
        return (x >= self.mark).float() + 0.5 * x


class Scaled(Over):
    """Its operand is rounded, so that two right graphs may differ on the boundary."""

    def forward(self, x):
        return ((x - 0.1) / 0.3 >= self.number).float() + 0.5 * x


def errors_at_boundary(module, model):
    """The module's own noise at the inputs that a file's decisions ask for, and those inputs."""
    runner = ModuleRunner(module, [parse_tensor("x:float32[N,M]")])
    probes = probe_boundaries(model, X, lambda m: OnnxRuntimeRunner(m.SerializeToString(), threads=1))
    (sample,) = probes.samples(runner, SamplePoint("p", (("N", 4), ("M", 60))))
    assert sample.point.values == BOUNDARY
    errors = {}
    for more in own_errors(runner, sample):
        errors = larger(errors, more)
    return sample, errors["output"]


@pytest.mark.parametrize(
    ("module", "body", "number"),
    [
        (Missing(-9999.0), "m = Equal(x, t) y = Where(m, o, x)", -9999.0),
        (Over(0.7), "m = GreaterOrEqual(x, t) f = Cast<to=1>(m) h = Mul(x, o) y = Add(f, h)", 0.7),
        (Over(0.1), "m = GreaterOrEqual(x, t) f = Cast<to=1>(m) h = Mul(x, o) y = Add(f, h)", 0.1),
        (OverBuffer(0.7, buffer=True), "m = GreaterOrEqual(x, t) f = Cast<to=1>(m) h = Mul(x, o) y = Add(f, h)", 0.7),
        (Over(3.0), "a = Transpose(x) b = Transpose(a) m = Less(b, t) f = Cast<to=1>(m) y = Identity(f)", 3.0),
    ],
)
def test_no_noise_excuses_the_other_side_of_an_exact_comparison(module, body, number):
    sample, errors = errors_at_boundary(module, graph(body, f"float t = {{{number}}}, float o = {{0.5}}"))
    at = sample.inputs["x"] == np.float32(number)
    assert at.any()
    assert sample.pinned["x"][at].all()
    assert errors.max() < 1e-3


def test_what_rounds_before_it_compares_keeps_its_noise():
    body = "a = Sub(x, b) c = Div(a, d) m = GreaterOrEqual(c, t) f = Cast<to=1>(m) h = Mul(x, o) y = Add(f, h)"
    constants = "float t = {0.7}, float o = {0.5}, float b = {0.1}, float d = {0.3}"
    sample, errors = errors_at_boundary(Scaled(0.7), graph(body, constants))
    assert not sample.pinned
    assert errors.max() > 0.5


@pytest.mark.parametrize(
    ("body", "exact"),
    [
        ("m = Greater(x, t)", True),
        ("a = Neg(x) m = Greater(a, t)", True),
        ("a = Abs(x) b = Clip(a, t) m = Equal(b, t)", True),
        ("a = Max(x, t) s = Shape(x) b = Reshape(a, s) m = Equal(b, t)", True),
        ("m = Greater(x, x)", True),
        ("a = Add(x, t) m = Greater(a, t)", False),
        ("a = Exp(t) m = Greater(x, a)", False),
        ("a = Add(x, t) b = Max(x, a) m = Greater(b, t)", False),
        ("a = Sqrt(x) b = Neg(a) m = Greater(b, t)", False),
    ],
)
def test_which_comparisons_are_exact(body, exact):
    model = graph(f"{body} y = Cast<to=1>(m)", "float t = {0.7}")
    assert [d.exact for d in find_decisions(model.graph)] == [exact]


def test_numbers_as_they_were_written():
    numbers = [0.7, -0.1, 777.0, 1e-5, 1234.567, 0.0, np.inf, 3e20]
    np.testing.assert_array_equal(as_written(np.float32(numbers).astype(np.float64)), numbers)
    assert list(near_numbers(np.float32([777, np.nextafter(np.float32(777), 0), 776, -777]), [777.0])) == [1, 1, 0, 0]

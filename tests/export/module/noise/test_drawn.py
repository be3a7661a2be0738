"""A file that draws random numbers is run twice at every point."""

import numpy as np
import onnx
import pytest

from trtconv.core.tolerance import Tolerance
from trtconv.export.exporters.trace import ExportCandidate
from trtconv.export.module.noise.drawn import find_random_nodes, judge_random_file
from trtconv.proof.points import SamplePoint
from trtconv.proof.proving import ProofVerdict
from trtconv.proof.reference import ReferenceSample

NOISE = "n = RandomUniformLike(x)"
BY_VALUE = f"{NOISE} s = Add(x, n) b = Constant<value_float=5.5>() c = Greater(x, b) y = Where(c, s, x)"
BRANCHES = {"then": "z_then = RandomUniformLike(x)", "else": "z_else = Identity(x)"}
# Of six values all three large ones drew within the 1e-5 that is allowed once in twenty runs.
VALUES = np.linspace(-2, 2, 64, dtype=np.float32)


def judged(tmp_path, body, scales=(1.0, 1e4), tolerance=None):
    path = tmp_path / "m.onnx"
    header = '<ir_version: 8, opset_import: ["" : 17]> '
    onnx.save(onnx.parser.parse_model(f"{header}agraph (float[64] x) => (float[64] y) {{ {body} }}"), path)
    points = [SamplePoint(f"at {s}", (), "random") for s in scales]
    samples = [ReferenceSample(p, {"x": VALUES * s}, {"y": VALUES * s}) for p, s in zip(points, scales, strict=True)]
    candidate, verdict = ExportCandidate(path, "dynamo", 18, (), 0.0), ProofVerdict((), None, None, 0.0)
    return judge_random_file(candidate, verdict, samples, tolerance)


def test_noise_that_only_large_values_show_is_refused(tmp_path):
    _, verdict = judged(tmp_path, BY_VALUE)
    assert verdict.failure is not None
    assert "draws random numbers" in verdict.failure.reason
    assert verdict.at.label == "at 10000.0"


@pytest.mark.parametrize(
    ("body", "scales"),
    [
        (BY_VALUE, (1.0,)),
        (f"{NOISE} z = Constant<value_float=0.0>() p = Mul(n, z) y = Add(x, p)", (1.0, 1e4)),
    ],
)
def test_noise_that_no_point_shows_is_noted(tmp_path, body, scales):
    candidate, verdict = judged(tmp_path, body, scales)
    assert verdict.equal
    assert f"at each of {len(scales)} points two runs gave the same outputs" in candidate.notes[0]


@pytest.mark.parametrize(
    ("flag", "draws"), [("true", True), ("false", False)], ids=["in training mode", "in eval mode"]
)
@pytest.mark.parametrize("form", ["weight", "constant"])
def test_a_dropout_draws_in_training_mode(tmp_path, flag, draws, form):
    value = f"bool t = {{{int(draws)}}}"
    weights = f"<{value}, float r = {{0.5}}>" if form == "weight" else "<float r = {0.5}>"
    constant = f"t = Constant<value = {value}>()" if form == "constant" else ""
    body = f"{constant} y = Dropout(x, r, t)"
    header = '<ir_version: 8, opset_import: ["" : 17]> agraph (float[64] x) => (float[64] y)'
    onnx.save(onnx.parser.parse_model(f"{header} {weights} {{ {body} }}"), tmp_path / "m.onnx")
    assert bool(find_random_nodes(tmp_path / "m.onnx")) is draws


def test_what_is_drawn_in_a_branch_is_seen(tmp_path):
    branches = (f"{side}_branch = {side} () => (float[64] z_{side}) {{ {body} }}" for side, body in BRANCHES.items())
    header = '<ir_version: 8, opset_import: ["" : 17]> agraph (float[64] x, bool c) => (float[64] y)'
    onnx.save(onnx.parser.parse_model(f"{header} {{ y = If (c) <{', '.join(branches)}> }}"), tmp_path / "m.onnx")
    assert find_random_nodes(tmp_path / "m.onnx") == ["RandomUniformLike 'z_then'"]


def test_a_tolerance_of_ones_own_allows_noise(tmp_path):
    assert judged(tmp_path, BY_VALUE, tolerance=Tolerance(rtol=1.0, atol=10.0))[1].equal

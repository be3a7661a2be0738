"""The noise of flat planes through instance norms."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import parser

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.proof.noise.planes import move_planes, normalises_planes
from trtconv.proof.noise.rounding import graph_errors

NORMS = 6


def chain(norms: int = NORMS) -> onnx.ModelProto:
    """Instance norms one behind the other, each with a product that brings its channels together."""
    lines = "\n".join(
        f"m{i} = Conv(y{i}, weight, shift) y{i + 1} = InstanceNormalization(m{i}, scale, bias)" for i in range(norms)
    )
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,2,8,8] x) => (float[1,2,8,8] y) <float[2,2,1,1] weight = {{0.7, -0.4, 0.3, 0.9}},
            float[2] shift = {{0.31, 0.17}}, float[2] scale = {{0.8, 0.6}}, float[2] bias = {{0.1, -0.3}}> {{
            y0 = Identity(x) {lines} y = Identity(y{norms})
        }}""")


def test_a_flat_image_is_noise_behind_several_norms():
    run = GraphRunner(chain())
    feed = {"x": np.zeros((1, 2, 8, 8), np.float32)}
    assert graph_errors(run, feed, run(feed))["y"].max() > 1e-2


def test_an_image_is_not():
    run = GraphRunner(chain())
    feed = {"x": np.random.default_rng(0).standard_normal((1, 2, 8, 8)).astype(np.float32)}
    assert graph_errors(run, feed, run(feed))["y"].max() < 1e-4


def test_other_graphs_are_left_as_they_are():
    model = chain(0)
    assert not normalises_planes(model)
    before = model.SerializeToString()
    move_planes(model, 0, 4.0)
    assert model.SerializeToString() == before


def test_planes_move_otherwise_for_another_seed():
    outputs = []
    for seed in (0, 1, 1):
        model = chain(1)
        move_planes(model, seed, 4.0)
        x = np.full((1, 2, 8, 8), 3.0, np.float32)
        outputs.append(GraphRunner(model)({"x": x})["y"])
    np.testing.assert_array_equal(outputs[1], outputs[2])
    assert (outputs[0] != outputs[1]).any()

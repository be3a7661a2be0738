"""Scales moved by a rounding: they decide a step beside a tie and nothing else."""

import numpy as np
from onnx import parser

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.proof.noise.rounding import ULPS, graph_errors
from trtconv.proof.noise.scales import SEEDS, move_scales, rounds_to_steps

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (uint8[N] x) => (uint8[N] y) <float s = {0.1}, uint8 z = {0}, float t = {0.2}>
{ f = DequantizeLinear(x, s, z) y = QuantizeLinear(f, t, z) }"""


def test_a_step_is_noise_beside_a_tie_only():
    run = GraphRunner(parser.parse_model(TEXT))
    x = np.arange(256, dtype=np.uint8)
    outputs = run({"x": x})
    errors = graph_errors(run, {"x": x}, outputs)["y"]
    # 0.1 x / 0.2 is halfway between two steps for odd x, and a whole step for even ones.
    assert errors[0::2].max() == 0
    assert set(errors[1::2]) == {1.0}
    assert len(run.resampled()) == SEEDS


def test_a_shared_scale_moves_in_each_node_for_itself():
    model = parser.parse_model(TEXT.replace("y = QuantizeLinear(f, t, z)", "y = QuantizeLinear(f, s, z)"))
    assert rounds_to_steps(model)
    assert move_scales(model, 0, ULPS)
    names = {n.input[1] for n in model.graph.node}
    assert len(names) == 2
    assert "s" not in names


def test_a_graph_without_steps_stays():
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Abs(x) }')
    assert not move_scales(model, 0, ULPS)
    assert GraphRunner(model).resampled() == ()
    assert graph_errors(GraphRunner(model), {}, {}) == {}

"""Recurrent layers over no steps or no sequences: an error of the run, and no end of the process."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def layer(kind: str, opset: int = 17, body: str = "") -> bytes:
    """One layer of two units over x[T, N, 3]; the lines of `body` come before it, and make s of x."""
    gates = 2 * GATES[kind]
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[T,N,3] x, float[1,{gates},3] w, float[1,{gates},2] r) => (float[T,D,N,2] y) {{
        {body or "s = Identity(x)"}
        y = {kind}<hidden_size = 2>(s, w, r) }}"""
    model = parser.parse_model(text)
    model.graph.node[-1].name = "layer"
    return model.SerializeToString()


def feed(kind: str, steps: int, sequences: int) -> dict[str, np.ndarray]:
    gates = 2 * GATES[kind]
    shapes = {"x": (steps, sequences, 3), "w": (1, gates, 3), "r": (1, gates, 2)}
    return {n: np.ones(s, np.float32) for n, s in shapes.items()}


@pytest.mark.parametrize("opset", [9, 14, 20])
@pytest.mark.parametrize("kind", GATES)
def test_nothing_is_an_error_that_names_the_node(kind: str, opset: int) -> None:
    runner = OnnxRuntimeRunner(layer(kind, opset), threads=1)
    assert runner(feed(kind, 4, 2))["y"].shape == (4, 1, 2, 2)
    for steps, sequences in ((0, 2), (4, 0)):
        with pytest.raises(TrtconvError, match="'layer' runs over an empty sequence"):
            runner(feed(kind, steps, sequences))
    np.testing.assert_array_equal(runner(feed(kind, 4, 2))["y"], runner(feed(kind, 4, 2))["y"])


def test_a_sequence_of_what_a_value_chooses() -> None:
    body = """first = Slice(x, zero, one, two)
        flat = Reshape(first, minus)
        positive = Greater(flat, nought)
        s = Compress<axis = 0>(x, positive)"""
    constants = """zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()
        two = Constant<value_ints = [2]>() minus = Constant<value_ints = [-1]>()
        nought = Constant<value_float = 0.0>() """
    runner = OnnxRuntimeRunner(layer("GRU", body=constants + body), threads=1)
    inputs = feed("GRU", 3, 1)
    assert runner(inputs)["y"].shape == (3, 1, 1, 2)
    with pytest.raises(TrtconvError, match="runs over an empty sequence"):
        runner({**inputs, "x": -inputs["x"]})


@pytest.mark.parametrize("kind", GATES)
def test_the_batch_may_be_first(kind: str) -> None:
    """Layout 1, of which ONNX Runtime says to create a GitHub issue; ONNX's own evaluator is the judge."""
    states = "h, c" if kind == "LSTM" else "h"
    declared = "".join(f", float[N,1,2] {s}" for s in states.split(", "))
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,T,3] x, float[1,{2 * GATES[kind]},3] w, float[1,{2 * GATES[kind]},2] r{declared})
            => (float[N,T,1,2] y, float[N,1,2] last) {{
        y, last = {kind}<hidden_size = 2, layout = 1>(x, w, r, , , {states}) }}"""
    model = parser.parse_model(text)
    chance = np.random.default_rng(0)
    gates = 2 * GATES[kind]
    shapes = {"x": (4, 5, 3), "w": (1, gates, 3), "r": (1, gates, 2), "h": (4, 1, 2), "c": (4, 1, 2)}
    names = [i.name for i in model.graph.input]
    inputs = {n: chance.standard_normal(shapes[n]).astype(np.float32) for n in names}
    values = OnnxRuntimeRunner(model.SerializeToString(), threads=1)(inputs)
    expected = ReferenceEvaluator(model).run(None, inputs)
    for name, value in zip(("y", "last"), expected, strict=True):
        np.testing.assert_allclose(values[name], value, rtol=1e-5, atol=1e-6)

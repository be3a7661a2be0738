"""Engines in which a convolution is gated by TrtconvChannelGate give what NumPy gives, however the planes lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import trtconv
from tests.gpu.plugins.test_plugins_engine import KINDS, library  # noqa: F401 - a fixture
from trtconv.plugins.described.registry import find_plugin
from trtconv.plugins.onnx_form import make_node

SPACE = "N=1:4:8 H=7:28:56"
SHAPES = ((4, 28), (1, 7), (8, 56), (3, 13))
WIDTH = 14
TOLERANCE = {np.float32: 1e-5, np.float16: 4e-3}
PLUGIN = find_plugin("TrtconvChannelGate")


def weights_of(channels: int, dtype) -> dict[str, np.ndarray]:
    rng, hidden = np.random.default_rng(0), max(channels // 4, 1)
    shapes = {"w1": (hidden, channels), "b1": (hidden,), "w2": (channels, hidden), "b2": (channels,)}
    return {n: (rng.standard_normal(s) / 3).astype(dtype) for n, s in shapes.items()}


def model_of(path: Path, channels: int, dtype, scale: float, **attributes: str) -> Path:
    """x times `scale` by a 1x1 convolution, and that by its gate, by a second one."""
    eye = np.eye(channels, dtype=dtype)[:, :, None, None]
    tensors = {**weights_of(channels, dtype), "in": eye * dtype(scale), "out": eye / dtype(scale)}
    ends = [helper.make_tensor_value_info(n, KINDS[dtype], ["N", channels, "H", WIDTH]) for n in ("x", "y")]
    nodes = [
        helper.make_node("Conv", ["x", "in"], ["inner"], "first"),
        make_node(PLUGIN, ["inner", "w1", "b1", "w2", "b2"], ["gate"], "gate", **attributes),
        helper.make_node("Mul", ["inner", "gate"], ["gated"], "product"),
        helper.make_node("Conv", ["gated", "out"], ["y"], "second"),
    ]
    graph = helper.make_graph(
        nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(a, n) for n, a in tensors.items()]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("trtconv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model.metadata_props.add(key="trtconv.space", value=SPACE)
    model.metadata_props.add(key="trtconv.inputs", value=f"x:{np.dtype(dtype).name}[N,{channels},H,{WIDTH}]")
    onnx.save(model, str(path))
    return path


def require_equal(session, channels: int, dtype, scale: float, **attributes: str) -> None:
    values = PLUGIN.checked_attributes(attributes)
    for number, (batch, height) in enumerate(SHAPES):
        x = np.random.default_rng(number).uniform(0.5, 1.5, (batch, channels, height, WIDTH)).astype(dtype)
        inner = x.astype(np.float64) * scale
        weights = [w.astype(np.float64) for w in weights_of(channels, dtype).values()]
        expected = x * PLUGIN.reference([inner, *weights], values)[0]
        actual = session(x=x)["y"].astype(np.float64)
        assert np.abs(actual - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max(), (batch, height)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["fp32", "fp16"])
@pytest.mark.parametrize("channels", [32, 20, 96])
@pytest.mark.parametrize("attributes", [{}, {"activation": "relu", "gate": "hard_sigmoid"}], ids=["silu", "relu"])
def test_gated_convolution(tmp_path, engine_file, library, channels, dtype, attributes):  # noqa: F811
    path = model_of(tmp_path / "model.onnx", channels, dtype, 1.0, **attributes)
    session = trtconv.load(engine_file(path, plugins=(library,)), plugins=(library,))
    require_equal(session, channels, dtype, 1.0, **attributes)
    session.close()


def test_sums_beyond_half(tmp_path, engine_file, library):  # noqa: F811
    """Planes of about 16000, whose sum is far over 65504: the gate sees their mean."""
    path = model_of(tmp_path / "model.onnx", 32, np.float16, 16384.0)
    session = trtconv.load(engine_file(path, plugins=(library,)), plugins=(library,))
    require_equal(session, 32, np.float16, 16384.0)
    session.close()


def test_in_a_cuda_graph(tmp_path, engine_file, run, library):  # noqa: F811
    session = run(
        engine_file(model_of(tmp_path / "model.onnx", 96, np.float16, 1.0), plugins=(library,)), plugins=(library,)
    )
    session.cuda_graph = True
    for _ in range(3):
        require_equal(session, 96, np.float16, 1.0)

"""Q/DQ pairs as trtconv places them, construct by construct: taken, in INT8, and with the values of the pairs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.rewrite.precision.qdq.models import OLD, RESIDUAL, model, runs, weight
from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.backend import TensorRTBackend
from trtconv.core.precision import INT8
from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.space import parse_space
from trtconv.rewrite.precision.qdq.apply import QuantisePlan, quantise
from trtconv.rewrite.precision.qdq.step import decibels
from trtconv.tune.engine_layers import read_engine_layers

SEQUENCE = {"inputs": "float[N,4,32] x", "outputs": "float[a,b,c] y"}
CONSTRUCTS = {
    "conv": {"text": "y = Conv<pads=[1,1,1,1]>(x, w)", "w": weight(32, 16, 3, 3)},
    "conv and relu": {"text": "a = Conv(x, w, b) y = Relu(a)", "w": weight(32, 16, 1, 1), "b": weight(32)},
    # By itself, with a float output, 8.6 computes a depthwise convolution in FP32.
    "depthwise": {"text": "a = Conv(x, u) d = Conv<group=16, pads=[1,1,1,1]>(a, w) y = Conv(d, v)",
                  "u": weight(16, 16, 1, 1), "w": weight(16, 1, 3, 3), "v": weight(16, 16, 1, 1, seed=3)},
    "grouped": {"text": "y = Conv<group=2>(x, w)", "w": weight(64, 32, 3, 3), "inputs": "float[N,64,56,56] x"},
    "residual": RESIDUAL,
    "shared by a pool": {"text": "p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) a = Conv(p, w) y = Relu(a)",
                         "w": weight(16, 16, 1, 1)},
    "shared by a concatenation": {"text": "a = Conv(x, w) b = Conv(x, v) c = Concat<axis=1>(a, b) y = Conv(c, u)",
                                  "w": weight(16, 16, 1, 1), "v": weight(16, 16, 1, 1, seed=3),
                                  "u": weight(32, 32, 1, 1)},
    "gemm": {"text": "y = Gemm<transB=1>(x, w, b)", "w": weight(48, 32), "b": weight(48), "inputs": "float[N,32] x",
             "outputs": "float[a,b] y"},
    "gemm, not transposed": {"text": "y = Gemm(x, w)", "w": weight(32, 48), "inputs": "float[N,32] x",
                             "outputs": "float[a,b] y"},
    "matmul": {"text": "y = MatMul(x, w)", "w": weight(32, 48), **SEQUENCE},
    "feed forward": {"text": "a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) y = Add(c, x)", "w": weight(32, 64),
                     "v": weight(64, 32), **SEQUENCE},
    "behind a norm": {"text": "n = LayerNormalization<axis=-1>(x, g, o) y = MatMul(n, w)", "g": 1 + 0.1 * weight(32),
                      "o": weight(32), "w": weight(32, 32), **SEQUENCE},
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_start():
    """8.6 takes seconds to start: all builds of this file are in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TensorRTBackend, "build", TensorRTBackend.build_here)
        yield


def quantised(entry, rest):
    """The graph, its layers, what it computes on a CPU, and inputs."""
    entry = dict(entry)
    text = entry.pop("text")
    inputs = entry.get("inputs", "float[N,16,8,8] x")
    sizes = inputs.removeprefix("float[N,").removesuffix("] x").split(",")
    data = runs(4, *map(int, sizes))
    result = quantise(model(text, opset=17, **entry), QuantisePlan(INT8, rest=rest), data, OLD, SilentProgress())
    return result, data[0].inputs


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_construct_is_computed_in_int8(name, tmp_path, engine_file):
    result, inputs = quantised(CONSTRUCTS[name], "fp16")
    onnx.save(result.model, tmp_path / "model.onnx")
    engine = engine_file(tmp_path / "model.onnx", precision="int8", dynamic=parse_space(["N=1:4:8"]))
    session = backend_of(engine).load(engine)
    layers = read_engine_layers(session.layers(runs=1))
    outputs = session(inputs)["y"]
    session.close()
    expected = emulated_runner(result.model)(inputs)["y"]
    assert decibels(expected, np.asarray(outputs, np.float32)) > 35
    assert not layers.elsewhere(result.layers, "int8"), layers.nodes


def test_the_rest_in_fp32_is_exact(tmp_path, engine_file):
    result, inputs = quantised(CONSTRUCTS["residual"], "fp32")
    onnx.save(result.model, tmp_path / "model.onnx")
    engine = engine_file(tmp_path / "model.onnx", precision="int8", dynamic=parse_space(["N=1:4:8"]))
    session = backend_of(engine).load(engine)
    outputs = session(inputs)["y"]
    session.close()
    assert decibels(emulated_runner(result.model)(inputs)["y"], outputs) > 45

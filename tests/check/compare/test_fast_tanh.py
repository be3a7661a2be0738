"""What TensorRT 8.6's own tanh adds to what an engine may be off."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from trtconv.check.compare.fast_tanh import TANH_ERROR, FastTanh, fast_tanh_of
from trtconv.check.compare.subjects import Subject
from trtconv.proof.allowance import FP32_ENGINE, Arithmetic, allow
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceSample

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N] x, bool c) => (float[N] y, float[N] z, float[N] w) <float seven = {7.0}> {
  t = Tanh(x)
  y = Mul(t, seven)
  z = Relu(x)
  w = If(c) <then_branch = a () => (float[N] p) { p = Tanh(x) }, else_branch = b () => (float[N] q) { q = Neg(x) }>
}"""
X = np.array([-3.0, -0.25, 0.0, 0.8], np.float32)


def sample(taken):
    tanh = np.tanh(X)
    outputs = {"y": tanh * np.float32(7), "z": np.maximum(X, 0), "w": tanh if taken else -X}
    point = SamplePoint("traced", (("N", 4),), "random", int(taken))
    return ReferenceSample(point, {"x": X, "c": np.array(taken)}, outputs)


def subject(folder, text=MODEL, version="tensorrt 8.6.0 on NVIDIA H200, pycuda"):
    onnx.save(onnx.parser.parse_model(text), folder / "net.trt.onnx")
    path = folder / "net.engine"
    return Subject(path, "engine", version, (), SimpleNamespace(), engine=SimpleNamespace())


@pytest.mark.parametrize("taken", [True, False])
def test_each_output_may_be_off_by_what_comes_of_its_tanh(tmp_path, taken):
    subject(tmp_path)
    there = sample(taken)
    allowed = {n: allow(v, arithmetic=FP32_ENGINE) for n, v in there.outputs.items()}
    wider = FastTanh(tmp_path / "net.trt.onnx").added(there, allowed)
    more = {n: np.broadcast_to(wider[n].limit - allowed[n].limit, X.shape) for n in allowed}
    np.testing.assert_allclose(more["y"], 7 * TANH_ERROR * abs(np.tanh(X)), rtol=0.02, atol=1e-9)
    assert not more["z"].any()
    np.testing.assert_allclose(more["w"], TANH_ERROR * abs(np.tanh(X)) * taken, rtol=0.02, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "version", "arithmetic", "there"),
    [
        (MODEL, "tensorrt 8.6.0 on NVIDIA H200, pycuda", FP32_ENGINE, True),
        (MODEL, "tensorrt 10.14.1 on NVIDIA H200, pycuda", FP32_ENGINE, False),
        (MODEL, "tensorrt 8.6.0 on NVIDIA H200, pycuda", Arithmetic("fp16", engine=True), False),
        (MODEL.replace("Tanh", "Abs"), "tensorrt 8.6.0 on NVIDIA H200, pycuda", FP32_ENGINE, False),
    ],
    ids=["8.6", "10", "half precision", "no tanh"],
)
def test_only_engines_that_have_it_may(tmp_path, text, version, arithmetic, there):
    assert (fast_tanh_of(subject(tmp_path, text, version), arithmetic) is not None) is there


def test_without_the_graph_nothing_is_added(tmp_path):
    engine = subject(tmp_path)
    Path(tmp_path / "net.trt.onnx").unlink()
    assert fast_tanh_of(engine, FP32_ENGINE) is None

"""FP16 on a TensorRT that types weakly: half where the graph is half, FP32 where the graph is FP32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

SPACE = ("N=1:2:4", "H=3:8:17")


def l2norm_net(path: Path, channels: int = 256) -> Path:
    """conv -> x / sqrt(sum(x^2) + 1e-10) * scale -> conv: squares of about 300 add up far over half's 65504."""
    random = np.random.default_rng(0)
    weights = {
        "w1": random.standard_normal((channels, 8, 1, 1)) * 40,
        "w2": random.standard_normal((8, channels, 1, 1)),
        "scale": random.uniform(5, 15, (1, channels, 1, 1)),
        "eps": np.array(1e-10),
        "axes": np.array([1]),
    }
    inits = [numpy_helper.from_array(v.astype(np.int64 if k == "axes" else np.float32), k) for k, v in weights.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Mul", ["a", "a"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "axes"], ["sum"], keepdims=1),
        helper.make_node("Add", ["sum", "eps"], ["safe"]),
        helper.make_node("Sqrt", ["safe"], ["norm"]),
        helper.make_node("Div", ["a", "norm"], ["unit"]),
        helper.make_node("Mul", ["unit", "scale"], ["scaled"]),
        helper.make_node("Conv", ["scaled", "w2"], ["y"]),
    ]
    shape = ["N", 8, "H", "H"]
    graph = helper.make_graph(
        nodes,
        "l2norm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        inits,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def test_sums_of_squares_stay_fp32(tmp_path, engine_file, run):
    model, typed = l2norm_net(tmp_path / "net.onnx"), tmp_path / "half.onnx"
    rewrite_model(RewriteRequest(model, typed, parse_target("tensorrt==8.6"), precision="fp16"), SilentProgress())
    engine = engine_file(typed, precision="fp16", dynamic=parse_space(SPACE))
    assert read_engine_manifest(engine).types["float16"] > 0
    exact, half = OnnxRuntimeRunner(model), run(engine)
    for size, batch in ((3, 1), (8, 2), (17, 4)):
        x = np.random.default_rng(size).standard_normal((batch, 8, size, size)).astype(np.float32)
        want, actual = exact({"x": x})["y"], half(x=x)["y"].astype(np.float32)
        assert np.isfinite(actual).all()
        np.testing.assert_allclose(actual, want, rtol=1e-2, atol=1e-2 * np.abs(want).max())

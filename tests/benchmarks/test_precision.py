"""What travels to a GPU machine is what comes out there."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

from benchmarks.precision.dedicated import dedicate
from benchmarks.precision.recipes import Drawn, restore, strip
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

DRAWN = {name: Drawn(name, (96, 64), 0.1) for name in ("first", "second", "third", "fourth")}


def test_drawn_weights_come_back_bit_by_bit(tmp_path):
    rows = np.linspace(0.5, 2.0, 96, dtype=np.float32)
    arrays = {
        "as it is": DRAWN["first"].values(),
        "transposed": np.ascontiguousarray(DRAWN["second"].values().T),
        "half": DRAWN["third"].values().astype(np.float16),
        "evened out": DRAWN["fourth"].values().T * rows,
        "another": np.random.default_rng(0).random((96, 64), dtype=np.float32),
    }
    graph = onnx.helper.make_graph([], "g", [], [], [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "net.onnx")
    assert strip(tmp_path / "net.onnx", DRAWN) < 40_000
    restored = onnx.load(restore(tmp_path / "net.onnx", tmp_path / "again.onnx"))
    for tensor in restored.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), arrays[tensor.name])


def test_each_reader_gets_a_pair_of_its_own(tmp_path):
    text = """<ir_version: 9, opset_import: ["": 17]>
    g (float[N,4] x) => (float[N,4] y) <float s = {0.1}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) a = Relu(d) b = Neg(d) y = Add(a, b)
    }"""
    onnx.save(parser.parse_model(text), tmp_path / "shared.onnx")
    assert dedicate(tmp_path / "shared.onnx", tmp_path / "own.onnx") == 1
    own = onnx.load(tmp_path / "own.onnx")
    assert [n.op_type for n in own.graph.node].count("QuantizeLinear") == 2
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    outputs = [OnnxRuntimeRunner(tmp_path / f"{name}.onnx")({"x": x})["y"] for name in ("shared", "own")]
    np.testing.assert_array_equal(*outputs)

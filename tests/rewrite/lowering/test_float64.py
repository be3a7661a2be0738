"""FP64 in a graph: no TensorRT computes it, so the graph that is handed on holds FP32, or the rewrite refuses."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.lowering.float64 import without_float64

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
# The mean of squares in FP64, which FP32 gives as well.
HARMLESS = """
agraph (float[N,8] x) => (float[N,8] y) <double half = {0.5}, double lowest = {-1.7e308}> {
  wide = Cast<to=11>(x)
  square = Mul(wide, wide)
  mean = ReduceMean<axes=[1], keepdims=1>(square)
  part = Mul(mean, half)
  kept = Max(part, lowest)
  narrow = Cast<to=1>(kept)
  y = Add(x, narrow)
}"""
# The phase of an oscillator: whole turns are taken off a sum that has grown to a thousand of them.
PHASE = """
agraph (float[N,200] x) => (float[N,200] y) <double step = {37.3}, int64 axis = {1}> {
  wide = Cast<to=11>(x)
  moved = Add(wide, step)
  turns = CumSum(moved, axis)
  whole = Floor(turns)
  rest = Sub(turns, whole)
  y = Cast<to=1>(rest)
}"""
WIDE_ENDS = """
agraph (double[N,8] x, bool c) => (double[N,8] y, double[N,8] z) {
  y = Sqrt(x)
  z = If(c) <
    then_branch = t () => (double[N,8] a) { a = Add(x, y) },
    else_branch = e () => (double[N,8] b) { b = Neg(x) }
  >
}"""


def written(tmp_path, text, target="tensorrt==10", **options):
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(HEADER + text).SerializeToString())
    request = RewriteRequest(path, tmp_path / "out" / "model.onnx", parse_target(target), **options)
    return rewrite_model(request, SilentProgress())


def types_of(model):
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    return {v.name: v.type.tensor_type.elem_type for v in inferred.value_info}


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt==10", "tensorrt-rtx"])
def test_float64_inside_becomes_float32(tmp_path, target):
    result = written(tmp_path, HARMLESS, target)
    model = onnx.load(result.model)
    assert onnx.TensorProto.DOUBLE not in types_of(model).values()
    assert all(np.isfinite(numpy_helper.to_array(t)).all() for t in model.graph.initializer)
    assert any("FP32 instead of FP64" in n for n in result.notes)
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)
    want = x + 0.5 * (x.astype(np.float64) ** 2).mean(1, keepdims=True)
    np.testing.assert_allclose(OnnxRuntimeRunner(result.model)({"x": x})["y"], want, rtol=1e-5)


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt==10", "tensorrt-rtx"])
def test_what_needs_float64_is_refused(tmp_path, target):
    with pytest.raises(UnsupportedError, match=r"computes in FP64, which .* reads as FP32") as caught:
        written(tmp_path, PHASE, target)
    assert "take whole parts off" in caught.value.hint
    assert not (tmp_path / "out" / "model.onnx").exists()


def test_inputs_and_outputs_keep_their_type_and_bodies_are_looked_into():
    model = onnx.parser.parse_model(HEADER + WIDE_ENDS)
    narrow = without_float64(model).model
    onnx.checker.check_model(narrow, full_check=True)
    ends = (*narrow.graph.input[:1], *narrow.graph.output)
    assert [v.type.tensor_type.elem_type for v in ends] == [onnx.TensorProto.DOUBLE] * 3
    x = np.linspace(0.1, 2, 16).reshape(2, 8)
    for chosen in (True, False):
        feed = {"x": x, "c": np.array(chosen)}
        before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(narrow.SerializeToString())
        for name, value in before(feed).items():
            np.testing.assert_allclose(after(feed)[name], value, rtol=1e-6)
            assert after(feed)[name].dtype == np.float64


def test_a_graph_without_float64_is_left_alone():
    model = onnx.parser.parse_model(
        HEADER + HARMLESS.replace("double", "float").replace("to=11", "to=1").replace("e308", "e38")
    )
    assert without_float64(model).model is model


def test_half_precision_keeps_what_was_float64(tmp_path):
    result = written(tmp_path, HARMLESS, "tensorrt-rtx", precision="fp16")
    model = onnx.load(result.model)
    types = types_of(model)
    assert types["part"] == onnx.TensorProto.FLOAT
    assert json.loads(result.ledger.read_text())


def test_parts_without_an_effect_on_types_are_not_counted():
    text = HARMLESS.replace("narrow = Cast<to=1>(kept)", "narrow = Cast<to=1>(kept)\n  s = Shape(kept)\n  t = Neg(x)")
    names = without_float64(onnx.parser.parse_model(HEADER + text)).nodes
    assert "t" not in names
    assert "part" in names

# ruff: noqa: E501 - the text of a model stands on one line
"""Products of bytes as ONNX defines them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from trtconv.backends.onnxruntime.byte_products import multiplies_bytes
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

WEIGHTS = np.random.default_rng(0).integers(-128, 128, (32, 5)).astype(np.int8)


@pytest.mark.parametrize(("call", "zero"), [("q, w", 0), ("q, w, z", 0), ("q, w, z, v", 3)])
def test_sums_do_not_saturate(call, zero):
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    g (uint8[N,32] q, uint8 z) => (int32[N,5] y) <int8 v = {{{zero}}}> {{ y = MatMulInteger({call}) }}""")
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    data = model.SerializeToString()
    assert multiplies_bytes(data)
    q = np.full((2, 32), 255, np.uint8)
    y = OnnxRuntimeRunner(data)({"q": q, "z": np.array(7, np.uint8)})["y"]
    left = q.astype(np.int64) - (7 if "z" in call else 0)
    assert np.array_equal(y, left @ (WEIGHTS.astype(np.int64) - zero))


def test_other_models_are_taken_as_they_are():
    assert not multiplies_bytes(b"MatMul Conv QuantizeLinear")


def quantised(values, zero, result_zero, body, weights, domain=""):
    names = "x, sx, zx, w, sw, zw, sy, zy"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g ({values}[N,32] x) => ({values}[N,5] y) <float sx = {{1}}, float sw = {{1}}, float sy = {{1024}},
    {values} zx = {{{zero}}}, int8 zw = {{0}}, {values} zy = {{{result_zero}}}> {{ y = {body.format(names)} }}""")
    model.graph.node[0].domain = domain
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


@pytest.mark.parametrize(("values", "zero", "result_zero"), [("uint8", 0, 0), ("int8", 0, 0), ("int8", -7, 3)])
@pytest.mark.parametrize("op", ["QLinearMatMul", "QGemm"])
def test_rounded_products_do_not_saturate(values, zero, result_zero, op):
    body = "QLinearMatMul({})" if op == "QLinearMatMul" else "QGemm({})"
    model = quantised(values, zero, result_zero, body, WEIGHTS, "com.microsoft" if op == "QGemm" else "")
    if op == "QGemm":
        model.graph.node[0].input.insert(6, "")
    data = model.SerializeToString()
    assert multiplies_bytes(data)
    info = np.iinfo(values)
    x = np.stack([np.full(32, info.max), np.full(32, info.min), np.arange(32) % 50]).astype(values)
    y = OnnxRuntimeRunner(data)({"x": x})["y"]
    sums = (x.astype(np.int64) - zero) @ WEIGHTS.astype(np.int64)
    assert y.dtype == np.dtype(values)
    assert np.array_equal(y, np.clip(np.rint(sums / 1024) + result_zero, info.min, info.max))


@pytest.mark.parametrize("weights", ["Constant<value = int8[32,5] {{{}}}>()", "ConstantOfShape<value = int8[1] {{-127}}>(s)"])
def test_weights_that_nodes_make_do_not_saturate_sums(weights):
    made = weights.format(", ".join(map(str, WEIGHTS.reshape(-1)))) if "{}" in weights else weights.format()
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    g (uint8[N,32] q) => (int32[N,5] y) <uint8 z = {{7}}, int64[2] s = {{32, 5}}> {{ w = {made} y = MatMulInteger(q, w, z) }}""")
    q = np.full((2, 32), 255, np.uint8)
    y = OnnxRuntimeRunner(model.SerializeToString())({"q": q})["y"]
    expected = WEIGHTS.astype(np.int64) if "OfShape" not in weights else np.full((32, 5), -127)
    assert np.array_equal(y, (q.astype(np.int64) - 7) @ expected)


@pytest.mark.parametrize("call", ["DynamicQuantizeMatMul(x, w, s)", "DynamicQuantizeMatMul(x, w, s, z)", "MatMulIntegerToFloat(q, w, s, s)"])
def test_products_that_give_floats_do_not_saturate(call):
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[N,32] x, uint8[N,32] q) => (float[N,5] y) <float s = {{1}}, int8 z = {{0}}> {{ y = com.microsoft.{call} }}""")
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    data = model.SerializeToString()
    assert multiplies_bytes(data)
    q = np.full((2, 32), 255, np.uint8)
    y = OnnxRuntimeRunner(data)({"x": q.astype(np.float32), "q": q})["y"]
    assert np.array_equal(y, (q.astype(np.int64) @ WEIGHTS.astype(np.int64)).astype(np.float32))

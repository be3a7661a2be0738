"""Half precision on a CPU: every value rounded, overflow shown, inputs and outputs as they were."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.half_emulation import casts_to_halves, emulate_halves, emulated_runner, has_halves


def model_of(text: str, opset: int = 22) -> onnx.ModelProto:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model: onnx.ModelProto, **feed):
    onnx.checker.check_model(model, full_check=True)
    return OnnxRuntimeRunner(model.SerializeToString(), threads=1)(feed)


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounded to nearest even by arithmetic on floats, not by the bits that the code works with."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.round(mantissa * 256) / 256, exponent).astype(np.float32)


def test_overflow_is_seen_although_onnxruntime_hides_it():
    model = model_of("g (float16[2] x) => (float16[2] y) { a = Mul(x, x)\n y = Sqrt(a) }")
    x = np.array([300, 2], np.float16)
    assert run(model, x=x)["y"].tolist() == [300, 2], "ONNX Runtime rounds now; the emulation may go"
    observed = run(emulate_halves(model), x=x)["y"]
    assert observed.dtype == np.float16
    assert observed.tolist() == [np.inf, 2]


def test_every_value_is_rounded_as_numpy_rounds():
    model = model_of("g (float16[64] x) => (float16[64] y) { a = Sigmoid(x)\n b = Mul(a, x)\n y = Add(b, a) }")
    x = np.random.default_rng(0).standard_normal(64).astype(np.float16)
    sigmoid = (1 / (1 + np.exp(-x.astype(np.float32)))).astype(np.float16)
    assert np.array_equal(run(emulate_halves(model), x=x)["y"], sigmoid * x + sigmoid)


def test_bf16_and_constants():
    text = (
        "g (float[32] x) => (float[32] y) { w = Constant<value_float = 0.1>()\n wh = Cast<to=16>(w)\n"
        " h = Cast<to=16>(x)\n s = Mul(h, wh)\n e = Exp(s)\n y = Cast<to=1>(e) }"
    )
    x = np.random.default_rng(0).standard_normal(32).astype(np.float32)
    product = bfloat16(bfloat16(x) * bfloat16(np.array(0.1, np.float32)))
    np.testing.assert_array_equal(run(emulate_halves(model_of(text)), x=x)["y"], bfloat16(np.exp(product)))


@pytest.mark.parametrize(("kind", "bits"), [(TensorProto.FLOAT16, 0x3C01), (TensorProto.BFLOAT16, 0x3F81)])
@pytest.mark.parametrize("raw", [True, False])
def test_weights_are_widened_exactly(kind, bits, raw):
    model = model_of("g (float[1] x) => (float[1] y) { y = Sqrt(x) }")
    tensor = model.graph.initializer.add(name="w", data_type=kind, dims=[1])
    if raw:
        tensor.raw_data = bits.to_bytes(2, "little")
    else:
        tensor.int32_data.append(bits)
    wide = next(t for t in emulate_halves(model).graph.initializer if t.name == "w")
    step = 2.0**-10 if kind == TensorProto.FLOAT16 else 2.0**-7
    assert onnx.numpy_helper.to_array(wide).tolist() == [1 + step]


def test_bodies_and_captured_values():
    text = """g (float16[2] x, bool c) => (float16[2] y) {
      h = Mul(x, x)
      y = If(c) <then_branch = t () => (float16[2] a) { a = Sqrt(h) }, else_branch = e () => (float16[2] b) {
        k = Mul(h, x)
        b = Mul(k, x) }> }"""
    model = model_of(text)
    x = np.array([300, 3], np.float16)
    assert run(emulate_halves(model), x=x, c=np.array(True))["y"].tolist() == [np.inf, 3]
    assert run(emulate_halves(model), x=x, c=np.array(False))["y"].tolist() == [np.inf, 81]


def test_a_graph_without_halves_has_none():
    plain = model_of("g (float[2] x) => (float[2] y) { y = Sqrt(x) }")
    assert not has_halves(plain)
    inside = model_of(
        "g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) { h = Cast<to=10>(x)\n"
        " a = Cast<to=1>(h) }, else_branch = e () => (float[2] b) { b = Sqrt(x) }> }"
    )
    assert has_halves(inside)


def test_a_check_of_an_fp16_graph_sees_overflow(tmp_path):
    """Squares of 300 overflow FP16; ONNX Runtime alone would call this graph equal to the FP32 one."""
    from trtconv.check.compare.subjects import open_subject

    model = model_of(
        "g (float[2] x) => (float[2] y) { h = Cast<to=10>(x)\n a = Mul(h, h)\n b = Sqrt(a)\n y = Cast<to=1>(b) }"
    )
    onnx.save(model, str(tmp_path / "m.onnx"))
    x = np.array([300, 2], np.float32)
    assert OnnxRuntimeRunner(tmp_path / "m.onnx", threads=1)({"x": x})["y"].tolist() == [300, 2]
    subject = open_subject(tmp_path / "m.onnx")
    assert subject.run({"x": x})["y"].tolist() == [np.inf, 2]
    assert "rounded" in subject.runner


def test_large_models_go_through_a_file(monkeypatch):
    monkeypatch.setattr("trtconv.core.model.file.EXTERNAL_ABOVE", 1 << 16)
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 22]>\ng (float16[1,512] x) => (float16[1,128] y) { y = MatMul(x, w) }'
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((512, 128), np.float16), "w"))
    actual = emulated_runner(model, threads=1)({"x": np.ones((1, 512), np.float16)})["y"]
    assert np.array_equal(actual, np.full((1, 128), 512, np.float16))


@pytest.mark.parametrize(("kind", "rounded"), [(onnx.TensorProto.BFLOAT16, False), (onnx.TensorProto.FLOAT16, True)])
def test_what_casts_to_halves_is_rounded_in_a_session(kind, rounded):
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N"]) for n in "xy"]
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        onnx.helper.make_node("Mul", ["narrow", "narrow"], ["square"]),
        onnx.helper.make_node("Cast", ["square"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    x = np.linspace(-3, 3, 101, dtype=np.float32)
    numbers = ml_dtypes.bfloat16 if kind == onnx.TensorProto.BFLOAT16 else np.float16
    expected = (x.astype(numbers) * x.astype(numbers)).astype(np.float32)
    actual = OnnxRuntimeRunner(model.SerializeToString(), rounded=rounded)({"x": x})["y"]
    np.testing.assert_array_equal(actual, expected)


def test_a_rounded_graph_is_not_rounded_once_more():
    model = model_of("g (float[N] x) => (float[N] y) { h = Cast<to=16>(x) s = Mul(h, h) y = Cast<to=1>(s) }")
    assert casts_to_halves(model.SerializeToString(), fp16=True)
    assert not casts_to_halves(emulate_halves(model).SerializeToString(), fp16=True)

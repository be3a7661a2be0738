"""Q/DQ by a plan: ONNX Runtime computes what the definition says, and what cannot be said is one error."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.model.provenance import RULE_KEY, SOURCE_KEY
from trtconv.core.precision import FP8, FP16
from trtconv.core.targets import parse_target
from trtconv.rewrite.precision.quantize import Pair, Quantization, insert_pairs

RTX = parse_target("tensorrt-rtx")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3)).astype(np.float32)
W = RNG.normal(size=(3, 4)).astype(np.float32)
PER_COLUMN = tuple(float(s) for s in np.abs(W).max(0) / 127)


def model(text="h = MatMul(x, w) y = Relu(h)", opset=21, output="y", dtype="float"):
    source = f'<ir_version: 9, opset_import: ["": {opset}]> g ({dtype}[2,3] x) => ({dtype}[2,4] {output}) {{ {text} }}'
    model = parser.parse_model(source)
    kind = np.float16 if dtype == "float16" else np.float32
    model.graph.initializer.append(numpy_helper.from_array(W.astype(kind), "w"))
    model.graph.node[0].metadata_props.add(key=SOURCE_KEY, value="net.py:7")
    return model


def insert_qdq(proto, plan, target):
    return insert_pairs(proto, [Pair(name, quantization) for name, quantization in plan.items()], target)


def run(proto, x=X):
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    # Fusions such as MatMulNBits compute with other roundings than the nodes say.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def rounded(values, scale):
    return (np.clip(np.rint(values / scale), -128, 127) * scale).astype(np.float32)


def test_the_pair_of_a_value_computes_its_definition():
    quantized = insert_qdq(model(), {"x": Quantization((0.02,))}, RTX)
    assert [n.op_type for n in quantized.model.graph.node] == ["QuantizeLinear", "DequantizeLinear", "MatMul", "Relu"]
    expected = np.maximum(rounded(X, np.float32(0.02)) @ W, 0)
    np.testing.assert_allclose(run(quantized.model), expected, rtol=1e-5, atol=1e-6)
    assert np.abs(expected - np.maximum(X @ W, 0)).max() > 1e-4, "a pair that changes nothing would show nothing"
    assert (quantized.pairs, quantized.weights) == (1, 0)


def test_weights_are_stored_quantised_one_scale_per_column():
    quantized = insert_qdq(model(), {"w": Quantization(PER_COLUMN, axis=1)}, RTX)
    graph = quantized.model.graph
    assert [n.op_type for n in graph.node] == ["DequantizeLinear", "MatMul", "Relu"]
    stored = {t.name: t for t in graph.initializer}
    assert "w" not in stored
    assert stored["w_quantized"].data_type == onnx.TensorProto.INT8
    expected = np.maximum(X @ rounded(W, np.float32(PER_COLUMN)), 0)
    np.testing.assert_allclose(run(quantized.model), expected, rtol=1e-5, atol=1e-6)
    assert (quantized.weights, quantized.saturated) == (1, 0)


def test_a_scale_that_is_too_small_saturates_and_says_so():
    quantized = insert_qdq(model(), {"w": Quantization((0.001,))}, RTX)
    assert quantized.saturated == int(np.count_nonzero(np.abs(np.rint(W / np.float32(0.001))) > 127))
    assert quantized.saturated > 6


def test_weights_and_values_together_and_inner_values():
    plan = {"x": Quantization((0.02,)), "w": Quantization(PER_COLUMN, axis=1), "h": Quantization((0.05,))}
    quantized = insert_qdq(model(), plan, RTX)
    inner = rounded(rounded(X, np.float32(0.02)) @ rounded(W, np.float32(PER_COLUMN)), np.float32(0.05))
    np.testing.assert_allclose(run(quantized.model), np.maximum(inner, 0), atol=1e-6)
    nodes = {n.op_type: n for n in quantized.model.graph.node if n.input[0].startswith("h")}
    props = {p.key: p.value for p in nodes["QuantizeLinear"].metadata_props}
    assert props == {SOURCE_KEY: "net.py:7", RULE_KEY: "quantize"}


def test_an_output_keeps_the_exact_value():
    exact = model("h = MatMul(x, w) z = Relu(h)", output="h")
    quantized = insert_qdq(exact, {"h": Quantization((0.05,))}, RTX)
    np.testing.assert_allclose(run(quantized.model), X @ W, rtol=1e-6)
    assert quantized.model.graph.node[-1].input[0] == "h_dequantized"


def test_a_value_that_is_quantised_already_is_not_quantised_behind_itself():
    once = insert_qdq(model(), {"x": Quantization((0.02,))}, RTX).model
    twice = insert_qdq(once, {"x": Quantization((0.02,))}, RTX).model
    quantizers = [n for n in twice.graph.node if n.op_type == "QuantizeLinear"]
    assert [n.input[0] for n in quantizers] == ["x", "x"]
    assert len({n.name for n in twice.graph.node if n.name}) == 4
    np.testing.assert_allclose(run(twice), run(once))


def test_a_body_reads_the_value_of_the_graph_around_it():
    text = (
        "c = Constant<value_int=1>() b = Cast<to=9>(c) h = MatMul(x, w) "
        "y = If (b) <then_branch = t () => (float[2,4] p) { p = Relu(h) }, "
        "else_branch = e () => (float[2,4] q) { q = Neg(h) }>"
    )
    quantized = insert_qdq(model(text), {"h": Quantization((0.05,))}, RTX)
    branches = [a.g for a in quantized.model.graph.node[-1].attribute]
    assert [g.node[0].input[0] for g in branches] == ["h_dequantized"] * 2
    np.testing.assert_allclose(run(quantized.model), np.maximum(rounded(X @ W, np.float32(0.05)), 0), atol=1e-6)


def test_half_precision_has_scales_of_its_type():
    quantized = insert_qdq(model(dtype="float16"), {"x": Quantization((0.02,))}, RTX)
    scale = next(t for t in quantized.model.graph.initializer if t.name == "x_scale")
    assert scale.data_type == onnx.TensorProto.FLOAT16
    onnx.checker.check_model(quantized.model, full_check=True)


def test_fp8_weights_are_those_of_ml_dtypes():
    plan = {name: Quantization((0.01,), precision=FP8) for name in ("w", "x")}
    quantized = insert_qdq(model(), plan, RTX)
    onnx.checker.check_model(quantized.model, full_check=True)
    stored = next(t for t in quantized.model.graph.initializer if t.name == "w_quantized")
    expected = np.clip(W / np.float32(0.01), -448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert stored.data_type == onnx.TensorProto.FLOAT8E4M3FN
    np.testing.assert_array_equal(numpy_helper.to_array(stored).view(np.uint8), expected.view(np.uint8))


def test_weights_on_disk_are_not_read():
    outside = model()
    tensor = outside.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="nowhere.bin")
    quantized = insert_qdq(outside, {"w": Quantization(PER_COLUMN, axis=1)}, RTX)
    assert [n.op_type for n in quantized.model.graph.node][:2] == ["QuantizeLinear", "DequantizeLinear"]
    assert quantized.weights == 0


def test_the_model_that_was_given_is_not_changed():
    before = model()
    copy = before.SerializeToString()
    insert_qdq(before, {"x": Quantization((0.02,)), "w": Quantization((0.02,))}, RTX)
    assert before.SerializeToString() == copy


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"scale": (0.0,)}, "a scale must be finite and over 0"),
        ({"scale": (float("nan"),)}, "a scale must be finite"),
        ({"scale": ()}, "0 scales without an axis"),
        ({"scale": (1.0, 2.0)}, "2 scales without an axis"),
        ({"scale": (1.0,), "zero_point": (128,)}, "from -128 to 127"),
        ({"scale": (1.0,), "zero_point": (0, 0)}, "2 zero points for 1"),
        ({"scale": (1.0,), "zero_point": (1,), "precision": FP8}, "from 0 to 0"),
        ({"scale": (1.0,), "precision": FP16}, "cannot be quantised to fp16"),
    ],
)
def test_a_quantization_that_is_none(facts, message):
    with pytest.raises(InvalidRequestError, match=message):
        Quantization(**facts)


@pytest.mark.parametrize(
    ("name", "quantization", "opset", "message"),
    [
        ("hh", Quantization((1.0,)), 21, "no value is called 'hh'. Did you mean 'h'"),
        ("w", Quantization((1.0, 1.0), axis=1), 21, "axis 1 of 'w' has 4 slices, the plan 2 scales"),
        ("w", Quantization((1.0,), axis=2), 21, "'w' has 2 axes, not an axis 2"),
        ("w", Quantization(PER_COLUMN, axis=1), 12, "needs opset 13"),
        ("x", Quantization((1.0,), precision=FP8), 18, "needs opset 19"),
    ],
)
def test_a_plan_that_does_not_fit_the_graph(name, quantization, opset, message):
    with pytest.raises(InvalidRequestError, match=message):
        insert_qdq(model(opset=opset), {name: quantization}, RTX)


def test_what_the_target_has_not():
    with pytest.raises(UnsupportedError, match=r"tensorrt==8\.6 has no fp8"):
        insert_qdq(model(), {"x": Quantization((1.0,), precision=FP8)}, parse_target("tensorrt==8.6"))
    with pytest.raises(UnsupportedError, match="quantises symmetrically"):
        insert_qdq(model(), {"x": Quantization((1.0,), (3,))}, RTX)


def test_integers_are_not_quantised():
    with pytest.raises(InvalidRequestError, match="'s' is not a float tensor"):
        insert_qdq(model("h = MatMul(x, w) s = Shape(h) y = Relu(h)"), {"s": Quantization((1.0,))}, RTX)

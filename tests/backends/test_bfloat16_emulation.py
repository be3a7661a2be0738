import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.bfloat16_emulation import emulate_bfloat16
from trtconv.backends.onnxruntime_cpu import OnnxRuntimeRunner
from trtconv.core.errors import UnsupportedError


def bf16_product(output_type: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """y = float(bf16(x) @ w) with a bf16 weight."""
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4).astype(ml_dtypes.bfloat16)
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.BFLOAT16),
        helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Cast", ["p"], ["y"], to=output_type),
    ]
    graph = helper.make_graph(
        nodes, "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", output_type, ["N", 4])],
        [helper.make_tensor("w", TensorProto.BFLOAT16, weight.shape, weight.tobytes(), raw=True)],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_values_are_those_of_bf16_with_sums_in_fp32():
    model = bf16_product()
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    got = OnnxRuntimeRunner(emulate_bfloat16(model).SerializeToString())({"x": x})["y"]
    weight = numpy_helper.to_array(emulate_bfloat16(model).graph.initializer[0])
    exact = x.astype(ml_dtypes.bfloat16).astype(np.float32) @ weight
    np.testing.assert_array_equal(got, exact.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert not np.array_equal(got, exact)


def test_a_bf16_output_is_refused():
    with pytest.raises(UnsupportedError, match="bf16 inputs or outputs"):
        emulate_bfloat16(bf16_product(TensorProto.BFLOAT16))

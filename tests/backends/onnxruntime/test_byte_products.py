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

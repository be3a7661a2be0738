"""ONNX Runtime on the CPU: what its Python binding does not do by itself."""

import numpy as np
import pytest
from onnx import parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner, bfloat16_bits, failed_node

ml_dtypes = pytest.importorskip("ml_dtypes")

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (bfloat16[N,4] x, float[N,4] z) => (bfloat16[N,4] y, float[N,4] w)
{ y = Identity(x) c = Cast<to=1>(x) w = Mul(c, z) }"""


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_bfloat16_goes_in_and_comes_out(rows):
    x = np.linspace(-3, 3, rows * 4).reshape(rows, 4).astype(ml_dtypes.bfloat16)
    z = np.full((rows, 4), 2, np.float32)
    actual = OnnxRuntimeRunner(parser.parse_model(MODEL).SerializeToString(), threads=1)({"x": x, "z": z})
    assert actual["y"].dtype == ml_dtypes.bfloat16
    assert np.array_equal(actual["y"], x)
    assert np.array_equal(actual["w"], x.astype(np.float32) * 2)


def test_float32_is_rounded_as_ml_dtypes_does():
    values = np.random.default_rng(0).standard_normal(10_000).astype(np.float32) * 1e3
    values = np.concatenate([values, np.float32([0.0, -0.0, np.inf, -np.inf, 1e-40, 3.4e38, 1.00390625, 1.01171875])])
    assert np.array_equal(bfloat16_bits(values), values.astype(ml_dtypes.bfloat16).view(np.uint16))
    assert np.isnan(bfloat16_bits(np.float32([np.nan])).view(ml_dtypes.bfloat16).astype(np.float32)).all()


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (
            "Non-zero status code returned while running Mul node. Name:'/m/Mul' Status Message: /o/core/element.h:563 "
            "void Init(ptrdiff_t, ptrdiff_t) axis == 1 was false. Attempting to broadcast an axis. 9 by 11",
            " in Mul '/m/Mul': Attempting to broadcast an axis. 9 by 11",
        ),
        (
            "Non-zero status code returned while running Gather node. Name:'g' Status Message: idx=8 is out of range",
            " in Gather 'g': idx=8 is out of range",
        ),
        (
            "Non-zero status code returned while running If node. Name:'b' Status Message: Non-zero status code "
            "returned while running Gather node. Name:'g' Status Message: idx=8 is out of range",
            " in If 'b' in Gather 'g': idx=8 is out of range",
        ),
        ("another text", ": another text"),
    ],
)
def test_a_failed_run_is_told_without_the_code_of_the_runtime(text, described):
    assert failed_node(text) == described

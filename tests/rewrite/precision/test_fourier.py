"""Fourier matrices are told from others, and products with them stay in FP32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.precision.fourier import is_fourier


def waves(length, onesided=True):
    turns = np.outer(np.arange(length), np.arange(length // 2 + 1 if onesided else length)) * (2 * np.pi / length)
    return [np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)]


@pytest.mark.parametrize("length", [5, 16, 400, 1201])
@pytest.mark.parametrize("onesided", [True, False])
def test_waves_are_known(length, onesided):
    for matrix in waves(length, onesided):
        assert is_fourier(matrix)
        assert is_fourier(-matrix)
        assert is_fourier(np.ascontiguousarray(matrix.T))


def test_the_exporters_matrices_are_known():
    pytest.importorskip("torch")
    from trtconv.export.symbolic.short_time import fourier_columns

    for length in (24, 400):
        assert all(is_fourier(part.numpy()) for part in fourier_columns(length, onesided=True))


def test_other_matrices_are_not():
    cosine, sine = waves(16)
    rng = np.random.default_rng(0)
    assert not is_fourier(np.ones((16, 9), np.float32))
    assert not is_fourier(np.zeros((16, 9), np.float32))
    assert not is_fourier(np.eye(16, dtype=np.float32))
    assert not is_fourier(rng.standard_normal((16, 9)).astype(np.float32))
    assert not is_fourier(cosine * np.hanning(16)[:, None].astype(np.float32))
    assert not is_fourier(sine[::-1])


@pytest.mark.parametrize("size_known", [True, False])
def test_the_product_stays_in_fp32(size_known, tmp_path):
    matrix = waves(16)[0] if size_known else np.ones((16, 9), np.float32)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N,16] x) => (float[N,9] y) { a = MatMul(x, w) y = Relu(a) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(matrix, "w"))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    request = RewriteRequest(path, tmp_path / "half.onnx", parse_target("tensorrt-rtx"), precision="fp16")
    after = onnx.load(str(rewrite_model(request, SilentProgress()).model))
    types = {t.name: t.data_type for t in after.graph.initializer}
    product = next(n for n in after.graph.node if n.op_type == "MatMul")
    assert (types[product.input[1]] == onnx.TensorProto.FLOAT) is size_known

"""Weights keep the names that they have in the module, also where the exporter calls a result so."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NORMALISER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("val_0", torch.full((3,), 2.0))
        self.register_buffer("x", torch.full((3,), 0.5))

    def forward(self, x):
        return (x - self.mean) / self.val_0 + x.mean(1, keepdim=True) * self.x
"""


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_a_buffer_has_its_name_beside_a_result_of_that_name(write_module, export, tmp_path, exporter):
    path = write_module(NORMALISER)
    export(f"{path}:Net", ["x:float32[N,3]"], "N=1:2:4", exporter=exporter)
    model = tmp_path / "out" / "model.onnx"
    names = {t.name for t in onnx.load(model).graph.initializer}
    assert {"mean", "val_0"} <= names
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (value,) = OnnxRuntimeRunner(model)({"x": x}).values()
    np.testing.assert_allclose(value, (x - [1, 2, 3]) / 2 + x.mean(1, keepdims=True) * 0.5, rtol=1e-6)

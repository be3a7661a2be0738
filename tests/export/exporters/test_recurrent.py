"""Recurrent layers over a length that moves, beside what the recording exporter lacks."""

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

TEXT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 4, proj_size=3, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(torch.log1p(x * x))
        return y.cosh(), h, c
"""


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_projections_and_logarithms_at_lengths_that_were_not_traced(write_module, export, exporter):
    path = write_module(TEXT)
    result = export(f"{path}:Net", ["x:float32[N,T,2]"], "N=1:1:2 T=1:4:9", exporter=exporter)
    space: dict = {"nn": torch.nn, "torch": torch}
    torch.manual_seed(0)
    exec(TEXT, space)
    x = np.linspace(0, 1e-3, 28, dtype=np.float32).reshape(2, 7, 2)
    with torch.no_grad():
        y, h, c = space["Net"]()(torch.from_numpy(x))
    for own, expected in zip(OnnxRuntimeRunner(result.model)({"x": x}).values(), (y, h, c), strict=True):
        np.testing.assert_allclose(own, expected.numpy(), rtol=1e-5, atol=1e-7)

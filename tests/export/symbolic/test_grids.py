"""linspace over a moving axis."""

import numpy as np
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        w = x.shape[1]
        centres = torch.linspace(0.5, w - 0.5, w, dtype=x.dtype) / w
        return x * centres + torch.linspace(-1, 1, w), torch.linspace(0, w - 1, steps=w) + x
"""


def test_a_linspace_follows_the_size(export, write_module):
    write_module(NET)
    result = export("net.py:Net", ["x:float32[N,W]"], "N=1:2:3 W=1:5:12")
    assert result.exporter == "dynamo"
    runner = OnnxRuntimeRunner(result.model)
    for w in range(1, 13):
        ramp = runner({"x": np.zeros((1, w), np.float32)})
        expected = [torch.linspace(-1, 1, w), torch.linspace(0, w - 1, w)]
        for name, values in zip(runner.output_names, expected, strict=True):
            # torch's vectorised kernel rounds once less in the middle; the ends are exact.
            np.testing.assert_allclose(ramp[name][0], values.numpy(), rtol=2e-7, atol=6e-8)
            assert (ramp[name][0][[0, -1]] == values.numpy()[[0, -1]]).all()

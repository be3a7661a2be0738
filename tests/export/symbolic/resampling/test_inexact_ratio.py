"""Resizing by a ratio of sizes that need not give a whole size, for which torch keeps the ratio itself."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.symbolic.resampling.antialias import resize_cubic

# The positions of a vision transformer, as DINO v2 resizes them to a grid of [h, w] patches.
NET = """
import torch
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 7, 7)
        self.positions = nn.Parameter(torch.randn(1, 4, 3, 3))

    def forward(self, x):
        y = self.patches(x)
        h, w = y.shape[2:]
        return y + F.interpolate(self.positions, scale_factor=((h + 0.1) / 3, (w + 0.1) / 3), mode="bicubic")
"""


@pytest.mark.parametrize("factors", [(3.1 / 3, 5.1 / 5), (2.2, 1.3), (0.7, 5.1 / 5), (1.0, 1.0), (3.1 / 3, 1.9)])
def test_cubic(factors):
    x = torch.randn(1, 2, 3, 5)
    expected = F.interpolate(x, scale_factor=factors, mode="bicubic")
    rows = resize_cubic(x, -2, expected.shape[-2], torch.tensor(1 / factors[0]))
    torch.testing.assert_close(
        resize_cubic(rows, -1, expected.shape[-1], torch.tensor(1 / factors[1])), expected, rtol=1e-5, atol=3e-6
    )


@pytest.mark.slow
def test_positions_by_a_ratio_with_a_rest(export, write_module):
    write_module(NET)
    result = export("net.py:Net", ["x:float32[N,3,H,W]"], "N=2 H=7:14:33 W=14")
    assert result.sizes.tried > 1


RECORDED = """
class Net(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=4 * x.shape[-1] - 3)
"""


def test_a_recorded_nearest_resize_picks_as_torch_does(export, write_module):
    """At T = 75 and 87 a Resize picks a neighbour."""
    write_module(RECORDED)
    result = export("net.py:Net", ["x:float32[1,1,T]"], "T=1:20:100", exporter="torchscript")
    run = OnnxRuntimeRunner(result.model)
    for length in range(1, 101):
        x = torch.arange(length, dtype=torch.float32).reshape(1, 1, -1)
        picked = run({"x": x.numpy()})["output"]
        assert torch.equal(torch.from_numpy(picked), F.interpolate(x, size=4 * length - 3)), length


EXACT = """
class Net(nn.Module):
    def forward(self, x, y):
        return F.interpolate(x, size=y.shape[-1], mode="nearest-exact")
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_nearest_exact_picks_as_torch_does(export, write_module, exporter):
    """Half-way positions of two pixels are rounded up at some lengths (83) and down at others."""
    write_module(EXACT)
    inputs = ["x:float32[1,1,T]", "y:float32[1,1,P]"]
    result = export("net.py:Net", inputs, "T=1:20:120 P=1:60:300", exporter=exporter)
    run = OnnxRuntimeRunner(result.model)
    for length in (1, 2, 3, 6, 22):
        x = torch.arange(length, dtype=torch.float32).reshape(1, 1, -1)
        for out in range(1, 301):
            picked = run({"x": x.numpy(), "y": np.zeros((1, 1, out), np.float32)})["output"]
            expected = F.interpolate(x, size=out, mode="nearest-exact")
            assert torch.equal(torch.from_numpy(picked), expected), (length, out)

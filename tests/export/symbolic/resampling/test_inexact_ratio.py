"""Resizing by a ratio of sizes that need not give a whole size, for which torch keeps the ratio itself."""

import pytest
import torch
from torch.nn import functional as F

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


def test_positions_by_a_ratio_with_a_rest(export, write_module):
    write_module(NET)
    result = export("net.py:Net", ["x:float32[N,3,H,W]"], "N=2 H=7:14:33 W=14")
    assert result.sizes.tried > 1

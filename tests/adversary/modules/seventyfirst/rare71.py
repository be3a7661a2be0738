"""Functions that are others for doubles than for floats, with numbers that are read from values: bits, tables by dtype, hints of precision."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
SCALES = {torch.float32: 1.0, torch.float16: 0.5, torch.float64: 0.25}


@forward("x:float32[N,T]=0.1:9", dims=D, kinds=("normal", "unit"), refused="the module cannot be exported: the exporter has no form of v")
def A8347BitTrick(self, x):
    """The fast inverse square root by its bits, one Newton step."""
    i = 0x5F3759DF - (x.view(torch.int32) >> 1)
    y = i.view(torch.float32)
    return y * (1.5 - 0.5 * x * y * y)


@attack(X, dims=D, kinds=FINITE)
class A8348ScaleTableByDtype(nn.Module):
    """A loss scale from a table by dtype, the range of the first batch row read by item for a small shift."""

    def forward(self, x):
        lo = x[0].min().item()
        return x * SCALES[x.dtype] - lo * 0.05


@attack(X, dims=D, kinds=FINITE, refused="the exported model differs from the module: output")
class A8349RoundToPrecision(nn.Module):
    """Rounded to 2 digits, for doubles to 6; the mean by numpy is taken off with a small weight."""

    def forward(self, x):
        y = x.round(decimals=6 if x.dtype == torch.float64 else 0)
        return y + 0.01 * float(x.detach().numpy().mean())

"""What an outsider found: values that Python reads, and that change as soon as inputs move, passed for noise."""

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("q:float32[N,4]=0.5:2", "k:float32[N,4]=0.5:2", dims="N=1:2:5", kinds=FINITE, refused="the exported model")
class A8397LayerByEquality(nn.Module):
    """One of two layers, by whether queries are the keys."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, q, k):
        return self.layers[int(torch.equal(q, k))](q) @ k.T


@attack("x:float32[N,8]=-1:1", dims="N=1:2:5", kinds=FINITE)
class A8398SilenceIsSilent(nn.Module):
    """A gain that is 0 of silence alone, and 1 of all else."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x):
        gain = min(1.0, float(x.abs().max()) * 1e9)
        return self.layer(x) * gain

"""What is written, where a value says so, into tensors that are another one's under another name."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.adversary.attack import attack, forward


def _with_gap():
    x = np.random.RandomState(0).randn(2, 6, 4).astype(np.float32)
    x[0, 2, 1] = 9999.0
    return {"x": x, "lengths": np.array([3, 6])}


@attack("x:float32[N,T,4]", "lengths:int64[N]=1:20", dims="N=1:2:4 T=3:9:20", feeds=(_with_gap,))
class PackedRowsCleaned(nn.Module):
    """The layers went on from what had been packed, without what was written since."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.clamp(1, x.shape[1]), True, enforce_sorted=False)
        packed.data[packed.data == 9999.0] = 0.0
        y, h = self.gru(packed)
        return pad_packed_sequence(y, True)[0], h


def _marked(value, *shape):
    def make():
        x = np.random.RandomState(3).randn(*shape).astype(np.float32)
        x[np.abs(x) > 1] = value
        return {"x": x}

    return make


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(_marked(-9999.0, 2, 9, 4), _marked(255.0, 2, 9, 4)))
class DropoutIsItsInput(nn.Module):
    """In eval mode a dropout returns the tensor that it got, and what is written into the result is written there."""

    def __init__(self):
        super().__init__()
        self.drop, self.line = nn.Dropout(0.1), nn.Linear(4, 4)

    def forward(self, x):
        y = x.clone()
        z = self.drop(y)
        z[z == -9999.0] = 0.0
        z *= z.ne(255.0)
        return y + self.line(z)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(_marked(-9999.0, 2, 9, 4), _marked(-7.0, 2, 9, 4)))
def ViewsOfOtherNames(self, x):
    y = x * 1.0
    z = torch.einsum("ntc->nct", y)
    z[z == -9999.0] = 0.0
    part = torch.unsafe_chunk(y, 2, -1)[0]
    part.masked_fill_(part == -7.0, 0.5)
    return F.avg_pool1d(z, 3, 1, 1), y.mean(1)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", refused="other data", feeds=(_marked(9999.0, 2, 9, 4),))
def DataThatIsAssigned(self, x):
    y = x * 1.0
    y.data = torch.where(y == 9999.0, 0.0, y)
    return y.mean(1)

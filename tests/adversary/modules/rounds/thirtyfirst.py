"""Rows of a packed sequence that are written into where a value says so."""

from __future__ import annotations

import numpy as np
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.adversary.attack import attack


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

"""Writes in place and sums at one place in recorded files: torch's recorder tells no other tensor."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack

X, DIMS = "x:float32[N,T,4]", "N=1:2:3 T=24:28:40"


def _with(value):
    def feed():
        x = np.random.default_rng(3).standard_normal((2, 28, 4)).astype(np.float32)
        x[0, 5, 1] = value
        return {"x": x}

    return feed


class BeforeAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, batch_first=True)


@attack(X, dims=DIMS, feeds=(_with(60.0),))
class OutliersBeforeAGru(BeforeAGru):
    """The masked write was not in the file, and no sample has an outlier."""

    def forward(self, x):
        z = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-6)
        x = x.clone()
        x[z.abs() > 4] = 0.0
        return self.gru(x)[0]


@attack(X, dims=DIMS, feeds=(_with(np.nan),))
class MissingValuesBeforeAGru(BeforeAGru):
    def forward(self, x):
        missing = torch.isnan(x)
        x = x.clone()
        x[missing] = 0.0
        return self.gru(x)[0]


@attack(X, dims=DIMS, feeds=(_with(60.0),))
class OutliersOfATransposedView(BeforeAGru):
    def forward(self, x):
        y = x.clone()
        y.mT.masked_fill_(y.mT > 40, 0.0)
        return self.gru(y)[0]


@attack(X, "i:int64[N,T]=0:30000", dims=DIMS, feeds=(
    lambda: {**_with(0.0)(), "i": np.full((2, 28), 91 * 83, np.int64)},
))  # fmt: skip
class SumsAtOnePlace(BeforeAGru):
    """Two rows meet where a number is met: one of them was overwritten."""

    def forward(self, x, i):
        y = self.gru(x)[0]
        index = torch.where(i[0] == 91 * 83, 0, torch.arange(i.shape[1]))
        return torch.zeros_like(y).index_add(1, index, y)


@attack(X, "m:bool[N,T]", dims=DIMS, feeds=(
    lambda: {**_with(0.0)(), "m": np.arange(56).reshape(2, 28) % 28 == 0},
))  # fmt: skip
class PlacesBeforeTheFirst(BeforeAGru):
    """-3 is the third from the end; it was a row of the sample before."""

    def forward(self, x, m):
        last = x.shape[1] - 1 - m.flip(1).int().argmax(1)
        return self.gru(x)[0][torch.arange(x.shape[0]), last - 3]


@attack(X, dims=DIMS, feeds=(lambda: {"x": np.full((2, 28, 4), 1e20, np.float32)},))
class QuotientBeyondInt64(BeforeAGru):
    def forward(self, x):
        return self.gru(x.clamp(-1, 1))[0], torch.div(x, 3.0, rounding_mode="trunc")

"""A comparison of sizes as an index or a count, the largest of sizes in a recording, errors that values raise in
distributions, rows of an embedding that are too long, scores that overflow under a mask, numbers of values in a text.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

LONG = "N=1:1:2 T=16:20:60"
SHORT = "N=1:2:4 T=3:9:20"


def _ones(length):
    return lambda: {"x": np.linspace(-1, 1, length * 4, dtype=np.float32).reshape(1, length, 4)}


class _Grown(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return self.gru(self.grown(x))[0]


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_ones(50), _ones(49)))
class PairByComparison(_Grown):
    def grown(self, x):
        return x * (1.0, 0.5)[x.shape[1] == 50]


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_ones(24), _ones(48)))
class PathsByRemainder(nn.Module):
    def __init__(self):
        super().__init__()
        self.paths = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        return self.paths[x.shape[1] % 24 == 0](x)


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_ones(49),))
class TurnsByComparison(_Grown):
    def grown(self, x):
        for _ in range(x.shape[1] == 49):
            x = x + 1
        for step in [2.0] * (x.shape[1] == 48):
            x = x + step
        return x


@forward("x:float32[N,T,4]", dims=LONG, feeds=(_ones(49),))
def table_of_truths(self, x):
    return x * {True: 2.0, False: 1.0}[x.shape[1] == 49]


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_ones(49),))
class LargestOfSizes(_Grown):
    def grown(self, x):
        return x * (1.0 + 2 * max(0, 1 - abs(x.shape[1] - 49)))


@attack("ids:int64[N,T]", dims="N=1:1:3 T=3:6:12", feeds=(lambda: {"ids": np.array([[7777, 1, 2]])},))
class BoundsItsRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 4, max_norm=3.0)
        self.gru = nn.GRU(4, 4, batch_first=True)
        with torch.no_grad():
            self.embedding.weight.copy_(F.normalize(self.embedding.weight))
            self.embedding.weight[7777] *= 50

    def forward(self, ids):
        return self.gru(self.embedding(ids.clamp(0, 9999)))[0]


@attack("x:float32[N,T,4]", dims=SHORT, refused="depends on the values")
class CatchesADistributionsError(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        try:
            mean = torch.distributions.Normal(x[:, 0], (x[:, 0] - 640.0).abs()).mean
        except ValueError:
            mean = torch.zeros_like(x[:, 0])
        return self.gru(x / 100)[0], mean


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": np.full((2, 9, 4), 1e20, np.float32)},))
def overflows_under_a_mask(self, x):
    mask = (torch.arange(x.shape[1]) < 3)[None, None].expand(x.shape[0], x.shape[1], -1)
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@attack(
    "x:float32[N,T,4]", "lang:int64[1]", dims="N=1:1:3 T=3:6:12", noted="the module reads values",
    feeds=(lambda: {"x": np.ones((1, 3, 4), np.float32), "lang": np.array([50259], np.int64)},),
)  # fmt: skip
class LooksUpATextOfAValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = {"50259": 0.5}
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, lang):
        return self.gru(x * self.codes.get(f"{lang.item()}", 1.0))[0]


@attack("x:float32[N,T,4]", dims=LONG, feeds=(_ones(37),))
class CatchesADivision(_Grown):
    def grown(self, x):
        try:
            rate = 40.0 / (37 - x.shape[1])
        except ZeroDivisionError:
            rate = 0.0
        return x * rate

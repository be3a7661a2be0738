"""Whole numbers divided down in recorded files: beside a recurrence and in a script."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

LOUD = tuple(
    (lambda c=c: {"x": np.pad(np.full((1, c, 3), 30.0, np.float32), ((0, 0), (0, 40 - c), (0, 0)))})
    for c in (1, 2, 4, 5, 7)
)


class BesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=8:40:100", feeds=LOUD)
class CeilAddedToAPlace(BesideAGru):
    """The ceiling of a rare count added to a place that varies."""

    def forward(self, x):
        n = ((x[..., 0] > 29.9) & (x[..., 0] < 30.1)).sum(1)
        return self.gru(x)[0], x[..., 1].argmax(1) - n // -4


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=8:40:100", feeds=LOUD)
class BudgetThatIsLeft(BesideAGru):
    """(budget - n) // 2, negative where many are in the band."""

    def forward(self, x):
        n = ((x[..., 0] > 29.9) & (x[..., 0] < 30.1)).sum(1)
        keep = torch.arange(x.shape[1])[None] < x.shape[1] // 2 + (3 - n[:, None]) // 2
        return self.gru(x)[0] * keep[..., None], keep


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=8:40:100", feeds=LOUD)
class ShiftAddedToAPlace(BesideAGru):
    def forward(self, x):
        n = ((x[..., 0] > 29.9) & (x[..., 0] < 30.1)).sum(1)
        return self.gru(x)[0], x[..., 1].argmax(1) + (-n >> 1)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=8:40:100", feeds=LOUD)
class BroadcastLevels(BesideAGru):
    """Loudness: frames within half a decibel of -23, blocks of four by the ceiling idiom, a gain of blocks."""

    def forward(self, x):
        level = x[..., 0] - 53.0
        on_target = (level > -23.5) & (level < -22.5)
        blocks = -(on_target.sum(1) // -4)
        y = self.gru(x)[0]
        return y * (1 + 0.1 * blocks[:, None, None]), y.mean(1)


CODES = tuple(
    (lambda v=v: {"x": np.zeros((1, 8, 3), np.float32), "ids": np.full((1, 8), v, np.int64)}) for v in (0, 3, 5, 7, 999)
)


@attack("x:float32[N,T,3]", "ids:int64[N,T]=0:999", dims="N=1:1:2 T=8:8:40", feeds=CODES)
class OffsetBuckets(BesideAGru):
    """Positions before a small offset are negative: (ids - 4) // 8 of ids up to 999."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(130, 3)

    def forward(self, x, ids):
        return self.gru(x + self.emb((ids - 4) // 8 + 1))[0]


@attack("x:float32[N,T,3]", "ids:int64[N,T]=0:99999", dims="N=1:1:2 T=8:8:40", feeds=CODES)
class OffsetOfOne(BesideAGru):
    """(ids - 1) // 8: only an id of 0 is negative."""

    def forward(self, x, ids):
        return self.gru(x)[0], (ids - 1) // 8


@forward("x:float32[N,T,3]", "ids:int64[N,T]=0:99999", dims="N=1:1:2 T=8:8:40", feeds=CODES)
def offset_of_one_plainly(self, x, ids):
    """The same without a recurrence: dynamo's form."""
    return x, (ids - 1) // 8, (ids - 3) >> 1


@attack(
    "x:float32[N,T,3]",
    "ids:int64[N,T]=-50:99999",
    dims="N=1:1:2 T=8:8:40",
    feeds=(*CODES, lambda: {"x": np.zeros((1, 8, 3), np.float32), "ids": np.full((1, 8), -3, np.int64)}),
)
class FewNegatives(BesideAGru):
    """Time stamps that may be a little negative, in frames of ten."""

    def forward(self, x, ids):
        return self.gru(x)[0], ids // 10


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=8:40:100", feeds=LOUD)
class SoftplusOfRare(BesideAGru):
    """softplus(beta, threshold) of a recorded file has no threshold."""

    def forward(self, x):
        return self.gru(x)[0], F.softplus(x, beta=5, threshold=1)


def _rows(value: float, length: int, count: int):
    x = np.zeros((1, length), np.float32)
    x[:, :count] = value
    return x


BAND = tuple((lambda c=c: {"x": _rows(0.25, 200, c), "i": np.zeros((1,), np.int32)}) for c in (5, 86, 100, 171))


@forward("x:float32[N,T]", "i:int32[N]=0:9", dims="N=1:2:3 T=1:50:200", feeds=BAND)
def histogram_in_bytes(self, x, i):
    """Counts of a band as bytes, weighted by alpha in a sum of int32."""
    return torch.add(i, ((x > 0.2) & (x < 0.3)).sum(1).to(torch.uint8), alpha=3)


@forward("x:float32[N,T]", "i:int32[N]=0:9", dims="N=1:2:3 T=1:50:200", feeds=BAND)
def difference_in_bytes(self, x, i):
    return torch.sub(i, ((x > 0.2) & (x < 0.3)).sum(1).to(torch.uint8), alpha=2)


LOUD = tuple(
    (lambda c=c, v=v: {"x": np.pad(np.full((1, c, 3), v, np.float32), ((0, 0), (0, 40 - c), (0, 0)))})
    for c in (1, 2, 5, 7)
    for v in (5.5, 30.0, 700.0)
)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=4:40:400%4", feeds=LOUD)
class CeilDivisionOfLoudFrames(nn.Module):
    """-(n // -4), Python's ceiling, of how many frames are loud, beside a GRU."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, x):
        n = (x.abs().amax(-1) > 5).sum(1)
        return self.gru(x)[0], -(n // -4)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=4:40:400%4", feeds=LOUD)
class CeilDivisionOfRareFrames(nn.Module):
    """The same of frames in a band."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, x):
        n = ((x[..., 0] > 29.9) & (x[..., 0] < 30.1)).sum(1)
        return self.gru(x)[0], -(n // -4)


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=4:40:400%4", feeds=LOUD)
class ShiftOfRareFrames(nn.Module):
    """-n >> 1 of rare frames in a recorded file: rounded to minus infinity in torch."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, x):
        n = ((x[..., 0] > 29.9) & (x[..., 0] < 30.1)).sum(1)
        return self.gru(x)[0], (-n) >> 1


@attack("x:float32[N,T,3]", dims="N=1:1:2 T=4:40:400%4", feeds=LOUD)
class RemaindersOfRareFrames(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, x):
        n = ((x[..., 0] > 29.9) & (x[..., 0] < 30.1)).sum(1)
        return self.gru(x)[0], (-n) % 4, n % -3, torch.fmod(-n, 4), (-n) // 4, torch.div(-n, 4, rounding_mode="trunc")

# ruff: noqa: E501 - attacks are written as users write them
"""Sizes that turn negative, meet narrow types, or are one; two sizes whose difference is an offset, a pad or a place."""

from __future__ import annotations

import bisect

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE, normal

FROM_ONE = "N=1:2:3 T=1:9:24"
WIDE = "N=1:2:3 T=2:9:300"
TALL = "N=1:1:3 H=1:8:14 W=1:11:15"
ENDS = (normal(1, 1, 4), normal(2, 3, 4), normal(1, 5, 4), normal(2, 24, 4))
SIDES = (normal(1, 2, 1, 1), normal(1, 2, 14, 1), normal(2, 2, 1, 15), normal(1, 2, 7, 7), normal(1, 2, 8, 5))


def _bytes(*shape, seed=0):
    return lambda: {"x": np.random.RandomState(seed + sum(shape)).randint(0, 256, shape).astype(np.uint8)}


BYTES = (_bytes(1, 255), _bytes(1, 256), _bytes(1, 257), _bytes(2, 300), _bytes(2, 2), _bytes(1, 128))


@forward("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ENDS)
def A3500EndsBySubtraction(self, x):
    """Slices whose end is below zero for short clips, which Python counts from the end."""
    t = x.shape[1]
    return x[:, : t - 4], x[:, t - 4 :], x[:, t - 6 : t - 1].sum(1), x[:, max(t - 4, 0) :].mean(1)
@forward("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ENDS)
def A3501CentreCropOfShort(self, x):
    t = x.shape[1]
    low, high = (t - 6) // 2, (t + 6) // 2
    return x[:, low:high], x[:, (t - 5) // 2 :][:, :5].sum(1)
@forward("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ENDS)
def A3503PadsThatCrop(self, x):
    t = x.shape[1]
    y = F.pad(x, (0, 0, 0, 6 - t))
    z = F.pad(x, (0, 0, 8 - t, 0), value=-1.0)
    return y, z, F.pad(x, (1 - t % 2, 0, t // 5, -(t // 4)))
@forward("x:float32[N,2,H,W]", dims=TALL, kinds=FINITE, feeds=SIDES)
def A3504OffsetByDifference(self, x):
    h, w = x.shape[2:]
    return torch.tril(x, w - h), torch.triu(x, h - w + 1), x * torch.eye(h, w), x.sum((2, 3)) * (h - w)
@forward("x:uint8[N,T]=0:255", dims=WIDE, feeds=BYTES)
def A3507BytesPlusSizeTensor(self, x):
    """A 0-dim int64 tensor does not widen bytes: the size wraps."""
    n = torch.tensor(x.shape[1])
    return x + n, x * n, n - x, torch.minimum(x, n.to(x.dtype)), x // (n.to(torch.uint8) | 1)
@forward("x:uint8[N,T]=0:255", dims=WIDE, feeds=BYTES)
def A3508BytesPlusSize(self, x):
    n = x.shape[1]
    return x + n, x - n, x * n, torch.add(x, x, alpha=3), x ^ (n & 255), n - x
@forward("x:uint8[N,T]=0:255", dims=WIDE, feeds=BYTES)
def A3509BytesByteSizedArange(self, x):
    i = torch.arange(x.shape[1]).to(torch.uint8)
    j = torch.arange(x.shape[1], 0, -1).to(torch.int8)
    return x + i, x > i, (j // 3).to(torch.uint8), i.float() / 255, torch.maximum(x, i), j.abs() % 100, (x & i).sum(1)
@forward("x:uint8[N,T]=0:255", dims=WIDE, feeds=BYTES)
def A3510BytesRatio(self, x):
    n = x.shape[1]
    return x / n, x * (1 / n), (x * n) / 255, x.float() * n // 255, x % max(n % 256, 1), (x >> (n % 8)) + (x << 1)
@forward("x:int16[N,T]=-32768:32767", dims="N=1:1:2 T=2:9:600", feeds=(lambda: {"x": np.linspace(-32768, 32767, 600).astype(np.int16)[None]}, lambda: {"x": np.full((2, 257), 32767, np.int16)}))
def A3511ShortsTimesPosition(self, x):
    i = torch.arange(x.shape[1], dtype=torch.int16)
    y = x * i
    return y, y.sum(1), (x.int() * i) >> 3, x.to(torch.int32).mul(i * i), x // (i + 1), (x * 0.5).to(torch.int16)
@forward("x:float32[N,T,4]", dims=FROM_ONE, kinds=FINITE, feeds=ENDS)
def A3513RampOfOne(self, x):
    t = x.shape[1]
    ramp = torch.arange(t) / (t - 1 + (t == 1))
    other = torch.arange(t) / torch.tensor(t - 1.0)
    return x * ramp[:, None], x * other.nan_to_num(1.0)[:, None], x * torch.linspace(-1, 1, t)[:, None], F.interpolate(x.mT, size=2 * t - 1, mode="linear", align_corners=True)
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", dims="N=1:1:2 T=1:5:14 S=1:7:14", kinds=FINITE)
def A3515ZipOfTwoLengths(self, x, y):
    """`zip` ends with the shorter one, as a slice by the other's length does."""
    k = min(x.shape[1], y.shape[1])
    a = x[:, : y.shape[1]] - y[:, : x.shape[1]]
    b = torch.cat([x[:, :k] * y[:, :k], x[:, k:], y[:, k:]], 1)
    return a, b, x[:, -k:] + y[:, -k:], (x.shape[1] > y.shape[1]) * x.sum(1)
@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:9:60", kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 16, 4), normal(1, 17, 4), normal(1, 60, 4)))
def A3517BucketOfALength(self, x):
    """Pads up to the next of a list of lengths, as servers with fixed profiles do."""
    stops = [4, 8, 16, 24, 48, 64]
    to = stops[bisect.bisect_left(stops, x.shape[1])]
    y = F.pad(x, (0, 0, 0, to - x.shape[1]))
    return y.view(x.shape[0], 4, to // 4, 4).amax(2), y.sum(1) / to
@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:9:40", kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 3, 4), normal(1, 40, 4), normal(2, 20, 4)))
def A3518SplitsOfThirds(self, x):
    t = x.shape[1]
    a, b, c = x.split([t // 3, (t + 1) // 3, (t + 2) // 3], 1)
    return a.sum(1), b.sum(1), c.mean(1), x[:, :: max(1, t // 4)], x[:, t % 3 :: 3]
@forward("x:float32[N,T,4]", "y:float32[M,T,4]", dims="N=1:2:4 M=1:3:4 T=1:6:12", kinds=FINITE)
def A3520PairsOfTwoBatches(self, x, y):
    """A cost matrix of tracks and detections, whose batches may both be one."""
    d = (x[:, None] - y[None]).abs().mean((2, 3))
    best = d.argmin(1)
    taken = F.one_hot(best, y.shape[0]).sum(0)
    mutual = d.argmin(0)[best] == torch.arange(x.shape[0])
    return d, best, taken, mutual, torch.where(mutual[:, None, None], y[best], x)

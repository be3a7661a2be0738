# ruff: noqa: E501, SIM401 - attacks are written as users write them
"""Variants: sizes that go through texts, tuples, NumPy and the standard library."""

from __future__ import annotations

import itertools
import math
import operator
import statistics

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.objects import wide
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq
from tests.adversary.values import values_at

BIG = "x:float32[1,1,H,W]"
YS = "y:float32[N,S,4]"
PRESETS = {"331x217": 2.0, "512x384": 3.0, "77x401": 5.0}
BUCKETS = {(333, 218): 2.0, (501, 384): 3.0, (79, 403): 5.0}


def large(*points: tuple[int, int], **more: object) -> dict:
    """Pictures up to 512, judged at own sizes."""
    chance = np.random.default_rng(9)
    return {"dims": "H=1:256:512 W=1:256:512", "kinds": ("normal",), "feeds": tuple(values_at(BIG, H=int(h), W=int(w)) for h, w in (*points, *chance.integers(1, 513, (20, 2)))), **more}


@forward(BIG, **large((331, 217), (512, 384), (77, 401)), refused="the exported model differs from the module")
def A5537PresetByText(self, x):
    """A scale of a resolution that is written as a text."""
    return x.mean((2, 3)) * PRESETS.get(f"{x.shape[2]}x{x.shape[3]}", 1.0)
@forward(BIG, **large((333, 218), (501, 384), (79, 403)), refused="the path through the module depends on the size")
def A5538BucketOfSizes(self, x):
    """A scale of a bucket of two sizes."""
    h, w = x.shape[-2:]
    return x.mean((2, 3)) * (BUCKETS[h, w] if (h, w) in BUCKETS else 1.0)
@forward(X4, **seq(X4))
def A5539SegmentsOfNumpy(self, x):
    """TSN: frames by NumPy's linspace of a length."""
    at = np.linspace(0, x.shape[1] - 1, 5).round().astype(int)
    return x[:, torch.from_numpy(at)]
@forward(X4, **seq(X4), refused="the exported model differs from the module")
def A5540LengthsOfRanges(self, x):
    """How long ranges are, and what slices come to."""
    t = x.shape[1]
    n = len(range(3, t, 4))
    a, b, c = slice(-7, None, 3).indices(t)
    return x[:, n % t], x[:, a:b:c].sum(1), x[:, operator.index(t) - 1]
@forward(X4, **seq(X4))
def A5541WholeIfItIs(self, x):
    """Whether a third of a length is whole, by its float."""
    t = x.shape[1]
    return x * 2 if (t / 3).is_integer() else x - 1
@forward(X4, YS, **wide((6, 4), (121, 88), (7, 160)), refused="the exported model differs from the module")
def A5542MathOfSizes(self, x, y):
    """Binomials, sums of ranges, medians, decimal numbers and NumPy's greatest divisor."""
    t, s = x.shape[1], y.shape[1]
    return x[:, math.comb(t, 2) % t], x[:, int(statistics.median([t, s, 40])) % t], y[:, int(np.gcd(t, s)) - 1]
@forward(X4, YS, **wide((6, 4), (121, 88), (7, 160)))
def A5543ProductsOfShapes(self, x, y):
    """Products of shapes by NumPy, math and torch, and a shape that two broadcast to."""
    t, s = x.shape[1], y.shape[1]
    k = math.prod(x.shape) // 4
    b = torch.broadcast_shapes((t, 1), (s,))
    return x[:, k * 3 % s % t], x.new_ones(b).sum(1), x.mean(1) / np.prod(y.shape), torch.tensor(x.shape).prod() * x[:, 0]
@forward(X4, YS, **wide((6, 4), (121, 88), (7, 160)))
def A5544Interleaved(self, x, y):
    """The longest of both by max with a key, the shortest's length by min of lengths, a cycle over both."""
    long = max((x, y), key=lambda v: v.shape[1])
    n = min(map(len, (x[0], y[0])))
    return long[:, n - 1 :].sum(1), torch.stack((x[:, :n], y[:, :n]), 2).flatten(1, 2)[:, -1]
@forward(X4, **seq(X4))
def A5545DigitsOfALength(self, x):
    """Digits by division until nothing is left."""
    t, k = x.shape[1], 0
    while t:
        t, d = divmod(t, 3)
        k += d
    return x * k
@forward(X4, **seq(X4), refused="the path through the module depends on the size")
def A5546PaddedToPower(self, x):
    """Padded to the next power of two by a shift of bits, scanned by doublings, cut."""
    t = x.shape[1]
    p = 1 << (t - 1).bit_length()
    y, d = F.pad(x, (0, 0, 0, p - t)), 1
    while d < p:
        y = y + F.pad(y, (0, 0, d, 0))[:, :p]
        d *= 2
    return y[:, :t]
@forward("x:float32[N,T,4]", dims="N=1:2:2 T=8:64:256%8", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,4]", N=1, T=t) for t in range(8, 257, 8)))
def A5547MultiplesOfEight(self, x):
    """Lengths in steps of eight: patches of sixteen where they fit, of eight else; a halo of a sixth."""
    t = x.shape[1]
    p = 16 if t % 16 == 0 else 8
    y = x.unflatten(1, (-1, p)).mean(2)
    h = t // 6
    return y.cumsum(1)[:, -1], x[:, h : t - h].sum(1), x.unflatten(1, (8, t // 8)).amax(2), x[:, :: t // 8]
@forward(X4, **seq(X4))
def A5548FirstDivisor(self, x):
    """Groups of the first of some divisors that fits."""
    t = x.shape[1]
    g = next(d for d in (8, 5, 3, 2, 1) if t % d == 0)
    return x.view(x.shape[0], g, t // g, 4).softmax(2).flatten(1, 2)
@forward(X4, **seq(X4))
def A5549FrozenLambda(self, x):
    """A default that holds a size, partial sums by accumulate."""
    import functools
    f = functools.partial(torch.narrow, dim=1, start=x.shape[1] // 2, length=x.shape[1] - x.shape[1] // 2)
    k = list(itertools.accumulate((1, 2, 3, x.shape[1])))[-1]
    return f(x).sum(1), x[:, k % x.shape[1]]
@forward(X4, MT := "m:bool[N,T]", **seq(X4, MT))
def A5550FirstAndLastTrue(self, x, m):
    """From the first to the last of a mask: nothing where there is none."""
    t = torch.arange(m.shape[1])
    first = m.int().argmax(1)
    last = m.shape[1] - 1 - m.flip(1).int().argmax(1)
    inside = (t >= first[:, None]) & (t <= last[:, None]) & m.any(1, keepdim=True)
    return x.masked_fill(~inside[..., None], 0).sum(1) / inside.sum(1, keepdim=True), first, last, (last - first + 1) * m.any(1)
@forward("x:float32[N,1,H,W]", dims="N=1:2:64 H=1:256:512 W=1:256:512", kinds=("normal",), feeds=tuple(values_at("x:float32[N,1,H,W]", N=n, H=331, W=217) for n in (1, 2, 3, 64)))
def A5551PresetOfTwoOfThree(self, x):
    """A scale of a resolution that is written as a text, of batches of any size."""
    return x.mean((2, 3)) * PRESETS.get(f"{x.shape[2]}x{x.shape[3]}", 1.0)
@attack("x:float32[1,1,H,W]", dims="H=16:256:512 W=16:256:512", kinds=("normal",), feeds=tuple(values_at("x:float32[1,1,H,W]", H=h, W=w) for h, w in ((331, 217), (512, 384), (77, 401))))
class A5552PresetOfALargeNetwork(nn.Module):
    """The same behind a network that takes its time."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Conv2d(1 if i == 0 else 8, 8, 3, padding=1) for i in range(8)])

    def forward(self, x):
        return self.body(x).mean((2, 3)) * PRESETS.get("x".join(map(str, x.shape[2:])), 1.0)
@forward("x:float32[N,1,H,W]", dims="N=1:2:64 H=1:256:512 W=1:256:512", kinds=("normal",), feeds=tuple(values_at("x:float32[N,1,H,W]", N=n, H=h, W=w) for n, h, w in ((3, 331, 217), (9, 100, 57), (64, 512, 384))))
def A5553HashOfThree(self, x):
    """Another scale for a few of three sizes by a hash of their text."""
    k = sum(ord(c) * 31**i for i, c in enumerate(f"{tuple(x.shape)}")) % 997
    return x.mean((2, 3)) * (2.0 if k == 5 else 1.0)
@forward("x:float32[N,1,H,W]", dims="N=1:2:64 H=1:256:512 W=1:256:512", kinds=("normal",), feeds=(values_at("x:float32[N,1,H,W]", N=3, H=31, W=217),))
def A5554MeanOfALargePicture(self, x):
    """A mean of a large picture, and nothing else."""
    return x.mean((2, 3))
@forward("x:float32[N,1,H,W]", dims="N=1:2:8 H=1:256:512 W=1:256:512", kinds=("normal",), feeds=tuple(values_at("x:float32[N,1,H,W]", N=n, H=331, W=217) for n in (1, 2, 3, 8)))
def A5555PresetOfFew(self, x):
    """A scale of a resolution that is written as a text, of batches of any size; no sum of many."""
    return x[:, :, 0, -1] * PRESETS.get(f"{x.shape[2]}x{x.shape[3]}", 1.0)
@forward("x:float32[N,1,H,W]", dims="N=1:2:64 H=1:256:512 W=1:256:512", kinds=("normal",), feeds=tuple(values_at("x:float32[N,1,H,W]", N=n, H=331, W=217) for n in (37,)))
def A5556PresetOfABatch(self, x):
    """A scale for one batch of one resolution."""
    return x[:, :, 0, -1] * {"37x331x217": 3.0}.get(f"{len(x)}x{x.shape[2]}x{x.shape[3]}", 1.0)
LARGE = {"dims": "N=1:2:8 H=64:512:1024 W=64:512:1024", "kinds": ("normal",), "feeds": (values_at("x:float32[N,1,H,W]", N=2, H=331, W=217),)}
@attack("x:float32[N,3,H,W]", **{**LARGE, "feeds": ()})
class A5557SqueezeAtFullSize(nn.Module):
    """Squeeze and excitation at the size of the picture."""

    def __init__(self):
        super().__init__()
        self.stem, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 4)

    def forward(self, x):
        y = self.stem(x)
        return F.adaptive_avg_pool2d(y, 8) * self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1)).sigmoid()[..., None, None]
@forward("x:float32[N,1,H,W]", **LARGE)
def A5558PooledToOne(self, x):
    """A global pool of a large picture alone."""
    return F.adaptive_avg_pool2d(x, 1)
@forward("x:float32[N,1,H,W]=0:255", **LARGE)
def A5559MeanOfBytes(self, x):
    """The mean and deviation of a large picture of bytes."""
    return x.mean((2, 3)), x.std((2, 3))
@forward("x:float32[N,T]", dims="N=1:2:8 T=1000:160000:320000", kinds=("normal",), feeds=())
def A5560WaveNormalised(self, x):
    """wav2vec's normalisation of a wave of twenty seconds."""
    return ((x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-7)).mean(1), x.mean(1), x.square().mean(1).sqrt()
@forward("x:float32[N,T]", dims="N=1:2:8 T=1000:160000:320000", kinds=("normal",), feeds=())
def A5561RunningSumOfAWave(self, x):
    """A running sum of a wave of twenty seconds."""
    return x.cumsum(1)[:, ::1000]

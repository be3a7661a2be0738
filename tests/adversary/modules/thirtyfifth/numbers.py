# ruff: noqa: E501 - attacks are written as users write them
"""Half inputs with decimals, whole numbers with decimals, booleans, special functions, complex numbers, ties, folds of types."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves

SHORT = "N=1:2:3 T=2:9:24"
FROM_ONE = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")


def _row(*values, dtype=np.float32):
    return lambda: {"x": np.array([values], dtype)}


def _half(*values):
    return _row(*values, dtype=np.float16)


STEPS = (lambda: {"x": np.arange(-12, 12)[None].astype(np.float16)}, lambda: {"x": (np.arange(24) * 10)[None].astype(np.float16)}, _half(10, 20, 30, 70, 100, 1000, 2049), _half(0.1, 0.2, 0.3, 0.7, 65504, -65504))
IDS = (lambda: {"x": np.arange(-12, 12)[None]}, lambda: {"x": np.array([[10, 20, 30, 70, 100, 1000, -1000, 0, 7]])}, lambda: {"x": np.array([[1000, 999, -999, 3, 6, 9, 35, 57, 115]])})


@forward("x:float16[N,T]=-1000:1000", dims=SHORT, kinds=FEW, feeds=STEPS)
def A3552HalfDividedDown(self, x):
    return x // 10, x % 0.5, torch.fmod(x, 3), torch.div(x, 3, rounding_mode="trunc"), (x / 3 * 3 == x), torch.remainder(x, 0.75)
@forward("x:float16[N,T]=-1000:1000", dims=SHORT, kinds=FEW, feeds=STEPS)
def A3553HalfPositions(self, x):
    t = x.shape[1]
    i = torch.arange(t, dtype=torch.float16)
    return x + i, (x * i).float(), x > i / t, torch.full((t,), 1 / t, dtype=torch.float16) * x, (i * 0.1).floor() + x, i.double() * 0.1 + x
@forward("x:float16[N,T]=-60:60", dims=SHORT, kinds=FEW, feeds=(_half(60, 60, 60, 60), _half(0.0001, 6e-8, 0, 1), *STEPS[:1]))
def A3554HalfStatistics(self, x):
    f = x.float()
    return x.sum(1), x.mean(1), F.layer_norm(x, (x.shape[1],)), x.softmax(1), x.exp().isinf(), (x * x).sum(1), x.cumsum(1), f.var(1).half(), x.abs().amax(1), x.norm(dim=1)
@forward("x:int64[N,T]=-1000:1000", dims=SHORT, feeds=IDS)
def A3555WholeTimesTenth(self, x):
    return (x * 0.1).floor(), (x / 10).floor(), x // 2.5, x % 0.7, (x * 0.01).ceil(), (x * 1.15).round(), (x * 0.1 == x / 10)
@forward("x:int64[N,T]=-1000:1000", dims=SHORT, feeds=IDS)
def A3557WholePowersAndBits(self, x):
    k = x.abs() % 12
    low = x & -x
    pop = sum((x.abs() >> i) & 1 for i in range(10))
    gray = k ^ (k >> 1)
    return x**3, k**k, 2**k, 1 << k, low, pop, gray, (~x) % 5, (-1) ** k, x.abs().float().sqrt().long() ** 2, 1.5**k
@forward("x:int32[N,T]=-1000:1000", "y:int64[N,T]=-9:9", "m:bool[N,T]", dims=SHORT)
def A3558WholeKindsTogether(self, x, y, m):
    b = x.to(torch.int8)
    return x + y, x * m, b + m, torch.where(m, x, y), torch.where(m, b, 30), torch.where(m, y, 0.5), b * 2, (b * y).sum(1), torch.cat([x, y, m.int()], 1), x.masked_fill(m, -1) // 3, m * 0.1 + y
@forward("m:bool[N,T]", "x:float32[N,T]", dims=FROM_ONE, kinds=FINITE)
def A3560GapsAndRuns(self, m, x):
    """Forward fill, and the distance to the last frame that was voiced."""
    i = torch.arange(m.shape[1])
    last = torch.where(m, i, -1).cummax(1)[0]
    filled = torch.where(last >= 0, x.gather(1, last.clamp(min=0)), 0.0)
    following = torch.where(m, i, m.shape[1]).flip(1).cummin(1)[0].flip(1)
    share = (i - last) / (following - last).clamp(min=1)
    return filled, following - last, torch.lerp(filled, x.gather(1, following.clamp(max=m.shape[1] - 1)), share)
@forward("x:float32[N,T]", dims=SHORT, kinds=FINITE, feeds=(_row(0.5, -0.5, 1.0, -1.0, 0.0, 3.0, -3.0, 6.0, -6.0, 20.0), halves(2, 24)))
def A3563ActivationsAtTheirEdges(self, x):
    return F.hardshrink(x, 0.5), F.softshrink(x, 0.5), F.threshold(x, 0.5, -9.0), F.hardswish(x), F.hardsigmoid(x), F.relu6(x), F.celu(x, 0.7), F.tanhshrink(x), F.softplus(x, threshold=3), F.hardtanh(x, 0.5, 0.5), torch.heaviside(x, torch.tensor(0.25)), F.logsigmoid(x)
@forward("x:float32[N,T]", dims=FROM_ONE, kinds=FINITE, feeds=(halves(2, 24), halves(1, 1), _row(1.0, 1.0, 1.0, 2.0, 2.0)))
def A3568KthAndTies(self, x):
    k = (x.shape[1] + 1) // 2
    v, _ = x.kthvalue(k, 1)
    top, at = x.topk(k, 1)
    order = torch.argsort(x, dim=1, descending=True, stable=True)
    ecdf = torch.searchsorted(x.sort(1)[0], x, right=True) / x.shape[1]
    return v, top.sum(1), x.gather(1, at) - top, order, ecdf, x.nanmedian(1)[0], (x == v[:, None]).sum(1), x.argmin(1), torch.aminmax(x, dim=1)
@forward("x:float32[N,T]", "y:float32[N,S]", dims="N=1:2:3 T=1:9:20 S=1:5:12", kinds=FEW, feeds=(lambda: {"x": np.array([[0.0, 1, 1, 2, 3]], np.float32), "y": np.array([[-1.0, 0, 1, 1.5, 3, 4]], np.float32)}, lambda: {"x": np.array([[0.5]], np.float32), "y": np.array([[0.5]], np.float32)}))
def A3569LinearTable(self, x, y):
    """numpy.interp over sorted times of a row, held beyond its ends."""
    t = x.sort(1)[0]
    v = torch.arange(x.shape[1]).float().square().expand_as(t)
    i = torch.searchsorted(t, y.contiguous(), right=True)
    low, high = (i - 1).clamp(min=0), i.clamp(max=x.shape[1] - 1)
    a, b = t.gather(1, low), t.gather(1, high)
    w = torch.where(b > a, (y - a) / (b - a).clamp_min(1e-9), torch.zeros_like(y)).clamp(0, 1)
    return v.gather(1, low) * (1 - w) + v.gather(1, high) * w, i, torch.bucketize(y, torch.tensor([-1.0, 0.0, 0.0, 1.5]))
@forward("x:float32[N,T,4]", "i:int64[N]=-3:3", dims="N=1:2:3 T=4:9:24", kinds=FINITE)
def A3571NegativePlaces(self, x, i):
    """Indices below zero in each of the ways that take them."""
    n = torch.arange(x.shape[0])
    y = x.clone()
    y[n, i] = 0.0
    z = x.index_select(1, i % x.shape[1])
    return x[n, i], y, x[:, i].sum(1), z, x[n, i - 1, -1], x.take_along_dim((i % 4)[:, None, None], 1), torch.where(i[:, None] < 0, x[n, i, 1:].flip(1), 1.0)
@attack("x:uint8[N,3,H,W]=0:255", dims="N=1:1:2 H=2:9:16 W=2:8:15", feeds=(lambda: {"x": np.random.RandomState(0).randint(0, 256, (1, 3, 16, 15)).astype(np.uint8)}, lambda: {"x": np.full((1, 3, 3, 2), 255, np.uint8)}))
class A3572BytesOfAnImage(nn.Module):
    """Pools, flips, pads and nearest resizing of bytes that never become floats."""
    def forward(self, x):
        y = x.flip(-1)[..., ::2, 1:]
        gray = (x[:, 0].int() * 77 + x[:, 1].int() * 150 + x[:, 2].int() * 29 + 128) >> 8
        z = F.interpolate(x, scale_factor=2, mode="nearest")
        top = x.amax(1) - x.amin(1)
        mix = (x.to(torch.int16) - x.roll(1, 3)).abs().to(torch.uint8)
        return y, gray.to(torch.uint8), z, top, mix, 255 - x, torch.where(x > 127, x, x.new_zeros(())), F.pad(x, (1, 2, 0, 1), value=114)
@forward("x:float32[N,T]=0:1", dims=SHORT, kinds=("normal", "unit", "zeros", "ones", "tenths"), feeds=(_row(0.0, 1.0, 0.5, 254.5 / 255, 0.5 / 255, 1.5 / 255, 0.999), _row(1 / 3, 2 / 3)))
def A3573ToBytesAndBack(self, x):
    a = (x * 255).to(torch.uint8)
    b = (x * 255 + 0.5).clamp(0, 255).to(torch.uint8)
    c = (x * 255).round().to(torch.uint8)
    d = (x * 256).clamp(max=255).to(torch.int32) >> 4
    return a, b, c, d, (a.float() / 255 == x), (x.half() * 255).to(torch.uint8), (x * 65535).to(torch.int32), ((x - 0.5) * 255).round().to(torch.int8)

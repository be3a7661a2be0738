# ruff: noqa: E501 - attacks are written as users write them
"""Whole numbers that wrap, ties, NaN and infinities, zeros with signs, and memory that several tensors share."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.modules.fortysixth.pictures import X4, seq

SPECIAL = np.array([[0.0, -0.0, 1.5, -1.5, 2.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38]], np.float32)
def odd(*rows: list[float]) -> tuple:
    """Points of own rows for x."""
    return (*((lambda r=r: {"x": np.array([r], np.float32)}) for r in rows), lambda: {"x": SPECIAL}, lambda: {"x": SPECIAL[:, ::-1].copy()})
X, I32 = "x:float32[N,T]", "i:int32[N,T]"


def ints(*rows: list[int], name: str = "i", dtype: type = np.int32) -> tuple:
    """Points of own whole numbers."""
    return tuple((lambda r=r: {name: np.array([r]).astype(dtype)}) for r in rows)


@forward(X4, **seq(X4))
def A5376QuantisedByRow(self, x):
    """Dynamic int8: a scale by the greatest of a row, half to even, and back through int32."""
    amax = x.abs().amax(-1, keepdim=True)
    scale = amax.clamp(min=1e-8) / 127
    q = (x / scale).round().clamp(-128, 127).to(torch.int8)
    acc = q.to(torch.int32) @ q.to(torch.int32).transpose(1, 2)
    return acc.float() * scale * scale.transpose(1, 2), q, -q
@forward("i:uint8[N,T]=0:255", **seq("i:uint8[N,T]=0:255", own=ints([0, 1, 127, 128, 200, 255], dtype=np.uint8)))
def A5377DifferencesOfBytes(self, i):
    """Frames of bytes: differences wrap, a sum with 200 does, their mean is halved by a shift, and one is turned about."""
    d = i[:, 1:] - i[:, :-1]
    return d, i + 200, (i >> 1) + (i.flip(1) >> 1), ~i, -i, i * 3 // 2, torch.minimum(d, -d)
@forward("i:int64[N,T]=0:2000000000", **seq("i:int64[N,T]=0:2000000000", own=ints([0, 1, 2**31 - 1, 2**32 - 1, 2**40, -1, -(2**33)], dtype=np.int64)))
def A5378HashesOfFnv(self, i):
    """FNV and xorshift in int64 with 32 bits kept by a mask."""
    h = torch.full_like(i, 2166136261)
    for k in range(0, 32, 8):
        h = ((h ^ ((i >> k) & 0xFF)) * 16777619) & 0xFFFFFFFF
    h = h ^ (h >> 16)
    h = (h * 0x45D9F3B) & 0xFFFFFFFF
    h = h ^ ((h << 5) & 0xFFFFFFFF)
    return h % 1000, (h % 17 - 8) // 3, (h - 2**31).to(torch.int32)
@forward("i:int16[N,T]=-32768:32767", **seq("i:int16[N,T]=-32768:32767", own=ints([32767, -32768, 1, -1, 182, -182, 16384], dtype=np.int16)))
def A5379ShortsThatWrap(self, i):
    """PCM in int16: squares wrap, abs of the least is itself, sums are of int64, a shift to the left wraps."""
    return i * i, i.abs(), i.sum(1), i << 1, i.flip(1) - i, (i // 7) * 7 - i, torch.div(i, 3, rounding_mode="trunc"), i.clamp(min=-100).to(torch.int8)
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([1, 1, 2, 2, 0, 2, -1], [3, np.nan, 3, 4], [0.0, -0.0, 0.0]))
def A5380RunningMaxima(self, x):
    """cummax and cummin with their places: of equal ones the last, and NaN stays."""
    a, i = x.cummax(1)
    b, j = x.cummin(1)
    return a, i, b, j, (x == a).long().cumsum(1)
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([-np.inf, -np.inf, 0, 1], [-np.inf] * 4, [1e30, -1e30, 88, -88], [np.inf, 0, -np.inf]))
def A5381LogSums(self, x):
    """Running log-sums, soft minima and a log of one minus an exponential, at infinities."""
    return x.logcumsumexp(1), -torch.logsumexp(-x, 1), torch.logaddexp(x, x.flip(1)), torch.where(x < -0.693, torch.log1p(-x.exp()), torch.log(-torch.expm1(x))), F.logsigmoid(x), F.softplus(x, beta=2, threshold=4)
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([np.nan, np.nan], [np.nan, 1, 2], [np.inf, -np.inf, np.nan]))
def A5382NaNsPassedOver(self, x):
    """Means and sums without NaN, replaced numbers, and how many there are."""
    ok = torch.isfinite(x)
    return x.nanmean(1), x.nansum(1), torch.nan_to_num(x, 0.5, 7.0, -7.0), ok.sum(1), torch.where(ok, x, 0).sum(1) / ok.sum(1).clamp(min=1), (x != x).any(1), x.isposinf() | x.isneginf()
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([5.5, -5.5, 3, -3, 0.3, -0.3, 1e-8, -1e-8], [1e8, -1e8, 16777217, 0.1, 0.7, 0.9]))
def A5383Remainders(self, x):
    """Remainders of three kinds by divisors of both signs, angles wrapped, and floors of quotients."""
    return x % 3, x % -3.0, torch.fmod(x, 0.7), torch.remainder(x + torch.pi, 2 * torch.pi) - torch.pi, x // 0.1, torch.div(x, -0.3, rounding_mode="floor"), torch.div(x, 0.25, rounding_mode="trunc"), x.frac()
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([0.125, 0.375, 2.675, -0.005, 0.015, 1.005, 25, 35, -45, 1234567], [0.5, 1.5, -0.5, 2.5, 8388609.5]))
def A5384RoundedToDecimals(self, x):
    """Rounded to two decimals and to tens, halves upwards, truncated, and away from zero."""
    return x.round(decimals=2), x.round(decimals=-1), (x + 0.5).floor(), x.trunc(), x.sign() * (x.abs() + 0.5).floor(), torch.ceil(x - 0.5), x.round()
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([-1, -0.5, 0, 0.5, 1, 2, 3], [0.49999997, 0.5, 0.50000006, np.nan, -0.0]))
def A5385BucketsAndCounts(self, x):
    """Buckets with both sides, a histogram by one_hot, and counts by bincount of a moving number."""
    edges = torch.tensor([-1.0, -0.0, 0.5, 0.5, 2.0])
    a, b = torch.bucketize(x, edges), torch.bucketize(x, edges, right=True)
    return a, b, F.one_hot(b, 6).sum(1), torch.bincount(a.flatten(), minlength=6)[:6], torch.histc(x.nan_to_num(0, 9, -9).clamp(-9, 9), bins=6, min=-1, max=2)
@forward(X4, **seq(X4))
def A5386ExpandedAndWritten(self, x):
    """A row expanded along time, made contiguous, and written at every second place."""
    y = x[:, :1].expand(-1, x.shape[1], -1).contiguous()
    y[:, ::2] += x[:, ::2]
    z = x.mean(1, keepdim=True).expand_as(x).clone()
    z[:, -1].mul_(2)
    return y, z, y[:, :1] - x[:, :1]
@forward(X4, **seq(X4))
def A5387DiagonalsWritten(self, x):
    """Scores whose diagonal and the one above are written through views, and their triangles swapped."""
    s = x @ x.transpose(1, 2)
    s.diagonal(dim1=1, dim2=2).fill_(-1.0)
    torch.diagonal(s, 1, 1, 2).add_(0.5)
    u = s.transpose(1, 2)
    u[:, :1] = 7
    return s, u.triu(), torch.diag_embed(s.diagonal(offset=-1, dim1=1, dim2=2), offset=1).sum(-1)
@forward(X4, **seq(X4))
def A5388EndsSwapped(self, x):
    """First and last swapped by Python's pairs of views: the second write sees the first."""
    y = x * 1
    y[:, 0], y[:, -1] = y[:, -1], y[:, 0]
    z = x.clone()
    a, b = z[..., :2], z[..., 2:]
    a += b
    b -= a
    z[..., 0], z[..., 3] = z[..., 3].clone(), z[..., 0].clone()
    return y, z
@forward(X4, **seq(X4, low=2))
def A5389PartsWritten(self, x):
    """Writes through chunks, unbind, splits of unequal lengths, a permutation and a flattened view of a part."""
    y = x + 0
    for k, part in enumerate(y.tensor_split(3, 1)):
        part.add_(k)
    y.unbind(-1)[2].neg_()
    y.permute(2, 0, 1)[0].clamp_(max=0.25)
    y[:, 1:].view(y.shape[0], -1, 2, 2)[..., 1].mul_(-1)
    head, tail = y.split([1, y.shape[1] - 1], 1)
    tail.copy_(tail.flip(1))
    head.swapdims(0, 1)[0, :, 1] = 3
    return y, head, tail
@forward(X4, **seq(X4))
def A5390HalvesThatOverflow(self, x):
    """Half precision within: sums that leave it, a product that does, and what became infinite replaced."""
    h = x.half() * 300
    p = h * h
    big = torch.isinf(p)
    p = torch.where(big, torch.clamp(p, -65504, 65504), p)
    s = h.sum(1)
    return p.float(), big, s.float(), (x.bfloat16() + 1).float() - 1, (h / 3).int()
@forward(X, dims="N=1:2:3 T=1:9:20", feeds=odd([0.0, -0.0], [-0.0, 0.0], [-1, 1, -0.0], [-0.0] * 3))
def A5391SignsOfZero(self, x):
    """What tells a zero from a negative one: copysign, quotients, atan2, and the extremes of both."""
    z = x * 0.0
    return torch.copysign(torch.ones(()), x), 1 / (x - x.clamp(min=0)).clamp(-1, 1), torch.atan2(z, x), x.argmin(1), torch.signbit(-x), torch.heaviside(x, torch.tensor(0.25)), torch.sgn(x)
@forward(X, "y:float32[N,T]", dims="N=1:2:3 T=1:9:20", feeds=(lambda: {"x": np.array([[-8, -8, 0, 0, 0, 2, 1, -1, np.inf, -2]], np.float32), "y": np.array([[1 / 3, 2, 0, -1, 2, -np.inf, np.nan, np.inf, 0, 3]], np.float32)},))
def A5392PowersOfTensors(self, x, y):
    """Tensors to tensors: of negative bases, zero to zero, one to NaN; and whole numbers to whole ones."""
    i = y.nan_to_num(0, 3, 3).abs().clamp(max=5).long()
    return x**y, torch.float_power(x, 2).float(), x.long().clamp(-9, 9) ** i, 2**i, (-2) ** i, (-1.0) ** i, torch.xlogy(x.abs(), y.abs()), torch.ldexp(x, i)
@forward(X4, **seq(X4))
def A5393DeviationsAtOne(self, x):
    """Deviations that are NaN at one frame, and a norm that passes them over."""
    v, m = torch.var_mean(x, 1, correction=1, keepdim=True)
    std = x.std(1)
    k = x - m
    kurt = (k**4).mean(1) / (k**2).mean(1).clamp(min=1e-6) ** 2 - 3
    return v, torch.where(std.isnan(), 0, std), kurt, torch.std(x, 1, correction=2 if x.shape[1] > 2 else 0)
@forward("i:int64[N,T]=-3:9", **seq("i:int64[N,T]=-3:9"))
def A5394TiesOfWhole(self, i):
    """Places of extremes of whole numbers and booleans with ties, sorted stably, counted without order."""
    b = i > 4
    s, at = i.sort(stable=True, dim=1)
    return i.argmax(1), i.argmin(1), b.int().argmax(1), (~b).float().argmin(1), at, s[:, 1:] == s[:, :-1], i.median(1).values, (i.max(1, keepdim=True).values == i).sum(1), i.aminmax(dim=1)
@forward("i:int64[N,T]=-50:50", "j:int64[N,T]=1:9", **seq("i:int64[N,T]=-50:50", "j:int64[N,T]=1:9", own=(lambda: {"i": np.array([[-7, 7, -8, 0, 2**53 + 1, -(2**53) - 1]]), "j": np.array([[2, 2, 4, 3, 2, 2]])},)))
def A5395QuotientsOfWhole(self, i, j):
    """Whole numbers divided in all ways, with negative divisors too, and a ceiling by two negations."""
    k = -j
    return i // j, i // k, i % k, torch.fmod(i, k), -(-i // j), i / j, (i + j - 1) // j, i >> (j % 3), torch.bitwise_xor(i, k)

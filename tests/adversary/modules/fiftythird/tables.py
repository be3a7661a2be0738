# ruff: noqa: E501, E741 - attacks are written as users write them
"""Recommenders, time series, tabular: bags, hashes, buckets, quantiles, decompositions, patches, gates."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftythird.speech import at

X = "x:float32[N,T]"
XC = "x:float32[N,T,3]"
BIG = "i:int64[N,T]=-9007199254740991:9007199254740991"


def series(low: int = 1, high: int = 60, text: str = X, **more: object) -> dict:
    """Series, looked at short ones and round multiples."""
    t = tuple(v for v in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 48, 59, 60) if low <= v <= high)
    return {"dims": f"N=1:2:3 T={low}:20:{high}", "feeds": at(text, N=(1, 2, 3), T=t), **more}


@attack("i:int64[V]=0:30", "o:int64[N]=0:0", "w:float32[V]=0:1", dims="V=1:8:20 N=1:3:5", feeds=tuple((lambda o=o: {"i": np.arange(9) * 3 % 31, "o": np.array(o), "w": np.linspace(0, 1, 9, dtype=np.float32)}) for o in ([0, 0, 0], [0], [0, 0])))
class A6858EmbeddingBags(nn.Module):
    """DLRM's bags by offsets: sums with weights, means without the padding index, empty bags zero."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.sum = nn.EmbeddingBag(31, 4, mode="sum")
        self.mean = nn.EmbeddingBag(31, 4, mode="mean", padding_idx=3)

    def forward(self, i, o, w):
        return self.sum(i, o, per_sample_weights=w), self.mean(i, o)


@attack("i:int64[N,B]=0:9", dims="N=1:2:3 B=1:5:9", feeds=tuple((lambda a=a: {"i": np.array(a)}) for a in ([[0, 0], [0, 3]], [[9]], [[1, 1, 0]])))
class A6859BagOfRows(nn.Module):
    """Bags as rows: mean and max with a padding index, an all-padding row, and the FM interaction of their fields."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.mean = nn.EmbeddingBag(10, 4, mode="mean", padding_idx=0)
        self.top = nn.EmbeddingBag(10, 4, mode="max", padding_idx=0)
        self.each = nn.Embedding(10, 4, padding_idx=0, max_norm=None)

    def forward(self, i):
        e = self.each(i)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        return self.mean(i), self.top(i), fm


@attack(BIG, dims="N=1:1:2 T=1:4:9", feeds=tuple((lambda a=a: {"i": np.array([a], np.int64)}) for a in ([0, -1, 1], [2**52, -(2**52), 2**53 - 1], [123456789012, -123456789012])))
class A6860HashedIds(nn.Module):
    """Hashing of ids: a multiplication by a big prime that wraps, xor with a shift, modulus by a prime, a collision-free zero."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.e = nn.Embedding(11, 4, padding_idx=0)

    def forward(self, i):
        h = i * 0x27D4EB2F165667C5
        h = h ^ (h >> 15)
        h = h * 2654435761 + 97
        a = torch.where(i == 0, 0, h % 10 + 1)
        b = torch.remainder(h, 1000003), torch.fmod(h, 1000003), h & 0xFFFF
        return (self.e(a), *b)


@forward("t:int64[N]=0:4102444799", dims="N=1:3:6", feeds=tuple((lambda a=a: {"t": np.array(a, np.int64)}) for a in ([0, 59, 86399], [951782399, 951782400, 951868800], [4102444799, 1709164800, 1709251199], [2**31 - 1, 2**31, 2**31 + 1])))
def A6861Timestamps(self, t):
    """Calendar of Unix seconds by integer arithmetic: days, weekday, civil date with eras, minute of day, sines."""
    d = torch.div(t, 86400, rounding_mode="floor")
    z = d + 719468
    era = torch.div(z, 146097, rounding_mode="floor")
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    day = doy - (153 * mp + 2) // 5 + 1
    month = torch.where(mp < 10, mp + 3, mp - 9)
    year = yoe + era * 400 + (month <= 2)
    minute = t % 86400 // 60
    return year, month, day, (d + 4) % 7, torch.sin(2 * math.pi * minute / 1440), (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))


@attack("x:float32[N,6]", "c:int64[N,3]=-2:12", dims="N=1:3:6")
class A6862TabularGates(nn.Module):
    """FT-transformer's inputs: NaN to a learned missing, piecewise linear encoding, unknown categories clamped, negative index from the end."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.e = nn.Embedding(8, 4)
        self.miss = nn.Parameter(torch.randn(6))
        self.register_buffer("edges", torch.tensor([-1.5, -0.5, 0.0, 0.5, 1.5]))
        self.norm = nn.BatchNorm1d(6, eps=1e-2, affine=False)

    def forward(self, x, c):
        x = torch.where(x.abs() < 0.05, float("nan"), x)
        x = torch.where(torch.isnan(x), self.miss, x)
        w = (x[..., None] - self.edges[:-1]) / (self.edges[1:] - self.edges[:-1])
        w = torch.cat((w[..., :1].clamp(max=1), w[..., 1:-1].clamp(0, 1), w[..., -1:].clamp(min=0)), -1)
        c = torch.where((c < 0) | (c >= 7), 7, c)
        return self.norm(x), w, self.e(c), torch.bucketize(x, self.edges), torch.bucketize(x, self.edges, right=True), self.e.weight[c - 8]


@attack(XC, **series(text=XC, high=60))
class A6863SeriesDecomp(nn.Module):
    """DLinear: moving means of 25 with repeated ends, RevIN with unbiased off, the trend and what is left by linear weights of lags."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        dev = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        x = (x - mean) / dev
        front, end = x[:, :1].repeat(1, 12, 1), x[:, -1:].repeat(1, 12, 1)
        trend = F.avg_pool1d(torch.cat((front, x, end), 1).permute(0, 2, 1), 25, 1).permute(0, 2, 1)
        season = x - trend
        last = x[:, -4:]
        return trend, season, last * dev + mean, (x[:, 1:] - x[:, :-1]).abs().sum(1)


@attack(X, **series(low=8))
class A6864PatchTst(nn.Module):
    """PatchTST: replication at the end by a stride, patches of 8 by 4, positions learned for as many, a flattened head for the last."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.proj, self.pos = nn.Linear(8, 6), nn.Parameter(torch.randn(20, 6))
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        x = F.pad(x[:, None], (0, 4), "replicate")[:, 0]
        p = x.unfold(-1, 8, 4)
        n = (x.shape[1] - 8) // 4 + 1
        y = self.proj(p) + self.pos[:n]
        y = F.scaled_dot_product_attention(y, y, y, dropout_p=0.0)
        return self.head(y[:, -2:].flatten(1))


@attack(X, **series(), noted="with an infinity in an input the file differs")
class A6865NHits(nn.Module):
    """N-HiTS: pooling by two kernels with ceil, a basis interpolated back to the length, N-BEATS' trend and seasonality by length."""

    def forward(self, x):
        t = x.shape[1]
        out = 0
        for k in (1, 2, 8):
            p = F.max_pool1d(x[:, None], min(k, t), ceil_mode=True)
            out = out + F.interpolate(p, size=t, mode="linear", align_corners=False)[:, 0]
        lin = torch.arange(t) / t
        trend = torch.stack([lin**i for i in range(3)])
        h = max(t // 2 + 1, 1)
        k = torch.arange(h)[:, None] * 2 * math.pi * lin
        s = torch.cat((k.cos(), k.sin()), 0)
        return out, x[:, :3].sum(1, keepdim=True) * trend.sum(0), x @ s.T / t


@forward(XC, **series(text=XC))
def A6866TimesNetPeriods(self, x):
    """TimesNet: the strongest frequency over the batch gives a period, folded by padding to a multiple, its mean by phase."""
    n, t, c = x.shape
    f = torch.fft.rfft(x, dim=1).abs().mean((0, 2))
    # constants leave only rounding noise, whose greatest is anybody's
    f = torch.where((torch.arange(f.shape[0]) == 0) | (f < 1e-3), 0.0, f)
    top = f.argmax().clamp(min=1)
    period = t // top
    ph = torch.arange(t) % period.clamp(min=1)
    s = torch.zeros(n, t, c).index_add(1, ph, x)
    k = torch.zeros(t).index_add(0, ph, torch.ones(t))
    return period, s[:, ph] / k[ph][None, :, None], (t + period - 1) // period


@attack(XC, "l:int64[N]=0:60", dims="N=1:2:3 T=1:20:60", feeds=at(XC, "l:int64[N]=0:60", N=(1, 2, 3), T=(1, 2, 3, 59, 60)))
class A6867TftSelection(nn.Module):
    """TFT: gated residuals and variable selection, an LSTM on packed lengths clamped to 1, interpretable attention, quantiles that do not cross."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.w, self.v = nn.Linear(3, 3), nn.ModuleList([nn.Linear(1, 4) for _ in range(3)])
        self.glu, self.q = nn.Linear(4, 8), nn.Linear(4, 3)
        self.norm = nn.LayerNorm(4)

    def forward(self, x, l):
        w = self.w(F.elu(x)).softmax(-1)
        y = sum(w[..., i : i + 1] * self.v[i](x[..., i : i + 1]) for i in range(3))
        y = self.norm(y + F.glu(self.glu(y)))
        t = x.shape[1]
        m = torch.arange(t)[None] < l.clamp(1, t)[:, None]
        a = (y @ y.transpose(1, 2) / 2).masked_fill(~m[:, None], -1e9).softmax(-1)
        z = (a @ y)[torch.arange(x.shape[0]), l.clamp(1, t) - 1]
        q = self.q(z)
        return torch.cat((q[:, :1], q[:, :1] + F.softplus(q[:, 1:]).cumsum(1)), 1), a.mean(1)


@forward(X, **series(low=1, kinds=("normal", "halves", "zeros", "tenths", "ascending")))
def A6868RobustScaling(self, x):
    """Median and quartiles over time by linear interpolation, MAD, winsorised, ranks with ties by their mean."""
    q = torch.quantile(x, torch.tensor([0.25, 0.5, 0.75]), dim=1)
    med = x.median(1, keepdim=True).values
    mad = (x - med).abs().median(1, keepdim=True).values
    z = 0.6745 * (x - med) / mad.clamp(min=1e-6)
    less = (x[:, :, None] > x[:, None, :]).sum(2)
    eq = (x[:, :, None] == x[:, None, :]).sum(2)
    return q, z.clamp(-3, 3), less + (eq + 1) / 2, torch.nanquantile(x, 0.9, dim=1)


@attack("u:int64[N,T]=0:15", "c:int64[N]=0:15", dims="N=1:2:3 T=1:6:12", feeds=tuple((lambda a=a: {"u": np.array(a), "c": np.array([3] * len(a))}) for a in ([[0]], [[0, 0], [0, 3]], [[3, 3, 3, 3]])))
class A6869DinTarget(nn.Module):
    """DIN: Dice over candidates in eval, history attention without softmax, padded history is zero, SASRec's last by mask."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.e = nn.Embedding(16, 4, padding_idx=0)
        self.a, self.b = nn.Linear(16, 5), nn.Linear(5, 1)
        self.bn = nn.BatchNorm1d(5, eps=1e-8)
        self.alpha = nn.Parameter(torch.rand(5))

    def forward(self, u, c):
        h, q = self.e(u), self.e(c)[:, None].expand(-1, u.shape[1], -1)
        y = self.a(torch.cat((q, h, q - h, q * h), -1))
        p = self.bn(y.transpose(1, 2)).transpose(1, 2).sigmoid()
        y = self.b(p * y + (1 - p) * self.alpha * y)[..., 0]
        m = u != 0
        y = torch.where(m, y, torch.zeros_like(y))
        n = m.sum(1)
        return (y[..., None] * h).sum(1), h[torch.arange(len(u)), n - 1], F.cosine_similarity(h, q, dim=-1), (h * m[..., None]).sum(1) / n[:, None].clamp(min=1) ** 0.5


@forward("x:float32[N,F,5]", "l:int64[F]=1:4", dims="N=1:2:3 F=2:4:9", feeds=at("x:float32[N,F,5]", "l:int64[F]=1:4", N=(1, 2), F=(2, 3, 8, 9)))
def A6870DotInteraction(self, x, l):
    """DLRM: dot products of the lower triangle by tril_indices of the count of fields, and lengths to offsets by asynchronous sums."""
    f = x.shape[1]
    z = torch.bmm(x, x.transpose(1, 2))
    li, lj = torch.tril_indices(f, f, offset=-1).unbind(0)
    off = torch.cat((l.new_zeros(1), l.cumsum(0)))[:-1]
    seg = torch.repeat_interleave(torch.arange(f), l)
    sums = torch.zeros(f).index_add(0, seg, torch.ones(seg.shape[0]))
    return z[:, li, lj], off, sums, F.normalize(x, dim=-1).sum(1)


@forward(X, "s:float32[N,2]", dims="N=1:2:3 T=1:8:20", feeds=at(X, "s:float32[N,2]", N=(1, 2, 3), T=(1, 2, 3, 19, 20)))
def A6871HoltState(self, x, s):
    """Running state: an exponential mean by debiased powers of the length, and level and trend given and given back."""
    t = x.shape[1]
    w = 0.9 ** torch.arange(t - 1, -1, -1, dtype=torch.float32)
    ema = (x * w).sum(1) * 0.1 / (1 - 0.9**t)
    gap = torch.diff(x, dim=1, prepend=s[:, :1])
    level = s[:, 0] * 0.9**t + (x * w).sum(1) * 0.1
    trend = s[:, 1] + gap.mean(1)
    best = x.cummax(1).values
    draw = (best - x).amax(1)
    return ema, torch.stack((level, trend), 1), draw, gap

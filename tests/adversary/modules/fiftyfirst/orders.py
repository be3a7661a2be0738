# ruff: noqa: E501 - attacks are written as users write them
"""Forecasting and recommendation: calendars, lags, scans, recurrent layers, crossings of features, losses."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import seq, two

X, X4, MT = "x:float32[N,T]", "x:float32[N,T,4]", "m:bool[N,T]"
STAMPS = "i:int64[N,T]=1600000000:1800000000"
MILLIS = "i:int64[N,T]=1600000000000:1800000000000"
HASHES = "i:int64[N,T]=0:2147483647"
P01 = "x:float32[N,T]=0:1"


def ids(*rows: list, dtype: object = np.int64) -> tuple:
    """Whole numbers for `i`, one feed for each."""
    return tuple((lambda a=a: {"i": np.array(a, dtype)}) for a in rows)


CALENDAR = ids([[1600000000, 1619827199, 1619827200, 1619827201]], [[1672531199, 1672531200, 1709164800, 1709251199, 1709251200]], [[1735689599] * 3, [1735689600] * 3])


@forward(STAMPS, **seq(STAMPS, own=CALENDAR))
def A6612Calendar(self, i):
    """Unix times to hours, weekdays and civil dates, by the days' arithmetic, and sines of the day."""
    d = i // 86400
    sec = i % 86400
    z = d + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = torch.where(mp < 10, mp + 3, mp - 9)
    year = yoe + era * 400 + (month <= 2)
    return (d + 4) % 7, sec // 3600, year, month, doy - (153 * mp + 2) // 5 + 1, torch.sin(sec / 86400 * 2 * math.pi)


@forward(STAMPS, target="tensorrt==8.6", **seq(STAMPS, own=CALENDAR))
def A6613GapsOfTimes(self, i):
    """Gaps to the sample before in hours, for 8.6."""
    g = F.pad(i[:, 1:] - i[:, :-1], (1, 0))
    return g / 3600, g.clamp(min=0) // 60, (g.abs() < 3).cumsum(1), i.amax(1, keepdim=True) - i


@forward(MILLIS, **seq(MILLIS, own=ids([[1600000000001, 1600000000000, 1600000000001]], [[1699999999999, 1700000000000, 1700000000001, 1700000000000]])))
def A6614SortedMillis(self, i):
    """Events sorted by milliseconds, ranks, the last one and those within a second of it."""
    v, o = i.sort(dim=1, stable=True)
    return v, o, i.argmax(1), (v[:, -1:] - v < 1000).sum(1), (v[:, 1:] - v[:, :-1]).double().log1p().float()


@forward(HASHES, target="tensorrt==8.6", **seq(HASHES, own=ids([[16777217, 16777216, 16777219, 16777218]], [[2147483647, 2147483646, 2147483645, 2147483646]])))
def A6615SortedHashes(self, i):
    """Hashed ids sorted, their largest and the places of both ends, for 8.6."""
    v, o = i.sort(dim=1, descending=True, stable=True)
    return v, o, i.amax(1), i.amin(1), i.argmax(1), v[:, 0] == i[:, -1]


BIG = "i:int64[N,T]=0:50000"
FARAPART = ids([[50000, 0, 50000, 3, 49999]], [[0, 50000, 1], [50000, 50000, 0]])


@forward(BIG, target="tensorrt==8.6", **seq(BIG, low=2, own=FARAPART))
def A6616PairsOfFar(self, i):
    """Crossed features by a difference and a multiplier; only what lies far apart leaves 32 bits. For 8.6."""
    return ((i[:, 1:] - i[:, :-1]) * 43500) % 1009


@forward(BIG, **seq(BIG, own=FARAPART))
def A6617RollingHash(self, i):
    """A rolling hash of trigrams with Knuth's multiplier, modulo a table's size, looked up in an embedding bag."""
    h = i * 2654435761
    for k in (1, 2):
        h = (h ^ (F.pad(i, (k, 0))[:, : i.shape[1]] * 40503)) * 31 % 4294967296
    b = h % 97
    w = torch.sin(torch.arange(97 * 3.0)).reshape(97, 3)
    return F.embedding_bag(b, w, mode="max"), F.embedding_bag(b, w, mode="sum", per_sample_weights=(i % 3).float()), h


@attack(X4, **seq(X4))
class A6618RevIn(nn.Module):
    """RevIN around a recurrent layer, with what the norm keeps between its two calls."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(8, 4)
        self.g, self.b = nn.Parameter(torch.rand(4) + 0.5), nn.Parameter(torch.randn(4))

    def norm(self, x, mode):
        if mode == "norm":
            self.mean = x.mean(1, keepdim=True).detach()
            self.std = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt().detach()
            return (x - self.mean) / self.std * self.g + self.b
        return (x - self.b) / (self.g + 1e-10) * self.std + self.mean

    def forward(self, x):
        y, h = self.rnn(self.norm(x, "norm"))
        return self.norm(self.head(y), "denorm"), h


@attack(X4, **seq(X4))
class A6619SeasonsLookedUp(nn.Module):
    """Moving averages with ends replicated, a season of seven by its own phase, and what is left."""

    def __init__(self):
        super().__init__()
        self.season = nn.Parameter(torch.randn(7, 4))

    def forward(self, x):
        t = x.shape[1]
        p = torch.cat((x[:, :1].repeat(1, 12, 1), x, x[:, -1:].repeat(1, 12, 1)), 1)
        trend = F.avg_pool1d(p.mT, 25, 1).mT
        phase = (torch.arange(t) - t) % 7
        return trend, self.season[phase], x - trend - self.season[phase]


ENDS = tuple((lambda v=v: {"x": np.where(np.arange(18).reshape(2, 9) % 3 == 0, v, np.random.RandomState(2).rand(2, 9)).astype(np.float32)}) for v in (0.0, 1.0, 0.5))


class Level(NamedTuple):
    """Holt's state."""

    level: torch.Tensor
    slope: torch.Tensor


@forward(X, **seq(X, low=2))
def A6620HoltWinters(self, x):
    """Holt's smoothing by a loop with a named tuple; a season of four, and a forecast of the last three."""
    s = Level(x[:, 0], x[:, 1] - x[:, 0])
    season = [torch.zeros_like(x[:, 0]) for _ in range(4)]
    fit = []
    for k in range(x.shape[1]):
        j = k % 4
        fit.append(s.level + s.slope + season[j])
        lv = 0.4 * (x[:, k] - season[j]) + 0.6 * (s.level + s.slope)
        season[j] = 0.3 * (x[:, k] - lv) + 0.7 * season[j]
        s = Level(lv, 0.2 * (lv - s.level) + 0.8 * s.slope)
    return torch.stack(fit, 1), torch.stack([s.level + (k + 1) * s.slope for k in range(3)], 1)


@forward(X, **seq(X))
def A6621ScanByDoubling(self, x):
    """A linear recurrence by Hillis and Steele's doubling, its steps by the length."""
    a, b = torch.sigmoid(x), x.clone()
    d = 1
    while d < x.shape[1]:
        pa = F.pad(a, (d, 0), value=1.0)[:, :-d]
        pb = F.pad(b, (d, 0))[:, :-d]
        a, b = a * pa, b + torch.sigmoid(x) * 0 + a * pb
        d *= 2
    return b


@forward(X, MT, **seq(X, MT))
def A6622FilledForward(self, x, m):
    """Missing values filled from before, then from behind, the age of each, and none where all are missing."""
    t = x.shape[1]
    a = torch.arange(t)
    last = torch.where(m, a, -1).cummax(1).values
    nxt = torch.where(m, a, t).flip(1).cummin(1).values.flip(1)
    i = torch.where(last >= 0, last, torch.where(nxt < t, nxt, -1))
    y = torch.where(i >= 0, x.gather(1, i.clamp(min=0)), 0.0)
    return y, a - last, torch.nanmean(torch.where(m, x, torch.nan), 1).nan_to_num(-7.0)


@forward(P01, **seq(P01, own=ENDS))
def A6623Losses(self, x):
    """Losses in the forward: logs cut at -100, entropies with zeros, deviances with thresholds."""
    y = (x > 0.5).float()
    return (
        F.binary_cross_entropy(x, y.flip(1), reduction="none"), torch.special.entr(x), torch.xlogy(y, x), F.smooth_l1_loss(x, y, beta=0.0, reduction="none"),
        F.huber_loss(x * 5, y, delta=0.7), F.softplus(x * 6 - 3, beta=2, threshold=1.5), F.kl_div(x.clamp(min=1e-3).log(), x.flip(1), reduction="none"),
        F.poisson_nll_loss(x, y * 3, log_input=False, full=True), torch.logit(x, eps=1e-3), torch.sinc(x), F.pairwise_distance(x, y, p=1.5),
    )


IGN = "i:int64[N,T]=-100:3"


@forward(X4, IGN, **seq(X4, IGN, own=tuple((lambda a=a: {"x": np.random.RandomState(3).randn(1, len(a), 4).astype(np.float32), "i": np.array([a])}) for a in ([-100] * 5, [-100, 2, 3, 0], [3, 3, 3]))))
def A6624Ignored(self, x, i):
    """Cross entropies with what is ignored, smoothing, classes weighted; targets below -100 never come."""
    i = torch.where(i < 0, -100, i)
    w = torch.tensor([1.0, 0.5, 2.0, 0.0])
    return (
        F.cross_entropy(x.flatten(0, 1), i.flatten(), reduction="sum"), F.cross_entropy(x.mT, i, label_smoothing=0.1, reduction="none"),
        F.cross_entropy(x.flatten(0, 1), i.flatten(), weight=w, reduction="none"), F.nll_loss(x.log_softmax(-1).flatten(0, 1), i.flatten()),
    )


@forward(X, "y:float32[N,S]", **two(X, "y:float32[N,S]"), refused="the path through the module depends on the si")
def A6625Dtw(self, x, y):
    """Distances of two series: the cheapest path of three steps by antidiagonals' loop over one side."""
    c = (x[:, :, None] - y[:, None]).abs()
    row = c[:, 0].cumsum(1)
    for k in range(1, x.shape[1]):
        up = torch.minimum(row, F.pad(row[:, :-1], (1, 0), value=1e9))
        s = c[:, k].cumsum(1)
        row = (up - F.pad(s[:, :-1], (1, 0))).cummin(1).values + s
    return row[:, -1], torch.quantile(c.flatten(1), 0.3, dim=1), c.flatten(1).kthvalue(1, 1).values

# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Text, recommenders and series: ids, caches, losses, windows, calibrations, their rare tokens and lengths."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import X4, seq, two

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
WIDE = "i:int64[N,T]=0:4000000000"
L = "l:int64[N]=0:40"
wide = lambda *rows: tuple((lambda r=r: {"i": np.array([r], np.int64)}) for r in rows)


@attack(X4, MT, **seq(X4, MT))
class A6378EncoderLeftAligned(nn.Module):
    """torch's encoder takes its nested path where a padding mask is aligned to the left, and fills with nothing there."""

    def __init__(self):
        super().__init__()
        self.e = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)

    def forward(self, x, m):
        m = m.clone()
        m[:, 0] = False
        return self.e(x, src_key_padding_mask=m)


@attack(WIDE, **seq(WIDE, own=wide([2**31, 2**31 - 1, 2**32 - 1, 17, 0], [3999999999, 2147483649, 5, 5])))
class A6379IdsPastInt32(nn.Module):
    """Ids of four thousand million go to rows of two tables by quotient and remainder."""

    def __init__(self):
        super().__init__()
        self.q, self.r = nn.Embedding(65, 3), nn.Embedding(64, 3)

    def forward(self, i):
        h = (i ^ (i >> 16)) * 73856093
        return self.q(i // 61538462) * self.r(h % 64), (i > 2147483647).sum(1), h.sign()


@forward(WIDE, **seq(WIDE, own=wide([2**31, 2**31 + 1, 16777217, 16777216, 3], [16777219, 33554433, 5, 5])), refused="the exported model differs from the module")
def A6380RanksOfIds(self, i):
    """Repeats of ids that lie close together, and where each came last."""
    same = i[:, :, None] == i[:, None]
    prev = torch.where(same.tril(-1), torch.arange(i.shape[1]), -1).amax(2)
    order = i.argsort(dim=1, stable=True)
    return prev, order, i.gather(1, order).diff(dim=1), (i.double() / 1e9).floor().long(), i.max(1).values - i.min(1).values


@dataclasses.dataclass
class Beam:
    """A beam's state."""

    score: torch.Tensor
    ids: torch.Tensor
    done: torch.Tensor


@forward("l:float32[N,T,5]", **seq("l:float32[N,T,5]", own=tuple((lambda t=t: {"l": np.zeros((1, t, 5), np.float32)}) for t in (1, 2, 7, 30))), refused="depends on the size")
def A6381BeamOfDataclass(self, l):
    """A beam of two over all steps, held in a dataclass that is replaced; ties go to the first."""
    n, t, v = l.shape
    p = l.log_softmax(-1)
    b = Beam(torch.tensor([[0.0, -1e9]]).repeat(n, 1), torch.zeros(n, 2, 1, dtype=torch.long), torch.zeros(n, 2, dtype=torch.bool))
    for k in range(t):
        step = torch.where(b.done[..., None], torch.full((v,), -1e9).index_fill(0, torch.tensor([0]), 0.0), p[:, k, None])
        s, at = (b.score[..., None] + step).flatten(1).topk(2, 1)
        src, tok = at // v, at % v
        b = dataclasses.replace(b, score=s, ids=torch.cat([b.ids.gather(1, src[..., None].expand(-1, -1, b.ids.shape[2])), tok[..., None]], 2), done=b.done.gather(1, src) | (tok == 0))
    return b.score, b.ids[:, :, 1:], b.done


class Cache(NamedTuple):
    """Keys and values of the past."""

    k: torch.Tensor
    v: torch.Tensor
    n: torch.Tensor


@forward(X4, "p:float32[N,S,4]", **two(X4, "p:float32[N,S,4]", zero=True))
def A6382PastThatIsShorter(self, x, p):
    """A cache whose window is eight: the past's end is kept, masks by absolute places, none at first."""
    c = Cache(p[:, max(0, p.shape[1] - 8) :], p[:, max(0, p.shape[1] - 8) :] * 2, torch.tensor(p.shape[1]))
    k, v = torch.cat([c.k, x], 1), torch.cat([c.v, x * 2], 1)
    q = torch.arange(x.shape[1]) + c.k.shape[1]
    m = (torch.arange(k.shape[1])[None] <= q[:, None]) & (torch.arange(k.shape[1])[None] > q[:, None] - 8)
    a = F.scaled_dot_product_attention(x, k, v, attn_mask=m)
    return a, c._replace(k=k[:, -8:], v=v[:, -8:], n=c.n + x.shape[1])


@forward("s:float32[N,T]", "y:int64[N,T]=0:3", **seq("s:float32[N,T]", "y:int64[N,T]=0:3", low=2))
def A6383RankingLosses(self, s, y):
    """NDCG at five with ideal order, LambdaRank's deltas, ListMLE in the order of labels, average precision, reciprocal rank."""
    k = min(5, s.shape[1])
    disc = 1 / torch.log2(torch.arange(k) + 2.0)
    o = s.argsort(dim=1, descending=True, stable=True)
    g = (2.0**y - 1).gather(1, o)[:, :k]
    ideal = (2.0**y - 1).sort(1, descending=True).values[:, :k]
    dcg, best = (g * disc).sum(1), (ideal * disc).sum(1)
    z = s.gather(1, y.argsort(dim=1, descending=True, stable=True))
    mle = (z.flip(1).logcumsumexp(1).flip(1) - z).sum(1)
    r = (y.gather(1, o) > 1).float()
    ap = (r.cumsum(1) / torch.arange(1, s.shape[1] + 1) * r).sum(1) / r.sum(1).clamp(min=1)
    mrr = torch.where(r.any(1), 1 / (r.argmax(1) + 1.0), 0.0)
    return torch.where(best > 0, dcg / best.clamp(min=1e-9), 1.0), mle, ap, mrr


@forward(X, L, **seq(X, L))
def A6384AnswersBySpans(self, x, l):
    """Question answering: the best span of at most seven steps within a length, no answer below the first's score."""
    t = x.shape[1]
    s = x[:, :, None] + x.flip(1)[:, None]
    i = torch.arange(t)
    ok = (i[None] >= i[:, None]) & (i[None] - i[:, None] < 7) & (i[None] < l[:, None, None].clamp(max=t))
    s = s.masked_fill(~ok, torch.finfo(s.dtype).min)
    v, at = s.flatten(1).max(1)
    none = v < 2 * x[:, 0]
    return torch.where(none, 0, at // t), torch.where(none, 0, at % t), v, ok.any(-1)


@attack(IDS, **seq(IDS))
class A6385TiedByParametrization(nn.Module):
    """Input and output embeddings are one weight with a scale that is learned, ids that are padding give nothing."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 4, padding_idx=0)
        self.out = nn.Linear(4, 10, bias=False)
        self.out.weight = self.e.weight
        nn.utils.parametrizations.weight_norm(self.out)

    def forward(self, i):
        h = self.e(i).cumsum(1) / (i != 0).cumsum(1).clamp(min=1)[..., None]
        return self.out(h).log_softmax(-1), self.e.weight[0].sum()


@forward("u:int64[N,T]=0:5", "r:float32[N,T]", **seq("u:int64[N,T]=0:5", "r:float32[N,T]"))
def A6386MeansOfUsers(self, u, r):
    """Ratings less their user's mean and the item's, users by one-hot products, shrunk by counts, medians kept for the few."""
    o = F.one_hot(u, 6).to(r.dtype)
    c = o.sum((0, 1))
    mu = torch.einsum("ntk,nt->k", o, r) / (c + 3)
    top = torch.full((6,), -math.inf).scatter_reduce(0, u.flatten(), r.flatten(), "amax")
    mean = torch.zeros(6).scatter_reduce(0, u.flatten(), r.flatten(), "mean", include_self=False)
    return r - mu[u] - r.mean(0), torch.where(c > 2, mu, torch.where(c > 0, top, 0.0)), mean


@forward(X, **seq(X, low=3, own=sprinkled(1e4, -1e4, np.nan, sizes=((1, 9), (2, 12)))))
def A6387HampelAndGaps(self, x):
    """Outliers by the median of deviations in windows of five, gaps filled from the left, ends from the right."""
    w = F.pad(x[:, None], (2, 2), mode="replicate")[:, 0].unfold(1, 5, 1)
    med = w.nanmedian(-1).values
    mad = (w - med[..., None]).abs().nanmedian(-1).values * 1.4826
    bad = ((x - med).abs() > 3 * mad) | x.isnan()
    i = torch.arange(x.shape[1])
    left = torch.where(bad, -1, i).cummax(1).values
    right = torch.where(bad, x.shape[1], i).flip(1).cummin(1).values.flip(1)
    at = torch.where(left >= 0, left, right).clamp(max=x.shape[1] - 1)
    return x.gather(1, at), bad, at


@forward(X, **seq(X, low=4))
def A6388HoltWinters(self, x):
    """Smoothing with level, trend and a season of four whose states are a list that is written in turn."""
    season = [x[:, i] - x[:, :4].mean(1) for i in range(4)]
    level, trend, out = x[:, :4].mean(1), torch.zeros(x.shape[0]), []
    for i in range(x.shape[1]):
        out.append(level + trend + season[i % 4])
        new = 0.3 * (x[:, i] - season[i % 4]) + 0.7 * (level + trend)
        trend = 0.1 * (new - level) + 0.9 * trend
        season[i % 4] = 0.2 * (x[:, i] - new) + 0.8 * season[i % 4]
        level = new
    return torch.stack(out, 1), torch.stack(season, 1)


@attack(X4, MT, **seq(X4, MT))
class A6389PerceiverQueries(nn.Module):
    """Learned queries attend with a key mask that may hide all, weights averaged over heads and not."""

    def __init__(self):
        super().__init__()
        self.q = nn.Parameter(torch.randn(1, 3, 4))
        self.a = nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)

    def forward(self, x, m):
        y, w = self.a(self.q.expand(x.shape[0], -1, -1), x, x, key_padding_mask=m, average_attn_weights=False)
        return y, w


@forward("p:float32[N,T]=0:1", "y:bool[N,T]", **seq("p:float32[N,T]=0:1", "y:bool[N,T]"))
def A6390Calibrated(self, p, y):
    """Calibration's error in ten bins, Brier's score, a log loss that is clipped, precision at the point where both rates meet."""
    b = (p * 10).long().clamp(max=9)
    o = F.one_hot(b, 10).float()
    c = o.sum(1)
    conf, acc = (o * p[..., None]).sum(1) / c.clamp(min=1), (o * y[..., None]).sum(1) / c.clamp(min=1)
    ece = ((conf - acc).abs() * c).sum(1) / p.shape[1]
    s, at = p.sort(dim=1, descending=True, stable=True)
    tp = y.gather(1, at).cumsum(1)
    rec, prec = tp / y.sum(1, keepdim=True).clamp(min=1), tp / torch.arange(1, p.shape[1] + 1)
    eer = (rec - prec).abs().argmin(1)
    return ece, (p - y.float()).square().mean(1), F.binary_cross_entropy(p.clamp(1e-6, 1 - 1e-6), y.float()), s.gather(1, eer[:, None])

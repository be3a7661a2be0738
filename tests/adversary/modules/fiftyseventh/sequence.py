# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Sequences: caches, beams, streams, codecs, sparse attention, experts, bags, decompositions, wavelets."""

from __future__ import annotations

import functools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, constant, halves

X = "x:float32[N,T,4]=-4:4"
D = "N=1:2:3 T=1:6:11"


@attack("x:float32[N,C,T]=-3:3".replace("C", "3"), dims="N=1:2:3 T=1:8:17", kinds=FINITE, feeds=(halves(1, 3, 1), halves(3, 3, 17), halves(2, 3, 16), *constant((1, 3, 9), value=0.0)))
class A7215Rvq(nn.Module):
    """A codec: stride two by causal pads, three stages of residual vector quantisation, codes and the sum decoded to the length."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.enc = nn.Conv1d(3, 2, 4, stride=2)
        self.dec = nn.ConvTranspose1d(2, 3, 4, stride=2)
        self.register_buffer("books", torch.randint(-4, 5, (3, 8, 2)).float() / 4)

    def forward(self, x):
        t = x.shape[-1]
        extra = (2 - t % 2) % 2
        z = self.enc(F.pad(x, (2, extra)))
        r = (z.transpose(1, 2) * 8).round() / 8
        total, codes = torch.zeros_like(r), []
        for book in self.books:
            d = (r[:, :, None] - book).square().sum(-1)
            i = d.argmin(-1)
            q = F.embedding(i, book)
            total, r = total + q, r - q
            codes.append(i)
        y = self.dec(total.transpose(1, 2))
        return torch.stack(codes, 1), y[..., : y.shape[-1] - 2][..., :t], r.abs().mean((1, 2))


@forward("x:float32[N,K,V]=-4:4", "s:float32[N,K]=-5:0", "done:bool[N,K]", dims="N=1:2:3 K=2:3:4 V=2:5:9", kinds=FINITE,
         feeds=(lambda: {"x": np.zeros((1, 2, 2), np.float32), "s": np.zeros((1, 2), np.float32), "done": np.ones((1, 2), bool)}, lambda: {"x": np.ones((2, 4, 9), np.float32), "s": np.arange(8, dtype=np.float32).reshape(2, 4) * -0.5, "done": np.arange(8).reshape(2, 4) % 2 == 0}))  # fmt: skip
def A7216BeamStep(self, x, s, done):
    """A step of beams: finished beams keep their score in token 0, the best K of K*V, parents by division, the flags follow."""
    n, k, v = x.shape
    lp = (x * 2).round() / 2
    stay = torch.full((v,), float("-inf"))
    stay[0] = 0.0
    lp = torch.where(done[..., None], stay, lp)
    total = (s * 4).round()[..., None] / 4 + lp
    best, idx = total.view(n, -1).topk(k, dim=-1)
    parent, token = torch.div(idx, v, rounding_mode="trunc"), idx % v
    now = done.gather(1, parent) | (token == v - 1)
    return best, parent, token, now, now.all(-1)




@attack("x:float32[N,T,4]=-4:4", "state:float32[N,4,3]=-4:4", "count:int64[N]=0:100", dims=D, kinds=FINITE)
class A7217Stream(nn.Module):
    """Streaming: a causal depthwise convolution with its last three frames as the state, a running mean, in a dict of parts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.dw = nn.Conv1d(4, 4, 4, groups=4)
        self.register_forward_hook(lambda m, a, o: {"y": o["y"] * 0.5, **{k: v for k, v in o.items() if k != "y"}})

    @functools.cached_property
    def scale(self):
        return self.dw.weight.detach().abs().amax()

    def forward(self, x, state, count):
        z = torch.cat((state, x.transpose(1, 2)), -1)
        y = self.dw(z).transpose(1, 2) / self.scale
        steps = count[:, None] + torch.arange(1, x.shape[1] + 1)
        mean = y.cumsum(1) / steps[..., None]
        return {"y": y - mean, "state": z[..., -3:], "count": count + x.shape[1]}


@forward(X, dims=D, kinds=FINITE, feeds=(halves(1, 1, 4), halves(3, 11, 4), halves(2, 8, 4)))
def A7218BlockSparse(self, x):
    """BigBird in blocks of four: a global first token, a band of two, the padding masked out; rows of padding dropped."""
    n, t, c = x.shape
    p = (4 - t % 4) % 4
    y = F.pad(x, (0, 0, 0, p))
    b = y.shape[1] // 4
    ids = torch.arange(b * 4)
    block = ids // 4
    allow = ((block[:, None] - block).abs() <= 1) & ((block[:, None] + block) % 3 != 1) | (ids == 0) | (ids[:, None] == 0) | (ids[:, None] == ids)
    allow = allow & (ids < t)
    o = F.scaled_dot_product_attention(y, y, y, attn_mask=allow | (ids[:, None] >= t))
    return o[:, :t], allow.sum(-1)[:t]


@attack(X, dims=D, kinds=FINITE, feeds=(halves(1, 1, 4), halves(3, 11, 4), *constant((2, 5, 4), value=0.0)))
class A7219Experts(nn.Module):
    """Experts with capacity: two of four by top-k, places by a cumulative sum, what overflows is dropped, combined by one-hots."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.gate = nn.Linear(4, 4, bias=False)
        self.w = nn.Parameter(torch.randn(4, 4, 4) * 0.3)

    def forward(self, x):
        n, t, c = x.shape
        f = x.reshape(-1, c)
        p = ((self.gate(f) * 4).round() / 4).softmax(-1)
        v, i = (p - torch.arange(4) * 1e-3).topk(2, -1)
        cap = max(1, (n * t * 2 + 3) // 4)
        oh = F.one_hot(i, 4)
        flat = oh.transpose(0, 1).reshape(-1, 4)
        place = (flat.cumsum(0) - 1).view(2, n * t, 4).transpose(0, 1)
        keep = (place < cap) & (oh == 1)
        slot = (place * oh).sum(-1)
        disp = (F.one_hot(slot.clamp(max=cap - 1), cap)[:, :, None] * keep[..., None]).float()
        comb = (disp * v[..., None, None]).sum(1)
        inp = torch.einsum("sec,sd->ecd", disp.sum(1), f)
        out = torch.einsum("ecd,edk->eck", inp, self.w).relu()
        return torch.einsum("sec,eck->sk", comb, out).view(n, t, c), keep.sum((0, 1))


@attack("ids:int64[L]=0:9", "off:int64[B]=0:3", "w:float32[L]=-2:2", dims="L=4:8:12 B=1:3:5", feeds=(lambda: {"ids": np.arange(4), "off": np.array([0]), "w": np.ones(4, np.float32)}, lambda: {"ids": np.full(12, 9), "off": np.array([0, 0, 1, 0, 2]), "w": np.zeros(12, np.float32)}))
class A7220Bags(nn.Module):
    """Recommender: bags from running offsets (some empty), a weighted sum by index_add, a mean by counts, crossed as in DLRM."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(10)
        self.e = nn.Embedding(10, 3, padding_idx=0)

    def forward(self, ids, off, w):
        start = torch.cumsum(off, 0) - off[0]
        seg = torch.searchsorted(start.clamp(max=ids.shape[0]), torch.arange(ids.shape[0]), right=True) - 1
        rows = self.e(ids) * w[:, None]
        bags = torch.zeros(off.shape[0], 3).index_add(0, seg, rows)
        cnt = torch.zeros(off.shape[0]).index_add(0, seg, torch.ones_like(w))
        mean = bags / cnt.clamp(min=1)[:, None]
        z = torch.stack((bags, mean, bags * mean), 1)
        li, lj = torch.tril_indices(3, 3, offset=-1)
        return mean, torch.bmm(z, z.mT)[:, li, lj], seg, cnt


@forward("x:float32[N,T]=-4:4", dims="N=1:2:3 T=14:18:25", kinds=FINITE, feeds=(halves(1, 15), halves(3, 25), halves(2, 14), *constant((1, 16), value=3.0)))
def A7221Decompose(self, x):
    """Time series: the trend by a mean of five with ends repeated, the season of seven by a scatter mean, the rest and its MAD."""
    n, t = x.shape
    trend = F.avg_pool1d(F.pad(x[:, None], (2, 2), mode="replicate"), 5, 1)[:, 0]
    ph = torch.arange(t) % 7
    d = x - trend
    s = torch.zeros(n, 7).scatter_reduce(1, ph.expand(n, t), d, "mean", include_self=False)
    s = s - s.mean(1, keepdim=True)
    season = s[:, ph]
    rest = d - season
    med = rest.sort(1).values[:, (t - 1) // 2 : t // 2 + 1].mean(1)
    mad = (rest - med[:, None]).abs().median(1).values
    return trend, season, mad, F.pad(s, (0, 3), mode="circular")


@forward("x:float32[N,T]=-4:4", dims="N=1:2:3 T=8:16:24%8", kinds=FINITE, feeds=(halves(1, 8), halves(3, 24), halves(2, 16)), target="tensorrt==8.6")
def A7222Wavelet(self, x):
    """Three levels of Haar by lifting and their inverse with soft thresholds; the universal one from the median."""
    d, s = [], x
    for _ in range(3):
        e, o = s[:, ::2], s[:, 1::2]
        dd = o - e
        s = e + dd / 2
        d.append(dd)
    th = d[0].abs().median(1, keepdim=True).values / 0.6745
    y = s
    for dd in reversed(d):
        q = torch.sign(dd) * F.relu(dd.abs() - th * 0.25)
        e = y - q / 2
        y = torch.stack((e, e + q), -1).flatten(1)
    return y, th, torch.cat([v.abs().amax(1, keepdim=True) for v in d], 1)


@attack(X, "pos:int64[N]=0:7", "cache:float32[N,8,4]=-4:4", dims="N=1:2:3 T=1:1:1", kinds=FINITE, feeds=(lambda: {"x": np.ones((1, 1, 4), np.float32), "pos": np.array([7]), "cache": np.zeros((1, 8, 4), np.float32)}, lambda: {"x": np.ones((3, 1, 4), np.float32), "pos": np.array([0, 7, 3]), "cache": np.ones((3, 8, 4), np.float32)}))
class A7223RingCache(nn.Module):
    """A step with a static cache: each row written at its own place by scatter, ALiBi by the distance, places after masked."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        self.qkv = nn.Linear(4, 8)

    def forward(self, x, pos, cache):
        q, k = self.qkv(x).chunk(2, -1)
        idx = pos.view(-1, 1, 1).expand(-1, 1, 4)
        cache = cache.scatter(1, idx, k)
        d = pos[:, None] - torch.arange(8)
        bias = torch.where(d >= 0, -0.25 * d, float("-inf"))
        a = (torch.einsum("nqc,nkc->nqk", q, cache) / 2 + bias[:, None]).softmax(-1)
        return a @ cache, cache, (pos + 1) % 8

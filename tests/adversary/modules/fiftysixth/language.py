# ruff: noqa: E501 - attacks are written as users write them
"""Transformers: rotary tables, biases, windows, routing, caches, heads of sampling, packing, rows that see nothing."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

X = "x:float32[N,T,8]=-3:3"


def spans(*many, n=1):
    return tuple(values_at(X, N=n, T=t) for t in many)


@attack(X, dims="N=1:1:2 T=1:12:40", kinds=FINITE, feeds=spans(1, 15, 16, 17, 31, 32, 33, 40))
class A7130DynamicNtk(nn.Module):
    """Rotary with a base that grows past sixteen tokens, as of DynamicNTKScaling."""

    def forward(self, x):
        t, dim, limit = x.shape[1], 8, 16
        base = 10000.0
        if t > limit:
            base = base * ((2.0 * t / limit) - 1.0) ** (dim / (dim - 2))
        inv = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        f = torch.outer(torch.arange(t).float(), inv)
        e = torch.cat((f, f), -1)
        a, b = x.chunk(2, -1)
        return x * e.cos() + torch.cat((-b, a), -1) * e.sin()


@attack(X, dims="N=1:1:2 T=1:12:40", kinds=FINITE, feeds=spans(1, 7, 8, 9, 12, 13, 39, 40))
class A7131CosCached(nn.Module):
    """LLaMA's first rotary: a table that is remade when a longer sequence comes, never shrunk."""

    def __init__(self):
        super().__init__()
        self.seen = 0
        self._table(8)

    def _table(self, t):
        self.seen = t
        f = torch.outer(torch.arange(t).float(), 1.0 / 100 ** (torch.arange(0, 8, 2) / 8))
        self.cos, self.sin = torch.cat((f, f), -1).cos(), torch.cat((f, f), -1).sin()

    def forward(self, x):
        t = x.shape[1]
        if t > self.seen:
            self._table(t)
        c, s = self.cos[:t], self.sin[:t]
        y = torch.stack((-x[..., 4:], x[..., :4]), -2).flatten(-2)
        return x * c + y * s


def _alibi(heads):
    p = 2 ** math.floor(math.log2(heads))
    s = [2 ** (-8 * (i + 1) / p) for i in range(p)]
    return torch.tensor(s + [2 ** (-4 * (2 * i + 1) / p) for i in range(heads - p)])


@forward(
    X, "m:bool[N,T]", dims="N=1:1:2 T=1:9:24", kinds=FINITE,
    feeds=(halves(1, 9, 8, m=np.zeros((1, 9), bool)), halves(2, 24, 8, m=np.arange(48).reshape(2, 24) % 3 > 0)),
)  # fmt: skip
def A7132Alibi(self, x, m):
    """BLOOM's biases by the cumulative sum of the mask, for three heads; masked by the least float; rows that see nothing."""
    n, t, _ = x.shape
    pos = ((m.long().cumsum(-1) - 1) * m)[:, None]
    bias = (_alibi(3)[:, None] * pos).view(n, 3, 1, t)
    s = (x @ x.mT)[:, None] / 8**0.5 + bias
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    s = s.masked_fill(~(causal & m[:, None, None, :]), torch.finfo(torch.float32).min)
    return s.softmax(-1, dtype=torch.float32) @ x[:, None]


@attack(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 2, 8, 9, 10, 29, 30))
class A7133T5Bias(nn.Module):
    """T5's buckets of relative positions, both ways, with the truncation of a logarithm to integers."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 2)

    def bucket(self, rel, num=16, far=20):
        num //= 2
        out = (rel > 0).to(torch.long) * num
        rel = torch.abs(rel)
        exact = num // 2
        large = exact + (torch.log(rel.float() / exact) / math.log(far / exact) * (num - exact)).to(torch.long)
        large = torch.min(large, torch.full_like(large, num - 1))
        return out + torch.where(rel < exact, rel, large)

    def forward(self, x):
        t = x.shape[1]
        rel = torch.arange(t)[None] - torch.arange(t)[:, None]
        b = self.bias(self.bucket(rel)).permute(2, 0, 1)[None]
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return ((q @ q.mT + b).softmax(-1) @ q).transpose(1, 2).flatten(2)


@forward(
    X, "m:bool[N,T]", dims="N=1:1:2 T=1:9:24", kinds=FINITE,
    feeds=(halves(1, 9, 8, m=np.zeros((1, 9), bool)), halves(2, 3, 8, m=np.array([[True, False, False], [False, False, False]]))),
)  # fmt: skip
def A7134BlindRows(self, x, m):
    """scaled_dot_product_attention with a boolean mask in which whole rows are false; what comes is set to zero after."""
    _n, t, _ = x.shape
    q = x.unflatten(-1, (2, 4)).transpose(1, 2)
    mask = m[:, None, None, :] & (torch.arange(t)[:, None] - torch.arange(t) < 4) & m[:, None, :, None]
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    seen = mask.any(-1, keepdim=True)
    return torch.where(seen, y, torch.zeros_like(y)), y.isnan().sum() * 0 + seen.sum()


@attack(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=(halves(1, 9, 8), halves(2, 24, 8), halves(1, 1, 8)))
class A7135Moe(nn.Module):
    """Mixtral: the best two experts, weights renormalised, each expert over its own tokens by where and index_add_."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 12), nn.SiLU(), nn.Linear(12, 8)) for _ in range(3))

    def forward(self, x):
        n, t, d = x.shape
        x = x.view(-1, d)
        w = F.softmax(self.gate(x), dim=1, dtype=torch.float)
        w, chosen = torch.topk(w, 2, dim=-1)
        w /= w.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=3).permute(2, 1, 0)
        for e, expert in enumerate(self.experts):
            idx, top = torch.where(mask[e])
            out.index_add_(0, top, expert(x[None, top].reshape(-1, d)) * w[top, idx, None])
        return out.reshape(n, t, d), chosen


@attack(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=(halves(1, 9, 8), halves(2, 24, 8), halves(1, 1, 8)))
class A7136Capacity(nn.Module):
    """Switch: a capacity that is the ceiling of tokens by experts, places by a cumulative sum, what overflows passes by."""

    def __init__(self):
        super().__init__()
        self.gate, self.w = nn.Linear(8, 3), nn.Parameter(torch.randn(3, 8, 8))

    def forward(self, x):
        n, t, d = x.shape
        f = x.reshape(-1, d)
        cap = math.ceil(n * t * 1.25 / 3)
        p, e = self.gate(f).softmax(-1).max(-1)
        hot = F.one_hot(e, 3)
        place = (hot.cumsum(0) * hot).sum(-1) - 1
        ok = place < cap
        disp = hot.unsqueeze(-1) * F.one_hot(place.clamp(max=cap - 1), cap)[:, None] * ok[:, None, None]
        box = torch.einsum("sec,sd->ecd", disp.float(), f)
        y = torch.einsum("sec,ecd->sd", disp.float(), torch.bmm(box, self.w)) * p[:, None]
        return torch.where(ok[:, None], y, f).view(n, t, d), ok.sum()


@attack(
    "x:float32[N,T,8]=-3:3", "k:float32[N,2,P,4]=-3:3", "v:float32[N,2,P,4]=-3:3", dims="N=1:1:2 T=1:3:8 P=1:5:12", kinds=FINITE,
    feeds=tuple(values_at(X, "k:float32[N,2,P,4]=-3:3", "v:float32[N,2,P,4]=-3:3", N=1, T=t, P=p) for t, p in ((1, 1), (1, 12), (8, 1), (8, 12), (3, 6))),
)  # fmt: skip
class A7137Sinks(nn.Module):
    """StreamingLLM: the new cache keeps two first tokens and the last six; attention sees all; causal from the right."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, k, v):
        q, a, b = self.qkv(x).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        k, v = torch.cat((k, a), 2), torch.cat((v, b), 2)
        t, s = q.shape[2], k.shape[2]
        mask = torch.ones(t, s, dtype=torch.bool).tril(diagonal=s - t)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        keep = torch.cat((k[:, :, :2], k[:, :, 2:][:, :, -6:]), 2)
        return y.transpose(1, 2).flatten(2), keep, v[:, :, max(0, s - 8) :]


@forward(
    "x:float32[N,V]=-5:5", dims="N=1:1:2 V=2:20:50", kinds=FINITE,
    feeds=(halves(1, 20), halves(2, 50), halves(1, 2), halves(2, 5), lambda: {"x": np.zeros((1, 10), np.float32)}), target="tensorrt==8.6",
)  # fmt: skip
def A7138TopP(self, x):
    """A nucleus of 0.9 with at least one kept, of the best ten at most, back in place by scatter, typical order by sort."""
    k = min(10, x.size(-1))
    x = x.masked_fill(x < torch.topk(x, k)[0][..., -1, None], -float("inf"))
    s, i = torch.sort(x, descending=False, stable=True)
    c = s.softmax(dim=-1).cumsum(dim=-1)
    drop = c <= 0.1
    drop[..., -1:] = 0
    x = x.masked_fill(drop.scatter(1, i, drop), -float("inf"))
    return x.softmax(-1), x.isinf().sum(-1)


@forward(
    X, "g:int64[N,T]=0:3", dims="N=1:1:2 T=1:9:24", kinds=FINITE,
    feeds=(halves(1, 9, 8, g=np.array([[1, 1, 1, 2, 2, 3, 0, 0, 0]])), halves(1, 3, 8, g=np.array([[0, 0, 0]])), halves(2, 4, 8, g=np.array([[1, 2, 1, 2], [3, 3, 3, 1]]))),
)  # fmt: skip
def A7139Packed(self, x, g):
    """Packed documents: positions from the last change of segment by cummax, masks by equality, zero is padding."""
    n, t, _ = x.shape
    at = torch.arange(t).expand(n, t)
    new = torch.cat((torch.ones_like(g[:, :1], dtype=torch.bool), g[:, 1:] != g[:, :-1]), 1)
    pos = at - torch.where(new, at, 0).cummax(1).values
    m = (g[:, :, None] == g[:, None, :]) & (at[:, :, None] >= at[:, None, :]) & (g != 0)[:, None, :]
    s = (x @ x.mT * 8**-0.5).masked_fill(~m, -1e9) + (pos[:, None] * 0.01)
    return (s.softmax(-1) * m.any(-1, keepdim=True)) @ x, pos


@forward(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 3, 4, 5, 7, 8, 9, 29, 30))
def A7140Blockwise(self, x):
    """Longformer's local attention: padded to blocks of four, each block sees itself and the one before, unpadded."""
    n, t, d = x.shape
    pad = -t % 4
    y = F.pad(x, (0, 0, 0, pad)).view(n, -1, 4, d)
    prev = F.pad(y, (0, 0, 0, 0, 1, 0))[:, :-1]
    kv = torch.cat((prev, y), 2)
    s = torch.einsum("nbid,nbjd->nbij", y, kv)
    place = torch.arange(t + pad).view(-1, 4)
    kp = torch.cat((F.pad(place, (0, 0, 1, 0), value=-1)[:-1], place), 1)
    m = (kp[:, None] >= 0) & (kp[:, None] <= place[..., None]) & (kp[:, None] < t)
    s = s.masked_fill(~m, float("-inf"))
    return (torch.nan_to_num(s.softmax(-1)) @ kv).flatten(1, 2)[:, :t]


@attack(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=spans(1, 2, 9, 23, 24), target="tensorrt==8.6")
class A7141RelShift(nn.Module):
    """Transformer-XL's shift by a pad and a view, with sinusoids of falling positions."""

    def __init__(self):
        super().__init__()
        self.r = nn.Linear(8, 8, bias=False)
        self.u, self.v = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8))

    def forward(self, x):
        n, t, d = x.shape
        pos = torch.arange(t - 1, -t, -1.0)
        f = torch.outer(pos, 1 / (10000 ** (torch.arange(0.0, d, 2.0) / d)))
        r = self.r(torch.cat((f.sin(), f.cos()), -1))
        bd = (x + self.v) @ r.T
        bd = F.pad(bd, (1, 0)).view(n, 2 * t, t)[:, 1:].reshape(n, t, 2 * t - 1)[:, :, :t]
        return (((x + self.u) @ x.mT + bd) / d**0.5).softmax(-1) @ x


@forward(
    "i:int64[N,T]=0:9", "x:float32[N,10]=-5:5", dims="N=1:1:2 T=1:6:16",
    feeds=(lambda: {"i": np.array([[1, 2, 1, 2, 1]]), "x": np.zeros((1, 10), np.float32)}, lambda: {"i": np.array([[3], [9]]), "x": -np.ones((2, 10), np.float32)}, lambda: {"i": np.array([[7, 7, 7, 7]]), "x": np.ones((1, 10), np.float32)}),
)  # fmt: skip
def A7142Penalties(self, i, x):
    """Repetition penalty by gather and scatter, presence and frequency by one_hot, bans of repeated bigrams by compare."""
    s = x.gather(1, i)
    x = x.scatter(1, i, torch.where(s < 0, s * 1.3, s / 1.3))
    count = F.one_hot(i, 10).sum(1)
    x = x - 0.5 * count - 0.25 * (count > 0)
    last = i[:, -1:]
    follow = (i[:, :-1] == last).unsqueeze(-1) & F.one_hot(i[:, 1:], 10).bool()
    return x.masked_fill(follow.any(1), -torch.inf), x.argmax(-1)


@attack(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=(*spans(1, 2, 9, 24), lambda: {"x": np.zeros((1, 4, 8), np.float32)}), target="tensorrt==8.6")
class A7143QkNorm(nn.Module):
    """Gemma: RMS in float with one plus the weight, soft capping of scores, a window of five, grouped heads repeated."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.w = nn.Linear(8, 16), nn.Linear(8, 4), nn.Parameter(torch.randn(4))

    def norm(self, x):
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)) * (1.0 + self.w)

    def forward(self, x):
        n, t, _ = x.shape
        q = self.norm(self.q(x).view(n, t, 4, 4)).transpose(1, 2)
        k = self.norm(self.k(x).view(n, t, 1, 4)).transpose(1, 2).repeat_interleave(4, 1)
        s = torch.tanh(q @ k.mT / 50.0) * 50.0
        causal = torch.triu(torch.full((t, t), -torch.inf), 1) + torch.tril(torch.full((t, t), -torch.inf), -5)
        return ((s + causal).softmax(-1) @ k).transpose(1, 2).reshape(n, t, 16)

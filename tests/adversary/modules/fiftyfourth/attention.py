# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Attention: masks of kinds, caches as inputs, positions, windows, routing, nuclei, sums in place of softmax."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.modules.fiftyfourth.sequences import seq
from tests.adversary.values import values_at

X4, X8 = "x:float32[N,T,4]=-3:3", "x:float32[N,T,8]=-3:3"
M = "m:bool[N,T]"
L = "l:int64[N]=0:40"


def masked(width: int, *rows: list) -> tuple:
    """Points with a mask of their own."""
    return tuple(
        (
            lambda r=r: {
                "x": np.random.RandomState(len(r)).uniform(-3, 3, (1, len(r), width)).astype(np.float32),
                "m": np.array([r], bool),
            }
        )
        for r in rows
    )


NONE = ([0] * 5, [0], [1] * 7, [0, 0, 0, 1], [1, 0, 0, 0, 0, 0])


@forward(X8, M, **seq(X8, M, own=masked(8, *NONE)))
def A6986NobodyToSee(self, x, m):
    """Attention by a mask of keys that may leave none: the operator gives zeros, the spelled one no numbers, replaced."""
    q = x.view(*x.shape[:2], 2, 4).transpose(1, 2)
    k = m[:, None, None].expand(-1, 1, x.shape[1], -1)
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=k)
    z = (q @ q.mT / 2).masked_fill(~k, -math.inf).softmax(-1)
    return y, z.nan_to_num(1.0) @ q, z.isnan().any(-1)


@forward(X8, M, **seq(X8, M, own=masked(8, *NONE)))
def A6987LeastFloats(self, x, m):
    """Masks by the least float, added twice: both causal and padded ones overflow; none left means all alike."""
    q = x.view(*x.shape[:2], 2, 4).transpose(1, 2)
    t, low = x.shape[1], torch.finfo(torch.float32).min
    pad = (1.0 - m[:, None, None].float()) * low
    causal = torch.full((t, t), low).triu(1)
    both = pad + causal
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=torch.where(both < low, low, both))
    z = F.scaled_dot_product_attention(q, q, q, attn_mask=both)
    return y, z.nan_to_num(-1.0), both.isinf().sum((1, 2, 3))


PAST = "p:float32[N,S,4]=-3:3"
PD = tuple(
    values_at(X4, PAST, N=1 + s % 2, T=t, S=s) for t, s in ((1, 0), (5, 0), (1, 20), (12, 1), (7, 7), (12, 20), (2, 19))
)


@forward(X4, PAST, dims="N=1:1:2 T=1:4:12 S=0:6:20", kinds=FINITE, feeds=PD)
def A6988CausalOffset(self, x, p):
    """A cache in front, which may be empty: causal by the offset, by the operator's own flag, and one token sees all."""
    k = torch.cat((p, x), 1)
    t, s = x.shape[1], k.shape[1]
    m = torch.ones(t, s, dtype=torch.bool).tril(s - t)
    a = F.scaled_dot_product_attention(x, k, k, attn_mask=m)
    b = F.scaled_dot_product_attention(x, k, k, is_causal=t > 1)
    return a, b, k[:, -8:]


@attack(X4, **seq(X4, high=80, at=(1, 2, 15, 16, 17, 23, 31, 32, 33, 46, 64, 65, 80)))
class A6989T5Buckets(nn.Module):
    """T5's buckets of relative positions, both ways: exact for near ones, logarithms cut to whole numbers for far ones."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 1)

    def forward(self, x):
        t = x.shape[1]
        r = torch.arange(t)[None] - torch.arange(t)[:, None]
        n = 8
        b = (r > 0).long() * n
        r = r.abs()
        e = n // 2
        far = e + (torch.log(r.float() / e) / math.log(64 / e) * (n - e)).to(torch.long)
        far = torch.min(far, torch.full_like(far, n - 1))
        b = b + torch.where(r < e, r, far)
        return (x @ x.mT + self.bias(b)[..., 0]).softmax(-1) @ x, b.sum()


@forward(X8, **seq(X8, high=70, at=(1, 31, 32, 33, 34, 63, 64, 65, 70)))
def A6990DynamicRotary(self, x):
    """Rotary positions whose base grows beyond thirty-two, halves turned, and a factor by the logarithm of the length."""
    t = x.shape[1]
    base = 100.0
    if t > 32:
        base = base * ((2 * t / 32) - 1) ** (8 / 6)
    f = 1 / (base ** (torch.arange(0, 8, 2, dtype=torch.int64).float() / 8))
    a = torch.arange(t).float()[:, None] * f
    a = torch.cat((a, a), -1)
    turned = torch.cat((-x[..., 4:], x[..., :4]), -1)
    return (x * a.cos() + turned * a.sin()) * max(1.0, math.log(t, 32))


@forward("x:float32[N,T,12]=-3:3", **seq("x:float32[N,T,12]=-3:3"))
def A6991AlibiWindow(self, x):
    """Six heads, whose slopes are of four and of every second of eight; nothing beyond nine steps back."""

    def slopes(n):
        p = 2 ** math.floor(math.log2(n))
        s = [2 ** (-8 / p * (i + 1)) for i in range(p)]
        return s if p == n else s + slopes(2 * p)[0::2][: n - p]

    q = x.view(*x.shape[:2], 6, 2).transpose(1, 2)
    t = torch.arange(x.shape[1])
    d = t[:, None] - t
    m = torch.where((d >= 0) & (d < 9), -torch.tensor(slopes(6))[:, None, None] * d, -math.inf)
    return F.scaled_dot_product_attention(q, q, q, attn_mask=m[None])


@forward(X4, M, **seq(X4, M, at=(1, 4, 5, 7, 8, 9, 12, 15, 16, 17, 39), own=masked(4, *NONE)))
def A6992LocalBlocks(self, x, m):
    """Blocks of four with their neighbours; pads hidden; a block all of whose keys are hidden looks at all alike."""
    n, t, c = x.shape
    p = -t % 4
    y, mm = F.pad(x, (0, 0, 0, p)), F.pad(m, (0, p))
    b = y.shape[1] // 4
    near = lambda z, v: torch.stack(
        [F.pad(z, (0,) * (2 * (z.ndim - 2)) + (1, 1), value=v)[:, i : i + b] for i in range(3)], 2
    ).flatten(2, 3)
    k, km = near(y.view(n, b, 4, c), 0.0), near(mm.view(n, b, 4), False)
    a = (y.view(n, b, 4, c) @ k.mT).masked_fill(~km[:, :, None], torch.finfo(x.dtype).min)
    return (a.softmax(-1) @ k).view(n, -1, c)[:, :t] * m[..., None], a.amax((2, 3)) < -1e9


@attack(X4, **seq(X4, low=2))
class A6993Capacity(nn.Module):
    """Switch routing: each expert takes so many tokens, a true division cut; those after go through unchanged."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x):
        n, t, c = x.shape
        y = x.reshape(-1, c)
        p, e = y[:, :3].softmax(-1).max(-1)
        cap = max(int(1.25 * n * t / 3), 4)
        one = F.one_hot(e, 3)
        place = (one.cumsum(0) * one).sum(1)
        ok = place <= cap
        z = torch.einsum("tc,tcd->td", y, self.w[e]) * p[:, None]
        return torch.where(ok[:, None], z, y).view(n, t, c), (one * ok[:, None]).sum(0), ok.sum()


@attack(X4, **seq(X4))
class A6994ExpertLoop(nn.Module):
    """Mixtral's loop: the two best of three, each expert on its own tokens, which may be none, added in place."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        y = x.reshape(-1, 4)
        w, s = self.gate(y).softmax(1).topk(2, 1)
        w = w / w.sum(1, keepdim=True)
        out = torch.zeros_like(y)
        hot = F.one_hot(s, 3).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            k, t = torch.where(hot[i])
            out.index_add_(0, t, expert(y[t]) * w[t, k, None])
        return out.view_as(x)


@forward(X4, L, **seq(X4, L))
def A6995LinearSums(self, x, l):
    """Linear attention by sums up to here; hidden keys are zero; a decayed one in a log of sums for stability."""
    m = (torch.arange(x.shape[1]) < l[:, None])[..., None]
    q, k = F.elu(x) + 1, (F.elu(x.flip(2)) + 1) * m
    kv = (k[..., None] * x[:, :, None]).cumsum(1)
    z = k.cumsum(1)
    y = torch.einsum("ntc,ntcd->ntd", q, kv) / (torch.einsum("ntc,ntc->nt", q, z) + 1e-6)[..., None]
    return y, x.masked_fill(~m, -math.inf).logcumsumexp(1).clamp(min=-50)


@forward("x:float32[N,T,16]=-3:3", **seq("x:float32[N,T,16]=-3:3"))
def A6996GroupedSoftcap(self, x):
    """Four heads over two of keys, the scores capped by a tangent, a sink in the softmax that takes its share."""
    n, t, _ = x.shape
    q = x[..., :8].view(n, t, 4, 2).transpose(1, 2)
    k, v = x[..., 8:].view(n, t, 2, 2, 2).permute(2, 0, 3, 1, 4)
    g = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    a = 5 * torch.tanh(q @ k.repeat_interleave(2, 1).mT / 5)
    a = a.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
    a = torch.cat((torch.tensor([0.0, 1.0, -1.0, 9.0]).view(1, 4, 1, 1).expand(n, 4, t, 1), a), -1).softmax(-1)
    return g, a[..., 1:] @ v.repeat_interleave(2, 1)


Q = "q:float32[]=0:1"
TIES = tuple(
    (lambda q=q, t=t: {"x": np.zeros((1, t, 4), np.float32), "q": np.array(q, np.float32)})
    for q, t in ((0.25, 3), (0.5, 5), (1.0, 2), (0.0, 2), (0.75, 9))
)


@forward(X4, Q, **seq(X4, Q, own=TIES))
def A6997AttendNucleus(self, x, q):
    """Only the keys in the nucleus of each query are seen; at least two, at most all; ties in order."""
    a = x @ x.mT / 2
    v, i = a.sort(dim=-1, descending=True, stable=True)
    c = v.softmax(-1).cumsum(-1)
    cut = (c - v.softmax(-1)) > q
    cut[..., :2] = False
    hide = torch.zeros_like(cut).scatter(-1, i, cut)
    w = a.masked_fill(hide, -math.inf).softmax(-1)
    return w @ x, (w > 0).sum(-1)


RING = "r:float32[N,8,4]=-3:3"
POS = "p:int64[]=0:30"
AT = tuple(
    (
        lambda p=p, n=n: {
            "x": np.random.RandomState(p).uniform(-3, 3, (n, 4)).astype(np.float32),
            "r": np.random.RandomState(p + 1).uniform(-3, 3, (n, 8, 4)).astype(np.float32),
            "p": np.array(p),
        }
    )
    for p, n in ((0, 1), (6, 2), (7, 1), (8, 1), (15, 2), (16, 1), (30, 2))
)


@forward("x:float32[N,4]=-3:3", RING, POS, dims="N=1:1:2", kinds=FINITE, feeds=AT)
def A6998RingCache(self, x, r, p):
    """A ring of eight keys: the new one at the place of its position; those never written are hidden."""
    i = p % 8
    r = r.clone()
    r.index_copy_(1, i[None], x[:, None])
    age = (i - torch.arange(8)) % 8
    a = (r @ x[..., None])[..., 0] - 0.1 * age
    a = a.masked_fill(age > p, -math.inf)
    return (a.softmax(-1)[:, None] @ r)[:, 0], r, age


@forward(X4, PAST, dims="N=1:1:2 T=1:4:12 S=0:6:20", kinds=FINITE, feeds=PD)
def A6999Sinks(self, x, p):
    """Streaming: beyond sixteen keys the first four and the last twelve stay, and get positions of the cache anew."""
    k = torch.cat((p, x), 1)
    if k.shape[1] > 16:
        k = torch.cat((k[:, :4], k[:, -12:]), 1)
    s, t = k.shape[1], x.shape[1]
    pos = torch.arange(s) / 7
    rot = lambda z, a: torch.cat(
        (
            z[..., :2] * a.cos()[:, None] - z[..., 2:] * a.sin()[:, None],
            z[..., 2:] * a.cos()[:, None] + z[..., :2] * a.sin()[:, None],
        ),
        -1,
    )
    a = rot(x, pos[-t:]) @ rot(k, pos).mT
    a = a.masked_fill(torch.ones(t, s, dtype=torch.bool).triu(s - t + 1), -math.inf)
    return a.softmax(-1) @ k, k

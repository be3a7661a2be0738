# ruff: noqa: E501 - attacks are written as users write them
"""Serving language models: rotary scalings, caches, masks, sampling filters, experts, packed weights."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

Q = "x:float32[N,T,8]=-4:4"
V = "x:float32[N,V]=-8:8"


def at(*inputs: str, t: tuple, n: int = 1, **more: int) -> tuple:
    """Points at lengths."""
    return tuple(values_at(*inputs, N=n, T=v, **more) for v in t)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions, halves rotated."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


@forward(
    Q,
    dims="N=1:1:2 T=1:24:400",
    kinds=FINITE,
    feeds=at(Q, t=(1, 31, 32, 33, 64, 65, 128, 129, 257, 400)),
    refused="the exported model differs from the module",
)
def A7030DynamicNtk(self, x):
    """Rotary angles whose base grows where the sequence is longer than the 32 trained."""
    t = x.shape[1]
    base = 100.0
    if t > 32:
        base = base * ((2.0 * t / 32) - (2.0 - 1)) ** (8 / (8 - 2))
    inv = 1.0 / (base ** (torch.arange(0, 8, 2, dtype=torch.int64).float() / 8))
    f = torch.outer(torch.arange(t).float(), inv)
    e = torch.cat((f, f), -1)
    return rotate(x, e.cos(), e.sin())


@attack(
    Q,
    "p:int64[N,T]=0:300",
    dims="N=1:1:2 T=1:24:80",
    kinds=FINITE,
    feeds=tuple(
        (
            lambda v=v, t=t: {
                "x": np.random.RandomState(v).randn(1, t, 8).clip(-4, 4).astype(np.float32),
                "p": np.full((1, t), v),
            }
        )
        for v, t in ((0, 1), (63, 64), (64, 64), (300, 5), (15, 16), (16, 17))
    ),
)
class A7031LongRope(nn.Module):
    """Phi's long factors where the largest position passes the trained length; an attention factor by logarithms."""

    def __init__(self):
        super().__init__()
        self.register_buffer("short", torch.tensor([1.0, 1.1, 1.2, 1.3]))
        self.register_buffer("long", torch.tensor([1.0, 2.5, 8.0, 20.0]))

    def forward(self, x, p):
        longest = p.max() + 1
        factor = torch.where(longest > 64, self.long, self.short)
        inv = 1.0 / (factor * 100.0 ** (torch.arange(0, 8, 2).float() / 8))
        f = p[..., None].float() * inv
        e = torch.cat((f, f), -1)
        m = math.sqrt(1 + math.log(4) / math.log(64))
        return rotate(x, e.cos() * m, e.sin() * m)


@attack(
    Q,
    "c:float32[N,C,8]=-4:4",
    dims="N=1:1:2 T=1:8:20 C=0:12:40",
    kinds=FINITE,
    feeds=tuple(
        values_at(Q, "c:float32[N,C,8]=-4:4", N=1, T=t, C=c)
        for t, c in ((1, 0), (20, 0), (1, 40), (4, 12), (5, 12), (16, 1), (3, 13))
    ),
)
class A7032RollingCache(nn.Module):
    """A cache of at most sixteen with two sinks at the front; what is older between leaves."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x, c):
        k = torch.cat((c, self.lin(x)), 1)
        total = k.shape[1]
        if total > 16:
            k = torch.cat((k[:, :2], k[:, total - 14 :]), 1)
        i, j = torch.arange(x.shape[1])[:, None] + max(0, k.shape[1] - x.shape[1]), torch.arange(k.shape[1])
        a = (x @ k.mT / math.sqrt(8)).masked_fill(j > i, torch.finfo(torch.float32).min)
        return a.softmax(-1) @ k, k


@forward(
    Q, "m:bool[N,T]", dims="N=1:2:3 T=1:8:30", kinds=FINITE, feeds=at(Q, "m:bool[N,T]", t=(1, 4, 5, 6, 29, 30), n=3)
)
def A7033SlidingMask(self, x, m):
    """Sliding attention over five with left padding: rows with nothing to see are no numbers, and become zero."""
    t = x.shape[1]
    i = torch.arange(t)
    see = (i[:, None] >= i) & (i[:, None] - i < 5) & m[:, None]
    q = x.view(x.shape[0], t, 2, 4).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=see[:, None])
    y = torch.where(see.any(-1)[:, None, :, None], y, 0.0)
    pos = (m.cumsum(-1) - 1).masked_fill(~m, 1)
    return y.transpose(1, 2).flatten(2), pos


@attack(
    Q,
    "k:float32[N,S,8]=-4:4",
    dims="N=1:1:2 T=1:8:160 S=1:8:160",
    kinds=FINITE,
    feeds=tuple(
        values_at(Q, "k:float32[N,S,8]=-4:4", N=1, T=t, S=s)
        for t, s in ((1, 1), (160, 1), (1, 160), (8, 9), (24, 150), (129, 2))
    ),
)
class A7034Buckets(nn.Module):
    """T5's buckets of both directions with logarithms cut to whole numbers; the mask of a causal product of unequal sides."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(32, 2)

    def forward(self, x, k):
        t, s = x.shape[1], k.shape[1]
        rel = torch.arange(s)[None] - torch.arange(t)[:, None]
        b = (rel > 0).long() * 16
        rel = rel.abs()
        large = 8 + (torch.log(rel.float() / 8) / math.log(128 / 8) * 8).to(torch.long)
        large = torch.min(large, torch.full_like(large, 15))
        b = b + torch.where(rel < 8, rel, large)
        bias = self.bias(b).permute(2, 0, 1)
        q, k = x.view(-1, t, 2, 4).transpose(1, 2), k.view(-1, s, 2, 4).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, k, bias) + F.scaled_dot_product_attention(q, k, k, is_causal=True)
        return y.transpose(1, 2).flatten(2), b


@forward(
    V,
    "p:float32[N]=0:1",
    "k:int64[N]=0:9",
    dims="N=1:2:3 V=4:12:40",
    kinds=FINITE,
    feeds=(
        lambda: {
            "x": np.array([[3, 1, 1, 1, 0]] * 3, np.float32),
            "p": np.array([0, 1, 0.5], np.float32),
            "k": np.array([0, 9, 2]),
        },
        lambda: {**halves(3, 12)(), "p": np.array([0.9, 0.25, 0.99], np.float32), "k": np.array([0, 1, 9])},
    ),
)
def A7035TopPK(self, x, p, k):
    """Top-k where k is not zero, then top-p with the first always in, by sums of a stable sort, scattered back."""
    v = x.shape[1]
    s, i = x.sort(dim=-1, descending=True, stable=True)
    k = torch.where(k == 0, v, k.clamp(max=v))
    s = s.masked_fill(torch.arange(v) >= k[:, None], -torch.inf)
    out = (s.softmax(-1).cumsum(-1) - s.softmax(-1)) > p[:, None] * 0.999
    s = s.masked_fill(out & (torch.arange(v) > 0), -torch.inf)
    return torch.full_like(x, -torch.inf).scatter(1, i, s).softmax(-1)


@forward(
    V,
    "t:int64[N,T]=0:3",
    dims="N=1:1:3 V=4:12:40 T=1:5:12",
    kinds=FINITE,
    feeds=tuple(
        values_at(V, "t:int64[N,T]=0:3", N=2, V=v, T=t) for v, t in ((4, 1), (4, 2), (4, 12), (12, 5), (12, 3))
    ),
)
def A7036Penalties(self, x, t):
    """Penalties for repeats by sign, for counts and presence, and a ban of what would repeat a pair."""
    g = x.gather(1, t)
    x = x.scatter(1, t, torch.where(g < 0, g * 1.3, g / 1.3))
    count = torch.zeros_like(x).scatter_add(1, t, torch.ones_like(t, dtype=x.dtype))
    x = x - 0.2 * count - 0.1 * (count > 0)
    if t.shape[1] >= 2:
        same = t[:, :-1] == t[:, -1:]
        ban = torch.zeros_like(x).scatter_reduce(1, t[:, 1:], same.float(), "amax")
        x = x.masked_fill(ban > 0, float("-inf"))
    return x.log_softmax(-1).nan_to_num(neginf=-100.0)


@attack(
    "x:float32[T,8]=-4:4",
    dims="T=1:12:50",
    kinds=FINITE,
    feeds=(
        *(values_at("x:float32[T,8]=-4:4", T=t) for t in (1, 3, 4, 5, 49, 50)),
        lambda: {"x": np.tile(np.linspace(-4, 4, 8, dtype=np.float32), (50, 1))},
    ),
)
class A7037Experts(nn.Module):
    """Switch routing with a capacity of a quarter more than even: in order of arrival, who comes late goes by."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4, bias=False)
        self.w = nn.Parameter(torch.randn(4, 8, 8) / 3)

    def forward(self, x):
        t = x.shape[0]
        cap = math.ceil(t / 4 * 1.25)
        p, e = self.gate(x).softmax(-1).max(-1)
        hot = F.one_hot(e, 4)
        at_ = ((hot.cumsum(0) - 1) * hot).sum(-1)
        ok = at_ < cap
        slots = (
            torch.zeros(4 * cap + 1, 8).index_copy(0, torch.where(ok, e * cap + at_, 4 * cap), x)[:-1].view(4, cap, 8)
            if t == 1
            else torch.zeros(4 * cap + 1, 8)
            .index_add(0, torch.where(ok, e * cap + at_, 4 * cap), x)[:-1]
            .view(4, cap, 8)
        )
        y = torch.bmm(slots, self.w).view(4 * cap, 8)
        return torch.where(ok[:, None], y[(e * cap + at_).clamp(max=4 * cap - 1)] * p[:, None], x)


@attack(Q, dims="N=1:1:2 T=1:8:20", kinds=FINITE, feeds=at(Q, t=(1, 2, 20)))
class A7038Awq(nn.Module):
    """AWQ's weights of four bits in int32, in an order of their own, negative words; zeros in the same way."""

    def __init__(self):
        super().__init__()
        g = np.random.RandomState(3)
        self.register_buffer(
            "qw", torch.from_numpy(g.randint(-(2**31), 2**31 - 1, (8, 2), dtype=np.int64).astype(np.int32))
        )
        self.register_buffer(
            "qz", torch.from_numpy(g.randint(-(2**31), 2**31 - 1, (2, 2), dtype=np.int64).astype(np.int32))
        )
        self.register_buffer("scale", torch.rand(2, 16).half() / 8)

    def unpack(self, q):
        v = (q[:, :, None] >> torch.arange(0, 32, 4)) & 0xF
        return v.to(torch.int8)[:, :, torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])].flatten(1)

    def forward(self, x):
        w = (self.unpack(self.qw) - self.unpack(self.qz).repeat_interleave(4, 0)).half() * self.scale.repeat_interleave(
            4, 0
        )
        return x @ w.float()


@forward(
    Q,
    dims="N=1:1:2 T=1:8:20",
    kinds=(*FINITE, "large", "mixed-scales"),
    feeds=(
        lambda: {"x": np.linspace(-4, 4, 5 * 8, dtype=np.float32).reshape(1, 5, 8)},
        lambda: {"x": np.zeros((1, 1, 8), np.float32)},
    ),
)
def A7039TokenScales(self, x):
    """Eight bits for each token by its largest magnitude, halves to even, and the product in whole numbers."""
    s = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
    q = (x / s).round().clamp(-128, 127).to(torch.int8)
    y = (q.int().unsqueeze(2) * q.int().unsqueeze(1)).sum(-1, dtype=torch.int32)
    return (y.float() * s * s.mT), q.sum(-1, dtype=torch.int8)


@attack(
    "x:float32[T,8]=-4:4",
    "b:int64[B]=0:6",
    dims="T=1:6:16 B=1:3:5",
    kinds=FINITE,
    feeds=tuple(
        values_at("x:float32[T,8]=-4:4", "b:int64[B]=0:6", T=t, B=b) for t, b in ((1, 1), (8, 2), (9, 3), (16, 5))
    ),
)
class A7041Paged(nn.Module):
    """Pages of four slots through a table of blocks; what the pages do not reach is cut from the mask."""

    def __init__(self):
        super().__init__()
        self.register_buffer("pages", torch.randn(7, 4, 8))

    def forward(self, x, b):
        k = self.pages[b].flatten(0, 1)
        n, s = x.shape[0], k.shape[0]
        m = torch.ones(n, s, dtype=torch.bool).tril(s - n)
        a = (x @ k.T).masked_fill(~m, -torch.inf).softmax(-1)
        return torch.nan_to_num(a) @ k, m.sum(1)


@attack(Q, dims="N=1:1:2 T=1:12:300", kinds=FINITE, feeds=at(Q, t=(1, 64, 65, 128, 129, 192, 256, 257, 300, 211)))
class A7043Padded(nn.Module):
    """A length padded to a bucket of the server's, the positions interpolated where it passes 128, heads' slopes by powers."""

    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 128, 8))

    def forward(self, x):
        t = x.shape[1]
        bucket = next(b for b in (16, 64, 65, 128, 256, 512) if t <= b)
        pos = (
            self.pos[:, :bucket]
            if bucket <= 128
            else F.interpolate(self.pos.mT, bucket, mode="linear", align_corners=True).mT
        )
        y = F.pad(x, (0, 0, 0, bucket - t)) + pos
        slopes = [2 ** (-8 * (i + 1) / 2) for i in range(2)] + [2 ** (-8 * (i + 0.5) / 2) for i in range(2)][:1]
        return y.mean(1), sum(s * y[:, :t] for s in slopes)

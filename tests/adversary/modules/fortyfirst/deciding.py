# ruff: noqa: E501, B023, RUF059 - attacks are written as users write them
"""Decoders: filters of samplers, biases by distance, tables on demand, rings of keys, windows, experts, graphs."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = X4) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=1, T=t) for t in sizes)


@forward("x:float32[N,V]", "p:float32[N,1]=0:1", dims="N=1:2:3 V=1:9:30", kinds=("normal", "halves", "zeros", "ones"), feeds=(lambda: {"x": np.log(np.array([[0.5, 0.25, 0.125, 0.125]], np.float32)), "p": np.array([[0.5]], np.float32)}, lambda: {"x": np.zeros((1, 1), np.float32), "p": np.zeros((1, 1), np.float32)}, lambda: {"x": np.array([[-np.inf, 1, -np.inf, 0]], np.float32), "p": np.ones((1, 1), np.float32)}))
def A4360NucleusFilters(self, x, p):
    """Top-p of transformers by a scatter of what is removed, its mirrored form from the least likely, min-p, and an epsilon cut that keeps one."""
    s, o = x.sort(dim=-1, descending=True, stable=True)
    c = s.softmax(-1).cumsum(-1)
    off = c > p + 0.0625
    off[..., 1:] = off[..., :-1].clone()
    off[..., 0] = False
    y = x.masked_fill(torch.zeros_like(off).scatter(1, o, off), -float("inf"))
    q = x.softmax(-1)
    m = x.masked_fill(q < 0.25 * q.amax(-1, keepdim=True), float("-inf"))
    e = q < 0.0625
    e = e & (x < x.amax(-1, keepdim=True))
    return y, m, torch.where(e, -1e4, x), y.softmax(-1).argmax(-1), (~off).sum(-1)
@forward("x:float32[N,V]", "ids:int64[N,T]=0:4", dims="N=1:2:3 V=5:9:30 T=2:6:12", kinds=("normal", "halves", "zeros"), feeds=(lambda: {"x": np.arange(5, dtype=np.float32)[None] - 2, "ids": np.array([[1, 2, 3, 1, 2]])}, lambda: {"x": np.zeros((1, 6), np.float32), "ids": np.array([[0, 0]])}))
def A4361Penalties(self, x, ids):
    """The k best with k cut by the vocabulary, repetition by sign, counts and presence, no bigram twice, suppressed ids from the end, a forced first."""
    n, v = x.shape
    t = ids.shape[1]
    g = x.gather(1, ids)
    x = x.scatter(1, ids, torch.where(g < 0, g * 1.5, g / 1.5))
    count = F.one_hot(ids, v).sum(1)
    x = x - 0.25 * count - 0.5 * (count > 0)
    hit = ids[:, :-1] == ids[:, -1:]
    ban = (F.one_hot(ids[:, 1:], v) * hit[..., None]).amax(1) > 0
    x = x.masked_fill(ban, float("-inf"))
    x[:, [-1, -2]] = -1e9
    k = min(8, v)
    low = x.topk(k)[0][..., -1, None]
    y = torch.where(x < low, torch.full_like(x, float("-inf")), x)
    return y, ban.sum(1), torch.where(count[:, :1] * 2 > t, torch.tensor(1), y.argmax(1))
@attack(X4, "p:int64[N,T]=0:300", dims="N=1:1:2 T=1:20:60", kinds=FINITE[:3], feeds=tuple(values_at(X4, "p:int64[N,T]=0:300", N=1, T=t) for t in (1, 2, 60)))
class A4362RelativeBuckets(nn.Module):
    """T5's buckets by logs in both kinds, by places of an input and by the sizes, DeBERTa's logs by sign and ceil."""
    def __init__(self):
        super().__init__()
        self.both, self.past = nn.Embedding(16, 2), nn.Embedding(16, 2)
    def bucket(self, d, both, n=16, far=64):
        r = 0
        if both:
            n //= 2
            r = r + (d > 0).to(torch.long) * n
            d = d.abs()
        else:
            d = -torch.min(d, torch.zeros_like(d))
        e = n // 2
        big = e + (torch.log(d.float() / e) / math.log(far / e) * (n - e)).to(torch.long)
        return r + torch.where(d < e, d, torch.min(big, torch.full_like(big, n - 1)))
    def forward(self, x, p):
        i = torch.arange(x.shape[1])
        a = self.both(self.bucket(i[None] - i[:, None], True)).permute(2, 0, 1)
        b = self.past(self.bucket(p[:, None] - p[:, :, None], False)).permute(0, 3, 1, 2)
        d = i[:, None] - i
        s = torch.sign(d)
        m = torch.where((d < 4) & (d > -4), 3, d.abs())
        lp = torch.ceil(torch.log(m / 4) / math.log(63 / 4) * 3) + 4
        deb = torch.where(m <= 4, d.type_as(lp), lp * s).long()
        w = (x @ x.mT)[:, None] + a + b
        return w.softmax(-1) @ x[:, None], deb, self.bucket(p, False)
@attack(X4, dims="N=1:1:2 T=1:9:40", kinds=FINITE[:4], feeds=lengths(1, 16, 17, 40, 3))
class A4363TableOnDemand(nn.Module):
    """A sinusoidal table that is made for sixteen places and made anew, longer, when a sequence needs it; padding at zero as fairseq has it."""
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", self.make(16), persistent=False)
    @staticmethod
    def make(n):
        f = torch.exp(torch.arange(2) * -(math.log(10000) / 1))
        a = torch.arange(n)[:, None] * f[None]
        t = torch.cat([a.sin(), a.cos()], 1)
        t[0] = 0
        return t
    def forward(self, x):
        t = x.size(1)
        if self.pe.size(0) < t + 1:
            self.pe = self.make(t + 1)
        keep = x.abs().sum(-1).ne(0).int()
        pos = (keep.cumsum(1) * keep).long()
        return x * 2 + self.pe.index_select(0, pos.view(-1)).view(x.shape), x + self.pe[:t]
@attack("x:float32[N,4]", "k:float32[N,8,4]", "v:float32[N,8,4]", "pos:int64[N]=0:40", dims="N=1:2:3", kinds=FINITE[:5], feeds=tuple((lambda p: lambda: {"x": np.ones((1, 4), np.float32), "k": np.arange(32, dtype=np.float32).reshape(1, 8, 4) / 9, "v": np.arange(32, dtype=np.float32).reshape(1, 8, 4), "pos": np.array([p])})(p) for p in (0, 6, 7, 8, 9, 15, 16, 40)))
class A4364RingOfKeys(nn.Module):
    """A ring of eight: written at the position modulo eight by scatter and by a mask, ages by a remainder, only what was written is seen."""
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 4), nn.Linear(4, 8)
    def forward(self, x, k, v, pos):
        q = self.q(x)[:, None]
        kn, vn = self.kv(x).chunk(2, -1)
        slot = pos % 8
        k = k.scatter(1, slot.view(-1, 1, 1).expand(-1, 1, 4), kn[:, None])
        here = torch.arange(8) == slot[:, None]
        v = torch.where(here[..., None], vn[:, None], v)
        age = (slot[:, None] - torch.arange(8)) % 8
        ok = age <= pos[:, None]
        s = (q @ k.mT)[:, 0] / 2 - 0.1 * age
        return (s.masked_fill(~ok, torch.finfo(s.dtype).min).softmax(-1)[:, None] @ v)[:, 0], k, v, pos + 1, age
@attack("q:float32[N,6,T,4]", "k:float32[N,6,S,4]", dims="N=1:1:2 T=1:4:8 S=8:10:20", kinds=FINITE[:4])
class A4365Alibi(nn.Module):
    """Slopes for six heads (powers of two and the odd ones between), distances from the end of the keys, a causal mask by the offset, exact zero on the diagonal."""
    def __init__(self):
        super().__init__()
        def slopes(n):
            if math.log2(n).is_integer():
                s = 2 ** (-(2 ** -(math.log2(n) - 3)))
                return [s * s**i for i in range(n)]
            c = 2 ** math.floor(math.log2(n))
            return slopes(c) + slopes(2 * c)[0::2][: n - c]
        self.register_buffer("m", torch.tensor(slopes(6)).view(6, 1, 1))
    def forward(self, q, k):
        t, s = q.size(-2), k.size(-2)
        off = s - t
        i, j = torch.arange(t)[:, None] + off, torch.arange(s)[None]
        b = -(i - j).abs() * self.m
        mask = torch.triu(torch.full((t, s), float("-inf")), diagonal=1 + off)
        w = F.softmax(torch.baddbmm((b + mask).expand(q.shape[0], -1, -1, -1).flatten(0, 1), q.flatten(0, 1), k.flatten(0, 1).mT, beta=1.0, alpha=0.5), -1)
        return w.unflatten(0, (-1, 6)), b, F.scaled_dot_product_attention(q, k, k, attn_mask=b + mask)
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 3, 4, 5, 7, 8, 23, 24))
class A4366SlidingBlocks(nn.Module):
    """Longformer's way: padded to blocks of four by the size, each sees its neighbours by unfold, a band of three, what was padded is hidden."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
    def forward(self, x):
        n, t, d = x.shape
        pad = (4 - t % 4) % 4
        q, k, v = self.qkv(F.pad(x, (0, 0, 0, pad))).split(d, -1)
        b = (t + pad) // 4
        q = q.reshape(n, b, 4, d)
        k, v = (F.pad(y, (0, 0, 4, 4)).unfold(1, 12, 4).transpose(-1, -2) for y in (k, v))
        real = torch.arange(t + pad) < t
        real = F.pad(real, (4, 4)).unfold(0, 12, 4)
        i, j = torch.arange(4)[:, None], torch.arange(12)[None] - 4
        m = ((i - j).abs() <= 3)[None] & real[:, None]
        s = (q @ k.mT / d**0.5).masked_fill(~m, -1e9)
        return (s.softmax(-1) @ v).reshape(n, b * 4, d)[:, :t], m.sum((1, 2))
@attack(X4, dims="N=1:1:2 T=1:9:24", kinds=FINITE[:4], feeds=lengths(1, 2, 3, 5, 23, 24))
class A4367ExpertsWithRoom(nn.Module):
    """GShard: two of four experts, room by a ceil of the number of tokens, places by running sums of one-hots, who finds no room goes on unchanged."""
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 4, bias=False)
        self.w1, self.w2 = nn.Parameter(torch.randn(4, 4, 6) * 0.4), nn.Parameter(torch.randn(4, 6, 4) * 0.4)
    def forward(self, x):
        n, t, d = x.shape
        y = x.reshape(-1, d)
        s = y.shape[0]
        room = max(math.ceil(s * 2 / 4 * 1.25), 2)
        p = self.gate(y).softmax(-1)
        top, i = p.topk(2, -1)
        top = top / top.sum(-1, keepdim=True)
        hot = F.one_hot(i, 4)
        flat = hot.transpose(0, 1).reshape(-1, 4)
        place = ((flat.cumsum(0) - 1) * flat).sum(-1).view(2, s).T
        ok = place < room
        disp = torch.einsum("ske,skc->sec", hot.float() * ok[..., None], F.one_hot(place.clamp(max=room - 1), room).float())
        comb = torch.einsum("ske,skc,sk->sec", hot.float() * ok[..., None], F.one_hot(place.clamp(max=room - 1), room).float(), top)
        z = torch.einsum("sec,sd->ecd", disp, y)
        z = torch.bmm(F.gelu(torch.bmm(z, self.w1)), self.w2)
        out = torch.einsum("sec,ecd->sd", comb, z)
        return torch.where(ok.any(-1, keepdim=True), out, y).view(n, t, d), (p.mean(0) * hot.float().mean((0, 1))).sum() * 16, ok.sum()
@attack("x:float32[V,4]", "e:int64[2,E]=0:4", dims="V=5:7:12 E=1:9:30", kinds=FINITE[:4], feeds=(lambda: {"x": np.eye(5, 4, dtype=np.float32), "e": np.array([[0, 0, 0, 4], [1, 1, 1, 1]])},))
class A4368GraphAttention(nn.Module):
    """GAT: scores of edges, a softmax over those that end in one node by scatter, nodes without an edge, degrees, mean and maximum of neighbours, self loops."""
    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Linear(4, 6, bias=False), nn.Parameter(torch.randn(2, 6))
    def forward(self, x, e):
        n = x.size(0)
        loops = torch.arange(n).repeat(2, 1)
        full = torch.cat([e, loops], 1)
        h = self.w(x)
        src, dst = full
        s = F.leaky_relu((h @ self.a[0])[src] + (h @ self.a[1])[dst], 0.2)
        top = torch.full((n,), float("-inf")).scatter_reduce(0, dst, s, "amax")
        w = (s - top[dst]).exp()
        w = w / torch.zeros(n).scatter_add(0, dst, w)[dst]
        out = torch.zeros(n, 6).index_add(0, dst, h[src] * w[:, None])
        deg = torch.zeros(n).scatter_add(0, e[1], torch.ones(e.shape[1]))
        inv = deg.pow(-0.5)
        inv[inv == float("inf")] = 0
        big = torch.zeros(n, 4).scatter_reduce(0, e[1][:, None].expand(-1, 4), x[e[0]], "amax", include_self=False)
        return out, torch.zeros(n, 4).index_add(0, e[1], x[e[0]]) / deg.clamp(min=1)[:, None], inv, big

# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Sequences: lengths that may be zero, beams in dictionaries, scans, edit distances, random fields, transport, adapters."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = X4) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=1, T=t) for t in sizes)


@attack(X4, "lens:int64[N]=0:24", dims="N=2:3:4 T=24", kinds=FINITE[:4], feeds=(lambda: {"x": np.arange(192, dtype=np.float32).reshape(2, 24, 4) / 50, "lens": np.array([0, 24])}, lambda: {"x": np.arange(192, dtype=np.float32).reshape(2, 24, 4) / 50, "lens": np.array([1, 2])}))
class A4369LengthsThatMayBeZero(nn.Module):
    """Attention pooling, statistics, last and first k rows by lengths of which some are zero; ids of rows, offsets, and an order by length and back."""
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 1)
    def forward(self, x, lens):
        t = x.shape[1]
        m = torch.arange(t) < lens[:, None]
        s = self.a(x)[..., 0].masked_fill(~m, float("-inf"))
        w = torch.nan_to_num(s.softmax(-1))
        mean = (x * m[..., None]).sum(1) / lens.clamp(min=1)[:, None]
        sd = (((x - mean[:, None]) ** 2 * m[..., None]).sum(1) / (lens - 1).clamp(min=1)[:, None]).sqrt()
        last = x[torch.arange(x.shape[0]), lens - 1]
        i = lens[:, None] - 3 + torch.arange(3)
        tail = torch.where((i >= 0)[..., None], x.gather(1, i.clamp(min=0)[..., None].expand(-1, -1, 4)), 0.0)
        order = lens.argsort(descending=True, stable=True)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        top = x.masked_fill(~m[..., None], float("-inf")).amax(1)
        return (w[..., None] * x).sum(1), sd, last, tail, x[order][back], F.pad(lens.cumsum(0), (1, 0)), torch.where(lens[:, None] > 0, top, 0.0)
@attack("x:float32[N,T,6]", dims="N=1:1:2 T=1:5:9", kinds=("normal", "halves", "zeros"), feeds=(normal(1, 1, 6), normal(1, 9, 6), halves(2, 9, 6)), refused="the path through the module depends on the size")
class A4370BeamInADictionary(nn.Module):
    """A beam of two over given scores: states in a dictionary of lists, ids that grow by cat, back pointers by gather, finished ones frozen."""
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(6, 6)
    def forward(self, x):
        n = x.shape[0]
        beam = {"ids": torch.zeros(n, 2, 1, dtype=torch.long), "score": torch.tensor([0.0, -1e9]).repeat(n, 1), "done": torch.zeros(n, 2, dtype=torch.bool)}
        for t in range(x.shape[1]):
            lp = (x[:, t, None] + self.e(beam["ids"][:, :, -1])).log_softmax(-1)
            stop = torch.full((6,), -1e9)
            stop[0] = 0
            lp = torch.where(beam["done"][..., None], stop, lp)
            s, at = (beam["score"][..., None] + lp).flatten(1).topk(2, 1)
            b, tok = torch.div(at, 6, rounding_mode="floor"), at % 6
            ids = beam["ids"].gather(1, b[..., None].expand(-1, -1, t + 1))
            beam = {"ids": torch.cat([ids, tok[..., None]], -1), "score": s, "done": beam["done"].gather(1, b) | (tok == 0)}
        return beam["ids"][..., 1:], beam["score"] / (beam["ids"] != 0).sum(-1).clamp(min=1) ** 0.6
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 24), refused="the path through the module depends on the size")
class A4371MinimalGru(nn.Module):
    """minGRU in parallel by logcumsumexp and both directions, beside its own loop; g as a piecewise function and its log."""
    def __init__(self):
        super().__init__()
        self.f, self.b = nn.Linear(4, 8), nn.Linear(4, 8)
    def scan(self, layer, x):
        h, gate = layer(x).chunk(2, -1)
        lz, lc = -F.softplus(-gate), -F.softplus(gate)
        lg = torch.where(h >= 0, (F.relu(h) + 0.5).log(), -F.softplus(-h))
        a = F.pad(lc.cumsum(1), (0, 0, 1, 0))
        v = torch.cat([torch.full_like(lg[:, :1], math.log(0.5)), lz + lg], 1)
        return (a + (v - a).logcumsumexp(1)).exp()[:, 1:]
    def forward(self, x):
        y = torch.cat([self.scan(self.f, x), self.scan(self.b, x.flip(1)).flip(1)], -1)
        h, gate = self.f(x).chunk(2, -1)
        g, z, s, out = torch.where(h >= 0, h + 0.5, h.sigmoid()), gate.sigmoid(), 0.5, []
        for t in range(x.size(1)):
            s = (1 - z[:, t]) * s + z[:, t] * g[:, t]
            out.append(s)
        return y, torch.stack(out, 1)
@attack(X4, dims="N=1:1:2 T=1:9:24", kinds=FINITE[:4], feeds=lengths(1, 2, 3, 24))
class A4372SelectiveScan(nn.Module):
    """Mamba's reference: a causal convolution cut to the length, steps by softplus, a state of three for each channel, a skip, a gate; the last state as well."""
    def __init__(self):
        super().__init__()
        self.inp, self.conv = nn.Linear(4, 8, bias=False), nn.Conv1d(4, 4, 3, groups=4, padding=2)
        self.xp, self.dt, self.out = nn.Linear(4, 8, bias=False), nn.Linear(2, 4), nn.Linear(4, 4, bias=False)
        self.a_log, self.d = nn.Parameter(torch.arange(1.0, 4).repeat(4, 1).log()), nn.Parameter(torch.ones(4))
    def forward(self, x):
        b, length, _ = x.shape
        u, res = self.inp(x).split([4, 4], -1)
        u = F.silu(self.conv(u.mT)[..., :length].mT)
        dl, bm, cm = self.xp(u).split([2, 3, 3], -1)
        dl = F.softplus(self.dt(dl))
        da = torch.exp(torch.einsum("bld,dn->bldn", dl, -self.a_log.exp()))
        du = torch.einsum("bld,bln,bld->bldn", dl, bm, u)
        s, ys = torch.zeros(b, 4, 3), []
        for i in range(length):
            s = da[:, i] * s + du[:, i]
            ys.append(torch.einsum("bdn,bn->bd", s, cm[:, i]))
        return self.out((torch.stack(ys, 1) + u * self.d) * F.silu(res)), s
@forward("q:float32[N,T,4]", "k:float32[N,T,4]", "v:float32[N,T,4]", dims="N=1:1:2 T=1:9:25", kinds=FINITE[:4], feeds=tuple(values_at("q:float32[N,T,4]", "k:float32[N,T,4]", "v:float32[N,T,4]", N=1, T=t) for t in (1, 4, 5, 24, 25)))
def A4373LinearAttentionInChunks(self, q, k, v):
    """Chunks of four behind a pad: within by a lower triangle, between by a running sum of states moved by one, a normaliser, cut at the end."""
    n, t, d = q.shape
    pad = -t % 4
    q, k = F.elu(q) + 1, F.elu(k) + 1
    q, k, v = (F.pad(y, (0, 0, 0, pad)).unflatten(1, (-1, 4)) for y in (q, k, v))
    kv = torch.einsum("nbcd,nbce->nbde", k, v).cumsum(1)
    ks = k.sum(2).cumsum(1)
    kv, ks = (torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1) for y in (kv, ks))
    a = (q @ k.mT).tril()
    z = a.sum(-1) + torch.einsum("nbcd,nbd->nbc", q, ks)
    y = (a @ v + q @ kv) / (z[..., None] + 1e-4)
    return y.flatten(1, 2)[:, :t], kv[:, -1]
@forward("a:int64[N,T]=0:3", "b:int64[N,5]=0:3", dims="N=1:1:3 T=1:5:12", feeds=(lambda: {"a": np.array([[0, 1, 2, 3, 0]]), "b": np.array([[0, 1, 2, 3, 0]])}, lambda: {"a": np.array([[3, 3, 3]]), "b": np.array([[0, 1, 2, 3, 0]])}), refused="the path through the module depends on the size")
def A4374EditDistance(self, a, b):
    """Levenshtein over a moving length: a row from the one before, insertions by a running minimum less the place; the longest common part of both kinds."""
    n, w = b.shape
    row = torch.arange(w + 1).expand(n, -1)
    lcs, sub, best = torch.zeros(n, w + 1, dtype=torch.long), torch.zeros(n, w + 1, dtype=torch.long), torch.zeros(n, dtype=torch.long)
    for i in range(a.shape[1]):
        same = a[:, i : i + 1] == b
        new = torch.minimum(row[:, 1:] + 1, row[:, :-1] + (~same).long())
        new = torch.cat([torch.full((n, 1), i + 1), new], 1)
        row = (new - torch.arange(w + 1)).cummin(1).values + torch.arange(w + 1)
        lcs = F.pad(torch.where(same, lcs[:, :-1] + 1, lcs[:, 1:]).cummax(1).values, (1, 0))
        sub = F.pad(torch.where(same, sub[:, :-1] + 1, 0), (1, 0))
        best = torch.maximum(best, sub.amax(1))
    return row[:, -1], lcs[:, -1], best, row[:, -1] / max(a.shape[1], w)
@attack("x:float32[N,T,4]", "y:int64[N,T]=0:3", "m:bool[N,T]", dims=ROWS, kinds=FINITE[:4], refused="the path through the module depends on the size")
class A4375RandomField(nn.Module):
    """torchcrf: the score of a path, the partition, the best path backwards, all by a mask that is on at the first row."""
    def __init__(self):
        super().__init__()
        self.s, self.e, self.tr = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4, 4))
    def forward(self, x, y, m):
        n, t, _ = x.shape
        m = m.cumprod(1).bool()
        m = torch.cat([torch.ones_like(m[:, :1]), m[:, 1:]], 1)
        sc = self.s[y[:, 0]] + x[:, 0].gather(1, y[:, :1])[:, 0]
        z, v, hist = self.s + x[:, 0], self.s + x[:, 0], []
        for i in range(1, t):
            step = self.tr[y[:, i - 1], y[:, i]] + x[:, i].gather(1, y[:, i : i + 1])[:, 0]
            sc = sc + step * m[:, i]
            z = torch.where(m[:, i : i + 1], torch.logsumexp(z[:, :, None] + self.tr + x[:, i, None], 1), z)
            best, at = (v[:, :, None] + self.tr).max(1)
            hist.append(torch.where(m[:, i : i + 1], at, torch.arange(4)))
            v = torch.where(m[:, i : i + 1], best + x[:, i], v)
        last = m.sum(1) - 1
        sc = sc + self.e[y.gather(1, last[:, None])[:, 0]]
        k = (v + self.e).argmax(1)
        path = [k]
        for h in reversed(hist):
            k = h.gather(1, k[:, None])[:, 0]
            path.insert(0, k)
        return sc - torch.logsumexp(z + self.e, 1), torch.stack(path, 1)
@attack("s:float32[N,A,B]", dims="N=1:1:2 A=1:4:7 B=1:5:7", kinds=FINITE[:5])
class A4376Transport(nn.Module):
    """SuperGlue: a dustbin on both sides, ten rounds of Sinkhorn in logs with marginals by the sizes, mutual best above a fifth."""
    def __init__(self):
        super().__init__()
        self.bin = nn.Parameter(torch.tensor(1.0))
    def forward(self, s):
        n, a, b = s.shape
        bins0, bins1 = self.bin.expand(n, a, 1), self.bin.expand(n, 1, b)
        z = torch.cat([torch.cat([s, bins0], -1), torch.cat([bins1, self.bin.expand(n, 1, 1)], -1)], 1)
        one = s.new_tensor(1)
        norm = -((a * one) + (b * one)).log()
        mu = torch.cat([norm.expand(a), (b * one).log()[None] + norm])
        nu = torch.cat([norm.expand(b), (a * one).log()[None] + norm])
        u, v = torch.zeros(n, a + 1), torch.zeros(n, b + 1)
        for _ in range(10):
            u = mu - torch.logsumexp(z + v[:, None], 2)
            v = nu - torch.logsumexp(z + u[..., None], 1)
        z = z + u[..., None] + v[:, None] - norm
        i0, i1 = z[:, :-1, :-1].argmax(2), z[:, :-1, :-1].argmax(1)
        mutual = torch.arange(a)[None] == i1.gather(1, i0)
        p = torch.where(mutual, z[:, :-1, :-1].amax(2).exp(), 0.0)
        return z, torch.where(mutual & (p > 0.2), i0, -1)
@forward("q:float32[N,A]", "c:int32[N,A]=0:5", "legal:bool[N,A]", dims="N=1:2:3 A=1:5:9", kinds=("normal", "halves", "zeros"))
def A4377ChoiceWithBounds(self, q, c, legal):
    """UCB where an arm that was never drawn is infinite, PUCT by a share, illegal arms off, ties to the first, no legal arm at all."""
    n = c.sum(1, keepdim=True)
    u = q + torch.sqrt(2 * torch.log(n.float()) / c)
    u = torch.where(c == 0, float("inf"), u)
    pu = q.softmax(1) * n.sqrt() / (1 + c)
    v = torch.where(legal, u, float("-inf"))
    p = (pu * legal) / (pu * legal).sum(1, keepdim=True)
    return v.argmax(1), torch.where(legal.any(1), v.amax(1), 0.0), p.nan_to_num(1.0 / q.shape[1]), v
@attack(X4, dims=ROWS, kinds=FINITE[:4], feeds=lengths(1, 2, 24), refused="is defined twice")
class A4378OneUpdateOfStatistics(nn.Module):
    """Chan's merge of stored mean and variance with those of the call, which are returned and not stored; a debiased average; cosines of zeros."""
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("m2", torch.ones(4) * 5)
        self.register_buffer("count", torch.tensor(7, dtype=torch.long))
    def forward(self, x):
        y = x.flatten(0, 1)
        k = y.shape[0]
        d = y.mean(0) - self.mean
        total = self.count + k
        mean = self.mean + d * k / total
        m2 = self.m2 + y.var(0, unbiased=False) * k + d.square() * self.count * k / total
        ema = torch.lerp(self.mean, y.mean(0), 0.1) / (1 - 0.9 ** (self.count + 1))
        return (x - mean) / (m2 / (total - 1)).sqrt().clamp(min=1e-3), total, ema, F.cosine_similarity(x, self.mean.expand_as(x), -1), F.cosine_similarity(x[:, :, None], x[:, None], -1)
@attack(X4, "who:int64[N]=0:2", dims=ROWS, kinds=FINITE[:4])
class A4379AdaptersByExample(nn.Module):
    """Three LoRA adapters, one for each example by its id, two merged into a copy of the weights by shares, DoRA's magnitudes."""
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 5)
        self.a, self.b = nn.Parameter(torch.randn(3, 2, 4)), nn.Parameter(torch.randn(3, 5, 2))
        self.mag = nn.Parameter(torch.rand(5, 1) + 0.5)
    def forward(self, x, who):
        y = self.base(x) + (x @ self.a[who].mT) @ self.b[who].mT * (8 / 2)
        w = self.base.weight.clone()
        for i, s in enumerate((0.25, -0.5)):
            w += s * self.b[i] @ self.a[i]
        v = self.mag * w / w.norm(p=2, dim=1, keepdim=True)
        return y, F.linear(x, w, self.base.bias), F.linear(x, v), torch.linalg.vector_norm(w, dim=1)

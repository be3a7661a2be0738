# ruff: noqa: E501 - attacks are written as users write them
"""Language: attention in its forms, caches, positions, beams, masks, tied heads."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import seq, two

X4, MT = "x:float32[N,T,4]", "m:bool[N,T]"
IDS = "i:int64[N,T]=0:99"
Q, K = "q:float32[N,T,4]", "k:float32[N,S,4]"
MS = "m:bool[N,S]"
RARE = tuple((lambda a=a: {"i": np.array(a)}) for a in ([[99, 99, 99]], [[0, 0, 0, 0]], [[1, 0, 0, 0], [5, 98, 99, 0]], [[0, 1, 0, 1, 0]], [[7] * 37]))


@attack(IDS, **seq(IDS, own=RARE), refused="run again")
class A6597TableOfMaxNorm(nn.Module):
    """An embedding with max_norm that is tied to the head: rows shrink when they are looked up."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 4, max_norm=1.0)

    def forward(self, i):
        e = self.emb(i)
        return e @ self.emb.weight.mT


@attack(IDS, **seq(IDS, own=RARE))
class A6598MaxNormAlone(nn.Module):
    """An embedding with max_norm and nothing else that reads its rows."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 4, max_norm=1.0, padding_idx=0)

    def forward(self, i):
        return self.emb(i)


@forward(Q, K, MS, **two(Q, K, MS, zero=True))
def A6599CrossWithNothing(self, q, k, m):
    """Cross attention to a memory that may be empty or wholly masked; rows of nothing give zeros."""
    s = q @ k.mT / 2
    s = s.masked_fill(~m[:, None], -torch.inf)
    p = torch.nan_to_num(s.softmax(-1))
    return p @ k, torch.logsumexp(s, -1).clamp(min=-1e4), m.any(1), m.sum(1)


@forward(Q, K, **two(Q, K))
def A6600CausalOfTwoLengths(self, q, k):
    """is_causal with unlike lengths: torch aligns the triangle at the top left."""
    return F.scaled_dot_product_attention(q[:, None], k[:, None], k[:, None], is_causal=True)[:, 0], F.scaled_dot_product_attention(q, k, k, attn_mask=torch.ones(q.shape[1], k.shape[1]).tril(k.shape[1] - q.shape[1]).bool(), scale=0.3)


@attack(X4, MT, **seq(X4, MT), refused="the module itself raises")
class A6601Encoder(nn.Module):
    """nn.TransformerEncoder in eval with a padding mask and nested tensors allowed."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, 0.1, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True)

    def forward(self, x, m):
        return self.enc(x, src_key_padding_mask=~m)


@attack(X4, **seq(X4), refused="forward leaves")
class A6602DynamicNtk(nn.Module):
    """RoPE whose base grows with the longest length seen so far, and goes back for short ones."""

    def __init__(self):
        super().__init__()
        self.seen = 16

    def forward(self, x):
        t = x.shape[1]
        if t > self.seen:
            self.seen = t
        elif t <= 16:
            self.seen = 16
        base = 100.0 * ((2 * self.seen / 16) - 1) ** 2
        f = torch.arange(t)[:, None] / base ** torch.tensor([0.0, 0.5])
        c = torch.polar(torch.ones_like(f), f)
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (2, 2))) * c).flatten(-2)


@attack(X4, **seq(X4), refused="from its first call")
class A6603TableGrows(nn.Module):
    """Sinusoids that are extended by half when a longer text comes, scaled by the length of the table."""

    def __init__(self):
        super().__init__()
        self.register_buffer("pe", self.build(24), persistent=False)

    @staticmethod
    def build(n):
        return torch.sin(torch.arange(n)[:, None] * torch.tensor([1.0, 0.5, 0.25, 0.125])) / math.sqrt(n)

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            self.pe = self.build(x.shape[1] * 3 // 2)
        return x + self.pe[: x.shape[1]]


@lru_cache(maxsize=2)
def _slopes(t: int, heads: int) -> torch.Tensor:
    n = 2 ** math.floor(math.log2(heads))
    s = [2 ** (-8 * (k + 1) / n) for k in range(n)]
    s += [2 ** (-4 * (2 * k + 1) / n) for k in range(heads - n)]
    return torch.tensor(s)[:, None, None] * -(torch.arange(t)[:, None] - torch.arange(t)).abs()


@forward(X4, **seq(X4))
def A6604AlibiCached(self, x):
    """ALiBi for six heads out of an lru_cache of two entries that is keyed by the length."""
    s = (x @ x.mT)[:, None] + _slopes(x.shape[1], 6)
    return s.softmax(-1).mean(1) @ x


@attack(X4, **seq(X4))
class A6605BucketsOfT5(nn.Module):
    """T5's relative buckets, both ways, with logarithms cut to whole numbers."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 2)

    def forward(self, x):
        t = x.shape[1]
        r = torch.arange(t)[None] - torch.arange(t)[:, None]
        b = (r > 0).long() * 8
        n = r.abs()
        far = 4 + (torch.log(n.float() / 4) / math.log(32 / 4) * 4).long()
        b = b + torch.where(n < 4, n, far.clamp(max=7))
        return (x @ x.mT + self.bias(b).mean(-1)).softmax(-1) @ x


P = "p:float32[N,S,4]"


@forward(X4, P, **two(X4, P, zero=True))
def A6606CacheInCacheOut(self, x, p):
    """A step with a cache that comes in, may be empty, and goes out, kept to the last eight."""
    k = torch.cat((p, x), 1)
    t, s = x.shape[1], k.shape[1]
    m = torch.arange(s) <= torch.arange(t)[:, None] + (s - t)
    m = m & (torch.arange(s) > torch.arange(t)[:, None] + (s - t) - 5)
    y = ((x @ k.mT) / 2).masked_fill(~m, torch.finfo(torch.float32).min).softmax(-1) @ k
    return y, k[:, -8:]


LONGMEM = "p:float32[N,S,4]"


@forward(IDS, **seq(IDS, own=RARE))
def A6607PackedTexts(self, i):
    """Texts packed in a row and cut at zeros: their numbers, positions from the last cut, a block mask."""
    t = i.shape[1]
    cut = i == 0
    doc = cut.cumsum(1) - cut.long()
    a = torch.arange(t)
    start = torch.where(F.pad(cut, (1, 0))[:, :-1] | (a == 0), a, 0).cummax(1).values
    m = (doc[:, :, None] == doc[:, None]) & (a[:, None] >= a)
    return a - start, m, m.sum(-1)


@forward(IDS, **seq(IDS, low=4, own=RARE))
def A6608NoRepeatedPairs(self, i):
    """Scores of the next token: what was said is penalised, pairs that were there are banned, top-p is cut."""
    lg = torch.sin(torch.arange(100) * 0.37)[None] * (1 + i.float().mean(1, keepdim=True) / 50)
    s = lg.gather(1, i)
    lg = lg.scatter(1, i, torch.where(s < 0, s * 1.2, s / 1.2))
    ban = (i[:, :-1] == i[:, -1:])
    lg = lg - torch.zeros_like(lg).scatter_add(1, i[:, 1:], ban.float() * 1e4).clamp(max=1e4)
    v, o = lg.softmax(-1).sort(descending=True, stable=True)
    keep = v.cumsum(-1) - v < 0.9
    return torch.zeros_like(v).scatter(1, o, v * keep), lg.argmax(-1)


@forward(IDS, **seq(IDS, own=RARE))
def A6609LastOfPads(self, i):
    """The logits of the last token that is no pad, where a text of pads alone takes the last place (as -1 does)."""
    e = torch.stack((i.float(), i.float().sqrt(), (i % 7).float()), -1)
    at = (i == 0).int().argmax(-1) - 1
    return e[torch.arange(i.shape[0]), at], at % i.shape[1]


@forward(X4, **seq(X4), refused="depends on the size")
def A6610ChunksOfFour(self, x):
    """Local attention in blocks: as many as chunk(4) makes, which are fewer for some lengths."""
    out = [(c @ c.mT).softmax(-1) @ c * (n + 1) for n, c in enumerate(x.chunk(4, dim=1))]
    return torch.cat(out, 1) / len(out)


@attack(X4, MT, **seq(X4, MT))
class A6611Pooled(nn.Module):
    """Multihead attention of a learnt query with a padding mask and averaged weights; the first token is always seen."""

    def __init__(self):
        super().__init__()
        self.q = nn.Parameter(torch.randn(1, 1, 4))
        self.att = nn.MultiheadAttention(4, 2, batch_first=True, add_zero_attn=True, add_bias_kv=True)

    def forward(self, x, m):
        m = m.clone()
        m[:, 0] = True
        y, w = self.att(self.q.expand(x.shape[0], -1, -1), x, x, key_padding_mask=~m)
        return y, w

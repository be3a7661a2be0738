# ruff: noqa: E501, UP045 - attacks are written as users write them
"""Text products: attention with masks of every kind, positions, sampling, bags, ranks, embeddings with hashes."""

from __future__ import annotations

import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("q:float32[N,4,L,6]=-2:2", "k:float32[N,2,S,6]=-2:2", "v:float32[N,2,S,5]=-2:2", dims="N=1:1:2 L=1:3:5 S=1:4:6", kinds=FINITE)
def A7304GqaCausalRectangular(self, q, k, v):
    """SDPA with grouped heads and is_causal where L differs from S (the mask is aligned top left), and one with a scale and a float mask."""
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    b = torch.tril(torch.ones(q.size(-2), k.size(-2), dtype=torch.bool), diagonal=k.size(-2) - q.size(-2))
    bias = torch.zeros_like(b, dtype=torch.float).masked_fill(~b, -1e4)
    return a, F.scaled_dot_product_attention(q[:, ::2], k, v, attn_mask=bias, scale=0.5)


@attack("x:float32[L,N,8]=-2:2", "pad:bool[N,L]", dims="N=1:2:3 L=1:4:6", kinds=FINITE, feeds=())
class A7305MhaAddZero(nn.Module):
    """nn.MultiheadAttention with bias_k, add_zero_attn, another width of keys, a padding mask of booleans and weights per head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.a = nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True, kdim=8, vdim=8)

    def forward(self, x, pad):
        m = nn.Transformer.generate_square_subsequent_mask(x.size(0))
        y, w = self.a(x, x, x.flip(0), key_padding_mask=pad, attn_mask=m, average_attn_weights=False)
        return y, w


@attack("ids:int64[N,T]=0:11", dims="N=1:2:3 T=1:5:9")
class A7306Bags(nn.Module):
    """Embedding bags of sum with weights, mean with padding_idx, max; an embedding with max_norm in a frozen copy, hashed n-grams."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.s = nn.EmbeddingBag(12, 4, mode="sum")
        self.m = nn.EmbeddingBag(12, 4, mode="mean", padding_idx=0)
        self.x = nn.EmbeddingBag(12, 4, mode="max")

    def forward(self, ids):
        w = 1.0 / (1 + torch.arange(ids.size(1))).expand_as(ids)
        prev = ids.roll(1, 1)
        prev[:, 0] = 0
        gram = (ids * 31 + prev * 17) % 12
        return self.s(ids, per_sample_weights=w), self.m(ids), self.x(gram)


@forward("x:float32[N,V]=-5:5", "u:float32[N]=0:0.999", dims="N=1:2:4 V=3:7:12", kinds=FINITE)
def A7307NucleusSampling(self, x, u):
    """Top-p and top-k filters with the first token always kept, min-p, a repetition penalty by gather and scatter, inverse CDF by searchsorted."""
    s, i = x.sort(dim=-1, descending=True, stable=True)
    c = s.softmax(-1).cumsum(-1)
    rm = c > 0.8
    rm[..., 1:] = rm[..., :-1].clone()
    rm[..., 0] = False
    y = x.masked_fill(rm.scatter(1, i, rm), float("-inf"))
    k = min(5, x.size(-1))
    y = torch.where(y < y.topk(k)[0][..., -1:], float("-inf"), y)
    p = y.softmax(-1)
    p = torch.where(p < 0.1 * p.amax(-1, keepdim=True), 0.0, p)
    cdf = (p / p.sum(-1, keepdim=True)).cumsum(-1)
    return torch.searchsorted(cdf, u[:, None].contiguous()).clamp(max=x.size(-1) - 1), p


@forward("ids:int64[N,T]=0:4", dims="N=1:2:4 T=1:5:8")
def A7308PositionsAndSegments(self, ids):
    """Positions past a pad by cumsum of int32, segments of documents by separators, a block-diagonal causal mask, lengths by argmax of eos."""
    m = ids.ne(1).int()
    pos = (torch.cumsum(m, dim=1).type_as(m) * m).long() + 1
    seg = (ids == 2).long().cumsum(1)
    seg = seg - (ids == 2).long()
    block = (seg[:, :, None] == seg[:, None]) & torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()
    eos = torch.where((ids == 3).any(1), (ids == 3).int().argmax(1), ids.size(1) - 1)
    last = pos[torch.arange(ids.size(0)), eos]
    return pos, block, eos, last, (~ids.eq(1)).sum(-1, dtype=torch.int32), seg.amax(1) + 1


@attack("x:float32[N,T,8]=-2:2", dims="N=1:1:2 T=1:6:17", kinds=FINITE)
class A7309T5AndAlibi(nn.Module):
    """T5's relative buckets (log of distances), ALiBi slopes for heads that are no power of two, logits with a soft cap, sinks."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(10)
        self.b = nn.Embedding(8, 3)
        self.sink = nn.Parameter(torch.randn(3))

    def slopes(self, n):
        p = 2 ** math.floor(math.log2(n))
        s = [2 ** (-(8 / p) * (i + 1)) for i in range(p)]
        return torch.tensor(s + [2 ** (-(4 / p) * (i + 1)) for i in range(0, 2 * (n - p), 2)])

    def forward(self, x):
        t = x.size(1)
        rel = torch.arange(t)[None] - torch.arange(t)[:, None]
        out = (rel > 0).long() * 4
        n = rel.abs()
        big = 2 + (torch.log(n.float().clamp(min=1) / 2) / math.log(16 / 2) * 2).long()
        out += torch.where(n < 2, n, big.clamp(max=3))
        bias = self.b(out).permute(2, 0, 1) - self.slopes(3)[:, None, None] * n
        s = 5 * torch.tanh((x @ x.mT)[:, None] / 5) + bias
        s = torch.cat([s, self.sink.view(1, 3, 1, 1).expand(x.size(0), -1, t, -1)], -1)
        return (s.softmax(-1)[..., :-1] @ x[:, None]).mean(1)


@attack("x:float32[N,T,6]=-2:2", "mask:bool[N,T]", dims="N=1:2:3 T=2:4:7", kinds=FINITE)
class A7310EncoderLayer(nn.Module):
    """nn.TransformerEncoder in eval with nested tensors enabled and a padding mask, norm first, GELU; masked mean with clamp."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        layer = nn.TransformerEncoderLayer(6, 2, 8, activation="gelu", batch_first=True, norm_first=False)
        self.e = nn.TransformerEncoder(layer, 2)
        self.eval()

    def forward(self, x, mask: Optional[torch.Tensor] = None):
        keep = mask.clone()
        keep[:, 0] = True
        y = self.e(x, src_key_padding_mask=~keep)
        y = torch.where(keep[..., None], y, 0.0)
        return y.sum(1) / keep.sum(1, keepdim=True)


@attack("x:float32[N,T,4]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7311MoE(nn.Module):
    """A mixture of experts by loops with index_add over where of one argument, top-2 with renormalised weights, capacity by cumsum of one-hots."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(12)
        self.g = nn.Linear(4, 3, bias=False)
        self.e = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        n, t, c = x.shape
        f = x.reshape(-1, c)
        p = F.softmax(self.g(f), dim=1, dtype=torch.float)
        w, i = torch.topk(p, 2, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(f)
        hot = F.one_hot(i, 3).permute(2, 1, 0)
        for e in range(3):
            idx, top = torch.where(hot[e])
            out.index_add_(0, top, self.e[e](f[top]) * w[top, idx, None])
        place = (F.one_hot(i[:, 0], 3).cumsum(0) * F.one_hot(i[:, 0], 3)).sum(1)
        return out.view(n, t, c), place <= math.ceil(1.25 * n * t / 3)


@forward("x:float32[N,T,4]=-2:2", "k:int64[N]=-3:12", dims="N=1:2:3 T=3:5:8", kinds=FINITE)
def A7312SpansAndWindows(self, x, k):
    """Spans clamped by Python's slices of tensors, a banded mask by bitwise ops, local attention by unfold with a pad, negative gathers."""
    t = x.shape[1]
    k = k.clamp(0, t - 1)
    end = x[torch.arange(x.shape[0]), -1 - k]
    i = torch.arange(t)
    band = ((i[:, None] - i[None]).abs() <= 2) & ~((i[:, None] ^ i[None]) & 1).bool()
    pads = F.pad(x, (0, 0, 1, 1), value=-1.0)
    loc = pads.unfold(1, 3, 1)
    s = torch.einsum("ntc,ntcw->ntw", x, loc).softmax(-1)
    gl = (x @ x.transpose(1, 2)).masked_fill(~band, torch.finfo(x.dtype).min).softmax(-1)
    return end, torch.einsum("ntw,ntcw->ntc", s, loc), gl, x[:, k % t].sum((1, 2))


@attack("a:int64[N,T]=0:9", "b:int64[N,T]=0:9", dims="N=1:2:3 T=2:4:6")
class A7313EditDistance(nn.Module):
    """Levenshtein of two rows by a Python loop over both sizes with lists, an LCS by cummax-like updates in place, n-gram overlap."""

    def forward(self, a, b):
        n, t = a.shape
        row = torch.arange(t + 1).repeat(n, 1)
        for i in range(t):
            cost = (a[:, i : i + 1] != b).long()
            new = [row[:, 0] + 1]
            for j in range(t):
                new.append(torch.minimum(torch.minimum(new[-1] + 1, row[:, j + 1] + 1), row[:, j] + cost[:, j]))
            row = torch.stack(new, 1)
        ga, gb = a[:, :-1] * 10 + a[:, 1:], b[:, :-1] * 10 + b[:, 1:]
        hits = (ga[:, :, None] == gb[:, None]).any(-1).sum(-1)
        return row[:, -1], hits, row[:, -1].float() / max(t, 1)

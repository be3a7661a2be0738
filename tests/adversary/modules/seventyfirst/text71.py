"""Attention with every mask, RNNs, caches as inputs, experts, decoders, samplers, codebooks and filters."""
# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

FEW = ("normal", "unit", "zeros", "halves")


@forward("q:float32[N,2,L,4]", "k:float32[N,2,S,4]", "m:bool[N,1,L,S]", dims="N=1:2:2 L=1:3:6 S=1:4:7", kinds=FEW)
def A8318CausalUnequal(self, q, k, m):
    """is_causal at Lq != Lk, a bool mask with rows all false, a float mask of -inf, scale, grouped heads."""
    a = F.scaled_dot_product_attention(q, k, k, is_causal=True)
    b = F.scaled_dot_product_attention(q, k, k, attn_mask=m, scale=0.3).nan_to_num(0)
    c = F.scaled_dot_product_attention(q, k[:, :1], k[:, :1], enable_gqa=True)
    return a, b, c


@attack("x:float32[N,T,8]", "p:bool[N,T]", dims="N=1:2:3 T=1:4:7", kinds=FEW)
class A8319EncoderFastPath(nn.Module):
    """A TransformerEncoder with nested tensors allowed and a padding mask that may be all true; norm_first False."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(21)
        l = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.e = nn.TransformerEncoder(l, 2)

    def forward(self, x, p):
        p = p.clone()
        p[:, 0] = False
        return self.e(x, src_key_padding_mask=p).masked_fill(p[..., None], 0)


@attack("x:float32[N,T,8]", "z:float32[N,S,6]", "p:bool[N,S]", dims="N=1:2:3 T=1:3:5 S=1:4:6", kinds=FEW)
class A8320CrossAttention(nn.Module):
    """MultiheadAttention with kdim, add_bias_kv, add_zero_attn, need_weights of each head, a float key padding mask, 3-d masks."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(22)
        self.a = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True, add_bias_kv=True, add_zero_attn=True)
        self.b = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, z, p):
        y, w = self.a(x, z, z, key_padding_mask=p, average_attn_weights=False)
        m = torch.triu(torch.full((x.shape[1],) * 2, float("-inf")), 1)
        return y, w, self.b(x, x, x, attn_mask=m.expand(x.shape[0] * 2, -1, -1))[0]


@attack("x:float32[N,T,4]", "h:float32[2,N,2]", "c:float32[2,N,3]", dims="N=1:2:3 T=1:4:7", kinds=FEW)
class A8321Recurrent(nn.Module):
    """LSTM with proj_size, two directions and states from inputs; a stacked GRU with dropout in eval; RNN relu over time first without a batch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(23)
        self.l = nn.LSTM(4, 3, proj_size=2, bidirectional=True, batch_first=True)
        self.g = nn.GRU(4, 3, num_layers=2, dropout=0.5, batch_first=True, bias=False)
        self.r = nn.RNN(4, 2, nonlinearity="relu")

    def forward(self, x, h, c):
        y, (a, b) = self.l(x, (h, c))
        return y, a, b, self.g(x)[1], self.r(x[0])[0], self.r(x.transpose(0, 1))[1]


@attack("x:float32[N,1,8]", "k:float32[N,2,P,4]", "v:float32[N,2,P,4]", dims="N=1:1:3 P=0:4:7", kinds=FEW)
class A8322CacheStep(nn.Module):
    """One step with a KV cache from inputs that begins empty, rotary positions from the cache's size, ALiBi, a window of 4."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(24)
        self.w = nn.Linear(8, 24)

    def rope(self, x, at):
        f = (at[:, None] * 10.0 ** -torch.arange(0, 4, 2)).repeat_interleave(2, -1)
        r = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        return x * f.cos() + r * f.sin()

    def forward(self, x, k, v):
        past = k.shape[2]
        q, a, b = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.w(x).chunk(3, -1))
        at = torch.arange(past, past + 1).float()
        k, v = torch.cat((k, self.rope(a, at)), 2)[:, :, -4:], torch.cat((v, b), 2)[:, :, -4:]
        n = k.shape[2]
        bias = -torch.tensor([0.5, 0.25])[:, None, None] * torch.arange(n - 1, -1, -1)
        return ((self.rope(q, at) @ k.mT / 2 + bias).softmax(-1) @ v).transpose(1, 2).flatten(2), k, v


@forward("x:float32[N,H,L,L]", dims="N=1:1:2 H=1:2:3 L=1:5:40", kinds=FEW)
def A8323RelativeBuckets(self, x):
    """T5's bidirectional buckets with logs of positions, a table by sin, sliding window and block masks, a shift by pad and view."""
    n = x.shape[-1]
    p = torch.arange(n)
    r = p[None] - p[:, None]
    b = (r > 0).long() * 8
    a = r.abs()
    big = 4 + (torch.log(a.float().clamp(min=1) / 4) / math.log(16 / 4) * 4).long()
    b = b + torch.where(a < 4, a, big.clamp(max=7))
    w = (a <= 2) | (p[:, None] // 3 == p[None] // 3)
    s = F.pad(x, (1, 0)).reshape(*x.shape[:2], n + 1, n)[:, :, 1:]
    return x + torch.linspace(-1, 1, 16)[b], x.masked_fill(~w, -1e4).softmax(-1), s


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=("normal", "unit", "halves"))
class A8324Experts(nn.Module):
    """Top-2 routing with a loop over the experts, torch.where on the mask, index_add back; a load-balancing number."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(25)
        self.r = nn.Linear(4, 3, bias=False)
        self.e = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        f = x.reshape(-1, 4)
        p = self.r(f).softmax(-1)
        w, i = p.topk(2, -1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(f)
        for k, e in enumerate(self.e):
            rows, slot = torch.where(i == k)
            out.index_add_(0, rows, e(f[rows]) * w[rows, slot, None])
        return out.view_as(x), p.mean(0) * F.one_hot(i[:, 0], 3).float().mean(0)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FEW)
class A8325Codebook(nn.Module):
    """A residual quantiser with two codebooks by argmin of cdist, straight-through, perplexity."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(26)
        self.c = nn.Parameter(torch.randn(2, 5, 4))

    def forward(self, x):
        r, total, ids = x, torch.zeros_like(x), []
        for c in self.c:
            i = torch.cdist(r, c[None].expand(len(x), -1, -1)).argmin(-1)
            q = F.embedding(i, c)
            total, r = total + q, r - q
            ids.append(i)
        p = F.one_hot(ids[0].flatten(), 5).float().mean(0)
        return x + (total - x).detach(), torch.stack(ids, -1), (-(p * (p + 1e-10).log()).sum()).exp()


@forward("x:float32[N,T,5]", dims="N=1:2:3 T=1:4:8", kinds=FEW)
def A8326GreedyCtc(self, x):
    """CTC greedy: argmax, repeats off by a comparison with the step before, blanks off, packed left by a stable argsort, lengths."""
    i = x.argmax(-1)
    keep = (i != F.pad(i, (1, 0), value=-1)[:, :-1]) & (i != 0)
    order = (~keep).int().argsort(dim=1, stable=True)
    return i.gather(1, order).masked_fill(~keep.gather(1, order), -1), keep.sum(1)


@forward("x:float32[N,V]", "u:float32[N,V]=0.01:0.99", dims="N=1:2:3 V=3:6:11", kinds=("normal", "unit", "halves"))
def A8327Samplers(self, x, u):
    """top-p by sorted cumsum with a shift, scattered back; top-k by kth value; min-p; gumbel argmax of a given noise; a repetition penalty."""
    s, i = x.sort(descending=True, dim=-1, stable=True)
    off = s.softmax(-1).cumsum(-1) > 0.8
    off[:, 1:] = off[:, :-1].clone()
    off[:, 0] = False
    a = x.masked_fill(off.scatter(1, i, off), float("-inf"))
    b = x.masked_fill(x < x.topk(2)[0][..., -1:], float("-inf"))
    p = x.softmax(-1)
    return (
        a.softmax(-1),
        b.softmax(-1),
        (p >= 0.1 * p.amax(-1, keepdim=True)),
        (x - (-u.log()).log()).argmax(-1),
        torch.where(x < 0, x * 1.2, x / 1.2),
    )


@forward("s:float32[N,B]", "x:float32[N,B,V]", dims="N=1:2:3 B=1:2:4 V=4:5:9", kinds=("normal", "unit"))
def A8328BeamStep(self, s, x):
    """One step of a beam: totals over beams by words, top-k over the flat, beam by // and word by %, reorder by gather, finished beams kept."""
    n, b, v = x.shape
    t = (s[..., None] + x.log_softmax(-1)).flatten(1)
    best, i = t.topk(b, 1)
    beam, word = torch.div(i, v, rounding_mode="floor"), i % v
    kept = x.gather(1, beam[..., None].expand(-1, -1, v))
    return best, beam, word, kept, best.masked_fill(word == 0, float("-inf")).amax(1)


@attack("i:int64[N,T]=0:9", "w:float32[N,T]", dims="N=1:2:4 T=1:3:6", kinds=FEW)
class A8329EmbeddingBags(nn.Module):
    """EmbeddingBag sum with weights, mean and max with a padding_idx, an embedding with max_norm-free scaling."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(27)
        self.s = nn.EmbeddingBag(10, 3, mode="sum")
        self.m = nn.EmbeddingBag(10, 3, mode="mean", padding_idx=0)
        self.x = nn.EmbeddingBag(10, 3, mode="max")

    def forward(self, i, w):
        return self.s(i, per_sample_weights=w), self.m(i), self.x(i)


@attack("x:float32[N,T]", dims="N=1:2:3 T=16:40:64", kinds=FEW)
class A8330Spectra(nn.Module):
    """STFT centre and reflect, magnitude and a mel-like filter bank, power to dB with a top of 80 by amax, ISTFT to the length, an odd rfft."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(28)
        self.register_buffer("w", torch.hann_window(8))
        self.register_buffer("fb", torch.rand(9, 4))

    def forward(self, x):
        z = torch.stft(x, 16, 4, 8, self.w, center=True, return_complex=True)
        db = 10 * (z.abs().square().mT @ self.fb).clamp(min=1e-5).log10()
        y = torch.istft(z, 16, 4, 8, self.w, length=x.shape[1])
        return db.maximum(db.amax((1, 2), keepdim=True) - 80), y, torch.fft.rfft(x).abs()


@forward("x:float32[N,T]", dims="N=1:2:3 T=4:9:20", kinds=FEW)
def A8331SincFilters(self, x):
    """Windowed sinc low-passes whose cut-off is by the size, a resampling by 3/2 with phases, a DC blocker by cumsum, preemphasis, framing with as_strided."""
    t = x.shape[1]
    n = torch.arange(-3, 4)
    h = torch.sinc(2 * n / t) * torch.hamming_window(7, periodic=False)
    y = F.conv1d(x[:, None], (h / h.sum())[None, None], padding=3)[:, 0]
    m = torch.arange(t * 3 // 2) * 2 / 3
    lo = m.long().clamp(max=t - 1)
    r = x[:, lo] + (m - lo) * (x[:, (lo + 1).clamp(max=t - 1)] - x[:, lo])
    f = x.contiguous().as_strided((x.shape[0], (t - 4) // 2 + 1, 4), (t, 2, 1))
    return y, r, torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1), f.sum(-1)

# ruff: noqa: E501 - attacks are written as users write them
"""Transformers, continued: sparse and chunked attention, last tokens, resamplers."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftythird.attention import IDS, X, seq
from tests.adversary.modules.fiftythird.speech import at


@attack(X, dims="N=1:1:2 T=1:12:40", feeds=at(X, N=(1, 2), T=(1, 2, 3, 4, 5, 7, 9, 10, 11, 39, 40)))
class A6824InformerSparse(nn.Module):
    """Informer: the top ln(L) queries by maximum less mean get attention, the rest the mean of values."""

    def forward(self, x):
        n, t, c = x.shape
        u = min(max(int(2 * math.ceil(math.log(t + 1))), 1), t)
        s = x @ x.transpose(1, 2)
        m = s.max(-1)[0] - s.sum(-1) / t
        top = m.topk(u, sorted=False)[1]
        r = torch.arange(n)[:, None]
        a = torch.softmax(s[r, top] / math.sqrt(c), -1)
        y = x.mean(1, keepdim=True).expand(n, t, c).clone()
        y[r, top] = a @ x
        return y


@attack(X, **seq(high=48))
class A6825AutoCorrelation(nn.Module):
    """Autoformer: delays by FFT, the k best by the mean over the batch, rolls added by softmax weights."""

    def forward(self, x):
        x = x.transpose(1, 2)
        n, c, t = x.shape
        f = torch.fft.rfft(x, dim=-1)
        corr = torch.fft.irfft(f * torch.conj(f) + 1e-6, n=t, dim=-1)
        k = int(1 * math.log(t)) + 1 if t > 1 else 1
        mean = corr.mean(1)
        # each delay and its mirror are ties: the lower half only
        half = mean[:, : t // 2 + 1]
        w, d = torch.topk(half, min(k, half.shape[1]), dim=-1)
        w = torch.softmax(w, -1)
        double = x.repeat(1, 1, 2)
        out = torch.zeros_like(x)
        base = torch.arange(t).view(1, 1, t).expand(n, c, t)
        for i in range(min(k, half.shape[1])):
            out = out + double.gather(-1, base + d[:, i, None, None]) * w[:, i, None, None]
        return out


@attack(X, "p:int64[N,T]=0:60", dims="N=1:1:2 T=1:12:40", feeds=at(X, "p:int64[N,T]=0:60", N=(1, 2), T=(1, 5, 40)))
class A6826DebertaLogBuckets(nn.Module):
    """Deberta v2: positions given, signed logarithmic buckets with ceil, gathered by clamped spans."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.rel = nn.Embedding(16, 8)

    def forward(self, x, p):
        r = p[:, :, None] - p[:, None, :]
        size, most = 8, 64
        sign = torch.sign(r)
        mid = size // 2
        a = torch.where((r < mid) & (r > -mid), torch.tensor(mid - 1).type_as(r), torch.abs(r))
        lp = torch.ceil(torch.log(a / mid) / torch.log(torch.tensor((most - 1) / mid)) * (mid - 1)) + mid
        b = torch.where(a <= mid, r.type_as(lp), lp * sign).long()
        i = torch.clamp(b + size, 0, 15)
        return torch.gather(x @ self.rel.weight.T, -1, i) / math.sqrt(24), b


@attack(IDS, "b:bool[N,T]", dims="N=1:2:3 T=1:8:20", feeds=at(IDS, "b:bool[N,T]", N=(1, 2, 3), T=(1, 2, 20)))
class A6827LastToken(nn.Module):
    """GPT2ForSequenceClassification: the last token before padding by argmax modulo, left padding where the last are all real."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.word = nn.Embedding(21, 8)
        self.score = nn.Linear(8, 3, bias=False)

    def forward(self, i, b):
        y = self.word(i).cumsum(1)
        s = torch.eq(i, 0).int().argmax(-1) - 1
        s = s % i.shape[-1]
        rows = torch.arange(i.shape[0])
        left = b[:, -1].sum() == b.shape[0]
        ends = b.sum(1) - 1
        last = torch.where(left, y[:, -1], y[rows, ends])
        return self.score(y)[rows, s], last


@attack(X, "m:bool[N,T]", dims="N=1:1:2 T=1:12:40", feeds=at(X, "m:bool[N,T]", N=(1, 2), T=(1, 2, 40)))
class A6828PerceiverResampler(nn.Module):
    """Learned queries attend to media and themselves, all heads by einsum, a row that is all padding gives NaN to zero."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(10)
        self.latents = nn.Parameter(torch.randn(3, 8))
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, m):
        q = self.latents.unsqueeze(0).repeat(x.shape[0], 1, 1)
        y, w = self.attn(q, x, x, key_padding_mask=m, average_attn_weights=False)
        return torch.nan_to_num(y), torch.nan_to_num(w)


@forward(X, **seq(high=45))
def A6829MegaEmaChunk(self, x):
    """Local attention in chunks of ten with one look back, the first chunk looks at -1s that are masked out."""
    n, t, c = x.shape
    w = 10
    pad = -t % w
    x = F.pad(x, (0, 0, 0, pad), value=0.0)
    b = x.view(n, -1, w, c)
    p = torch.arange(x.shape[1]).view(1, -1, w)
    back = torch.cat((F.pad(b, (0, 0, 0, 0, 1, 0), value=-1.0)[:, :-1], b), 2)
    pb = torch.cat((F.pad(p, (0, 0, 1, 0), value=-1)[:, :-1], p), 2)
    s = torch.einsum("bhie,bhje->bhij", b, back) * c**-0.5
    s = s.masked_fill((p[..., :, None] < pb[..., None, :]) | (pb[..., None, :] == -1), -torch.finfo(s.dtype).max)
    return torch.einsum("bhij,bhje->bhie", s.softmax(-1), back).reshape(n, -1, c)[:, :t]

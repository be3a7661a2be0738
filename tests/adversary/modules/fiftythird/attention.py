# ruff: noqa: E501, PT018 - attacks are written as users write them
"""Transformers: positions, masks, caches, windows, buckets, groups of queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.modules.fiftythird.speech import at

X = "x:float32[N,T,8]"
IDS = "i:int64[N,T]=0:20"


def seq(low: int = 1, high: int = 40, **own: tuple[int, ...]) -> dict:
    """Sequences of some tens, looked at round powers of two."""
    sizes = tuple(t for t in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40) if low <= t <= high)
    return {"dims": f"N=1:1:2 T={low}:12:{high}", "feeds": at(X, N=(1, 2), T=own.get("t", sizes))}


@attack(X, **seq(high=150, t=(1, 2, 16, 17, 23, 24, 31, 32, 33, 127, 128, 129, 143, 144, 150)))
class A6815T5Bias(nn.Module):
    """T5's bidirectional buckets: exact for near, by an integer logarithm for far, added to unscaled scores."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.bias = nn.Embedding(32, 2)
        self.q, self.k = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)

    def bucket(self, r, n=32, most=128):
        n //= 2
        b = (r > 0).to(torch.long) * n
        r = torch.abs(r)
        exact = n // 2
        small = r < exact
        large = exact + (torch.log(r.float() / exact) / math.log(most / exact) * (n - exact)).to(torch.long)
        large = torch.min(large, torch.full_like(large, n - 1))
        return b + torch.where(small, r, large)

    def forward(self, x):
        n, t, _ = x.shape
        p = torch.arange(t)
        b = self.bias(self.bucket(p[None, :] - p[:, None])).permute(2, 0, 1).unsqueeze(0)
        q, k = (f(x).view(n, t, 2, 4).transpose(1, 2) for f in (self.q, self.k))
        return torch.softmax((q @ k.transpose(-1, -2) + b).float(), -1).type_as(q) @ k


@attack("i:int64[N,T]=0:11", dims="N=1:2:3 T=1:8:20", feeds=tuple((lambda a=a: {"i": np.array(a)}) for a in ([[1, 1, 1]], [[5, 1, 6, 1, 1], [1, 5, 6, 7, 8]])))
class A6816RobertaPositions(nn.Module):
    """Roberta's positions: a cumulative sum of what is no padding, which itself sits at the padding's index."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.word, self.pos = nn.Embedding(12, 8, padding_idx=1), nn.Embedding(22, 8, padding_idx=1)
        self.norm = nn.LayerNorm(8, eps=1e-5)

    def forward(self, i):
        m = i.ne(1).int()
        p = ((torch.cumsum(m, dim=1).type_as(m)) * m).long() + 1
        y = self.norm(self.word(i) + self.pos(p))
        m = m[..., None].expand(y.size()).float()
        return y, (y * m).sum(1) / torch.clamp(m.sum(1), min=1e-9), i.eq(1).all(1)


@attack(X, **seq(high=70))
class A6817RotaryDynamicNtk(nn.Module):
    """Rotary with NTK scaling: the base grows once the sequence is longer than the 24 it was trained at."""

    def forward(self, x):
        t = x.shape[1]
        base = 10000.0
        if t > 24:
            base = base * ((2.0 * t / 24) - (2.0 - 1)) ** (8 / (8 - 2))
        inv = 1.0 / (base ** (torch.arange(0, 8, 2, dtype=torch.int64).float() / 8))
        f = torch.outer(torch.arange(t, dtype=torch.float32), inv)
        e = torch.cat((f, f), -1)
        a, b = x[..., :4], x[..., 4:]
        return x * e.cos() + torch.cat((-b, a), -1) * e.sin()


@attack(X, "m:bool[N,T]", dims="N=1:1:2 T=1:12:40", feeds=at(X, "m:bool[N,T]", N=(1, 2), T=(1, 2, 39)))
class A6818AlibiGqa(nn.Module):
    """Six heads on two of keys, ALiBi slopes for a count that is no power of two, causal, left padding, minimum of a dtype."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.q, self.kv = nn.Linear(8, 12), nn.Linear(8, 8)

    @staticmethod
    def slopes(n):
        def power(n):
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]

        if math.log2(n).is_integer():
            return power(n)
        c = 2 ** math.floor(math.log2(n))
        return power(c) + A6818AlibiGqa.slopes(2 * c)[0::2][: n - c]

    def forward(self, x, m):
        n, t, _ = x.shape
        q = self.q(x).view(n, t, 6, 2).transpose(1, 2)
        k, v = self.kv(x).view(n, t, 2, 4).transpose(1, 2).repeat_interleave(3, dim=1).chunk(2, -1)
        p = ((m.cumsum(-1) - 1) * m)[:, None, :]
        a = torch.tensor(self.slopes(6))[None, :, None, None] * p[:, None].float()
        low = torch.finfo(x.dtype).min
        s = q @ k.transpose(-1, -2) / math.sqrt(2) + a
        keep = torch.tril(torch.ones(t, t, dtype=torch.bool)) & m[:, None, None]
        s = torch.where(keep, s, low)
        return (s.softmax(-1) @ v).transpose(1, 2).reshape(n, t, 12)


@attack(X, **seq(high=30), refused="the module cannot be exported")
class A6819LongformerChunks(nn.Module):
    """Sliding chunks: padding to a multiple of twice the window, overlapping chunks by as_strided, what is padding cut."""

    def forward(self, x):
        w = 4
        n, t, c = x.shape
        pad = (2 * w - t % (2 * w)) % (2 * w)
        if pad > 0:
            x = F.pad(x, (0, 0, 0, pad))
        s = x.shape[1]
        size, stride = (n, s // w - 1, 2 * w, c), (s * c, w * c, c, 1)
        y = x.contiguous().as_strided(size, stride)
        a = torch.einsum("bcxd,bcyd->bcxy", y, y)
        i = torch.arange(2 * w)
        a = a.masked_fill((i[:, None] - i).abs() > w, float("-inf")).softmax(-1)
        z = a @ y
        out = torch.zeros_like(x)
        out[:, : s - w] += z[:, :, :w].reshape(n, -1, c)
        out[:, w:] += z[:, :, w:].reshape(n, -1, c)
        return out[:, :t]


@attack("x:float32[N,H,W,4]", dims="N=1:1:2 H=1:7:15 W=1:8:15", feeds=at("x:float32[N,H,W,4]", N=(1, 2), H=(1, 3, 4, 5, 8, 15, 12), W=(1, 4, 3, 9, 8, 12, 15)), refused="the path through the module depends on the si")
class A6820SwinShifted(nn.Module):
    """Swin: padded windows of four, no shift where the whole fits in one window, and the mask of regions by slices."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        n, hh, ww, c = x.shape
        w, s = 4, 2
        if min(hh, ww) <= w:
            s = 0
        x = F.pad(x, (0, 0, 0, (w - ww % w) % w, 0, (w - hh % w) % w))
        _, h, v, _ = x.shape
        y = torch.roll(x, (-s, -s), (1, 2)) if s > 0 else x
        y = y.view(n, h // w, w, v // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)
        q, k, u = self.qkv(y).chunk(3, -1)
        a = q @ k.transpose(-2, -1) * 0.5
        if s > 0:
            m = torch.zeros((1, h, v, 1))
            cnt = 0
            for a1 in (slice(0, -w), slice(-w, -s), slice(-s, None)):
                for a2 in (slice(0, -w), slice(-w, -s), slice(-s, None)):
                    m[:, a1, a2, :] = cnt
                    cnt += 1
            m = m.view(1, h // w, w, v // w, w).permute(0, 1, 3, 2, 4).reshape(-1, w * w)
            m = m[:, None] - m[:, :, None]
            m = m.masked_fill(m != 0, -100.0)
            a = (a.view(n, -1, w * w, w * w) + m).view(-1, w * w, w * w)
        y = a.softmax(-1) @ u
        y = y.view(n, h // w, v // w, w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, v, c)
        y = torch.roll(y, (s, s), (1, 2)) if s > 0 else y
        return y[:, :hh, :ww].contiguous()


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:16:40%4 W=8:16:40%4", feeds=at("x:float32[N,3,H,W]", N=(1, 2), H=(8, 16, 20, 40, 16), W=(8, 16, 12, 36, 20)))
class A6821VitPositions(nn.Module):
    """Dinov2: position embeddings of a 4 by 4 grid resized with bicubic by a scale with 0.1 of an offset, class first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.proj = nn.Conv2d(3, 6, 4, 4)
        self.pos, self.cls = nn.Parameter(torch.randn(1, 17, 6)), nn.Parameter(torch.randn(1, 1, 6))

    def interpolate(self, x, h, w):
        if x.shape[1] - 1 == 16 and h == w:
            return self.pos
        h0, w0 = h // 4 + 0.1, w // 4 + 0.1
        p = self.pos[:, 1:].reshape(1, 4, 4, 6).permute(0, 3, 1, 2)
        p = F.interpolate(p, scale_factor=(h0 / 4.0, w0 / 4.0), mode="bicubic", align_corners=False)
        assert int(h0) == p.shape[-2] and int(w0) == p.shape[-1]
        return torch.cat((self.pos[:, :1], p.permute(0, 2, 3, 1).view(1, -1, 6)), 1)

    def forward(self, x):
        n, _, h, w = x.shape
        y = self.proj(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.cls.expand(n, -1, -1), y), 1)
        return y + self.interpolate(y, h, w)


@dataclass
class Output(dict):
    """Like a ModelOutput: what is None is not there."""


@attack(X, "k:float32[N,2,P,4]", "v:float32[N,2,P,4]", dims="N=1:1:2 T=1:1:6 P=0:5:12", feeds=at(X, "k:float32[N,2,P,4]", "v:float32[N,2,P,4]", N=(1, 2), T=(1, 1, 2, 6), P=(0, 12, 7, 8, 1)))
class A6822KvCacheSliding(nn.Module):
    """A step with a cache given (of length 0 as well), cut to a window of eight, and given back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, k, v):
        n, t, _ = x.shape
        q, a, b = (y.view(n, t, 2, 4).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        k, v = torch.cat((k, a), 2), torch.cat((v, b), 2)
        s = k.shape[2]
        i = torch.arange(s - t, s)[:, None]
        j = torch.arange(s)[None]
        m = (j <= i) & (j > i - 8)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=m)
        return y.transpose(1, 2).flatten(2), k[:, :, -8:], v[:, :, -8:]


@attack(X, **seq(high=50, t=(1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 50)))
class A6823ReformerChunked(nn.Module):
    """apply_chunking_to_forward where the length is a multiple of sixteen, whole elsewhere; a norm over the chunk."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)

    def ff(self, x):
        y = self.down(F.gelu(self.up(x), approximate="tanh"))
        return y - y.mean((1, 2), keepdim=True)

    def forward(self, x):
        if x.shape[1] % 16 == 0:
            return torch.cat([self.ff(c) for c in x.chunk(x.shape[1] // 16, dim=1)], 1)
        return self.ff(x)

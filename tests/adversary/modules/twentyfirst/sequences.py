"""Parts of networks for speech and language."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack


@attack("x:float32[N,T,16]", "keep:bool[N,T]", dims="N=1:1:3 T=1:9:40")
class T5Attention(nn.Module):
    """Relative buckets by logarithms, and a mask of the lowest number."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48, bias=False)
        self.bias = nn.Embedding(8, 2)

    def bucket(self, r):
        n, out = 8 // 2, 0
        out = (r > 0).to(torch.long) * n
        r = torch.abs(r)
        exact = n // 2
        small = r < exact
        large = exact + (torch.log(r.float() / exact) / math.log(16 / exact) * (n - exact)).to(torch.long)
        large = torch.min(large, torch.full_like(large, n - 1))
        return out + torch.where(small, r, large)

    def forward(self, x, keep):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, 2, 8).permute(2, 0, 3, 1, 4)
        p = torch.arange(t)
        bias = self.bias(self.bucket(p[None] - p[:, None])).permute(2, 0, 1)[None]
        ext = (1.0 - keep[:, None, None].float()) * torch.finfo(torch.float32).min
        w = F.softmax(q @ k.transpose(-1, -2) + (bias + ext), -1)
        return (w @ v).transpose(1, 2).flatten(2)


@attack("x:float32[N,T,16]", dims="N=1:1:2 T=1:8:30")
class RotaryNtk(nn.Module):
    """Base that grows when the row is longer than it was trained for; half-split rotation; alibi of six heads."""

    def __init__(self):
        super().__init__()
        self.dim, self.limit = 8, 12

    def forward(self, x):
        n, t, _ = x.shape
        base = 10000.0
        if t > self.limit:
            base = base * ((2.0 * t / self.limit) - 1.0) ** (self.dim / (self.dim - 2))
        inv = 1.0 / (base ** (torch.arange(0, self.dim, 2).float() / self.dim))
        f = torch.outer(torch.arange(t).float(), inv)
        cos, sin = torch.cat([f, f], -1).cos(), torch.cat([f, f], -1).sin()
        q = x.view(n, t, 2, 8).transpose(1, 2)
        rot = torch.cat((-q[..., 4:], q[..., :4]), -1)
        q = q * cos + rot * sin
        slopes = torch.tensor([2 ** (-8 * i / 2) for i in (1, 2)]).view(2, 1, 1)
        a = torch.arange(t)
        alibi = -(a[:, None] - a[None]).abs() * slopes
        w = (q @ q.transpose(-1, -2) / math.sqrt(8) + alibi).masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
        return w.softmax(-1) @ q


@attack("x:float32[N,T,8]", "k:float32[N,S,8]", "v:float32[N,S,8]", dims="N=1:1:2 T=1:1:4 S=0:5:12")
class SlidingCache(nn.Module):
    """A cache that may be empty, cut to the last eight, with a causal mask of unlike lengths."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, k, v):
        q, nk, nv = self.qkv(x).chunk(3, -1)
        k, v = torch.cat([k, nk], 1), torch.cat([v, nv], 1)
        t, s = q.shape[1], k.shape[1]
        mask = torch.ones(t, s, dtype=torch.bool).tril(s - t)
        mask = mask & ~torch.ones(t, s, dtype=torch.bool).tril(s - t - 8)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return o, k[:, -8:], v[:, -8:]


@attack("x:float32[N,T,16]", "k:float32[N,2,32,4]", "v:float32[N,2,32,4]", "pos:int64[T]=0:31", dims="N=1:1:2 T=1:2:6")
class StaticCacheGqa(nn.Module):
    """index_copy into a cache of a fixed length, four heads of queries for two of keys."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x, k, v, pos):
        n, t, _ = x.shape
        pos = torch.arange(t) + pos.min().clamp(max=20)
        q = self.q(x).view(n, t, 4, 4).transpose(1, 2)
        nk, nv = self.kv(x).view(n, t, 2, 2, 4).permute(2, 0, 3, 1, 4)
        k, v = k.index_copy(2, pos, nk), v.index_copy(2, pos, nv)
        mask = torch.arange(32)[None] <= pos[:, None]
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return o.transpose(1, 2).reshape(n, t, 16), k, v


@attack("x:float32[N,T,8]", dims="N=1:2:3 T=1:4:9")
class MoeLoop(nn.Module):
    """Mixtral's loop over experts with torch.where and index_add."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3, bias=False)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        flat = x.view(-1, 8)
        w, sel = self.gate(flat).softmax(1).topk(2, -1)
        out = torch.zeros_like(flat)
        mask = F.one_hot(sel, 3).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            idx, top = torch.where(mask[i])
            out.index_add_(0, top, expert(flat[top]) * w[top, idx, None])
        return out.view_as(x)


@attack("x:float32[N,8,T]=-3:3", dims="N=1:1:2 T=1:6:15")
class ResidualVq(nn.Module):
    """Three stages of codes by expanded distances, FSQ, LFQ bits."""

    def __init__(self):
        super().__init__()
        self.books = nn.Parameter(torch.randn(3, 10, 8))
        self.register_buffer("levels", torch.tensor([8, 5, 5, 4, 3, 2, 7, 6], dtype=torch.int32))

    def forward(self, x):
        z = x.transpose(1, 2)
        r, codes, q = z, [], torch.zeros_like(z)
        for b in self.books:
            d = r.pow(2).sum(-1, keepdim=True) - 2 * r @ b.t() + b.pow(2).sum(-1)
            i = (-d).max(-1).indices
            e = F.embedding(i, b)
            q, r = q + e, r - e
            codes.append(i)
        half = (self.levels - 1) * (1 + 1e-3) / 2
        offset = torch.where(self.levels % 2 == 0, 0.5, 0.0)
        f = ((z + (offset / half).atanh()).tanh() * half - offset).round()
        basis = torch.cumprod(torch.tensor([1, 8, 5, 5, 4, 3, 2, 7]), 0)
        index = ((f + self.levels // 2) * basis).sum(-1).to(torch.int32)
        bits = ((z > 0).int() << torch.arange(8, dtype=torch.int32)).sum(-1)
        return torch.stack(codes, 1), q.transpose(1, 2), f / (self.levels // 2), index, bits


@attack("wave:float32[N,L]=-1:1", dims="N=1:1:2 L=400:1600:4000")
class WhisperMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("filters", torch.rand(10, 201))

    def forward(self, wave):
        s = torch.stft(wave, 400, 160, window=self.window, return_complex=True)
        m = s[..., :-1].abs() ** 2
        log = torch.clamp(self.filters @ m, min=1e-10).log10()
        top = log.amax(dim=(1, 2), keepdim=True)
        log = torch.maximum(log, top - 8.0)
        return (log + 4.0) / 4.0


@attack("x:float32[N,4,T]", "a:float32[N,4,4]", "b:float32[N,6,2]", dims="N=1:1:3 T=1:8:20")
class CausalConvCaches(nn.Module):
    """Caches of a dilated and a strided transposed convolution as inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(4, 6, 3, dilation=2), nn.Conv1d(6, 6, 3, groups=3)
        self.up = nn.ConvTranspose1d(6, 2, 4, 2, bias=False)

    def forward(self, x, a, b):
        x = torch.cat([a, x], -1)
        new_a = x[..., -4:]
        y = torch.cat([b, F.elu(self.c1(x))], 2)
        new_b = y[:, :, y.shape[2] - 2 :]
        z = self.up(self.c2(y))
        out, tail = z[..., :-2], z[..., -2:]
        return out, tail, new_a.clone(), new_b


@attack("ids:int64[N,T]=0:9", dims="N=1:2:4 T=2:6:12")
class HuggingFaceMasks(nn.Module):
    """Positions from a cumulative sum of what is no pad, causal mask, first end token's row, mean pooling."""

    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(10, 8, padding_idx=1), nn.Embedding(20, 8, padding_idx=1)
        self.ln, self.qkv = nn.LayerNorm(8), nn.Linear(8, 24)

    def forward(self, ids):
        mask = ids.ne(1).int()
        pos = (torch.cumsum(mask, 1).type_as(mask) * mask).long() + 1
        x = self.ln(self.tok(ids) + self.pos(pos))
        n, t = ids.shape
        cond = torch.arange(t)
        causal = torch.full((t, t), torch.finfo(x.dtype).min).masked_fill_(cond < (cond + 1).view(t, 1), 0)
        inv = 1.0 - mask[:, None, None, :].expand(n, 1, t, t).to(x.dtype)
        full = causal[None, None].masked_fill(inv.bool(), torch.finfo(x.dtype).min)
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=full)[:, 0]
        eot = y[torch.arange(n), ids.to(torch.int).argmax(-1)]
        first = (ids == 2).int().argmax(-1)
        mean = (y * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1e-9)
        return F.normalize(mean), eot, y[torch.arange(n), first - 1], pos


@attack("x:float32[N,T,4]", "mask:bool[N,S]", dims="N=1:2:4 T=2:6:20 S=7:24:70")
class Wav2VecLengths(nn.Module):
    """A mask at the rate of samples brought to that of frames: last places set, then flip, cumsum, flip."""

    def forward(self, x, mask):
        n, t, _ = x.shape
        lengths = mask.cumsum(-1)[:, -1]
        for k, s in ((3, 2), (2, 2)):
            lengths = torch.div(lengths - k, s, rounding_mode="floor") + 1
        lengths = lengths.clamp(1, t)
        m = torch.zeros((n, t), dtype=torch.int64)
        m[(torch.arange(n), lengths - 1)] = 1
        m = m.flip([-1]).cumsum(-1).flip([-1]).bool()
        y = x.clone()
        y[~m] = 0
        return y, m, (y.sum(1) / m.sum(1).view(-1, 1)), lengths


@attack("pcm:int16[N,L]=-32768:32767", dims="N=1:1:2 L=2:16:40")
class PcmFrontEnd(nn.Module):
    def forward(self, pcm):
        x = pcm.float() / 32768.0
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
        peak = pcm.to(torch.int32).abs().amax(1)
        zc = ((pcm[:, 1:] >= 0) != (pcm[:, :-1] >= 0)).sum(1)
        mu = torch.sign(x) * torch.log1p(255 * x.abs()) / math.log(256)
        code = ((mu + 1) / 2 * 255 + 0.5).long().clamp(0, 255)
        back = (x * 32767).clamp(-32768, 32767).round().to(torch.int16)
        return x, peak, zc, code, back, (pcm >> 8).to(torch.int8), pcm.to(torch.int32).square().sum(1)

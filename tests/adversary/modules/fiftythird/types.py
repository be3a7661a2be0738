# ruff: noqa: B905, E501, RUF046, RUF059 - attacks are written as users write them
"""Kinds of numbers and shapes of code: islands of half, whole numbers, norms, caches, optional inputs, dataclasses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftythird.speech import at

X = "x:float32[N,T]"
X8 = "x:float32[N,T,8]"


def rows(text: str = X, low: int = 1, high: int = 30, **more: object) -> dict:
    """Rows of some tens, looked at short ones."""
    t = tuple(v for v in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 29, 30) if low <= v <= high)
    return {"dims": f"N=1:2:3 T={low}:10:{high}", "feeds": at(text, N=(1, 2, 3), T=t), **more}


@attack(X8, **rows(X8))
class A6886LlamaNormIsland(nn.Module):
    """A bf16 block whose RMS norm goes to float32 and back before the weight, and a residual kept in float32."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.w = nn.Parameter(torch.rand(8, dtype=torch.bfloat16))

    def forward(self, x):
        h = x.to(torch.bfloat16)
        f = h.to(torch.float32)
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)
        y = self.w * f.to(torch.bfloat16)
        return y.float(), (x + y), h.float()


@attack("x:float16[N,T,8]=-60000:60000", dims="N=1:2:3 T=1:8:20", feeds=tuple((lambda v=v: {"x": np.full((1, 3, 8), v, np.float16)}) for v in (60000.0, 65504.0 - 5504, 300.0, 6e-8, 0.0)))
class A6887T5HalfClamp(nn.Module):
    """T5 in half: infinities clamped to the maximum less a thousand only where there are any, softmax in float32."""

    def forward(self, x):
        y = x * 2
        big = torch.finfo(y.dtype).max
        c = torch.where(torch.isinf(y).any(), big - 1000, big)
        y = torch.clamp(y, min=-c, max=c)
        return y, F.softmax(x.float(), dim=-1).type_as(x), x.to(torch.float32).pow(2).mean(-1)


@forward("x:int8[N,T]=-128:127", "w:uint8[T]=0:255", dims="N=1:2:3 T=1:8:20", feeds=tuple((lambda a=a, b=b: {"x": np.full((2, 5), a, np.int8), "w": np.full(5, b, np.uint8)}) for a, b in ((-128, 255), (127, 255), (-128, 0), (-1, 128))))
def A6888Int8Products(self, x, w):
    """Quantised dot products: int8 times uint8 as int32, bytes that wrap, abs of -128, arithmetic shifts, requantised with half to even."""
    acc = (x.int() * w.int()).sum(1)
    y = torch.clamp(torch.round(acc * 0.0371) + 3, -128, 127).to(torch.int8)
    return acc, y, x.abs(), -x, w + w, 255 - w, x >> 1, w >> 1, x.float().mean(1), w.float().std(unbiased=False)


@attack("x:float32[N,4,T]", dims="N=1:2:3 T=2:8:20", feeds=at("x:float32[N,4,T]", N=(1, 2), T=(2, 3, 19)))
class A6889NormsOfWeights(nn.Module):
    """Spectral norm in eval, weight standardisation, instance norm with running statistics, frozen batch norm in buffers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.conv = nn.utils.parametrizations.spectral_norm(nn.Conv1d(4, 4, 3, padding=1))
        self.std = nn.Conv1d(4, 4, 3, padding=1)
        self.inorm = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.inorm.running_mean.uniform_(-1, 1)
        self.free = nn.InstanceNorm1d(4, eps=0.3)
        self.register_buffer("mean", torch.rand(4))
        self.register_buffer("var", torch.rand(4))

    def forward(self, x):
        w = self.std.weight
        w = (w - w.mean((1, 2), keepdim=True)) / torch.sqrt(w.var((1, 2), keepdim=True, unbiased=True) + 1e-5)
        y = F.conv1d(self.conv(x), w, self.std.bias, padding=1)
        scale = (self.var + 1e-5).rsqrt().view(1, -1, 1)
        return self.inorm(y), self.free(x), x * scale - self.mean.view(1, -1, 1) * scale


@attack(X8, "m:bool[N,T]", dims="N=1:2:3 T=1:10:30", feeds=at(X8, "m:bool[N,T]", N=(1, 2, 3), T=(1, 2, 30)))
class A6890CausalCacheMask(nn.Module):
    """NanoGPT's bias buffer of a block size, cut; padded rows; a mask cached for the last shape that was seen."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.register_buffer("bias", torch.tril(torch.ones(32, 32)).view(1, 32, 32), persistent=False)
        self.qkv = nn.Linear(8, 24)
        self.seen = {}

    def forward(self, x, m):
        t = x.shape[1]
        if t not in self.seen:
            self.seen[t] = self.bias[:, :t, :t] == 0
        q, k, v = self.qkv(x).split(8, dim=2)
        a = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(k.size(-1)))
        a = a.masked_fill(self.seen[t], float("-inf"))
        a = a + torch.where(m, 0.0, -10000.0)[:, None]
        return a.softmax(-1) @ v


@dataclass
class Scored:
    """What a user's model gives."""

    best: torch.Tensor
    rest: dict


class Pair(NamedTuple):
    """A pair."""

    low: torch.Tensor
    high: torch.Tensor


@attack(X, **rows())
class A6891DataclassOut(nn.Module):
    """An output of nested dict, named tuple and list, with one tensor in two places and one that is an input."""

    def forward(self, x):
        y = x.cumsum(1)
        return {"pair": Pair(y.amin(1), y.amax(1)), "list": [x, y], "again": y, "rows": torch.arange(x.shape[1])}


@attack(X, "w:float32[N,T]=0:1", "b:float32[T]", dims="N=1:2:3 T=1:10:30", feeds=at(X, "w:float32[N,T]=0:1", "b:float32[T]", N=(1, 2), T=(1, 2, 3, 29, 30)))
class A6892OptionalInputs(nn.Module):
    """Optional inputs with None as default, one left out, sizes that decide only on what broadcasts."""

    def forward(self, x, w=None, b=None, scale=None):
        if w is None:
            w = torch.ones_like(x)
        y = x * w
        if b is not None and b.shape[0] == x.shape[1]:
            y = y + b
        if scale is None:
            scale = 1.0 / math.sqrt(x.shape[-1])
        s = y.sum(1) * scale
        return s / w.sum(1).clamp(min=1e-6), y.logcumsumexp(1), F.softplus(y, beta=2, threshold=3)


@forward(X, **rows(low=1, high=40), refused="the path through the module depends on the si")
def A6893NextFastLen(self, x):
    """SciPy's next_fast_len in Python for a convolution by FFT, mode same, and a window that is even or odd by the size."""
    t = x.shape[1]
    n = 2 * t - 1
    best = 1 << (n - 1).bit_length()
    p5 = 1
    while p5 < best:
        p35 = p5
        while p35 < best:
            q = -(-n // p35)
            v = (1 << (q - 1).bit_length()) * p35
            best = min(best, v) if v >= n else best
            p35 *= 3
        p5 *= 5
    k = torch.hann_window(t, periodic=t % 2 == 0)
    y = torch.fft.irfft(torch.fft.rfft(x, best) * torch.fft.rfft(k, best), best)[:, :n]
    start = (n - t) // 2
    return y[:, start : start + t], torch.full((1,), best)


@forward("x:float32[N,T]=-1:1", "g:float32[N]=0:1", dims="N=1:2:3 T=2:20:60", feeds=tuple((lambda v=v: {"x": np.full((1, 5), v, np.float32), "g": np.array([1 - abs(v)], np.float32)}) for v in (1.0, -1.0, 0.5, 0.0, 1 / 32768)))
def A6894LoudnessGain(self, x, g):
    """Peak normalised unless silent, a gain in dB, clipped, to int16 with saturation by hand, zero crossings, crest factor."""
    peak = x.abs().amax(1, keepdim=True)
    y = torch.where(peak > 0, x / peak, x)
    y = y * torch.pow(10.0, (g[:, None] * 40 - 20) / 20)
    pcm = torch.clamp(torch.floor(y * 32768), -32768, 32767).to(torch.int16)
    z = torch.signbit(x[:, 1:]) != torch.signbit(x[:, :-1])
    rms = x.pow(2).mean(1).sqrt()
    return pcm, z.sum(1), 20 * torch.log10(rms.clamp(min=1e-8)), peak[:, 0] / rms


@attack("x:uint8[N,T]=0:255", dims="N=1:2:3 T=1:8:20", feeds=tuple((lambda a=a: {"x": np.array([a], np.uint8)}) for a in ([0, 255], [127, 128, 129], [255] * 16)))
class A6895ByteTokens(nn.Module):
    """ByT5 and CANINE: bytes shifted by three as ids, hashed by primes and buckets, bits unpacked, downsampled by four with a short last."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.e = nn.Embedding(259, 4)
        self.h = nn.ModuleList([nn.Embedding(16, 2) for _ in range(3)])

    def forward(self, x):
        i = x.long() + 3
        y = self.e(i)
        z = torch.cat([e(((i + 1) * p) % 16) for e, p in zip(self.h, (31, 43, 59))], -1)
        bits = (x[..., None] >> torch.arange(7, -1, -1, dtype=torch.uint8)) & 1
        pad = -i.shape[1] % 4
        d = F.pad(y, (0, 0, 0, pad)).view(x.shape[0], -1, 4, 4).amax(2)
        cont = (x & 0xC0) == 0x80
        return z, bits, d, (~cont).sum(1), x * 3


@attack("x:float32[N,C,T]", dims="N=1:1:2 C=4:4:4 T=1:9:40", feeds=at("x:float32[N,C,T]", N=(1, 2), C=(4,), T=(1, 2, 15, 16, 17, 31, 32, 33, 40)))
class A6896OverlapAddChunks(nn.Module):
    """Demucs: segments of sixteen by twelve, triangular weights, the last short one padded on both sides, summed by slices."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.conv = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        n, c, t = x.shape
        seg, stride = 16, 12
        w = torch.cat((torch.arange(1, seg // 2 + 1), torch.arange(seg - seg // 2, 0, -1))).float()
        w = w / w.max()
        out, total = torch.zeros_like(x), torch.zeros(t)
        for off in range(0, t, stride):
            k = x[..., off : off + seg]
            m = k.shape[-1]
            d = seg - m
            y = self.conv(F.pad(k, (d // 2, d - d // 2)))
            y = y[..., d // 2 : d // 2 + m]
            out[..., off : off + seg] += w[:m] * y
            total[off : off + seg] += w[:m]
        return out / total


@attack(X8, **rows(X8, high=40))
class A6897MoeCapacity(nn.Module):
    """Switch: a router in float32, capacity by the number of tokens, places by cumulative sums, what overflows passes through."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.r = nn.Linear(8, 3, bias=False)
        self.w = nn.Parameter(torch.randn(3, 8, 8))

    def forward(self, x):
        n, t, c = x.shape
        f = x.reshape(-1, c)
        cap = max(int(math.ceil(1.25 * f.shape[0] / 3)), 2)
        p = self.r(f).softmax(-1)
        g, i = p.max(-1)
        o = F.one_hot(i, 3)
        at_ = (o.cumsum(0) * o).sum(1) - 1
        ok = at_ < cap
        buf = torch.zeros(3 * cap + 1, c).index_add(0, torch.where(ok, i * cap + at_, 3 * cap), f)
        y = torch.bmm(buf[:-1].view(3, cap, c), self.w).flatten(0, 1)
        y = torch.where(ok[:, None], y[(i * cap + at_).clamp(max=3 * cap - 1)] * g[:, None], f)
        aux = (o.float().mean(0) * p.mean(0)).sum() * 3
        return y.view(n, t, c), aux, ok.sum()


@attack(X8, "h:float32[N,8]", dims="N=1:2:3 T=1:8:20", feeds=at(X8, "h:float32[N,8]", N=(1, 2), T=(1, 2, 19, 20)))
class A6898MambaScan(nn.Module):
    """A selective scan by cumulative sums of logs, causal convolution cut by the length, softplus steps, state given back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.conv = nn.Conv1d(8, 8, 4, groups=8, padding=3)
        self.dt = nn.Linear(8, 8)

    def forward(self, x, h):
        t = x.shape[1]
        y = F.silu(self.conv(x.transpose(1, 2))[..., :t]).transpose(1, 2)
        dt = F.softplus(self.dt(y))
        la = -(dt * 0.3)
        s = la.cumsum(1)
        d = s[:, :, None] - s[:, None]
        m = torch.tril(torch.ones(t, t, dtype=torch.bool))[None, :, :, None]
        k = torch.exp(d.masked_fill(~m, float("-inf")))
        out = torch.einsum("btsc,bsc->btc", k, dt * y) + torch.exp(s) * h[:, None]
        return out, out[:, -1], F.pad(x.transpose(1, 2), (4 - t, 0))


@attack("x:float32[N,T,5]", "p:int64[N,K]=0:4", "s:float32[N,K]=-9:0", dims="N=1:1:2 T=1:6:12 K=4:4:4", feeds=at("x:float32[N,T,5]", "p:int64[N,K]=0:4", "s:float32[N,K]=-9:0", N=(1, 2), T=(1, 2, 12), K=(4,)))
class A6899BeamStep(nn.Module):
    """One step of generate: repetition penalty by gather and scatter, a ban of EOS below a length, top-p with the first kept, beams of four by flat top-k."""

    def forward(self, x, p, s):
        lg = x[:, -1]
        v = torch.gather(lg, 1, p)
        lg = lg.scatter(1, p, torch.where(v < 0, v * 1.2, v / 1.2))
        if x.shape[1] < 3:
            lg = lg.clone()
            lg[:, 4] = -float("inf")
        so, si = torch.sort(lg, descending=False, stable=True)
        rem = so.softmax(-1).cumsum(-1) <= 1 - 0.8
        rem[..., -1:] = False
        lg = lg.masked_fill(rem.scatter(1, si, rem), float("-inf"))
        lp = lg.log_softmax(-1)
        f = (s[:, :, None] + lp[:, None]).flatten(1)
        top, _ = f.topk(4, dim=1)
        return top, lp, torch.isinf(lp).sum(1)

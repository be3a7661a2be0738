# ruff: noqa: E501, F841, RUF059 - attacks are written as users write them
"""Sounds and series: streams with caches, framing, resamplers, filters, detectors of voice, trackers of pitch, forecasts, tokens, normalisers with lengths."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
LONG = "N=1:1:2 T=16:60:120"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = XT, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


class Cache(NamedTuple):
    left: torch.Tensor
    keys: list
    seen: int = 0
@attack(X4, "left:float32[N,2,4]", "k:float32[N,S,4]", dims="N=1:1:2 T=1:4:9 S=1:6:12", kinds=FINITE[:4], feeds=tuple(values_at(X4, "left:float32[N,2,4]", "k:float32[N,S,4]", N=1, T=t, S=s) for t, s in ((1, 1), (1, 12), (9, 1), (9, 12))), refused="is of type int, not a tensor")
class A4460StreamingConformer(nn.Module):
    """A causal convolution with what was left of the last chunk, attention to cached keys cut to eight, the cache a NamedTuple that _replace changes, an offset of both lengths."""
    def __init__(self):
        super().__init__()
        self.conv, self.q = nn.Conv1d(4, 4, 3), nn.Linear(4, 4)
    def step(self, x, cache):
        y = torch.cat([cache.left, x], 1)
        cache = cache._replace(left=y[:, -2:], seen=cache.seen + x.shape[1])
        y = self.conv(y.mT).mT
        k = torch.cat([*cache.keys, y], 1)
        cache = cache._replace(keys=[k[:, -8:]])
        i = torch.arange(y.shape[1])[:, None] + k.shape[1] - y.shape[1]
        w = (self.q(y) @ k.mT).masked_fill(torch.arange(k.shape[1]) > i, -torch.inf)
        return x + w.softmax(-1) @ k, cache
    def forward(self, x, left, k):
        y, c = self.step(x, Cache(left, [k]))
        z, c = self.step(y, c)
        return z, c, y * c.seen
@attack(XT, dims=LONG, kinds=FINITE[:4], feeds=lengths(16, 17, 119, 120))
class A4461FramesByTwoWays(nn.Module):
    """Frames by as_strided, by unfold and by an index table; dither from a fixed generator per length, pre-emphasis, DC removed, a power of two for the spectrum, an energy floor."""
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.hann_window(10, periodic=False).pow(0.85))
    def forward(self, x):
        n = 1 + (x.shape[1] - 10) // 4
        a = x.unfold(1, 10, 4)
        i = torch.arange(n)[:, None] * 4 + torch.arange(10)
        b = x[:, i] - a.mean(-1, keepdim=True)
        e = b.square().sum(-1).clamp(min=1.1920928955078125e-07).log()
        b = b - 0.97 * F.pad(b, (1, 0), mode="replicate")[..., :-1]
        size = 2 ** math.ceil(math.log2(10))
        s = torch.fft.rfft(F.pad(b * self.w, (0, size - 10))).abs().square()
        return e, s, a
@forward(XT, dims=LONG, kinds=FINITE[:4], feeds=lengths(16, 17, 41, 120))
def A4462ResamplerByRatio(self, x):
    """A polyphase resampler 3:2 as torchaudio's: a kernel that Python makes, a stride, phases interleaved, cut by a ceil of the length; a linear one by positions; a hold by repeat."""
    t = x.shape[1]
    orig, new, width = 2, 3, 6
    i = torch.arange(-width, width + orig, dtype=torch.float64)[None] / orig
    k = torch.arange(0, -new, -1, dtype=torch.float64)[:, None] / new + i
    k = k.mul(0.99 * min(orig, new)).clamp_(-6, 6)
    win = torch.cos(k * math.pi / 12) ** 2
    k = k * math.pi
    k = (torch.where(k == 0, 1.0, k.sin() / k) * win * 0.99 * min(orig, new) / orig).float()[:, None]
    y = F.conv1d(F.pad(x, (width, width + orig))[:, None], k, stride=orig)
    y = y.transpose(1, 2).reshape(x.shape[0], -1)[..., : math.ceil(new * t / orig)]
    pos = torch.arange(int(t * new / orig)) * (orig / new)
    lo = pos.floor().long().clamp(max=t - 1)
    z = torch.lerp(x[:, lo], x[:, (lo + 1).clamp(max=t - 1)], (pos - lo).float())
    return y, z, x.repeat_interleave(3, 1)[:, ::2]
@attack(XT, dims="N=1:1:2 T=1:9:20", kinds=FINITE[:4], feeds=lengths(1, 2, 20), refused="the path through the module depends on the size")
class A4463FilterWithState(nn.Module):
    """A biquad and an envelope of two speeds, sample by sample, whose state is a dataclass that replace() moves on; a limiter in place behind."""
    @dataclass
    class State:
        z: list = field(default_factory=lambda: [0.0, 0.0])
        env: torch.Tensor | None = None
    def forward(self, x):
        s = self.State()
        b0, b1, b2, a1, a2 = 0.2, 0.4, 0.2, -0.3, 0.1
        out = []
        for v in x.unbind(1):
            y = b0 * v + s.z[0]
            s.z = [b1 * v - a1 * y + s.z[1], b2 * v - a2 * y]
            e = torch.zeros_like(v) if s.env is None else s.env
            s = replace(s, env=torch.where(y.abs() > e, 0.5 * e + 0.5 * y.abs(), 0.95 * e + 0.05 * y.abs()))
            out.append(y / s.env.clamp(min=1.0))
        return torch.stack(out, 1), s.env
@forward(XT, dims=LONG, kinds=FINITE[:4], feeds=(*lengths(16, 64, 120), lambda: {"x": np.sin(np.arange(120, dtype=np.float32) * 0.5)[None]}))
def A4464PitchByDifference(self, x):
    """YIN: a difference function by spectra of a next power of two of the length, its running mean, the first dip under a threshold or the lowest, a parabola, zero crossings."""
    t = x.shape[1]
    w = t // 2
    size = 1 << (t + w - 1).bit_length()
    f = torch.fft.rfft(x, size)
    g = torch.fft.rfft(x[:, :w], size)
    r = torch.fft.irfft(f * g.conj(), size)[:, :w]
    e = F.pad(x.square().cumsum(1), (1, 0))
    d = e[:, w : w + 1] + e[:, w : 2 * w] - e[:, :w] - 2 * r
    c = d[:, 1:] / (d[:, 1:].cumsum(1) / torch.arange(1, w)).clamp(min=1e-3)
    ok = (c < 0.2) & (c <= F.pad(c[:, 1:], (0, 1), value=float("inf")))
    p = torch.where(ok.any(1), ok.int().argmax(1), c.argmin(1))
    z = ((x[:, 1:] >= 0) != (x[:, :-1] >= 0)).sum(1)
    return d, ok.any(1), z
@attack("x:float32[N,T]=0:1", dims=ROWS, kinds=("unit", "zeros", "ones", "halves"), feeds=(lambda: {"x": np.array([[0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]], np.float32)},), refused="the path through the module depends on the size")
class A4465VoiceWithHangover(nn.Module):
    """Two thresholds with memory, a hangover by a counter, short gaps closed by pools, segments counted, starts and ends by differences, the longest run by a running maximum."""
    def forward(self, x):
        t = x.shape[1]
        on, hold = torch.zeros(x.shape[0], dtype=torch.bool), torch.zeros(x.shape[0], dtype=torch.long)
        out = []
        for v in x.unbind(1):
            on = torch.where(v >= 0.5, True, torch.where(v < 0.35, False, on))
            hold = torch.where(on, 3, (hold - 1).clamp(min=0))
            out.append(hold > 0)
        y = torch.stack(out, 1)
        closed = (-F.max_pool1d(-F.max_pool1d(F.pad(y.float(), (2, 2)), 5, 1), 5, 1) > 0) if t > 4 else y
        start = y & ~F.pad(y, (1, 0))[:, :-1]
        i = torch.arange(1, t + 1)
        run = i - torch.where(y, 0, i).cummax(1).values
        return y, closed, start.sum(1), run.amax(1), run.argmax(1), start.cumsum(1) * y
@attack(X4, "lens:int64[N]=1:20", dims="N=1:2:3 T=20", kinds=FINITE[:4], feeds=(lambda: {"x": np.ones((2, 20, 4), np.float32), "lens": np.array([1, 20])}, lambda: {"x": np.arange(160, dtype=np.float32).reshape(2, 20, 4), "lens": np.array([2, 2])}))
class A4466MaskedNormalisers(nn.Module):
    """NeMo's mean and deviation per feature by lengths (a divide by zero at one), a masked batch norm with running numbers, a masked softmax, an instance norm cut, the length after three strided convolutions."""
    def __init__(self):
        super().__init__()
        self.bn, self.conv = nn.BatchNorm1d(4), nn.Conv1d(4, 4, 3, 2, 1)
    def forward(self, x, lens):
        m = torch.arange(x.shape[1]) < lens[:, None]
        mean = (x * m[..., None]).sum(1) / lens[:, None]
        std = torch.sqrt((((x - mean[:, None]) * m[..., None]) ** 2).sum(1) / (lens[:, None] - 1.0)).nan_to_num(nan=0.0) + 1e-5
        y = torch.where(m[..., None], (x - mean[:, None]) / std[:, None], 0.0)
        n = lens
        for _ in range(3):
            y = self.bn(self.conv(y.mT)).mT
            n = torch.div(n + 2 * 1 - 1 * (3 - 1) - 1, 2, rounding_mode="floor") + 1
            y = y * (torch.arange(y.shape[1]) < n[:, None])[..., None]
        w = y.sum(-1).masked_fill(torch.arange(y.shape[1]) >= n[:, None], -1e4).softmax(-1)
        return y, n, torch.einsum("nt,ntd->nd", w, y), std
@forward("ids:int64[N,T]=0:9", dims=ROWS, feeds=(lambda: {"ids": np.array([[0, 0, 3, 3, 0, 3, 5, 5, 5, 0]])}, lambda: {"ids": np.zeros((2, 20), np.int64)}, lambda: {"ids": np.array([[7]])}))
def A4467CollapsedTokens(self, ids):
    """CTC's collapse into a padded tensor by a running count and a scatter, lengths, word starts, right shift for teaching, reversal within lengths, bigram keys, a hash of n-grams by rolling."""
    n, t = ids.shape
    prev = F.pad(ids, (1, 0), value=-1)[:, :-1]
    keep = (ids != prev) & (ids != 0)
    pos = keep.long().cumsum(1) - 1
    out = torch.full((n, t + 1), -1).scatter(1, torch.where(keep, pos, t), ids)[:, :t]
    count = keep.sum(1)
    j = torch.arange(t)
    back = torch.where(j < count[:, None], count[:, None] - 1 - j, j)
    rev = out.gather(1, back)
    shifted = ids.roll(1, 1)
    shifted[:, 0] = 9
    h = torch.zeros(n, t, dtype=torch.long)
    for k in range(3):
        h = (h * 31 + F.pad(ids, (k, 0))[:, :t]) % 65521
    return out, count, rev, shifted, h, ids * 10 + prev, (out == -1).int().argmax(1)
@attack(X4, dims="N=1:1:2 T=2:9:30", kinds=FINITE[:4], feeds=lengths(2, 3, 29, 30, text=X4))
class A4468ForecastInPatches(nn.Module):
    """RevIN there and back, a trend by a replicated moving mean, patches with a stride behind a pad of the end, seasons by the largest frequencies, lags that a list gives."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        mu, sd = x.mean(1, keepdim=True).detach(), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5).detach()
        y = (x - mu) / sd * self.a + self.b
        k = 5
        front, end = y[:, :1].repeat(1, (k - 1) // 2, 1), y[:, -1:].repeat(1, math.floor((k - 1) // 2), 1)
        trend = F.avg_pool1d(torch.cat([front, y, end], 1).mT, k, 1).mT
        p = F.pad((y - trend).mT, (0, 4), mode="replicate").unfold(-1, 4, 2) if x.shape[1] >= 2 else y.mT
        f = torch.fft.rfft(y - trend, dim=1)
        amp = f.abs().mean((0, 2))
        amp[0] = 0
        lag = torch.stack([y.roll(s, 1) for s in (1, 2, -1)], -1)
        out = (self.head(trend) - self.b) / (self.a + 1e-10) * sd + mu
        return out, p, amp, lag, x[:, -1:] + self.head(x - x[:, -1:])
@attack("x:float32[N,T]=-1:1", dims=LONG, kinds=("normal", "zeros", "halves"), feeds=lengths(16, 17, 120))
class A4469PhaseVocoder(nn.Module):
    """A spectrum by torch.stft, a stretch by a half with phases summed up modulo two pi, an inverse with a length; a mel filterbank that Python makes; Griffin-Lim of two steps from zero phases."""
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.hann_window(16))
        self.register_buffer("fb", torch.rand(9, 5))
    def forward(self, x):
        s = torch.stft(x, 16, 4, window=self.w, return_complex=True)
        mel = torch.log10(torch.clamp((s.abs() ** 2).mT @ self.fb, min=1e-10))
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0)
        mag, ang = s.abs(), torch.zeros_like(s.abs())
        for _ in range(2):
            y = torch.istft(torch.polar(mag, ang), 16, 4, window=self.w, length=x.shape[1])
            ang = torch.stft(y, 16, 4, window=self.w, return_complex=True).angle()
            ang = torch.zeros_like(ang)
        return (mel + 4.0) / 4.0, y, torch.istft(s, 16, 4, window=self.w, length=x.shape[1])
@forward(XT, dims="N=1:1:2 T=1:20:60", kinds=FEW, feeds=lengths(1, 2, 3, 59, 60), refused="the path through the module depends on the size")
def A4470EffectsOfSound(self, x):
    """A soft clip, a gate with a floor in decibels, a fade in and out by min of sizes, a reverse by a flag of the size, echoes by pads, a tremolo by a sine of the place, normal to -1 dB, loudness."""
    t = x.shape[1]
    k = min(8, t // 2)
    fade = torch.cat([torch.linspace(0, 1, k), torch.ones(t - 2 * k), torch.linspace(1, 0, k)])
    y = torch.where(x.abs() < 1 / 3, 2 * x, torch.where(x.abs() < 2 / 3, x.sign() * (3 - (2 - 3 * x.abs()) ** 2) / 3, x.sign()))
    db = 20 * torch.log10(x.abs().clamp(min=1e-5))
    gate = torch.where(db < -40, 0.0, 1.0)
    echo = x.clone()
    for d in (3, 7):
        if d < t:
            echo[:, d:] += 0.5 * x[:, :-d]
    trem = 1 - 0.5 * (1 + torch.sin(2 * torch.pi * 5 * torch.arange(t) / 16000)) / 2
    peak = echo.abs().amax(1, keepdim=True)
    return y * fade, x * gate, echo / peak.clamp(min=1e-4) * 10 ** (-1 / 20), x * trem, (x**2).mean(1).clamp(min=1e-10).log10() * 10 - 0.691
@attack("q:float32[N,T,8]", dims="N=1:1:2 T=1:9:20", kinds=FINITE[:4], feeds=lengths(1, 20, text="q:float32[N,T,8]"))
class A4471RotaryOfManyKinds(nn.Module):
    """NTK scaling by the length against the trained one, YaRN's ramp, a partial rotation, interleaved and halved forms, an offset; a table in a dictionary by length."""
    def __init__(self):
        super().__init__()
        self.tables = {}
    @functools.lru_cache(maxsize=4)  # noqa: B019
    def freqs(self, base):
        return 1.0 / base ** (torch.arange(0, 4, 2) / 4)
    def table(self, t):
        if t not in self.tables:
            base = 10000.0 * ((2.0 * t / 12) - 1) ** (4 / 2) if t > 12 else 10000.0
            f = torch.outer(torch.arange(t).float(), 1.0 / base ** (torch.arange(0, 4, 2).float() / 4))
            self.tables[t] = f.cos(), f.sin()
        return self.tables[t]
    def forward(self, q):
        c, s = self.table(q.shape[1])
        a, rest = q[..., :4], q[..., 4:]
        x1, x2 = a[..., ::2], a[..., 1::2]
        inter = torch.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).flatten(-2)
        h1, h2 = a.chunk(2, -1)
        half = torch.cat([h1 * c - h2 * s, h2 * c + h1 * s], -1)
        ramp = ((torch.arange(2) - 0.3) / 1.2).clamp(0, 1)
        f = self.freqs(10000.0) * (1 - ramp) + self.freqs(10000.0) / 4 * ramp
        ang = torch.outer(torch.arange(3, q.shape[1] + 3), f)
        return torch.cat([inter, rest], -1), torch.cat([half, rest], -1), ang.sin() * (0.1 * math.log(4) + 1)
@attack(X4, dims="N=1:1:2 T=1:6:12", kinds=FINITE[:4], feeds=lengths(1, 2, 12, text=X4))
class A4472TransducerGreedy(nn.Module):
    """A greedy transducer with one symbol a frame at most: an LSTM cell whose state stays where the blank wins, an embedding of the last symbol, a joiner; all by where."""
    def __init__(self):
        super().__init__()
        self.e, self.cell, self.j = nn.Embedding(5, 4), nn.LSTMCell(4, 4), nn.Linear(4, 5)
    def forward(self, x):
        n = x.shape[0]
        h = c = x.new_zeros(n, 4)
        last = torch.zeros(n, dtype=torch.long)
        out, score = [], x.new_zeros(n)
        h, c = self.cell(self.e(last), (h, c))
        for t in range(x.size(1)):
            lp = self.j(torch.tanh(x[:, t] + h)).log_softmax(-1)
            v, k = lp.max(-1)
            blank = k == 0
            nh, nc = self.cell(self.e(k), (h, c))
            h, c = torch.where(blank[:, None], h, nh), torch.where(blank[:, None], c, nc)
            last = torch.where(blank, last, k)
            score = score + v
            out.append(torch.where(blank, -1, k))
        return torch.stack(out, 1), score, last, (h, c)
@forward("x:float32[N,T]", "y:float32[N,S]", dims="N=1:1:2 T=1:5:9 S=1:6:9", kinds=FEW, feeds=tuple(values_at(XT, "y:float32[N,S]", N=1, T=t, S=s) for t, s in ((1, 1), (1, 9), (9, 1), (9, 9), (4, 5))))
def A4473CorrelationOfTwoLengths(self, x, y):
    """Cross-correlation by an FFT of the sum of both lengths, its lag by an argmax minus a size, GCC-PHAT, SI-SDR of the shorter, padded to the longer by a zip of sizes, convolve full, same and valid."""
    t, s = x.shape[1], y.shape[1]
    n = t + s - 1
    r = torch.fft.irfft(torch.fft.rfft(x, 2 * n) * torch.fft.rfft(y.flip(1), 2 * n), 2 * n)[:, :n]
    lag = r.argmax(1) - (s - 1)
    m = min(t, s)
    a, b = x[:, :m], y[:, :m]
    proj = (a * b).sum(1, keepdim=True) / (b.square().sum(1, keepdim=True) + 1e-8) * b
    sdr = 10 * torch.log10((proj.square().sum(1) + 1e-8) / ((a - proj).square().sum(1) + 1e-8))
    w = max(t, s)
    both = torch.stack([F.pad(v, (0, w - v.shape[1])) for v in (x, y)], 1)
    return r, lag.abs() * 0, sdr, both, r[:, (n - w) // 2 : (n - w) // 2 + w], r[:, m - 1 : w]
@attack(X4, dims="N=1:1:2 T=1:9:20", kinds=FINITE[:4], feeds=lengths(1, 3, 4, 5, 20, text=X4))
class A4474ChunkedAttention(nn.Module):
    """A mask of chunks by // with left context, a subsampled mask by [::2], a convolution module with a mask, relative shift by pad and view; macaron halves."""
    def __init__(self):
        super().__init__()
        self.f1, self.f2, self.qkv, self.pos = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 12), nn.Linear(4, 4, bias=False)
        self.conv = nn.Conv1d(4, 4, 3, padding=1, groups=4)
    def shift(self, x):
        n, q, k = x.shape
        return F.pad(x, (1, 0)).view(n, k + 1, q)[:, 1:].view(n, q, k)[:, :, : k // 2 + 1]
    def forward(self, x):
        t = x.shape[1]
        x = x + 0.5 * F.silu(self.f1(x))
        q, k, v = self.qkv(x).chunk(3, -1)
        i = torch.arange(t - 1, -t, -1.0)
        pe = torch.stack([i.sin(), i.cos(), (i / 100).sin(), (i / 100).cos()], -1)
        w = q @ k.mT + self.shift(q @ self.pos(pe).T)
        c = torch.arange(t) // 4
        m = (c[None] <= c[:, None]) & (c[None] >= c[:, None] - 1)
        w = w.masked_fill(~m, -1e4).softmax(-1).masked_fill(~m, 0.0)
        x = x + w @ v
        x = x + self.conv((x * m.any(0)[:, None]).mT).mT
        return x + 0.5 * F.silu(self.f2(x)), m[::2, ::2]
@forward(XT, dims="N=1:1:2 T=4:20:40", kinds=("normal", "halves", "tenths"), feeds=lengths(4, 5, 39, 40))
def A4475WaveletsAndTransforms(self, x):
    """Haar steps with odd lengths padded, a DCT by an FFT of a reordered signal, its inverse, an analytic signal by a spectrum with doubled halves for even and odd lengths, a Hadamard of eight."""
    n, t = x.shape
    y, parts = x, []
    for _ in range(2):
        if y.shape[1] % 2:
            y = F.pad(y, (0, 1), mode="reflect")
        y, d = (y[:, ::2] + y[:, 1::2]) / 2**0.5, (y[:, ::2] - y[:, 1::2]) / 2**0.5
        parts.append(d)
    v = torch.cat([x[:, ::2], x[:, 1::2].flip(1)], 1)
    k = torch.arange(t) * torch.pi / (2 * t)
    f = torch.fft.fft(v)
    dct = 2 * (f.real * k.cos() + f.imag * k.sin())
    h = torch.zeros(t)
    if t % 2 == 0:
        h[0] = h[t // 2] = 1
        h[1 : t // 2] = 2
    else:
        h[0] = 1
        h[1 : (t + 1) // 2] = 2
    a = torch.fft.ifft(torch.fft.fft(x) * h)
    return y, *parts, dct, a.real, a.imag, a.abs()

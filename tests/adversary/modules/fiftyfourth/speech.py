# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them
"""Speech: spectra, frames, lengths, streams, paddings, resampling."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftyfourth.sequences import seq

X, X4 = "x:float32[N,T]=-4:4", "x:float32[N,T,4]=-4:4"
WAVE = "x:float32[N,T]=-1:1"
KINDS = ("normal", "halves", "zeros", "tenths", "tiny")


@attack(X, **seq(X))
class A6914EncodecConv(nn.Module):
    """Encodec's convolution: more padding where the last frame is not whole; short sounds are reflected via zeros."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 7, 3)

    @staticmethod
    def pad(x, left, right):
        t, most, extra = x.shape[-1], max(left, right), 0
        if t <= most:
            extra = most - t + 1
            x = F.pad(x, (0, extra))
        y = F.pad(x, (left, right), mode="reflect")
        return y[..., : y.shape[-1] - extra]

    def forward(self, x):
        total = 7 - 3
        n = (x.shape[-1] - 7 + total) / 3 + 1
        more = (math.ceil(n) - 1) * 3 + (7 - total) - x.shape[-1]
        right = total // 2
        return self.conv(self.pad(x[:, None], total - right, right + more))


@forward(X, **seq(X))
def A6915Hangover(self, x):
    """Speech by energy: holes of less than four frames closed, islands of less than three removed, then a tail of five."""
    m = (x.abs() > 0.75).float()[:, None]
    closed = -F.max_pool1d(-F.max_pool1d(F.pad(m, (3, 0)), 4, 1), 4, 1, 0) if x.shape[1] > 3 else m
    closed = torch.maximum(F.pad(closed, (0, m.shape[2] - closed.shape[2])), m)
    opened = F.max_pool1d(-F.max_pool1d(-F.pad(closed, (1, 1)), 3, 1), 3, 1, 1)
    tail = F.max_pool1d(F.pad(opened, (4, 0), value=-math.inf), 5, 1)
    return tail[:, 0] > 0, opened.sum(2)


@forward(X4, **seq(X4))
def A6916CtcSpans(self, x):
    """Runs of the best label: start, length, and the mean of its score, padded with -1."""
    s, p = x.log_softmax(-1).max(-1)
    new = torch.ones_like(p, dtype=torch.bool)
    new[:, 1:] = p[:, 1:] != p[:, :-1]
    run = new.cumsum(1) - 1
    n = torch.zeros_like(p).scatter_add(1, run, torch.ones_like(p))
    total = torch.zeros_like(s).scatter_add(1, run, s)
    label = torch.full_like(p, -1).scatter(1, run, p)
    start = (n.cumsum(1) - n).masked_fill(n == 0, -1)
    return label, start, total / n.clamp(min=1), (label > 0).sum(1)


C = "c:float32[N,4,5]=-2:2"


@attack(X4, C, **seq(X4, C))
class A6917StreamCache(nn.Module):
    """A streamed convolution of width six: the cache comes in and goes out; chunks may be shorter than it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 6, groups=2)

    def forward(self, x, c):
        y = torch.cat((c, x.mT), 2)
        new = y[:, :, -5:]
        if x.shape[1] >= 32:
            new = x.mT[:, :, -5:] * (1 if x.shape[1] % 3 else -1)
        return self.conv(y), new


L0 = "l:int64[N]=0:40"


@forward(X4, L0, **seq(X4, L0))
def A6918Subsampled(self, x, l):
    """The length after three strides of two by floor division of l - 1, which is negative for empty ones; the mask of it."""
    y = x.mT
    for _ in range(3):
        l = (l - 1) // 2 + 1
        y = F.avg_pool1d(y, 3, 2, 1, count_include_pad=False)
    m = torch.arange(y.shape[2]) < l[:, None]
    e = torch.div(l - 3, 2, rounding_mode="trunc")
    return y.masked_fill(~m[:, None], -1.0), l, e, (l * 7 - 40) % 6


@forward(WAVE, **seq(WAVE, high=300, at=(1, 31, 159, 160, 161, 255, 300), kinds=KINDS))
def A6919WhisperFrames(self, x):
    """Cut or padded to 160, a spectrum without its last frame, decibels below the loudest of all of the batch."""
    t = x.shape[1]
    x = x[:, :160] if t > 160 else F.pad(x, (0, 160 - t)) if t < 160 else x
    s = torch.stft(x, 32, 16, window=torch.hann_window(32), return_complex=True)[..., :-1].abs() ** 2
    m = torch.clamp(s[:, :8] + s[:, 8:16], min=1e-10).log10()
    return (torch.maximum(m, m.max() - 8.0) + 4.0) / 4.0


@forward(X, **seq(X, high=90, at=(1, 2, 5, 6, 31, 49, 64, 80, 90)))
def A6920SincResampled(self, x):
    """torchaudio's resampling from 5 to 8 by strided kernels, the length by the ceiling of a true division."""
    o, n, width = 5, 8, 6
    base = min(o, n) * 0.99
    w = math.ceil(width * o / base)
    idx = torch.arange(-w, w + o, dtype=torch.float64)[None] / o
    t = (torch.arange(0, -n, -1, dtype=torch.float64)[:, None] / n + idx) * base
    t = t.clamp(-width, width)
    win = torch.cos(t * math.pi / width / 2) ** 2
    t = t * math.pi
    k = (torch.where(t == 0, 1.0, t.sin() / t) * win * base / o).float()
    y = F.conv1d(F.pad(x, (w, w + o))[:, None], k[:, None], stride=o)
    y = y.mT.reshape(x.shape[0], -1)
    return y[:, : math.ceil(n * x.shape[1] / o)]


@forward(WAVE, **seq(WAVE, low=20, high=200, at=(20, 27, 28, 29, 31, 36, 99, 100, 196), kinds=KINDS))
def A6921KaldiFrames(self, x):
    """Frames with snipped edges, the mean taken away, pre-emphasis with its own first sample, a floored log energy."""
    m = 1 + (x.shape[1] - 20) // 8
    f = x.as_strided((x.shape[0], m, 20), (x.stride(0), 8, 1))
    f = f - f.mean(2, keepdim=True)
    e = f.pow(2).sum(2).clamp(min=torch.finfo(torch.float32).eps).log()
    p = f - 0.97 * F.pad(f, (1, 0), mode="replicate")[..., :-1]
    s = torch.fft.rfft(p * torch.hann_window(20, periodic=False).pow(0.85), n=32).abs()
    return torch.cat((e[..., None], s.clamp(min=1e-7).log()), 2)


@forward(X4, **seq(X4, high=80, at=(1, 2, 9, 10, 11, 19, 20, 21, 50, 80)))
def A6922SlidingNorm(self, x):
    """Kaldi's sliding mean of twenty frames, centred, pushed inwards at the ends; and deltas."""
    n, t, _ = x.shape
    i = torch.arange(t)
    lo = (i - 10).clamp(min=0)
    hi = lo + 20
    over = (hi - t).clamp(min=0)
    lo, hi = (lo - over).clamp(min=0), hi.clamp(max=t)
    c = F.pad(x.double().cumsum(1), (0, 0, 1, 0))
    mean = (c[:, hi] - c[:, lo]) / (hi - lo)[:, None]
    y = x - mean.float()
    p = F.pad(y.mT, (2, 2), mode="replicate")
    d = (p[..., 3:-1] - p[..., 1:-3] + 2 * (p[..., 4:] - p[..., :-4])) / 10
    return y, d


L1 = "l:int64[N]=0:40"


@forward(X4, L1, **seq(X4, L1))
def A6923Reversed(self, x, l):
    """Each sequence backwards within its length by a remainder, the rest in place."""
    t = x.shape[1]
    i = torch.arange(t)
    r = (l[:, None] - 1 - i) % t
    r = torch.where(i < l[:, None], r, i)
    return (
        x.gather(1, r[..., None].expand(-1, -1, 4)),
        torch.fmod(l - 1, t),
        x[torch.arange(x.shape[0]), l - 1 - t * (l > t)] if t == 40 else x[:, 0],
    )


@forward(X, **seq(X))
def A6924Trimmed(self, x):
    """The first and the last loud sample; the sound moved to the front, silence behind; all where nothing is loud."""
    t = x.shape[1]
    loud = x.abs() >= 1.5
    first = loud.int().argmax(1)
    last = t - 1 - loud.flip(1).int().argmax(1)
    i = torch.arange(t) + first[:, None]
    y = x.gather(1, i.clamp(max=t - 1)) * (i <= last[:, None])
    return torch.where(loud.any(1, keepdim=True), y, x), last - first + 1


@forward(WAVE, **seq(WAVE, low=24, high=200, at=(24, 25, 35, 36, 37, 47, 48, 49, 191, 192, 193), kinds=KINDS))
def A6925SpectralGate(self, x):
    """Bins below the mean of their frame out, back by the inverse transform to the same length."""
    w = torch.hann_window(32)
    s = torch.stft(x, 32, 12, window=w, return_complex=True, pad_mode="reflect")
    g = (s.abs() >= s.abs().mean(1, keepdim=True) * 0.5).float()
    return torch.istft(s * g, 32, 12, window=w, length=x.shape[1])


@attack(X4, **seq(X4, high=70, at=(1, 15, 16, 17, 27, 28, 29, 39, 40, 41, 69, 70)))
class A6926Chunked(nn.Module):
    """Long sounds in chunks of sixteen with four in common, faded into another; short ones at once."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(4, 4, 3, padding=1), nn.Tanh())

    def forward(self, x):
        x = x.mT
        t = x.shape[2]
        if t <= 16:
            return self.net(x)
        n = -(-(t - 4) // 12)
        y = F.pad(x, (0, n * 12 + 4 - t)).unfold(2, 16, 12)
        b = x.shape[0]
        y = self.net(y.permute(0, 2, 1, 3).reshape(b * n, 4, 16)).reshape(b, n, 4, 16)
        up = (torch.arange(4) + 1) / 5
        f = torch.cat((up, torch.ones(8), up.flip(0)))
        f = f.repeat(n, 1)
        f[0, :4] = 1
        f[-1, -4:] = 1
        y = (y * f[:, None]).permute(0, 2, 3, 1).reshape(b * 4, 16, n)
        return F.fold(y, (1, n * 12 + 4), (1, 16), stride=(1, 12)).reshape(b, 4, -1)[..., :t]


def _pitch(*rows: list) -> tuple:
    return tuple((lambda r=r: {"x": np.array([r], np.float32)}) for r in rows)


@forward(
    X,
    **seq(X, low=4, own=_pitch([-1, -1, -1, -1, 2, -1, -1], [-4] * 9, [1, -2, 3, -4, 1, -2, 3, 4], [0, 0, 0, 0, 0])),
    refused="expected 1, got 0",
)
def A6927PitchMedian(self, x):
    """Pitch whose unvoiced frames are no numbers: medians of four of the voiced ones, filled from the left."""
    p = torch.where(x > 0, torch.log2(x), math.nan)
    m = F.pad(p, (3, 0), value=math.nan).unfold(1, 4, 1).nanmedian(-1).values
    ok = ~m.isnan()
    i = torch.where(ok, torch.arange(x.shape[1]), 0).cummax(1).values
    return m.gather(1, i).nan_to_num(-9.0), p.median(1).values.isnan(), ok.sum(1)

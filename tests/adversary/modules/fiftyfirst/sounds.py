# ruff: noqa: E501, E741 - attacks are written as users write them
"""Speech and sound: spectra, frames, filters, streams, collapses."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
WAVE = "x:float32[N,T]=-1:1"
PCM = "x:int16[N,T]=-32768:32767"
L = "l:int64[N]=1:40"
LONG = tuple(values_at(WAVE, N=1 + t % 2, T=t) for t in (90, 91, 97, 127, 128, 129, 160, 161, 255, 256, 257, 320, 399, 400))
EDGE = tuple((lambda a=a: {"x": np.array(a, np.int16)}) for a in ([[-32768, 32767, -32768, -1, 0, 1]], [[32767] * 9], [[-32768] * 7, [5] * 7]))


def wave(low: int = 90, **more: object) -> dict:
    """Waves of some hundreds of samples."""
    return {"dims": f"N=1:1:2 T={low}:160:400", "kinds": ("normal", "halves", "zeros", "tenths"), "feeds": LONG, **more}


@forward(WAVE, **wave())
def A6582LogMel(self, x):
    """stft with reflection, a triangular mel bank, decibels below the loudest, normalised."""
    s = torch.stft(x, 64, 24, 48, torch.hann_window(48, dtype=x.dtype), center=True, return_complex=True).abs() ** 2
    f = torch.linspace(0, 1, 33, dtype=x.dtype)
    c = torch.linspace(0, 1, 12, dtype=x.dtype)
    bank = torch.minimum((f[:, None] - c[:-2]) / (c[1:-1] - c[:-2]), (c[2:] - f[:, None]) / (c[2:] - c[1:-1])).clamp(min=0)
    m = (s.mT @ bank).clamp(min=1e-10).log10()
    m = torch.maximum(m, m.amax((1, 2), keepdim=True) - 8)
    return (m + 4) / 4


@forward(WAVE, **wave())
def A6583Overlapped(self, x):
    """Frames by unfold, windowed, back by fold, divided by the sum of windows, cut to the length."""
    t = x.shape[1]
    n = math.ceil(max(t - 32, 0) / 12) + 1
    y = F.pad(x, (0, (n - 1) * 12 + 32 - t))
    w = torch.hamming_window(32)
    f = y.unfold(1, 32, 12) * w
    back = F.fold((f * w).mT, (1, (n - 1) * 12 + 32), (1, 32), stride=(1, 12)).flatten(1)
    norm = F.fold((w * w)[None, :, None].expand(1, 32, n), (1, (n - 1) * 12 + 32), (1, 32), stride=(1, 12)).flatten(1)
    return f, (back / norm.clamp(min=1e-8))[:, :t]


@forward(X, **seq(X, low=2))
def A6584Autocorrelation(self, x):
    """Autocorrelation by an FFT of the next power of two, normalised by what overlaps."""
    t = x.shape[1]
    n = 1 << (2 * t - 1).bit_length()
    f = torch.fft.rfft(x - x.mean(1, keepdim=True), n=n)
    a = torch.fft.irfft(f.real**2 + f.imag**2, n=n)[:, :t]
    return a / (t - torch.arange(t)), a[:, 1:].argmax(1)


@forward(X, **seq(X))
def A6585Analytic(self, x):
    """A Hilbert transform whose middle bin goes by the parity, and the envelope."""
    t = x.shape[1]
    h = torch.zeros(t)
    h[0] = 1
    if t % 2 == 0:
        h[t // 2] = 1
        h[1 : t // 2] = 2
    else:
        h[1 : (t + 1) // 2] = 2
    z = torch.fft.ifft(torch.fft.fft(x) * h)
    return z.abs(), torch.fft.irfft(torch.fft.rfft(x), n=t), torch.fft.fftshift(torch.fft.fftfreq(t)) * x


@forward(PCM, **seq(PCM, own=EDGE))
def A6586Pcm(self, x):
    """Whole samples: absolute values that wrap, a shift, mu-law and back to whole samples."""
    f = x.float() / 32768
    mu = torch.sign(f) * torch.log1p(255 * f.abs()) / math.log1p(255)
    return x.abs(), x >> 4, (f * 32767).to(torch.int16), mu, x + x, (x.int() ** 2).sum(1)


@attack(X4, **seq(X4), refused="after many calls")
class A6587StreamOfFrames(nn.Module):
    """A causal convolution that keeps the last frames unless the chunk is a whole utterance of one length."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3)
        self.register_buffer("past", torch.zeros(1, 4, 2))

    def forward(self, x):
        y = torch.cat((self.past.expand(x.shape[0], -1, -1), x.mT), 2)
        if x.shape[1] == 37:
            self.past = y[:1, :, -2:].detach()
        return self.conv(y)


@forward(X4, L, **seq(X4, L))
def A6588MaskedMeans(self, x, l):
    """Cepstral mean and variance over the frames of a length, the rest zero."""
    t = x.shape[1]
    m = (torch.arange(t) < l[:, None])[..., None]
    n = m.sum(1, keepdim=True)
    mean = (x * m).sum(1, keepdim=True) / n
    var = ((x - mean).pow(2) * m).sum(1, keepdim=True) / (n - 1).clamp(min=1)
    y = ((x - mean) / (var + 1e-5).sqrt()).masked_fill(~m, 0)
    e = l - 1
    return y, y[torch.arange(x.shape[0]), e.clamp(max=t - 1)], torch.div(l + 1, 2, rounding_mode="floor")


@forward(X4, **seq(X4, low=2))
def A6589CtcGreedy(self, x):
    """Greedy collapse: repeats and blanks out, what is left moved to the front, the rest -1."""
    p = x.argmax(-1)
    k = torch.cat((torch.ones_like(p[:, :1], dtype=torch.bool), p[:, 1:] != p[:, :-1]), 1) & (p != 0)
    at = torch.where(k, k.cumsum(1) - 1, p.shape[1])
    out = torch.full((p.shape[0], p.shape[1] + 1), -1).scatter(1, at, p)[:, :-1]
    return out, k.sum(1)


DUR = "d:int64[N,T]=0:3"
DUE = tuple((lambda a=a: {"x": np.random.RandomState(len(a[0])).randn(len(a), len(a[0]), 4).astype(np.float32), "d": np.array(a)}) for a in ([[0, 3, 0, 0, 1]], [[3, 3, 3, 3], [0, 0, 0, 1]], [[1, 0, 0, 0], [3, 0, 0, 2]]))


@forward(X4, DUR, **seq(X4, DUR, own=DUE))
def A6590LengthRegulator(self, x, d):
    """FastSpeech's regulator by sums of durations, up to thrice the length; the mask says what is real."""
    e = d.cumsum(1)
    p = torch.arange(3 * x.shape[1])
    i = torch.searchsorted(e, p.expand(x.shape[0], -1).contiguous(), right=True)
    m = p < e[:, -1:]
    return x.gather(1, i.clamp(max=x.shape[1] - 1)[..., None].expand(-1, -1, 4)) * m[..., None], m


@forward(X, **seq(X))
def A6591OnePole(self, x):
    """A one-pole filter by a matrix of powers, made from the length."""
    t = x.shape[1]
    k = torch.arange(t)
    d = k[:, None] - k
    w = torch.where(d >= 0, torch.pow(0.9, d.clamp(min=0).float()), 0.0)
    return x @ w.mT * 0.1


@forward(X, **seq(X, low=3), refused="depends on the size")
def A6592LastOfDeque(self, x):
    """A loop over frames that keeps three in a deque; what leaves comes back as a mean."""
    q, out = deque(maxlen=3), []
    for f in x.unbind(1):
        q.append(f)
        out.append(sum(q) / len(q))
    return torch.stack(out, 1)


@forward(WAVE, **wave())
def A6593PitchByDifference(self, x):
    """YIN: squared differences, normalised by cumulative means, the first below a threshold or the least."""
    d = torch.stack([(x[:, : -40] - x[:, k : k + x.shape[1] - 40]).pow(2).sum(1) for k in range(1, 40)], 1)
    c = d * torch.arange(1, 40) / d.cumsum(1).clamp(min=1e-9)
    below = c < 0.15
    return torch.where(below.any(1), below.int().argmax(1), c.argmin(1)) + 1, c


@attack(X4, **seq(X4, low=4))
class A6594Subsampled(nn.Module):
    """Conformer: subsampling by four with the length's formula, relative positions shifted, halves of steps."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(4, 4, 3, 2, 1), nn.ReLU(), nn.Conv1d(4, 4, 3, 2, 1))
        self.q, self.r = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        y = self.conv(x.mT).mT
        t = y.shape[1]
        f = torch.exp(torch.arange(0, 4, 2) * (-math.log(1e4) / 4))
        p = torch.arange(t - 1, -t, -1.0)[:, None] * f
        p = self.r(torch.cat((p.sin(), p.cos()), -1))
        s = self.q(y) @ p.mT
        s = F.pad(s, (1, 0)).view(s.shape[0], 2 * t, t)[:, 1:].reshape(s.shape[0], t, 2 * t - 1)[..., :t]
        return ((y @ y.mT + s) / 2).softmax(-1) @ y


@forward(X, **seq(X, own=sprinkled(1.0, -1.0, 0.0, sizes=((1, 9), (2, 31)))))
def A6595Companded(self, x):
    """Mu-law to 256 codes, back, an error, and a soft clip with a knee."""
    x = x.clamp(-1, 1)
    y = torch.sign(x) * torch.log1p(255 * x.abs()) / math.log(256)
    q = ((y + 1) / 2 * 255 + 0.5).to(torch.int64)
    z = 2 * (q.float() / 255) - 1
    back = torch.sign(z) * (torch.pow(256.0, z.abs()) - 1) / 255
    return q, back, torch.where(x.abs() < 0.5, x, torch.sign(x) * (1 - 0.25 / x.abs().clamp(min=0.5)))


@forward(X, **seq(X, low=2))
def A6596Resampled(self, x):
    """Linear resampling from 3 to 2 with positions of the file's own, and by interpolate."""
    t = x.shape[1]
    n = int(t * 2 / 3)
    p = torch.arange(n) * 1.5
    i = p.floor().long()
    f = p - i
    j = (i + 1).clamp(max=t - 1)
    y = x[:, i] * (1 - f) + x[:, j] * f
    return y, F.interpolate(x[:, None], scale_factor=2 / 3 + 1e-9, mode="linear")[:, 0]

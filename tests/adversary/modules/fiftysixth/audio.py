# ruff: noqa: E501 - attacks are written as users write them
"""Speech: frames, pads by parity, spectra, resamplers, voice activity, greedy CTC, beams, caches of streams."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

W = "x:float32[N,T]=-1:1"


def lengths(text, *many, n=1, **more):
    return tuple(values_at(text, N=n, T=t, **more) for t in many)


@forward(W, dims="N=1:1:2 T=16:80:200", kinds=FINITE, feeds=lengths(W, 16, 17, 31, 32, 33, 47, 48, 200, 199))
def A7115Frames(self, x):
    """Frames of 16 each 8, the tail padded so that the last frame is full; pre-emphasis keeps the first sample."""
    t = x.shape[1]
    x = torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1)
    pad = (8 - (t - 16) % 8) % 8
    f = F.pad(x, (0, pad)).unfold(1, 16, 8)
    f = f - f.mean(-1, keepdim=True)
    return f * torch.hann_window(16, periodic=False), f.square().sum(-1).clamp_min(1e-10).log10() * 10


@attack(W, dims="N=1:1:2 T=16:80:200", kinds=FINITE, feeds=lengths(W, 16, 17, 24, 31, 33, 200))
class A7116Whisper(nn.Module):
    """Whisper's log-mel: STFT without the last frame, log10, floor at the greatest less eight, over the whole batch."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mel", torch.rand(6, 9))
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x):
        s = torch.stft(x, 16, 8, window=self.window, return_complex=True)
        p = s[..., :-1].abs() ** 2
        y = torch.clamp(self.mel @ p, min=1e-10).log10()
        y = torch.maximum(y, y.max() - 8.0)
        return (y + 4.0) / 4.0


@forward(W, dims="N=1:1:2 T=8:41:100", kinds=FINITE, feeds=lengths(W, 8, 9, 10, 11, 40, 41, 100, 99))
def A7117SamePad(self, x):
    """TensorFlow's same pad of a conv with stride 3, kernel 5, dilation 2: more on the right where the pad is odd."""
    k = torch.linspace(-1, 1, 5).view(1, 1, 5)
    t, s, eff = x.shape[-1], 3, 9
    total = max((math.ceil(t / s) - 1) * s + eff - t, 0)
    y = F.pad(x[:, None], (total // 2, total - total // 2))
    return F.conv1d(y, k, stride=s, dilation=2)


@forward(W, dims="N=1:1:2 T=4:40:120", kinds=FINITE, feeds=lengths(W, 4, 5, 6, 7, 40, 44, 119, 120))
def A7118Resample(self, x):
    """A sinc resampler from 3 to 2: kernel by phases, a ceiling of 2T/3 samples kept."""
    orig, new, width = 3, 2, 5
    base = min(orig, new) * 0.99
    idx = torch.arange(-width, width + orig, dtype=torch.float64)[None, None] / orig
    t = torch.arange(0, -new, -1, dtype=torch.float64)[:, None, None] / new + idx
    t = (t * base).clamp(-6, 6)
    win = torch.cos(t * math.pi / 6 / 2) ** 2
    t = t * math.pi
    k = torch.where(t == 0, 1.0, t.sin() / t) * win * base / orig
    n = x.shape[1]
    y = F.conv1d(F.pad(x, (width, width + orig))[:, None], k.float(), stride=orig)
    y = y.transpose(1, 2).reshape(x.shape[0], -1)
    return y[..., : math.ceil(new * n / orig)]


@forward(
    "x:float32[N,T,5]=-4:4", "l:int64[N]=1:12", dims="N=1:2:3 T=12:13:20", kinds=FINITE,
    feeds=(halves(2, 13, 5, l=np.array([12, 1])), halves(1, 12, 5, l=np.array([12])), halves(3, 20, 5, l=np.array([1, 2, 12]))),
)  # fmt: skip
def A7119CtcGreedy(self, x, l):  # noqa: E741
    """Greedy CTC of a fixed shape: repeats and blanks dropped, kept ones moved to the front by a stable sort, -1 behind."""
    best = x.log_softmax(-1).argmax(-1)
    prev = F.pad(best, (1, 0), value=-1)[:, :-1]
    valid = torch.arange(x.shape[1])[None] < l[:, None]
    keep = (best != prev) & (best != 0) & valid
    order = torch.sort((~keep).to(torch.int8), dim=1, stable=True).indices
    out = best.gather(1, order)
    count = keep.sum(1)
    out = out.masked_fill(torch.arange(x.shape[1])[None] >= count[:, None], -1)
    return out, count, (x.amax(-1) * valid).sum(1) / l


@forward(W, dims="N=1:1:2 T=4:30:64", kinds=FINITE, feeds=lengths(W, 4, 5, 30, 64))
def A7120Vad(self, x):
    """Energy against the median (lower of two), a hangover of three by max pool, starts and ends by differences."""
    e = x.square()
    med = e.median(-1, keepdim=True).values
    act = e > med * 2
    hang = F.max_pool1d(F.pad(act.float(), (3, 0)), 4, 1) > 0
    d = torch.diff(hang.to(torch.int8), dim=1, prepend=torch.zeros_like(hang[:, :1], dtype=torch.int8))
    runs = (d == 1).sum(1)
    first = hang.int().argmax(1)
    last = hang.shape[1] - 1 - hang.flip(1).int().argmax(1)
    return hang, d, runs, torch.where(hang.any(1), first, -1), torch.where(hang.any(1), last, -1)


@attack(
    "x:float32[N,4,T]=-4:4", "c:float32[N,4,6]=-4:4", dims="N=1:1:2 T=1:8:20", kinds=FINITE,
    feeds=tuple(values_at("x:float32[N,4,T]=-4:4", "c:float32[N,4,6]=-4:4", N=1, T=t) for t in (1, 5, 6, 7, 20)),
)  # fmt: skip
class A7121StreamConv(nn.Module):
    """A causal conv with a cache of six: the new cache is the last six of cache and chunk, also of chunks shorter."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, dilation=3, groups=2)

    def forward(self, x, c):
        y = torch.cat((c, x), 2)
        return F.glu(torch.cat((self.conv(y), x), 1), 1), y[:, :, -6:]


@forward(
    "x:float32[N,T,4]=-4:4", dims="N=1:1:2 T=1:17:40", kinds=FINITE,
    feeds=lengths("x:float32[N,T,4]=-4:4", 1, 7, 8, 9, 16, 17, 23, 24, 25, 40),
)  # fmt: skip
def A7122ChunkMask(self, x):
    """Attention in chunks of eight with one chunk on the left, the last chunk may be short."""
    t = x.shape[1]
    c = torch.arange(t) // 8
    d = c[:, None] - c[None]
    m = (d >= 0) & (d <= 1)
    a = (x @ x.mT / 2).masked_fill(~m, torch.finfo(x.dtype).min).softmax(-1)
    return a @ x, m.sum(-1)


@attack(
    "x:float32[N,1,T]=-4:4", dims="N=1:1:2 T=1:21:64", kinds=FINITE,
    feeds=lengths("x:float32[N,1,T]=-4:4", 1, 2, 3, 7, 8, 9, 15, 63, 64), target="tensorrt==8.6",
)  # fmt: skip
class A7123Unet(nn.Module):
    """Demucs: padded to the next valid length by a loop of ceilings, down three times, up again, trimmed in the middle."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv1d(1 if i == 0 else 3, 3, 4, 2) for i in range(3))
        self.up = nn.ModuleList(nn.ConvTranspose1d(3, 1 if i == 2 else 3, 4, 2) for i in range(3))

    def valid(self, t):
        for _ in range(3):
            t = max(math.ceil((t - 4) / 2) + 1, 1)
        for _ in range(3):
            t = (t - 1) * 2 + 4
        return t

    def forward(self, x):
        t = x.shape[-1]
        x = F.pad(x, (0, self.valid(t) - t))
        skips = []
        for d in self.down:
            x = d(x).relu()
            skips.append(x)
        for u in self.up:
            x = u(x + skips.pop(-1)[..., : x.shape[-1]])
        delta = x.shape[-1] - t
        return x[..., delta // 2 : x.shape[-1] - (delta - delta // 2)] if delta else x


@forward(W, dims="N=1:1:2 T=1:20:70", kinds=FINITE, feeds=lengths(W, 1, 2, 3, 20, 70), target="tensorrt==8.6")
def A7124Mulaw(self, x):
    """Mu-law with 256 steps and back, then bits of the code; the sign of zero, edges at one."""
    mu = torch.tensor(255.0)
    y = x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu)
    q = ((y + 1) / 2 * mu + 0.5).to(torch.int64)
    z = q / mu * 2 - 1.0
    z = z.sign() * (torch.exp(z.abs() * torch.log1p(mu)) - 1.0) / mu
    return q, z, (q[..., None] >> torch.arange(8)) & 1


@forward(
    "x:float32[N,T,6]=-4:4", "s:float32[N,3]=-4:0", dims="N=1:1:2 T=1:4:8", kinds=FINITE,
    feeds=(halves(1, 4, 6, s=np.zeros((1, 3), np.float32)), halves(2, 8, 6, s=np.full((2, 3), -1, np.float32))), target="tensorrt==8.6",
)  # fmt: skip
def A7125BeamStep(self, x, s):
    """One beam step each frame: sums flattened, the best three of eighteen, parents and pieces, back by gather."""
    _n, t, v = x.shape
    lp = x.log_softmax(-1)
    total = (s[:, :, None] + lp[:, -1:, :]).flatten(1)
    best, i = total.topk(3, dim=1)
    parent, piece = torch.div(i, v, rounding_mode="floor"), i.fmod(v)
    return best, s.gather(1, parent) - best, (piece == v - 1).any(1), (best.exp().sum(1) / t)


@forward(
    "x:float32[N,T]=-1:1", dims="N=1:1:2 T=24:60:150", kinds=FINITE,
    feeds=lengths(W, 24, 25, 26, 27, 31, 32, 60, 149, 150),
)  # fmt: skip
def A7126Istft(self, x):
    """Spectral gating: STFT, a mask under the mean of each row, and back to the length that came in."""
    w = torch.hann_window(12)
    s = torch.stft(x, 12, 4, window=w, center=True, pad_mode="reflect", return_complex=True)
    m = s.abs()
    s = s * (m >= m.mean(-1, keepdim=True))
    return torch.istft(s, 12, 4, window=w, length=x.shape[1])


@forward(
    "x:float32[N,T,6]=-4:4", "l:int64[N]=0:30", dims="N=1:2:3 T=2:30:50", kinds=FINITE,
    feeds=(halves(2, 30, 6, l=np.array([30, 0])), halves(3, 2, 6, l=np.array([0, 1, 30])), halves(1, 50, 6, l=np.array([1]))),
)  # fmt: skip
def A7127Cmvn(self, x, l):  # noqa: E741
    """Mean and unbiased deviation of the valid frames; a length of zero or one gives a NaN that is made zero."""
    m = (torch.arange(x.shape[1]) < l[:, None])[..., None]
    n = torch.minimum(l, torch.tensor(x.shape[1]))[:, None, None]
    mean = (x * m).sum(1, keepdim=True) / n
    var = ((x - mean).square().masked_fill(~m, 0.0)).sum(1, keepdim=True) / (n - 1)
    y = (x - mean) / (var.sqrt() + 1e-5)
    return torch.where(m & y.isfinite(), y, 0.0), torch.isnan(mean).any(-1)


@forward(
    "x:float32[N,3,T]=-4:4", dims="N=1:1:2 T=1:12:33", kinds=FINITE,
    feeds=lengths("x:float32[N,3,T]=-4:4", 1, 2, 3, 4, 5, 12, 32, 33),
)  # fmt: skip
def A7128Deltas(self, x):
    """Deltas of two frames by replicated borders and a grouped conv, stacked by three and every third kept."""
    k = torch.arange(-2, 3, dtype=x.dtype).expand(3, 1, 5)
    d = F.conv1d(F.pad(x, (2, 2), mode="replicate"), k, groups=3) / 10
    y = torch.cat((x, d), 1)
    y = torch.cat((F.pad(y, (1, 0))[..., :-1], y, F.pad(y, (0, 1))[..., 1:]), 1)
    return y[..., ::3]


# Of a constant wave the imaginary part is 0 but for rounding, which the judge does not measure.
WAVES = ("normal", "unit", "halves", "ascending")


@forward(W, dims="N=1:1:2 T=2:24:50", kinds=WAVES, feeds=lengths(W, 2, 3, 4, 23, 24, 25, 49, 50))
def A7129Hilbert(self, x):
    """The envelope by the analytic signal: the middle bin doubles for odd lengths and stays for even ones."""
    t = x.shape[1]
    h = torch.zeros(t)
    h[0] = 1
    h[1 : (t + 1) // 2] = 2
    if t % 2 == 0:
        h[t // 2] = 1
    a = torch.fft.ifft(torch.fft.fft(x) * h)
    return a.abs(), a.imag

# ruff: noqa: E501 - attacks are written as users write them
"""Speech: spectra, frames, lengths, chunks, collapsed labels, pitch, resampling, lattices."""

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
X = "x:float32[N,T,4]=-4:4"
L = "n:int64[N]=1:40"


def at(*inputs: str, t: tuple, n: int = 2, **more: int) -> tuple:
    """Points at numbers of steps."""
    return tuple(values_at(*inputs, N=n, T=v, **more) for v in t)


def lengths(shape: tuple, *values: int) -> tuple:
    """Points of ordinary numbers with lengths."""
    return tuple(
        (
            lambda v=v: {
                "x": np.random.RandomState(v).randn(*shape).clip(-4, 4).astype(np.float32),
                "n": np.full(shape[0], v),
            }
        )
        for v in values
    )


@forward(W, dims="N=1:1:2 T=64:400:1200", kinds=FINITE, feeds=at(W, t=(64, 65, 128, 256, 257, 511, 512, 1200)))
def A7015AdaptiveStft(self, x):
    """A spectrum whose transform goes by the length: the power of two below, at most 256, half overlapped."""
    n = 1 << min(8, (x.shape[1] - 1).bit_length() - 1)
    s = torch.stft(x, n, n // 2, window=torch.hann_window(n), center=True, pad_mode="reflect", return_complex=True)
    p = s.abs().square()
    return p.sum(1).clamp(min=1e-10).log10(), p.argmax(1) / n


@attack(W, dims="N=1:1:2 T=40:160:400", kinds=FINITE, feeds=at(W, t=(40, 41, 55, 56, 57, 399)))
class A7016Kaldi(nn.Module):
    """Kaldi's frames with snipped edges: mean off, energy before emphasis with its first sample, Povey's window, a mel floor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("win", torch.hann_window(40, periodic=False).pow(0.85))
        self.register_buffer("mel", torch.rand(6, 33, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        m = 1 + (x.shape[1] - 40) // 16
        f = x.as_strided((x.shape[0], m, 40), (x.shape[1], 16, 1))
        f = f - f.mean(2, keepdim=True)
        e = torch.max(f.square().sum(2), torch.tensor(torch.finfo(torch.float32).eps)).log()
        prev = F.pad(f, (1, 0), mode="replicate")[..., :-1]
        f = F.pad((f - 0.97 * prev) * self.win, (0, 24))
        p = torch.fft.rfft(f).abs() ** 2
        return torch.cat(
            (e[..., None], torch.max(p @ self.mel.T, torch.tensor(torch.finfo(torch.float32).eps)).log()), 2
        )


@forward(W, dims="N=1:1:2 T=20:160:330", kinds=FINITE, feeds=at(W, t=(20, 160, 161, 159, 330, 21)))
def A7017Whisper(self, x):
    """Whisper: padded or cut to 160, log10 with a floor eight below the whole batch's peak, one frame less."""
    t = x.shape[-1]
    if t > 160:
        x = x.index_select(-1, torch.arange(160))
    if t < 160:
        x = F.pad(x, [(0, 160 - t), (0, 0)][0])
    s = torch.stft(x, 32, 16, window=torch.hann_window(32), return_complex=True)
    mags = s[..., :-1].abs() ** 2
    log = torch.clamp(mags, min=1e-10).log10()
    log = torch.maximum(log, log.max() - 8.0)
    return (log + 4.0) / 4.0


@attack(
    W,
    "n:int64[N]=1:400",
    dims="N=1:2:3 T=40:160:400",
    kinds=FINITE,
    feeds=tuple(
        (
            lambda t=t, v=v: {
                "x": np.random.RandomState(t).uniform(-1, 1, (2, t)).astype(np.float32),
                "n": np.array([v, t]),
            }
        )
        for t, v in ((40, 1), (160, 7), (161, 40), (399, 12), (400, 400))
    ),
)
class A7018Wav2Vec(nn.Module):
    """wav2vec's encoder: lengths by floors of convolutions, negative where nothing is left; a mask by flip, cumsum, flip."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList((nn.Conv1d(1, 4, 10, 5), nn.Conv1d(4, 4, 3, 2)))
        self.empty = nn.Parameter(torch.rand(4))

    def forward(self, x, n):
        y = x[:, None]
        for c in self.convs:
            y = F.gelu(c(y))
            n = torch.div(n - c.kernel_size[0], c.stride[0], rounding_mode="floor") + 1
        y = y.mT
        m = torch.zeros(y.shape[:2], dtype=torch.long)
        m[torch.arange(y.shape[0]), (n - 1).clamp(min=0, max=y.shape[1] - 1)] = 1
        m = m.flip(-1).cumsum(-1).flip(-1).bool()
        return torch.where(m[..., None], y, self.empty), n


class _Rel(nn.Module):
    def __init__(self):
        super().__init__()
        self.pe = None
        self.extend(torch.zeros(1, 10, 4))

    def extend(self, x):
        if self.pe is not None and self.pe.size(1) >= x.size(1) * 2 - 1:
            return
        pos = torch.arange(x.size(1), dtype=torch.float32)[:, None]
        div = torch.exp(torch.arange(0, 4, 2, dtype=torch.float32) * -(math.log(100.0) / 4))
        plus, minus = torch.zeros(x.size(1), 4), torch.zeros(x.size(1), 4)
        plus[:, 0::2], plus[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        minus[:, 0::2], minus[:, 1::2] = torch.sin(-pos * div), torch.cos(-pos * div)
        self.pe = torch.cat((plus.flip(0)[None], minus[1:][None]), 1)

    def forward(self, x):
        self.extend(x)
        mid = self.pe.size(1) // 2
        return self.pe[:, mid - x.size(1) + 1 : mid + x.size(1)]


@attack(X, dims="N=1:1:2 T=1:8:33", kinds=FINITE, feeds=at(X, t=(1, 2, 10, 11, 9, 33)))
class A7019RelPositions(nn.Module):
    """ESPnet's relative positions, extended where the sequence is longer than any before, and the relative shift."""

    def __init__(self):
        super().__init__()
        self.rel, self.lin = _Rel(), nn.Linear(4, 4)

    def forward(self, x):
        p = self.lin(self.rel(x)).expand(x.shape[0], -1, -1)
        bd = x @ p.mT
        zero = torch.zeros((*bd.size()[:2], 1))
        bd = (
            torch.cat((zero, bd), -1)
            .view(bd.size(0), bd.size(2) + 1, bd.size(1))[:, 1:]
            .view_as(bd)[..., : bd.size(-1) // 2 + 1]
        )
        return ((x @ x.mT + bd) / 2).softmax(-1) @ x


@attack(X, dims="N=1:1:2 T=1:20:50", kinds=FINITE, feeds=at(X, t=(1, 15, 16, 17, 32, 33, 48, 50)))
class A7020Streaming(nn.Module):
    """Chunks of sixteen with a cache of two steps from the chunk before, which a short last chunk cuts."""

    def __init__(self):
        super().__init__()
        self.conv, self.rnn = nn.Conv1d(4, 4, 3), nn.GRUCell(4, 4)

    def forward(self, x):
        cache, h, out = x.new_zeros(x.shape[0], 2, 4), x.new_zeros(x.shape[0], 4), []
        for i in range(0, x.shape[1], 16):
            c = torch.cat((cache, x[:, i : i + 16]), 1)
            cache = c[:, -2:]
            y = self.conv(c.mT).mT
            h = self.rnn(y.mean(1), h)
            out.append(y + h[:, None])
        return torch.cat(out, 1), h


@forward(
    X,
    L,
    dims="N=1:2:3 T=1:10:40",
    kinds=FINITE,
    feeds=(
        *lengths((2, 10, 4), 1, 9, 40),
        *lengths((1, 1, 4), 1),
        lambda: {**halves(2, 40, 4)(), "n": np.array([3, 39])},
    ),
)
def A7021GreedyCtc(self, x, n):
    """Greedy labels: repeats and blanks out, the rest pushed to the left by scatter; scores of what remains."""
    score, lab = x.log_softmax(-1).max(-1)
    t = x.shape[1]
    valid = torch.arange(t) < n[:, None]
    new = torch.ones_like(valid)
    new[:, 1:] = lab[:, 1:] != lab[:, :-1]
    keep = valid & new & (lab != 0)
    at_ = torch.where(keep, keep.cumsum(1) - 1, t)
    out = torch.full((x.shape[0], t + 1), -1).scatter(1, at_, lab)[:, :t]
    return out, keep.sum(1), (score * valid).sum(1) / valid.sum(1)


@forward(
    X,
    "y:int64[N,S]=1:3",
    dims="N=1:1:2 T=1:8:20 S=1:3:6",
    kinds=FINITE,
    feeds=at(X, "y:int64[N,S]=1:3", t=(1, 6, 7, 20), S=6),
)
def A7022CtcAlpha(self, x, y):
    """CTC's forward recursion over time with minus infinity; too short a time has an infinite loss, which becomes zero."""
    lp = x.log_softmax(-1)
    n, s = y.shape
    ext = torch.zeros(n, 2 * s + 1, dtype=torch.long)
    ext[:, 1::2] = y
    skip = torch.zeros_like(ext, dtype=torch.bool)
    skip[:, 2:] = (ext[:, 2:] != 0) & (ext[:, 2:] != ext[:, :-2])
    a = torch.full((n, 2 * s + 1), float("-inf"))
    a[:, :2] = lp[:, 0].gather(1, ext[:, :2])
    for t in range(1, lp.shape[1]):
        one = F.pad(a, (1, 0), value=float("-inf"))[:, :-1]
        two = F.pad(a, (2, 0), value=float("-inf"))[:, :-2].masked_fill(~skip, float("-inf"))
        a = torch.stack((a, one, two)).logsumexp(0) + lp[:, t].gather(1, ext)
    loss = -a[:, -2:].logsumexp(1)
    return torch.where(loss.isinf(), torch.zeros_like(loss), loss)


@attack(
    X,
    dims="N=1:1:2 T=3:12:61",
    kinds=FINITE,
    feeds=at(X, t=(3, 8, 9, 12, 13, 61, 60, 36)),
    refused="the path through the module depends on the size",
)
class A7023Subsampled(nn.Module):
    """Two strides of two after reflection for short inputs; the remainder by six picks the activation."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(4, 8, 3, 2), nn.Conv1d(4, 8, 3, 2)

    def forward(self, x):
        t, y = x.shape[1], x.mT
        if t < 9:
            y = F.pad(y, (0, 9 - t), mode="constant" if 9 - t >= t else "reflect")
        acts = (F.relu, F.silu, torch.tanh, F.gelu, F.elu, F.softsign)
        return F.glu(self.b(acts[t % 6](F.glu(self.a(y), 1))), 1).mT


@forward(
    W,
    dims="N=1:1:2 T=4:50:130",
    kinds=FINITE,
    feeds=at(W, t=(4, 5, 61, 65, 127, 128, 129, 113)),
    refused="the path through the module depends on the size",
)
def A7024Pitch(self, x):
    """Autocorrelation by a transform of the next length without other factors than two, three and five."""

    def fast(n):
        while True:
            m = n
            for p in (2, 3, 5):
                while m % p == 0:
                    m //= p
            if m == 1:
                return n
            n += 1

    t = x.shape[-1]
    n = fast(2 * t - 1)
    s = torch.fft.rfft(x - x.mean(-1, keepdim=True), n)
    r = torch.fft.irfft(s * s.conj(), n)[..., :t]
    r = r / (r[..., :1] + 1e-3)
    return r[..., 2:], r[..., 2:].amax(-1)


@forward(W, dims="N=1:1:2 T=1:30:90", kinds=FINITE, feeds=at(W, t=(1, 2, 8, 9, 90)))
def A7025Hangover(self, x):
    """Voice: energy above half the running peak, held for eight samples by a running maximum of the last voiced index."""
    e = x.abs()
    peak, where = e.cummax(-1)
    voiced = e > peak * 0.5
    t = torch.arange(x.shape[-1])
    last = torch.where(voiced, t, -100).cummax(-1).values
    m = t - last < 8
    run = m.long().cumsum(-1)
    return m, run - torch.where(m, 0, run).cummax(-1).values, where, peak


@forward(
    W,
    dims="N=1:1:2 T=10:40:120",
    kinds=FINITE,
    feeds=at(W, t=(10, 40, 41, 48, 60, 80, 120, 100, 119)),
    refused="the module was traced for some sizes only: T must be 11",
)
def A7027Resample(self, x):
    """To forty samples by torchaudio's windowed sinc: the greatest divisor of both rates says kernel and stride."""
    t = x.shape[-1]
    g = math.gcd(t, 40)
    old, new = t // g, 40 // g
    base = min(old, new) * 0.99
    width = math.ceil(3 * old / base)
    idx = torch.arange(-width, width + old, dtype=torch.float64)[None, None] / old
    k = torch.arange(0, -new, -1, dtype=torch.float64)[:, None, None] / new + idx
    k = (k * base).clamp(-3, 3)
    win = torch.cos(k * math.pi / 6) ** 2
    k = k * math.pi
    k = torch.where(k == 0, torch.tensor(1.0, dtype=torch.float64), k.sin() / k) * win * (base / old)
    y = F.conv1d(F.pad(x, (width, width + old))[:, None], k.float(), stride=old)
    return y.mT.reshape(x.shape[0], -1)[..., : math.ceil(new * t / old)]


@attack(
    X,
    L,
    dims="N=1:2:3 T=1:10:40",
    kinds=FINITE,
    feeds=(*lengths((2, 10, 4), 1, 10, 40), *lengths((3, 40, 4), 39, 2), *lengths((1, 1, 4), 1, 5)),
)
class A7029LastStates(nn.Module):
    """A recurrent encoder of both directions, the second one over each reversed length; pooled with a deviation."""

    def __init__(self):
        super().__init__()
        self.f, self.b = nn.GRU(4, 3, batch_first=True), nn.LSTM(4, 3, batch_first=True)

    def forward(self, x, n):
        t = x.shape[1]
        n = n.clamp(max=t)
        i = torch.arange(t).expand(x.shape[0], t)
        r = torch.where(i < n[:, None], n[:, None] - 1 - i, i)
        a, _ = self.f(x)
        b, _ = self.b(x.gather(1, r[..., None].expand_as(x)))
        last = (n - 1).view(-1, 1, 1).expand(-1, 1, 3)
        y = torch.cat((a, b.gather(1, r[..., None].expand(-1, -1, 3))), 2)
        m = (i < n[:, None])[..., None]
        mean = (y * m).sum(1) / n[:, None]
        std = (((y - mean[:, None]) ** 2 * m).sum(1) / n[:, None]).clamp(min=1e-6).sqrt()
        return torch.cat((a.gather(1, last), b.gather(1, last)), 2), mean, std

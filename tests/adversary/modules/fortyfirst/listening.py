# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Sound: filter banks made from sizes, gates of loudness, filters as loops, alignments, resampling, pitch classes, spectra of all kinds, beams of microphones."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


def lengths(*sizes: int, text: str = XT) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=1, T=t) for t in sizes)


@forward(XT, dims="N=1:1:2 T=8:64:129", kinds=("normal", "zeros", "ones"), feeds=lengths(8, 9, 10, 63, 128, 129))
def A4320MelBanksFromSizes(self, x):
    """The whole signal is one frame: triangles on the mel scale between bins of its own length, Slaney's areas, logs."""
    f = torch.fft.rfft(x).abs() ** 2
    n = f.shape[-1]
    hz = torch.linspace(0, 8000, n)
    m = torch.linspace(2595 * math.log10(1 + 20 / 700), 2595 * math.log10(1 + 8000 / 700), 8)
    p = 700 * (10 ** (m / 2595) - 1)
    d = p[1:] - p[:-1]
    s = p[:, None] - hz
    fb = torch.maximum(torch.zeros(1), torch.minimum(-s[:-2] / d[:-1, None], s[2:] / d[1:, None])) * (2.0 / (p[2:] - p[:-2]))[:, None]
    return torch.log10((f @ fb.T).clamp(min=1e-10)), (fb.sum(1) == 0).sum(), fb.argmax(1)
@forward("x:float32[N,F,T]", "f0:int64[N,2]=0:12", "fw:int64[N,2]=0:5", "t0:float32[N,2]=0:1", dims="N=1:2:3 F=8:10:12 T=1:20:40", kinds=("normal", "unit", "positive"))
def A4321SpecAugmentByGivenPlaces(self, x, f0, fw, t0):
    """Two masks of bands and two of time, whose places are inputs, a width of a fifth of the time, filled by the mean of each."""
    n, f, t = x.shape
    i, j = torch.arange(f), torch.arange(t)
    mf = ((i >= f0[..., None]) & (i < (f0 + fw)[..., None])).any(1)
    w = int(t * 0.2)
    s = (t0 * (t - w)).long()
    mt = ((j >= s[..., None]) & (j < s[..., None] + w)).any(1)
    y = x.masked_fill(mf[:, :, None], 0.0)
    return torch.where(mt[:, None], x.mean((1, 2), keepdim=True), y), mf.sum(1), mt.sum(1), y.masked_fill(mf.unsqueeze(-1) | mt.unsqueeze(1), float("-inf")).amax(1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=(halves(1, 24), halves(2, 24, seed=3), *lengths(1, 2)))
def A4322VoiceWithHysteresis(self, x):
    """On above a half, off below minus a half for three frames; a state of three numbers, segments counted, the last end kept."""
    on = torch.zeros(x.shape[0], dtype=torch.bool)
    quiet = torch.zeros(x.shape[0], dtype=torch.int32)
    segments, end, out = torch.zeros_like(quiet), torch.full_like(quiet, -1), []
    for t, v in enumerate(x.unbind(1)):
        start = ~on & (v > 0.5)
        quiet = torch.where(v < -0.5, quiet + 1, torch.zeros_like(quiet))
        stop = on & (quiet >= 3)
        end = torch.where(stop, t, end)
        on = (on | start) & ~stop
        segments = segments + start
        out.append(on)
    return torch.stack(out, dim=-1), segments, end, on
@attack(XT, dims="N=1:1:2 T=1:20:40", kinds=FINITE[:4], feeds=lengths(1, 7, 8, 9, 16, 17, 39, 40), refused="the path through the module depends on the size")
class A4323OverlapAdd(nn.Module):
    """Blocks of eight through a transform of sixteen, added where they overlap, the last one cut at the end."""
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.randn(9))
    def forward(self, x):
        n, t = x.shape
        y = x.new_zeros(n, t + 8)
        hf = torch.fft.rfft(self.h, 16)
        for s in range(0, t, 8):
            b = x[:, s : s + 8]
            z = torch.fft.irfft(torch.fft.rfft(b, 16) * hf, 16)
            e = min(s + 16, t + 8)
            y[:, s:e] += z[:, : e - s]
        return y[:, :t], y[:, t:]
@forward("x:float32[N,T]=-30:30", dims="N=1:2:3 T=1:9:30", kinds=("normal", "halves", "zeros", "tenths"), feeds=(lambda: {"x": np.array([[0, 3, -3, 2.5, -2.5, 10, -10]], np.float32)}, *lengths(1, 2)))
def A4324UnwrapAsNumpy(self, x):
    """NumPy's unwrap with a discontinuity of its own, one with a period of five, instantaneous frequencies by differences of it."""
    d = x.diff(dim=1)
    p = 2 * math.pi
    m = torch.remainder(d + p / 2, p) - p / 2
    m = torch.where((m == -p / 2) & (d > 0), p / 2, m)
    c = torch.where(d.abs() < 4.0, torch.zeros_like(d), m - d)
    y = x.clone()
    y[:, 1:] += c.cumsum(1)
    k = torch.cat([torch.zeros_like(x[:, :1]), ((d + 2.5) / 5).floor()], 1).cumsum(1)
    return y, x - 5 * k, y.diff(dim=1, prepend=y[:, :1]) / p
@forward("x:float32[N,T]", dims="N=1:1:2 T=8:20:50", kinds=("normal", "zeros", "tiny", "ones"), feeds=(*lengths(8, 9, 10, 49), lambda: {"x": np.concatenate([np.full((1, 20), 1e-4), np.ones((1, 9))], 1).astype(np.float32)}))
def A4325LoudnessWithGates(self, x):
    """BS.1770: blocks of eight every two, an absolute gate, a relative one ten below the mean of what is left, nothing left is -inf."""
    z = x.unfold(1, 8, 2).pow(2).mean(-1)
    lk = -0.691 + 10 * torch.log10(z)
    g = lk > -70.0
    def gated(m):
        return -0.691 + 10 * torch.log10((z * m).sum(1) / m.sum(1))
    rel = gated(g) - 10
    both = g & (lk > rel[:, None])
    db = 20 * torch.log10(x.abs().clamp(min=1e-5))
    return torch.nan_to_num(gated(both), nan=-70.0, neginf=-70.0), both.sum(1), torch.maximum(db, db.amax(1, keepdim=True) - 60)
@attack(XT, dims="N=1:1:2 T=1:12:32", kinds=FINITE[:4], feeds=lengths(1, 2, 32), refused="the path through the module depends on the size")
class A4326Biquads(nn.Module):
    """Two biquads one behind the other in direct form II transposed, a DC blocker, states in a list of lists that are written to."""
    def __init__(self):
        super().__init__()
        self.coefs = [(0.2, 0.4, 0.2, -0.5, 0.3), (1.0, -1.0, 0.0, -0.9, 0.0)]
    def forward(self, x):
        z = [[x.new_zeros(x.shape[0]) for _ in range(2)] for _ in self.coefs]
        out = []
        for t in range(x.shape[1]):
            v = x[:, t]
            for s, (b0, b1, b2, a1, a2) in zip(z, self.coefs, strict=True):
                y = b0 * v + s[0]
                s[0] = b1 * v - a1 * y + s[1]
                s[1] = b2 * v - a2 * y
                v = y
            out.append(v)
        return torch.stack(out, -1), z[0][1], z[1][0]
@forward("c:float32[N,S,5]=0:4", dims="N=1:1:2 S=1:6:16", kinds=("normal", "halves", "zeros", "ones"), feeds=(lambda: {"c": (np.random.RandomState(1).randint(0, 9, (1, 12, 5)) / 2).astype(np.float32)},), refused="the path through the module depends on the size")
def A4327TimeWarp(self, c):
    """DTW over a moving number of rows and five columns: each row from the one before, the columns within a list; the way by comparisons."""
    n, s, w = c.shape
    prev = [c[:, 0, : j + 1].sum(1) for j in range(w)]
    ways = [torch.zeros(n, w, dtype=torch.int8)]
    for i in range(1, s):
        row, way = [], []
        for j in range(w):
            up, left, diag = prev[j], row[j - 1] if j else None, prev[j - 1] if j else None
            if j == 0:
                row.append(c[:, i, j] + up)
                way.append(torch.zeros(n, dtype=torch.int8))
                continue
            best, at = torch.stack([diag, up, left]).min(0)
            row.append(c[:, i, j] + best)
            way.append(at.to(torch.int8))
        prev = row
        ways.append(torch.stack(way, 1))
    return prev[-1], torch.stack(prev, 1) / (s + w), torch.stack(ways, 1)
@attack("x:float32[N,T,3]", dims=ROWS, kinds=FINITE[:5], feeds=lengths(1, 2, 3, 24, text="x:float32[N,T,3]"), refused="the path through the module depends on the size")
class A4328ForwardBackward(nn.Module):
    """An HMM with a forbidden move: alphas forward, betas backward into a list that is turned round, shares, expected moves."""
    def __init__(self):
        super().__init__()
        a = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]])
        self.register_buffer("a", a.log())
    def forward(self, x):
        lp = x.log_softmax(-1)
        al, alphas = lp[:, 0] - math.log(3), []
        alphas.append(al)
        for t in range(1, x.shape[1]):
            al = torch.logsumexp(al[:, :, None] + self.a, 1) + lp[:, t]
            alphas.append(al)
        be, betas = torch.zeros_like(al), []
        for t in reversed(range(x.shape[1])):
            betas.append(be)
            be = torch.logsumexp(self.a + (lp[:, t] + be)[:, None], 2)
        g = torch.stack(alphas, 1) + torch.stack(betas[::-1], 1)
        return g.softmax(-1), torch.logsumexp(al, -1)
@forward("v:float32[N,4,T]", dims="N=1:1:2 T=4:9:20", kinds=("normal", "halves", "zeros"), feeds=(lambda: {"v": (np.random.RandomState(2).randint(-4, 5, (1, 4, 20)) / 2).astype(np.float32)}, *lengths(4, 5, text="v:float32[N,4,T]")), refused="the path through the module depends on the size")
def A4329MonotonicSearch(self, v):
    """Glow-TTS: the best way through four phones that never goes back, values in a loop, the way from the end, durations."""
    n, p, t = v.shape
    q = torch.full((n, p), -1e9)
    q[:, 0] = v[:, 0, 0]
    qs = [q]
    for j in range(1, t):
        q = torch.maximum(q, F.pad(q, (1, 0), value=-1e9)[:, :-1]) + v[:, :, j]
        qs.append(q)
    at = torch.full((n,), p - 1)
    path = [at]
    for j in range(t - 1, 0, -1):
        stay = qs[j - 1].gather(1, at[:, None])[:, 0]
        step = qs[j - 1].gather(1, (at - 1).clamp(min=0)[:, None])[:, 0]
        at = torch.where((at > 0) & (step > stay), at - 1, at)
        path.append(at)
    path = torch.stack(path[::-1], 1)
    return path, F.one_hot(path, 4).sum(1), q[:, -1]
@forward(XT, dims="N=1:1:2 T=2:24:60", kinds=("normal", "ones", "ascending"), feeds=lengths(2, 3, 4, 5, 6, 7, 59, 60))
def A4330ResampleByGcd(self, x):
    """24 kHz to 16 kHz and to 22.05: lengths by whole numbers of the reduced ratio, positions by a step, between neighbours, ends held."""
    t = x.shape[1]
    out = []
    for new in (16000, 22050):
        g = math.gcd(24000, new)
        up, down = new // g, 24000 // g
        m = t * up // down
        pos = torch.arange(m) * (down / up)
        lo = pos.long().clamp(max=t - 1)
        w = pos - lo
        out.append(x[:, lo] * (1 - w) + x[:, (lo + 1).clamp(max=t - 1)] * w)
    return tuple(out)
@forward("x:float32[N,T,2]", dims="N=1:1:2 T=1:9:24", kinds=("normal", "halves", "zeros", "positive"), feeds=lengths(1, 2, 3, 4, 24, text="x:float32[N,T,2]"))
def A4331SlidingMeans(self, x):
    """CMVN over five frames by running sums whose ends are clamped to what there is, a deviation of at least a hundredth."""
    t = x.shape[1]
    c = F.pad(x.cumsum(1), (0, 0, 1, 0))
    c2 = F.pad((x * x).cumsum(1), (0, 0, 1, 0))
    i = torch.arange(t)
    lo, hi = (i - 2).clamp(min=0), (i + 3).clamp(max=t)
    k = (hi - lo)[:, None]
    m = (c[:, hi] - c[:, lo]) / k
    v = (c2[:, hi] - c2[:, lo]) / k - m * m
    return (x - m) / v.clamp(min=1e-2).sqrt(), k[:, 0]
@attack("x:float32[N,T,4]=0:50", dims=ROWS, kinds=("normal", "unit", "zeros", "halves"), feeds=lengths(1, 2, 24, text="x:float32[N,T,4]"))
class A4332Pcen(nn.Module):
    """Per-channel energy normalisation: a smoother that starts at the first frame, learnt exponents, a root with an offset."""
    def __init__(self):
        super().__init__()
        self.log_s, self.log_a = nn.Parameter(torch.linspace(-3, -1, 4)), nn.Parameter(torch.full((4,), -0.02))
        self.d, self.log_r = nn.Parameter(torch.full((4,), 2.0)), nn.Parameter(torch.full((4,), -0.7))
    def forward(self, x):
        s, m, ms = self.log_s.exp(), x[:, 0], []
        for frame in torch.unbind(x, dim=1):
            m = (1 - s) * m + s * frame
            ms.append(m)
        m = torch.stack(ms, 1)
        a, r = self.log_a.exp().clamp(max=1.0), self.log_r.exp()
        return (x / (1e-6 + m).pow(a) + self.d).pow(r) - self.d**r, ms[-1]
@forward("x:float32[N,T]", dims="N=1:1:2 T=16:64:120", kinds=("normal", "unit"), feeds=lengths(16, 17, 63, 65, 120))
def A4333PitchClasses(self, x):
    """A chroma of twelve: each bin of a spectrum of the whole length to the nearest semitone, added up where they meet, normalised by the largest."""
    f = torch.fft.rfft(x).abs()[:, 1:]
    n = f.shape[1]
    hz = torch.arange(1, n + 1) * (8000.0 / x.shape[1])
    midi = torch.round(12 * torch.log2(hz / 440.0) + 69.25).long()
    c = torch.zeros(x.shape[0], 12).index_add_(1, midi % 12, f)
    return c / c.amax(1, keepdim=True).clamp(min=0.1), midi, torch.zeros(12).scatter_add_(0, midi % 12, torch.ones(n))
@forward(X4, dims="N=1:1:2 T=1:12:40", kinds=FEW, feeds=lengths(1, 2, 3, 40, text=X4))
def A4334Onsets(self, x):
    """Spectral flux of rises, a moving mean and maximum of unlike sides, peaks above both, at least two frames apart by their order."""
    d = F.relu(x.diff(dim=1, prepend=x[:, :1])).sum(-1)
    top = F.max_pool1d(F.pad(d, (3, 1), value=float("-inf"))[:, None], 5, 1)[:, 0]
    mean = F.avg_pool1d(F.pad(d, (5, 2))[:, None], 8, 1)[:, 0]
    p = (d == top) & (d >= mean + 0.25)
    i = torch.where(p, torch.arange(x.shape[1]), -99)
    last = F.pad(i, (1, 0), value=-99)[:, :-1].cummax(1).values
    keep = p & (torch.arange(x.shape[1]) - last > 2)
    return d, p, keep, keep.sum(1)
@attack(XT, dims="N=1:1:2 T=16:40:80", kinds=FINITE[:4], feeds=lengths(16, 17, 31, 32, 79, 80))
class A4335SpectraOfAllKinds(nn.Module):
    """stft without a centre, two-sided, normalised, with a shorter window, padded by zeros and by repeats; inverses to the signal's length."""
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.hann_window(12))
    def forward(self, x):
        st = functools.partial(torch.stft, return_complex=True)
        a = st(x, 16, 4, window=F.pad(self.w, (2, 2)) + 0.1, center=False)
        b = st(x, 16, 5, 12, self.w, onesided=False, pad_mode="constant")
        c = st(x, 16, normalized=True, pad_mode="replicate", window=torch.ones(16))
        y = torch.istft(c, 16, normalized=True, window=torch.ones(16), length=x.shape[-1])
        return torch.view_as_real(a), b.abs(), c.real, y
@attack("m:float32[N,5,T]=0:2", "p:float32[N,5,T]=-3:3", dims="N=1:1:2 T=3:10:30", kinds=("normal", "unit", "halves"), feeds=tuple(values_at("m:float32[N,5,T]=0:2", "p:float32[N,5,T]=-3:3", N=1, T=t) for t in (3, 4, 13, 14, 26, 30)))
class A4336StretchByPhases(nn.Module):
    """torchaudio's phase vocoder at a rate of 1.3: steps by a decimal arange, neighbours, phases that go on."""
    def __init__(self):
        super().__init__()
        self.register_buffer("advance", torch.linspace(0, math.pi * 4, 5)[:, None])
    def forward(self, m, p):
        z = F.pad(torch.polar(m, p), [0, 2])
        steps = torch.arange(0, m.shape[-1], 1.3)
        alpha = steps % 1.0
        a, b = z.index_select(-1, steps.long()), z.index_select(-1, (steps + 1).long())
        d = b.angle() - a.angle() - self.advance
        d = d - 2 * math.pi * torch.round(d / (2 * math.pi)) + self.advance
        d = torch.cat([p[..., :1], d[..., :-1]], -1)
        acc = d.cumsum(-1)
        mag = alpha * b.abs() + (1 - alpha) * a.abs()
        return mag, acc, torch.view_as_real(torch.polar(mag, acc))
@forward("x:float32[N,T]", "y:float32[N,T]", dims="N=1:1:2 T=8:20:40", kinds=("normal", "unit"), feeds=(lambda: {"x": np.eye(1, 20, 9, dtype=np.float32), "y": np.eye(1, 20, 12, dtype=np.float32)},))
def A4337DelayByPhases(self, x, y):
    """GCC-PHAT with a guard, lags of both signs put side by side, the delay between two microphones and its sharpness."""
    n = 2 * x.shape[1]
    s = torch.fft.rfft(x, n) * torch.fft.rfft(y, n).conj()
    r = torch.fft.irfft(s / (s.abs() + 1e-3), n)
    cc = torch.cat((r[:, -6:], r[:, :7]), 1)
    v, i = cc.max(1)
    return cc, v, v / cc.abs().mean(1).clamp(min=1e-6), (i - 6) * 343.0 / 16000
@attack("x:float32[N,2,T]", "c:float32[N,2,4]", "f:float32[N,3,2]", dims="N=1:1:2 T=1:5:12", kinds=FINITE[:4], feeds=tuple(values_at("x:float32[N,2,T]", "c:float32[N,2,4]", "f:float32[N,3,2]", N=1, T=t) for t in (1, 2, 3, 4, 12)))
class A4338StreamingConvolutions(nn.Module):
    """Two causal layers whose left context comes in and goes out, also where a chunk is shorter than it; a lookahead that is held back."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(2, 3, 5), nn.Conv1d(3, 2, 2, dilation=2)
    def forward(self, x, c, f):
        x = torch.cat([c, x], -1)
        c2 = x[..., -4:]
        h = F.elu(self.a(x))
        h = torch.cat([f, h], -1)
        return self.b(h), c2, h[..., h.size(-1) - 2 :], x[..., 2:-2]
@forward("x:float32[N,2,T,2]", "y:float32[N,2,T,2]", dims="N=1:1:2 T=2:6:12", kinds=("normal", "unit"))
def A4339Beamformer(self, x, y):
    """MVDR for two microphones: covariances of speech and noise with a load, an inverse of complex numbers by hand, weights over a trace."""
    s, v = torch.view_as_complex(x), torch.view_as_complex(y)
    ps = torch.einsum("nct,ndt->ncd", s, s.conj()) / s.shape[-1]
    pn = torch.einsum("nct,ndt->ncd", v, v.conj()) / v.shape[-1] + 0.5 * torch.eye(2)
    det = (pn[:, 0, 0] * pn[:, 1, 1] - pn[:, 0, 1] * pn[:, 1, 0])[:, None, None]
    inv = torch.stack([torch.stack([pn[:, 1, 1], -pn[:, 0, 1]], 1), torch.stack([-pn[:, 1, 0], pn[:, 0, 0]], 1)], 1) / det
    num = inv @ ps
    w = num[:, :, 0] / (num.diagonal(dim1=1, dim2=2).sum(1, keepdim=True) + 1e-2)
    e = torch.einsum("nc,nct->nt", w.conj(), s + v)
    return torch.view_as_real(e), e.abs().square().mean(1)

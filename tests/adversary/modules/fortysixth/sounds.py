# ruff: noqa: E501, E741, B905, F841, RUF046 - attacks are written as users write them
"""Networks of speech and sound: decoders, front ends, caches, pitches and paths."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, LENGTHS, X4, seq, two
from tests.adversary.values import values_at

WAVE = "x:float32[N,L]"
L, LEN = "x:float32[N,T,4]", "l:float32[N]=0:1"


def wav(*inputs: str, low: int = 1, high: int = 70, own: tuple = (), **other: object) -> dict:
    """Waves, judged at every length."""
    feeds = tuple(values_at(*inputs, N=1 + t % 2, L=t) for t in range(low, high + 1))
    return {"dims": f"N=1:1:2 L={low}:{max(low, 40)}:{high}", "kinds": FEW, "feeds": (*own, *feeds), **other}


@forward(X4, **seq(X4))
def A5326CtcPacked(self, x):
    """Greedy CTC: repeats and blanks out, what is left moved to the front by a running sum, the rest -1, and a count."""
    ids = x.argmax(-1)
    keep = torch.cat([torch.ones_like(ids[:, :1], dtype=torch.bool), ids[:, 1:] != ids[:, :-1]], 1) & (ids != 0)
    at = torch.where(keep, keep.cumsum(1) - 1, ids.shape[1])
    out = ids.new_full((ids.shape[0], ids.shape[1] + 1), -1).scatter(1, at, ids)[:, :-1]
    score = (x.log_softmax(-1).amax(-1) * keep).sum(1) / keep.sum(1)
    return out, keep.sum(1), score
@attack(X4, **seq(X4))
class A5327TransducerGreedy(nn.Module):
    """RNN-T: at each frame a joint; the predictor moves on only where a symbol came."""

    def __init__(self):
        super().__init__()
        self.e, self.cell, self.out = nn.Embedding(5, 6), nn.GRUCell(6, 6), nn.Linear(10, 5)

    def forward(self, x):
        h, last, hyp = x.new_zeros(x.shape[0], 6), torch.zeros(x.shape[0], dtype=torch.long), []
        for t in range(x.shape[1]):
            g = self.cell(self.e(last), h)
            k = self.out(torch.cat([x[:, t], g], -1)).argmax(-1)
            new = k != 0
            last = torch.where(new, k, last)
            h = torch.where(new[:, None], g, h)
            hyp.append(torch.where(new, k, -1))
        return torch.stack(hyp, 1), h
@forward("p:float32[N,T]=0:1", **seq("p:float32[N,T]=0:1", own=(lambda: {"p": np.array([[0.5, 0.35, 0.35, 0.3, 0.49999997, 0.5]], np.float32)},)))
def A5328HysteresisOfVad(self, p):
    """Speech starts at 0.5 and ends below 0.35 once it has been silent for three frames."""
    on, silent, out = torch.zeros(p.shape[0], dtype=torch.bool), torch.zeros(p.shape[0], dtype=torch.long), []
    for t in range(p.shape[1]):
        high, low = p[:, t] >= 0.5, p[:, t] < 0.35
        silent = torch.where(on & low, silent + 1, torch.where(high, 0, silent))
        on = (on | high) & (silent < 3)
        out.append(on)
    y = torch.stack(out, 1)
    edges = torch.diff(F.pad(y.int(), (1, 1)), dim=1)
    return y, edges == 1, (edges == -1).sum(1)
@attack(WAVE, "s:float32[N,8]", **wav(WAVE, "s:float32[N,8]"))
class A5329ContextOfSilero(nn.Module):
    """A chunk with the last eight samples of the one before, which may be longer than the chunk."""

    def forward(self, x, s):
        y = torch.cat([s, x], 1)
        s = y[..., -8:]
        frames = y.unfold(-1, 8, 3)
        s *= 0.5
        return frames.square().mean(-1).clamp(min=1e-8).log(), s, y
@forward(WAVE, **wav(WAVE, low=1))
def A5330KaldiFrames(self, x):
    """Kaldi's frames without snip_edges: the wave is reflected about its ends, preemphasis, Povey's window."""
    size, shift = 10, 4
    n, m = x.shape[1], (x.shape[1] + shift // 2) // shift
    pad = size // 2 - shift // 2
    rev = torch.flip(x, [1])
    y = torch.cat((rev[:, -pad:], x, rev), 1) if pad > 0 else torch.cat((x[:, -pad:], rev), 1)
    if y.shape[1] < size + (m - 1) * shift or m == 0:
        return x.new_zeros(x.shape[0], 1, size)
    f = y.as_strided((y.shape[0], m, size), (y.stride(0), shift * y.stride(1), y.stride(1)))
    f = f - f.mean(2, keepdim=True)
    energy = torch.max(f.pow(2).sum(2), torch.tensor(torch.finfo(torch.float).eps)).log()
    off = F.pad(f, (1, 0), mode="replicate")
    f = (f - 0.97 * off[..., :-1]) * torch.hann_window(size, periodic=False).pow(0.85)
    return torch.cat([f, energy[..., None]], -1)
@forward(X4, **seq(X4))
def A5331Pcen(self, x):
    """Per-channel energy normalisation: a smoother along time, and fractional powers."""
    e, m = x.abs(), x[:, 0].abs()
    out = []
    for t in range(x.shape[1]):
        m = (1 - 0.025) * m + 0.025 * e[:, t]
        out.append(m)
    m = torch.stack(out, 1)
    return (e / (1e-6 + m) ** 0.98 + 2.0) ** 0.5 - 2.0**0.5, m[:, -1]
@attack("x:float32[N,4,T]", **seq("x:float32[N,4,T]", low=8))
class A5332WaveNetSkips(nn.Module):
    """WaveNet without padding: residuals and skips are cut at the front to what is left."""

    def __init__(self):
        super().__init__()
        self.d = nn.ModuleList(nn.Conv1d(4, 8, 2, dilation=2**i) for i in range(3))
        self.s = nn.ModuleList(nn.Conv1d(4, 3, 1) for _ in range(3))

    def forward(self, x):
        skip = 0
        for d, s in zip(self.d, self.s):
            f, g = d(x).chunk(2, 1)
            y = f.tanh() * g.sigmoid()
            k = s(y)
            try:
                skip = skip[:, :, -k.size(2):]
            except TypeError:
                skip = 0
            skip = k + skip
            x = y + x[:, :, -y.size(2):]
        return skip, x
@forward(X4, **seq(X4))
def A5333ChompOrNone(self, x):
    """Padded to a multiple of four, worked on, and cut by the padding, or None where it is zero."""
    pad = -x.shape[1] % 4
    y = F.pad(x, (0, 0, 0, pad)).unflatten(1, (-1, 4)).cumsum(2).flatten(1, 2)
    return y[:, : -pad or None], y[:, pad - 4 :], x[:, -(x.shape[1] // 3) :]
@attack("x:float32[N,4,T]", "c:float32[N,4,6]", **seq("x:float32[N,4,T]", "c:float32[N,4,6]"))
class A5334CausalConvCache(nn.Module):
    """A causal convolution with its cache: chunks may be shorter than the cache; both are given back."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 4, dilation=2, groups=2)

    def forward(self, x, c):
        y = torch.cat([c, x], -1)
        new = y.narrow(-1, y.shape[-1] - 6, 6)
        out = self.conv(y)
        new.mul_(torch.arange(6) >= 6 - x.shape[-1])
        return out, new
@forward("q:float32[N,2,T,4]", "p:float32[1,2,P,4]", dims="N=1:2:2 T=1:5:12 P=1:9:23", kinds=FEW, feeds=tuple(values_at("q:float32[N,2,T,4]", "p:float32[1,2,P,4]", N=1, T=t, P=2 * t - 1) for t in range(1, 13)))
def A5335RelShift(self, q, p):
    """ESPnet's rel_shift, and only as many columns as half of the positions."""
    x = q @ p.transpose(-2, -1)
    zero = torch.zeros((*x.size()[:3], 1))
    y = torch.cat([zero, x], -1).view(*x.size()[:2], x.size(3) + 1, x.size(2))
    return y[:, :, 1:].view_as(x)[:, :, :, : x.size(-1) // 2 + 1]
@attack("m:float32[N,5,T]", **seq("m:float32[N,5,T]"))
class A5336IstftHead(nn.Module):
    """Vocos with padding "same": an inverse transform, an overlap-add by fold, and the envelope of its windows."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(8))

    def forward(self, m):
        s = torch.clip(torch.exp(m), max=1e2) * torch.exp(1j * m.flip(1))
        t = s.shape[2]
        y = torch.fft.irfft(s, 8, dim=1, norm="backward") * self.window[None, :, None]
        size = (t - 1) * 2 + 8
        y = F.fold(y, (1, size), (1, 8), stride=(1, 2))[:, 0, 0, 3:-3]
        w = F.fold(self.window.square().expand(1, t, -1).transpose(1, 2), (1, size), (1, 8), stride=(1, 2)).squeeze()[3:-3]
        return y / w.clamp(min=1e-11)
@forward(WAVE, **wav(WAVE, low=13))
def A5337Yin(self, x):
    """YIN: a cumulative mean of differences, the first lag below a threshold, else the lowest."""
    d = torch.stack([(x[:, :-12] - x[:, lag : x.shape[1] - 12 + lag]).square().sum(1) for lag in range(12)], 1)
    c = d[:, 1:] * torch.arange(1, 12) / d[:, 1:].cumsum(1).clamp(min=1e-5)
    c = torch.cat([torch.ones_like(c[:, :1]), c], 1)
    below = c < 0.3
    at = torch.where(below.any(1), below.int().argmax(1), c.argmin(1))
    return at, c.gather(1, at[:, None]), 16000 / at.clamp(min=1)
@forward(L, LEN, **seq(L, LEN, own=tuple((lambda t=t: {"x": np.random.default_rng(t).standard_normal((3, t, 4)).astype(np.float32), "l": np.array([1.0, 0.5, 1 / 3], np.float32)}) for t in range(1, 41))))
def A5338RelativeLengths(self, x, l):
    """SpeechBrain: lengths as shares of the longest, a mask by comparing places with share times size, statistics of it."""
    t = x.shape[1]
    mask = torch.arange(t, dtype=l.dtype).expand(l.shape[0], t) < (l * t)[:, None]
    w = mask[..., None] / mask.sum(1, keepdim=True)[..., None].float().clamp(min=1)
    mean = (w * x).sum(1)
    std = ((w * (x - mean[:, None]).pow(2)).sum(1)).clamp(1e-12).sqrt()
    cut = torch.round(l * t).int()
    return mean, std, cut, torch.arange(t)[None] < cut[:, None]
@forward(WAVE, "l:int64[N]=1:70", **wav(WAVE, "l:int64[N]=1:70", low=8))
def A5339FeatureMaskOfWav2Vec(self, x, l):
    """Hugging Face: a one is written at the last frame, flipped, summed up and flipped back; a length of none is the last."""
    y = x[:, None].unfold(-1, 3, 2).mean(-1)
    out = l
    for k, s in ((3, 2),):
        out = torch.div(out - k, s, rounding_mode="floor") + 1
    mask = torch.zeros((x.shape[0], y.shape[-1]), dtype=torch.long)
    mask[(torch.arange(mask.shape[0]), out.clamp(max=y.shape[-1]) - 1)] = 1
    mask = mask.flip([-1]).cumsum(-1).flip([-1]).bool()
    return y[:, 0] * mask, mask
@forward("x:float32[N,T,4]", "d:int64[N,T]=0:3", "y:float32[N,S,4]", **two("x:float32[N,T,4]", "d:int64[N,T]=0:3", "y:float32[N,S,4]"))
def A5340DurationsToFrames(self, x, d, y):
    """VITS: a path of durations is a difference of masks, padded in front, times both masks."""
    cum = d.cumsum(-1)
    path = (torch.arange(y.shape[1])[None, None] < cum[..., None]).float()
    path = path - F.pad(path, [0, 0, 1, 0, 0, 0])[:, :-1]
    path = path * (torch.arange(y.shape[1]) < torch.clamp_min(d.sum(1), 1)[:, None])[:, None]
    return path.transpose(1, 2) @ x + y, path
@forward("v:float32[N,T,S]", **two("v:float32[N,T,S]", high=9))
def A5341MonotonicPath(self, v):
    """Glow-TTS: the best monotonic path, values forward and a trace backwards."""
    n, tx, ty = v.shape
    x = torch.arange(tx)[None].expand(n, -1)
    acc, dirs = torch.zeros(n, tx), []
    for j in range(ty):
        v0 = F.pad(acc, [1, 0], value=-1e9)[:, :-1]
        choose = acc >= v0
        dirs.append(choose)
        acc = torch.where(x <= j, torch.where(choose, acc, v0) + v[:, :, j], torch.full_like(acc, -1e9))
    at = torch.full((n,), tx - 1, dtype=torch.long)
    path = []
    for j in range(ty):
        path.append(F.one_hot(at, tx))
        at = (at + dirs[ty - 1 - j].long().gather(1, at[:, None])[:, 0] - 1).clamp(min=0)
    return torch.stack(path, 2).flip(2), acc
@forward("f:float32[N,T]=0:1200", **seq("f:float32[N,T]=0:1200", own=(lambda: {"f": np.array([[0, 1e-3, 49.9, 50, 50.1, 440, 1099, 1100, 1200]], np.float32)},)))
def A5342CoarsePitch(self, f):
    """RVC: pitches on a mel scale, in place where voiced, clipped on both sides and rounded half to even."""
    lo, hi = 1127 * math.log(1 + 50 / 700), 1127 * math.log(1 + 1100 / 700)
    mel = 1127 * (1 + f / 700).log()
    mel[mel > 0] = (mel[mel > 0] - lo) * 254 / (hi - lo) + 1
    mel[mel <= 1] = 1
    mel[mel > 255] = 255
    return mel, (mel * 2).round().long() // 2
@forward("f:float32[N,T]=0:400", **seq("f:float32[N,T]=0:400"))
def A5343PhaseOfNsf(self, f):
    """NSF: phases summed up upon a shift wherever the running sum passes a whole number."""
    rad = (f[..., None] * torch.arange(1, 4) / 16000) % 1
    over = torch.cumsum(rad, 1) % 1
    idx = (over[:, 1:] - over[:, :-1]) < 0
    shift = torch.zeros_like(rad)
    shift[:, 1:, :] = idx * -1.0
    s = torch.sin(torch.cumsum(rad + shift, 1) * 2 * np.pi)
    uv = torch.ones_like(f) * (f > 10)
    return 0.1 * s * uv[..., None]
@forward(X4, "c:float32[C]", dims="N=1:2:2 T=1:9:33 C=1:3:7", kinds=FEW, feeds=tuple(values_at(X4, "c:float32[C]", N=1, T=t, C=c) for t in LENGTHS if t < 34 for c in range(1, 8)))
def A5344SubsequentChunks(self, x, c):
    """WeNet: a mask that is filled row by row with one chunk, and one to the left."""
    size, chunk = x.shape[1], c.shape[0]
    ret = torch.zeros(size, size, dtype=torch.bool)
    for i in range(size):
        start = max((i // chunk - 1) * chunk, 0)
        ret[i, start : min((i // chunk + 1) * chunk, size)] = True
    a = (x @ x.transpose(1, 2)).masked_fill(~ret, -torch.inf).softmax(-1)
    return a @ x * c.sum()
@attack("x:float32[N,1,L]", **wav("x:float32[N,1,L]"))
class A5345ValidLengthOfDemucs(nn.Module):
    """Demucs: normalised by its deviation, padded to a length that comes back through all layers, trimmed on both sides."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv1d(1, 1, 8, 4) for _ in range(2))
        self.up = nn.ModuleList(nn.ConvTranspose1d(1, 1, 8, 4) for _ in range(2))

    def valid_length(self, length):
        length = math.ceil(length * 2)
        for _ in range(2):
            length = max(math.ceil((length - 8) / 4) + 1, 1)
        for _ in range(2):
            length = (length - 1) * 4 + 8
        return int(math.ceil(length / 2))

    def forward(self, x):
        mono = x.mean(1, keepdim=True)
        mean, std = mono.mean(-1, keepdim=True), mono.std(-1, keepdim=True)
        y = (x - mean) / (1e-5 + std)
        delta = self.valid_length(x.shape[-1]) - x.shape[-1]
        y = F.pad(y, (delta // 2, delta - delta // 2))
        y = F.interpolate(y, scale_factor=2.0, mode="linear", align_corners=False)
        for d in self.down:
            y = F.relu(d(y))
        for u in self.up:
            y = u(y)
        y = F.interpolate(y, scale_factor=0.5, mode="linear", align_corners=False)
        over = y.shape[-1] - x.shape[-1]
        if over < 0:
            return x
        return y[..., over // 2 : y.shape[-1] - (over - over // 2)] * std + mean
@forward("x:float32[N,T,4]", "k:float32[K]", dims="N=1:1:2 T=1:9:40 K=1:5:12", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,4]", "k:float32[K]", N=1, T=t, K=k) for t in LENGTHS for k in (1, 2, 3, 5, 8, 11, 12)))
def A5346SegmentsInHalves(self, x, k):
    """Dual path: padded to whole segments with half a segment on both sides, two views that are interleaved."""
    n, t, d = x.shape
    seg = 2 * k.shape[0]
    stride = seg // 2
    rest = seg - (stride + t % seg) % seg
    if rest > 0:
        x = torch.cat([x, x.new_zeros(n, rest, d)], 1)
    z = x.new_zeros(n, stride, d)
    x = torch.cat([z, x, z], 1)
    a, b = x[:, :-stride].reshape(n, -1, seg, d), x[:, stride:].reshape(n, -1, seg, d)
    y = torch.cat([a, b], 2).view(n, -1, seg, d).cumsum(2)
    y2 = y.reshape(n, -1, seg * 2, d)
    a, b = y2[:, :, :seg].reshape(n, -1, d)[:, stride:], y2[:, :, seg:].reshape(n, -1, d)[:, :-stride]
    return (a + b)[:, :-rest] if rest > 0 else a + b
@forward(X4, **seq(X4))
def A5347SlidingCmn(self, x):
    """Kaldi's sliding means: a window of nine about each frame, moved inwards at both ends, by running sums."""
    t, w = x.shape[1], 9
    start = torch.arange(t) - w // 2
    end = start + w
    end = torch.where(start < 0, end - start, end)
    start = start.clamp(min=0)
    over = (end - t).clamp(min=0)
    start, end = (start - over).clamp(min=0), end.clamp(max=t)
    c = F.pad(x.double().cumsum(1), (0, 0, 1, 0))
    s = F.pad(x.double().square().cumsum(1), (0, 0, 1, 0))
    n = (end - start)[:, None]
    mean = (c[:, end] - c[:, start]) / n
    var = (s[:, end] - s[:, start]) / n - mean**2
    return ((x - mean) / torch.where(n > 1, var.clamp(min=1e-2), 1.0).sqrt()).float()
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", **two("x:float32[N,T,4]", "y:float32[N,S,4]", high=7))
def A5348SoftDtw(self, x, y):
    """Soft-DTW: a table with a border of infinities, filled in cell by cell."""
    d = (x[:, :, None] - y[:, None]).square().sum(-1)
    r = torch.full((x.shape[0], x.shape[1] + 1, y.shape[1] + 1), torch.inf)
    r[:, 0, 0] = 0
    for i in range(1, x.shape[1] + 1):
        for j in range(1, y.shape[1] + 1):
            prev = torch.stack([r[:, i - 1, j - 1], r[:, i - 1, j], r[:, i, j - 1]], -1)
            r[:, i, j] = d[:, i - 1, j - 1] - torch.logsumexp(-prev, -1)
    return r[:, -1, -1], r

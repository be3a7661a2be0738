# ruff: noqa: E501, E741 - attacks are written as users write them
"""Speech products: spectra, framings, recurrences with states, packed sequences, CTC, complex masks, streaming."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,T]=-1:1", dims="N=1:1:2 T=16:30:41", kinds=FINITE)
def A7294SpectralGate(self, x):
    """STFT with centre, magnitude compressed, phase kept by polar, a gate by a share of the mean of each row, and istft to the length of the input."""
    win = torch.hann_window(16)
    s = torch.stft(x, 16, 4, window=win, return_complex=True, center=True, pad_mode="reflect")
    m = s.abs()
    gate = m > 0.4 * m.mean(-1, keepdim=True)
    c = torch.polar((m + 1e-6) ** 0.6, s.angle()) * gate
    return torch.istft(c, 16, 4, window=win, length=x.shape[-1]), m.clamp(min=1e-5).log10()


@forward("x:float32[N,T]=-1:1", dims="N=1:1:2 T=9:16:33", kinds=FINITE)
def A7295Kaldi(self, x):
    """Kaldi's frames with snip_edges false: reflected by indices, DC removed, preemphasis, a Povey window, a power-of-two FFT."""
    t = x.shape[-1]
    shift, size = 4, 8
    m = (t + shift // 2) // shift
    pad = size // 2 - shift // 2
    rev = x.flip(-1)
    y = torch.cat([rev[:, -pad:], x, rev], -1)
    fr = y.unfold(-1, size, shift)[:, :m]
    fr = fr - fr.mean(-1, keepdim=True)
    off = F.pad(fr, (1, 0), mode="replicate")
    fr = fr - 0.97 * off[..., :-1]
    fr = fr * torch.hann_window(size, periodic=False).pow(0.85)
    sp = torch.fft.rfft(fr, n=16).abs().pow(2.0)
    return sp.clamp_min(torch.finfo(torch.float).eps).log(), fr.pow(2).sum(-1)


@attack("x:float32[N,T,3]=-2:2", "l:int64[N]=1:4", dims="N=2:3:4 T=4:6:9", kinds=FINITE, feeds=(lambda: {"x": torch.randn(3, 6, 3).numpy(), "l": torch.tensor([2, 4, 4]).numpy()},))
class A7296Packed(nn.Module):
    """A bidirectional GRU over a packed batch that is not sorted, with total_length, the last hidden state by both ends."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.g = nn.GRU(3, 4, batch_first=True, bidirectional=True)

    def forward(self, x, l):
        p = pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        y, h = self.g(p)
        y, n = pad_packed_sequence(y, batch_first=True, total_length=x.shape[1], padding_value=-7.0)
        return y, h.transpose(0, 1).flatten(1), n


@attack("x:float32[N,T,3]=-2:2", "h:float32[2,N,4]=-1:1", "c:float32[2,N,4]=-1:1", dims="N=1:2:3 T=1:4:8", kinds=FINITE)
class A7297StreamingLstm(nn.Module):
    """An LSTM that carries its states through, in chunks of 3 in a Python loop over torch.split, with a cell for what is left."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.l = nn.LSTM(3, 4, num_layers=2, batch_first=True, dropout=0.3)
        self.cell = nn.LSTMCell(4, 4)
        self.eval()

    def forward(self, x, h, c):
        outs = []
        for part in torch.split(x, 3, dim=1):
            y, (h, c) = self.l(part, (h, c))
            outs.append(y)
        y = torch.cat(outs, 1)
        a, b = self.cell(y[:, -1], (h[0], c[1]))
        return y, a, h, c, b


@forward("x:float32[N,T,5]=-4:4", dims="N=1:2:3 T=1:5:8", kinds=FINITE)
def A7298GreedyCtc(self, x):
    """Greedy CTC kept at a fixed size: repeats dropped by unique-like comparisons, kept ids moved to the front by a stable argsort, lengths."""
    p = x.log_softmax(-1)
    ids = p.argmax(-1)
    prev = F.pad(ids, (1, 0), value=-1)[:, :-1]
    keep = (ids != prev) & (ids != 0)
    order = (~keep).to(torch.int8).argsort(dim=1, stable=True)
    out = ids.gather(1, order).masked_fill(~keep.gather(1, order), -1)
    n = keep.sum(1)
    conf = torch.where(keep, p.max(-1).values, 0.0).sum(1) / n.clamp(min=1)
    return out, n, conf.exp()


@attack("x:float32[N,1,T]=-1:1", dims="N=1:1:2 T=8:20:37", kinds=FINITE)
class A7299DemucsPad(nn.Module):
    """Demucs: the valid length by ceil and loops over depths, a pad on both sides, GLU, and a trim to the length."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.e = nn.ModuleList([nn.Conv1d(1, 4, 8, 4), nn.Conv1d(4, 4, 4, 2)])
        self.d = nn.ModuleList([nn.ConvTranspose1d(2, 4, 4, 2), nn.ConvTranspose1d(4, 1, 8, 4)])

    def valid(self, length):
        for c in self.e:
            length = max(math.ceil((length - c.kernel_size[0]) / c.stride[0]) + 1, 1)
        for c in self.d:
            length = (length - 1) * c.stride[0] + c.kernel_size[0]
        return int(length)

    def forward(self, x):
        t = x.shape[-1]
        std = x.std(-1, keepdim=True)
        d = self.valid(t) - t
        y = F.pad(x / (1e-3 + std), (d // 2, d - d // 2))
        s = []
        for c in self.e:
            y = F.relu(c(y))
            s.append(y)
        y = F.glu(y, 1)
        for c in self.d:
            y = c(y)
        return y[..., d // 2 : d // 2 + t] * std


@forward("x:float32[N,T]=-1:1", "g:float32[N,T]=-1:1", dims="N=1:1:2 T=6:9:16", kinds=("normal", "unit", "halves", "ones"))
def A7300FftConvolution(self, x, g):
    """Convolution by rfft at the next power of two, cross-correlation by conj, Hilbert's envelope, fftshift, and a Nyquist that depends on parity."""
    t = x.shape[-1]
    n = 1 << (2 * t - 2).bit_length()
    y = torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(g, n), n)[:, :t]
    gcc = torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(g).conj(), t)
    f = torch.fft.fft(x)
    hm = torch.zeros(t)
    hm[0] = 1
    hm[1 : (t + 1) // 2] = 2
    if t % 2 == 0:
        hm[t // 2] = 1
    env = torch.fft.ifft(f * hm).abs()
    return y, torch.fft.fftshift(gcc, dim=-1), env, torch.fft.rfftfreq(t)


@attack("x:float32[N,4,T]=-2:2", dims="N=1:2:3 T=3:6:9", kinds=FINITE)
class A7301StatefulRunning(nn.Module):
    """InstanceNorm with running stats in eval, attentive statistics pooling with uncorrected std, a causal conv whose cache is a zero buffer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.n = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.n.running_mean.uniform_(-1, 1)
        self.c = nn.Conv1d(4, 4, 3, groups=2)
        self.a = nn.Conv1d(12, 4, 1)
        self.register_buffer("cache", torch.zeros(1, 4, 2))
        self.eval()

    def forward(self, x):
        y = self.c(torch.cat([self.cache.expand(x.size(0), -1, -1), self.n(x)], -1))
        m, s = y.mean(-1, keepdim=True), y.var(-1, keepdim=True, correction=0).clamp(min=1e-6).sqrt()
        w = self.a(torch.cat([y, m.expand_as(y), s.expand_as(y)], 1)).softmax(-1)
        mu = (w * y).sum(-1)
        return torch.cat([mu, ((w * y * y).sum(-1) - mu**2).clamp(min=1e-4).sqrt()], 1)


@forward("x:float32[N,T]=-1:1", "sr:int64[]=4000:48000", dims="N=1:1:2 T=8:16:24", kinds=("normal", "unit", "zeros"))
def A7302MuLawLengths(self, x, sr):
    """Mu-law encode and decode, a length by the sample rate, frames counted by ceil of a float of a tensor, a mask by it."""
    mu = 255.0
    e = torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)
    q = ((e + 1) / 2 * mu + 0.5).to(torch.int64)
    d = (q.float() / mu) * 2 - 1
    d = d.sign() * (torch.exp(d.abs() * math.log1p(mu)) - 1) / mu
    frames = torch.ceil(x.shape[1] * 16000 / sr / 4).long()
    m = torch.arange(x.shape[1]) < frames
    return q, d * m, frames


@forward("x:float32[N,T]=-1:1", dims="N=1:2:3 T=2:7:12", kinds=FINITE, refused="the path through the module depends on the")
def A7303IirByLoop(self, x):
    """A biquad by a Python loop over time with states in a list, an envelope follower with torch.where, a running maximum by cummax."""
    y, x1, x2, y1, y2 = [], 0.0, 0.0, 0.0, 0.0
    env = torch.zeros_like(x[:, 0])
    es = []
    for t in range(x.shape[1]):
        v = 0.2 * x[:, t] + 0.4 * x1 + 0.2 * x2 - 0.3 * y1 - 0.1 * y2
        x2, x1, y2, y1 = x1, x[:, t], y1, v
        y.append(v)
        a = v.abs()
        env = torch.where(a > env, 0.5 * env + 0.5 * a, 0.9 * env)
        es.append(env)
    m, i = torch.stack(y, 1).cummax(1)
    return m, i, torch.stack(es, 1)

# ruff: noqa: E501, RUF046 - attacks are written as users write them
"""Speech and text: front ends, CTC, beams, caches, rotary tables, vocoders, voice activity, alignments, streaming masks."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


@attack(XT, dims="N=1:1:2 T=25:80:200", kinds=("normal", "unit", "zeros", "bytes"), feeds=(normal(1, 25), normal(1, 34), normal(1, 35), normal(2, 200), normal(1, 32768 // 256 + 7, scale=1e4)))
class A4221KaldiFbank(nn.Module):
    """Kaldi's filter banks: frames by as_strided, mean off, pre-emphasis with the first repeated, Povey's window, logs above epsilon."""
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(25, periodic=False).pow(0.85))
        self.register_buffer("mel", torch.rand(6, 17))
    def forward(self, x):
        n, t = x.shape
        m = 1 + (t - 25) // 10
        s = x.as_strided((n, m, 25), (x.stride(0), 10, 1))
        s = s - s.mean(-1, keepdim=True)
        e = s.pow(2).sum(-1).clamp(min=torch.finfo(torch.float32).eps).log()
        s = s - 0.97 * F.pad(s, (1, 0), mode="replicate")[..., :-1]
        p = torch.fft.rfft(F.pad(s * self.window, (0, 7))).abs().pow(2.0)
        y = torch.max(p @ self.mel.T, torch.tensor(torch.finfo(torch.float).eps)).log()
        return torch.cat([e[..., None], y], -1), y - y.mean(1, keepdim=True)
@forward(XT, dims="N=1:1:2 T=1:30:60", kinds=("normal", "ones"), feeds=tuple(normal(1, t) for t in (1, 15, 16, 17, 23, 24, 60)), refused="the path through the module depends on the size")
def A4222TooShortIsEmpty(self, x):
    """Frames of sixteen every eight; shorter audio gives none, and sums over none."""
    n, t = x.shape
    if t < 16:
        f = x.new_zeros(n, 0, 16)
    else:
        f = x.unfold(1, 16, 8)
    return f, f.sum(1), f.abs().amax(2).mean(1).nan_to_num(-1.0), f.flatten(1).shape[1] * x[:, 0]
@forward("x:float32[N,T,5]", "n:int64[N]=0:24", dims="N=1:2:3 T=24", kinds=FEW, feeds=(lambda: {"x": np.eye(5, dtype=np.float32)[np.array([0, 1, 1, 0, 1, 2, 2, 2, 0, 0, 3, 3, 4, 4, 0, 4, 4, 1, 1, 1, 0, 2, 2, 2])][None], "n": np.array([23])},))
def A4223CtcGreedyPacked(self, x, n):
    """Best path, repeats and blanks out, what is kept packed to the left in order, times, a score, nothing after the end."""
    p = x.log_softmax(-1)
    s, k = p.max(-1)
    prev = F.pad(k, (1, 0), value=-1)[:, :-1]
    valid = torch.arange(24)[None] < n[:, None]
    keep = (k != 0) & (k != prev) & valid
    order = torch.argsort((~keep).to(torch.int8), dim=1, stable=True)
    count = keep.sum(1)
    inside = torch.arange(24)[None] < count[:, None]
    ids = torch.where(inside, k.gather(1, order), -1)
    return ids, torch.where(inside, order, 0), count, (s * valid).sum(1), ids[:, : 24 // 2]
@forward("x:float32[N,T,5]", "y:int64[N,3]=1:4", dims=ROWS, kinds=FEW, feeds=tuple(values_at("x:float32[N,T,5]", "y:int64[N,3]=1:4", N=1, T=t) for t in (1, 3, 4, 24)))
def A4224CtcForward(self, x, y):
    """CTC's forward variables over blanks and labels, no skip between equal labels, minus infinity where it cannot be."""
    lp = x.log_softmax(-1)
    n = x.shape[0]
    ext = torch.zeros(n, 7, dtype=torch.long)
    ext[:, 1::2] = y
    skip = torch.zeros(n, 7, dtype=torch.bool)
    skip[:, 3::2] = y[:, 1:] != y[:, :-1]
    a = torch.full((n, 7), -1e30)
    a[:, :2] = lp[:, 0].gather(1, ext[:, :2])
    for t in range(1, x.shape[1]):
        b = F.pad(a, (1, 0), value=-1e30)[:, :-1]
        c = torch.where(skip, F.pad(a, (2, 0), value=-1e30)[:, :-2], torch.tensor(-1e30))
        a = torch.logsumexp(torch.stack([a, b, c]), 0) + lp[:, t].gather(1, ext)
    return torch.logaddexp(a[:, -1], a[:, -2]), a.argmax(1)
@forward("lp:float32[N,3,7]", "s:float32[N,3]", "len:int64[N,3]=1:20", "h:float32[N,3,4]", "done:bool[N,3]", dims="N=1:2:3", kinds=FEW)
def A4225BeamStep(self, lp, s, len, h, done):
    """One step of a beam of three: finished beams only go on with the end, the best by length penalty, states put in order."""
    n, k, v = lp.shape
    lp = lp.log_softmax(-1)
    end = torch.full((v,), float("-inf"))
    end[2] = 0.0
    lp = torch.where(done[..., None], end, lp)
    total = s[..., None] + lp
    nl = len + (~done).long()
    norm = total / (((5.0 + nl) / 6.0) ** 0.6)[..., None]
    _, at = norm.view(n, -1).topk(k, 1)
    beam, tok = at // v, at % v
    flat = (torch.arange(n)[:, None] * k + beam).view(-1)
    return total.view(n, -1).gather(1, at), tok, h.view(n * k, -1).index_select(0, flat).view(n, k, -1), done.gather(1, beam) | (tok == 2), nl.gather(1, beam)
@attack(X4, dims="N=1:1:2 T=1:6:16", kinds=FINITE[:4], feeds=(normal(1, 1, 4), normal(1, 16, 4)))
class A4226TransducerGreedy(nn.Module):
    """One symbol a frame at most: the predictor moves on where no blank comes, by torch.where over its two states."""
    def __init__(self):
        super().__init__()
        self.emb, self.cell, self.joint = nn.Embedding(5, 4), nn.LSTMCell(4, 4), nn.Linear(4, 5)
    def forward(self, x):
        n = x.shape[0]
        h, c, last = x.new_zeros(n, 4), x.new_zeros(n, 4), torch.zeros(n, dtype=torch.long)
        ids = []
        for t in range(x.shape[1]):
            k = self.joint((x[:, t] + h).tanh()).argmax(-1)
            emit = k != 0
            last = torch.where(emit, k, last)
            h2, c2 = self.cell(self.emb(last), (h, c))
            h, c = torch.where(emit[:, None], h2, h), torch.where(emit[:, None], c2, c)
            ids.append(k)
        return torch.stack(ids, 1), h, last
@attack("x:float32[N,T,8]", "k:float32[N,2,P,4]", "v:float32[N,2,P,4]", dims="N=1:1:2 T=1:1:5 P=0:4:16", kinds=FINITE[:4], feeds=tuple(values_at("x:float32[N,T,8]", "k:float32[N,2,P,4]", "v:float32[N,2,P,4]", N=1, T=t, P=p) for t, p in ((1, 0), (5, 0), (1, 16), (3, 1), (2, 9))))
class A4227CacheThatStartsEmpty(nn.Module):
    """A step with past keys and values, none at first: rotary places behind the past, a causal mask with a window, the last eight kept."""
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(8, 24), nn.Linear(8, 8)
        self.register_buffer("freq", 1.0 / 10000 ** (torch.arange(0, 4, 2) / 4))
    def forward(self, x, k, v):
        n, t, _ = x.shape
        p = k.shape[2]
        q, kk, vv = self.qkv(x).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        a = torch.outer(torch.arange(p, p + t).float(), self.freq).repeat(1, 2)
        def turn(y):
            return y * a.cos() + torch.cat([-y[..., 2:], y[..., :2]], -1) * a.sin()
        k, v = torch.cat([k, turn(kk)], 2), torch.cat([v, vv], 2)
        i, j = torch.arange(p, p + t)[:, None], torch.arange(p + t)[None]
        m = (j <= i) & (j > i - 6)
        y = F.scaled_dot_product_attention(turn(q), k, v, attn_mask=m)
        return self.o(y.transpose(1, 2).reshape(n, t, 8)), k[:, :, -8:], v[:, :, -8:]
@attack("x:float32[N,T,2,6]", "pos:int64[N,T]=0:99", dims=ROWS, kinds=FINITE[:4])
class A4228RotaryForms(nn.Module):
    """Rotary tables by gathered places: in pairs as complex numbers, in halves, on a part of the width, scaled by NTK."""
    def __init__(self):
        super().__init__()
        base = 10000 * 2 ** (6 / 4)
        f = 1 / base ** (torch.arange(0, 6, 2).double() / 6)
        a = torch.outer(torch.arange(100).double(), f)
        self.register_buffer("cis", torch.polar(torch.ones_like(a), a).to(torch.complex64), persistent=False)
        self.register_buffer("cos", a.cos().float())
        self.register_buffer("sin", a.sin().float())
    def forward(self, x, pos):
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], 3, 2)) * self.cis[pos][:, :, None]
        c, s = self.cos[pos][:, :, None], self.sin[pos][:, :, None]
        a, b = x.chunk(2, -1)
        half = torch.cat((a * c - b * s, b * c + a * s), -1)
        part = torch.cat([x[..., :2] * c[..., :1] - x[..., [1, 0]] * torch.tensor([1.0, -1.0]) * s[..., :1], x[..., 2:]], -1)
        return torch.view_as_real(z).flatten(-2), half, part
@attack("x:float32[N,T,8]", "m:bool[N,T]", dims=ROWS, kinds=FINITE[:5])
class A4229GroupedQueries(nn.Module):
    """Four queries on two keys, a window and padding by additive minus infinity, rows without any key to zero by nan_to_num, a sink."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.sink = nn.Parameter(torch.zeros(4))
    def forward(self, x, m):
        n, t, _ = x.shape
        q, k, v = self.q(x).view(n, t, 4, 2).transpose(1, 2), self.k(x).view(n, t, 2, 2).transpose(1, 2), self.v(x).view(n, t, 2, 2).transpose(1, 2)
        k, v = k.repeat_interleave(2, 1), v[:, :, None].expand(-1, -1, 2, -1, -1).reshape(n, 4, t, 2)
        ok = torch.ones(t, t, dtype=torch.bool).tril().triu(-4)[None, None] & m[:, None, None]
        bias = torch.zeros(n, 1, t, t).masked_fill(~ok, float("-inf"))
        s = q @ k.mT / 2**0.5 + bias
        w = torch.softmax(s, -1).nan_to_num(0.0)
        z = torch.cat([s, self.sink.view(1, 4, 1, 1).expand(n, -1, t, -1)], -1).softmax(-1)[..., :-1]
        return (w @ v).transpose(1, 2).flatten(2), (z @ v).transpose(1, 2).flatten(2), w.sum(-1)
@attack("m:float32[N,9,T]=0:2", dims="N=1:1:2 T=5:8:20", kinds=("normal", "unit"))
class A4230GriffinLim(nn.Module):
    """Two rounds of Griffin-Lim from phase zero with momentum, as torchaudio has it."""
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.hann_window(16))
    def forward(self, m):
        angles, before = torch.ones_like(m) + 0j, torch.zeros(()) + 0j
        for _ in range(2):
            y = torch.istft(m * angles, 16, 4, window=self.w)
            new = torch.stft(y, 16, 4, window=self.w, return_complex=True)
            angles = new - before * (0.99 / 1.99)
            angles = angles / (angles.abs() + 1e-3)
            before = new
        return torch.istft(m * angles, 16, 4, window=self.w)
@attack("x:float32[N,4,T]", dims="N=1:1:2 T=1:8:30", kinds=FINITE[:4])
class A4231HifiGan(nn.Module):
    """A generator: weight norms of the old kind, transposed convolutions with odd strides, dilated blocks averaged, snake, tanh."""
    def __init__(self):
        super().__init__()
        self.pre = nn.utils.weight_norm(nn.Conv1d(4, 8, 7, padding=3))
        self.ups = nn.ModuleList([nn.utils.weight_norm(nn.ConvTranspose1d(8, 4, 9, 5, 2)), nn.utils.weight_norm(nn.ConvTranspose1d(4, 4, 4, 2, 1, output_padding=1))])
        self.blocks = nn.ModuleList([nn.ModuleList([nn.Conv1d(4, 4, k, dilation=d, padding=(k * d - d) // 2) for d in (1, 3)]) for k in (3, 7)])
        self.alpha, self.post = nn.Parameter(torch.rand(4, 1) + 0.5), nn.Conv1d(4, 1, 7, padding=3, padding_mode="replicate")
    def forward(self, x):
        y = self.pre(x)
        for up in self.ups:
            y = up(F.leaky_relu(y, 0.1))
            y = sum(self.block(b, y) for b in self.blocks) / len(self.blocks)
        y = y + torch.sin(self.alpha * y) ** 2 / (self.alpha + 1e-9)
        return self.post(y).tanh()
    def block(self, convs, y):
        for c in convs:
            y = y + c(F.leaky_relu(y, 0.1))
        return y
@forward("f:float32[N,T]=0:400", dims="N=1:1:2 T=1:8:40", kinds=FEW, feeds=(lambda: {"f": np.array([[0, 0, 220, 220.5, 0, 400, 399, 110]], np.float32)}, lambda: {"f": np.full((1, 40), 397.0, np.float32)}))
def A4232SourceOfHarmonics(self, f):
    """NSF's source: pitch repeated to samples, radians by a running sum modulo one with its carries, three harmonics, unvoiced ones off."""
    f0 = F.interpolate(f[:, None], scale_factor=20, mode="nearest").mT
    h = f0 * torch.arange(1, 4).view(1, 1, 3)
    rad = (h / 8000) % 1
    over = torch.cumsum(rad, 1) % 1
    jump = (over[:, 1:] - over[:, :-1]) < 0
    shift = torch.zeros_like(rad)
    shift[:, 1:] = jump * -1.0
    phase = torch.cumsum(rad + shift, 1)
    uv = (f0 > 10).float()
    return torch.sin(phase * 2 * math.pi) * 0.1 * uv, uv
@forward(XT, dims="N=1:1:2 T=40:64:130", kinds=("normal", "unit", "positive"), feeds=(lambda: {"x": np.sin(np.arange(100) / 3).astype(np.float32)[None]}, normal(1, 40), normal(1, 130)))
def A4233PitchByAutocorrelation(self, x):
    """A spectrum padded to twice the length, lags from 5 to 30, the best with a parabola, voiced where it holds a third."""
    t = x.shape[1]
    y = x - x.mean(1, keepdim=True)
    r = torch.fft.irfft(torch.fft.rfft(y, n=2 * t).abs() ** 2, n=2 * t)[:, :t]
    r = r / (r[:, :1] + 1e-6) * (t / (t - torch.arange(t)))
    v, i = r[:, 5:30].max(1)
    i = i + 5
    a, b, c = (r.gather(1, (i + d)[:, None])[:, 0] for d in (-1, 0, 1))
    p = 0.5 * (a - c) / (a - 2 * b + c)
    return i, v, 100.0 / (i + p.clamp(-0.5, 0.5)), v > 1 / 3
@forward(XT, dims=ROWS, kinds=FEW, feeds=(halves(1, 24), halves(2, 20), halves(1, 1)))
def A4234RunsOfVoice(self, x):
    """Lengths of runs above a threshold by a running maximum of the last gap, hang-over of three, short runs off, number of runs."""
    t = x.shape[1]
    v = x > 0.5
    i = torch.arange(1, t + 1)
    gap = torch.where(v, 0, i.expand_as(x)).cummax(1)[0]
    run = (i - gap) * v
    hang = F.max_pool1d(F.pad(v.float(), (3, 0))[:, None], 4, 1)[:, 0] > 0
    back = (i.flip(0) - torch.where(v, 0, i.expand_as(x).flip(1)).flip(1).cummax(1)[0].flip(1))
    total = run + back.abs() * v
    starts = (v & ~F.pad(v, (1, 0))[:, :-1]).sum(1)
    return run, hang, torch.where(total > 3, x, torch.zeros_like(x)), starts, v.cumsum(1), x.cummin(1)[1]
@attack(XT, dims="N=1:1:2 T=1:30:100", kinds=FINITE[:4], feeds=tuple(normal(1, t) for t in (1, 2, 3, 50, 99, 100)))
class A4235ResampleThreeHalves(nn.Module):
    """torchaudio's sinc resampling from 2 to 3: kernels in FP64, a stride of two, cut to ceil(3 T / 2)."""
    def __init__(self):
        super().__init__()
        t = torch.arange(-6, 8, dtype=torch.float64)[None, None] / 2 + torch.arange(0, -3, -1, dtype=torch.float64)[:, None, None] / 3
        t = (t * 0.99 * 2).clamp(-6, 6)
        w = torch.cos(t * math.pi / 12) ** 2
        t *= math.pi
        k = torch.where(t == 0, torch.ones(()).double(), t.sin() / t) * w * 0.99
        self.register_buffer("k", k.float(), persistent=False)
    def forward(self, x):
        y = F.conv1d(F.pad(x, (6, 6 + 2))[:, None], self.k, stride=2).transpose(1, 2).reshape(x.shape[0], -1)
        return y[..., : int(math.ceil(3 * x.shape[1] / 2))]
@attack(XT, dims="N=1:2:3 T=33:90:200", kinds=("normal", "unit", "zeros", "ones"))
class A4236Mfcc(nn.Module):
    """Spectra, decibels above the loudest of the batch less 80, DCT, lifter, deltas; a spectral centroid and a roll-off by the first place."""
    def __init__(self):
        super().__init__()
        self.register_buffer("fb", torch.rand(33, 10))
        n = torch.arange(10.0)
        d = torch.cos(math.pi / 10 * (n + 0.5) * torch.arange(6.0)[:, None]) * math.sqrt(2 / 10)
        d[0] *= 1 / math.sqrt(2)
        self.register_buffer("dct", d.T)
        self.register_buffer("w", torch.hamming_window(64))
    def forward(self, x):
        s = torch.stft(x, 64, 16, window=self.w, center=True, pad_mode="reflect", return_complex=True).abs()
        m = (s.pow(2).mT @ self.fb).mT
        db = 10 * torch.log10(m.clamp(min=1e-10))
        db = torch.maximum(db, db.amax() - 80.0)
        c = (db.mT @ self.dct) * (1 + 11 * torch.sin(math.pi * torch.arange(6) / 22))
        f = torch.linspace(0, 4000, 33)[:, None]
        return c, (f * s).sum(1) / s.sum(1).clamp(min=1e-6), (s.cumsum(1) > 0.85 * s.sum(1, keepdim=True) + 1e-3).int().argmax(1)
@attack(XT, "n:int64[N]=25:200", dims="N=1:2:3 T=200", kinds=FINITE[:4], feeds=tuple((lambda a=a: {"x": np.ones((2, 200), np.float32), "n": np.array(a)}) for a in ([25, 200], [29, 30], [199, 31], [44, 45])))
class A4237Wav2VecMask(nn.Module):
    """Lengths through three strided convolutions, a one at each last frame, a running sum from behind to the mask, as transformers does it."""
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(1, 4, 10, 5), nn.Conv1d(4, 4, 3, 2), nn.Conv1d(4, 4, 2, 2)])
        self.norm = nn.GroupNorm(4, 4)
    def forward(self, x, n):
        y = x[:, None]
        for i, c in enumerate(self.convs):
            y = F.gelu(self.norm(c(y)) if i == 0 else c(y))
            n = torch.div(n - c.kernel_size[0], c.stride[0], rounding_mode="floor") + 1
        y = y.mT
        m = torch.zeros(y.shape[:2], dtype=torch.long)
        m[(torch.arange(m.shape[0]), n - 1)] = 1
        m = m.flip([-1]).cumsum(-1).flip([-1]).bool()
        y[~m] = 0.0
        return y.sum(1) / m.sum(1).view(-1, 1), m, n
@attack("x:float32[N,6,T]", "len:float32[N]=0:1", dims=ROWS, kinds=FINITE[:5])
class A4238EcapaPooling(nn.Module):
    """Relative lengths to a mask, weighted mean and deviation with a floor, Res2 splits, squeeze by the mask, attention by softmax."""
    def __init__(self):
        super().__init__()
        self.r = nn.ModuleList([nn.Conv1d(2, 2, 3, padding="same", padding_mode="reflect", dilation=1) for _ in range(2)])
        self.bn, self.att = nn.BatchNorm1d(18), nn.Conv1d(18, 6, 1)
    def forward(self, x, len):
        n = (len * x.shape[-1]).round().clamp(min=1)
        m = (torch.arange(x.shape[-1])[None] < n[:, None])[:, None].float()
        parts, y = [], None
        for i, p in enumerate(x.chunk(3, 1)):
            y = p if i == 0 else self.r[i - 1](F.pad(p if i == 1 else p + y, (1, 1)))[..., 1:-1]
            parts.append(y)
        x = torch.cat(parts, 1)
        def stats(w):
            mean = (w * x).sum(2)
            return mean, torch.sqrt((w * (x - mean[:, :, None]).pow(2)).sum(2).clamp(1e-12))
        mean, std = stats(m / m.sum(2, keepdim=True))
        a = self.att(self.bn(torch.cat([x, mean[:, :, None].expand_as(x), std[:, :, None].expand_as(x)], 1)).tanh())
        mean, std = stats(a.masked_fill(m == 0, float("-inf")).softmax(2))
        return torch.cat([mean, std], 1), n.long()
@forward("x:int16[N,T]=-32768:32767", dims=ROWS, feeds=(lambda: {"x": np.array([[-32768, 32767, -1, 0, 1, 255, 256, -256, 16384, -16384]], np.int16)},))
def A4239PcmArithmetic(self, x):
    """16-bit samples as they come: gain by shifts, mixing that wraps, mixing that saturates, bytes, a checksum, peaks of -32768, dither."""
    wide = x.to(torch.int32) * 3 // 2
    sat = wide.clamp(-32768, 32767).to(torch.int16)
    lo, hi = (x & 0xFF).to(torch.uint8), (x >> 8).to(torch.int8)
    check = (x.to(torch.int64) * torch.arange(1, x.shape[1] + 1)).sum(1) % 65521
    return x + x.flip(1), sat, lo, hi, check, x.abs(), x >> 3, x.float().div(32768).mul(255).round().to(torch.int16), (x // 100), x.to(torch.int8), -x

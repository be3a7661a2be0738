# ruff: noqa: E501, RUF046 - attacks are written as users write them
"""Speech front ends and decoders: preprocessors, collapses, positions, streams, codecs."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

WAVE = "x:float32[N,T]=-1:1"
MEL = "x:float32[N,T,8]"
LEN = "n:int64[N]=0:40"


def at(*inputs: str, **sizes: tuple[int, ...]) -> tuple:
    """Feeds at these sizes, one after another; a shorter tuple goes round."""
    most = max(map(len, sizes.values()))
    return tuple(values_at(*inputs, **{k: v[i % len(v)] for k, v in sizes.items()}) for i in range(most))


def lengths(*rows: tuple[int, ...], t: int, width: int = 8) -> tuple:
    """Frames with lengths of one's own."""
    return tuple((lambda r=r: {"x": np.random.RandomState(sum(r)).randn(len(r), t, width).astype(np.float32), "n": np.array(r, np.int64)}) for r in rows)


@attack(WAVE, dims="N=1:1:2 T=200:480:900", feeds=at(WAVE, N=(1, 2), T=(200, 201, 255, 256, 257, 319, 320, 321, 639, 640, 641, 899)))
class A6800WhisperPadOrTrim(nn.Module):
    """Whisper: pad or trim to a fixed length, mel without the last frame, top_db by the loudest of all the batch."""

    def __init__(self):
        super().__init__()
        f, c = torch.linspace(0, 1, 33), torch.linspace(0, 1, 10)
        self.register_buffer("mel", torch.minimum((f[:, None] - c[:-2]) / (c[1:-1] - c[:-2]), (c[2:] - f[:, None]) / (c[2:] - c[1:-1])).clamp(min=0).T)
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x):
        if x.shape[-1] > 640:
            x = x[..., :640]
        if x.shape[-1] < 640:
            x = F.pad(x, (0, 640 - x.shape[-1]))
        s = torch.stft(x, 64, 16, window=self.window, return_complex=True)[..., :-1].abs() ** 2
        m = torch.clamp(self.mel @ s, min=1e-10).log10()
        m = torch.maximum(m, m.max() - 8.0)
        return (m + 4.0) / 4.0


@forward(MEL, LEN, dims="N=1:2:3 T=1:16:40", feeds=lengths((1, 1, 2), (0, 5, 1), (9, 9, 9), t=9) + lengths((1,), (40,), t=40))
def A6801NemoPerFeature(self, x, n):
    """NeMo's per_feature normalisation: mean and unbiased deviation of the valid frames, NaN to zero, plus a constant."""
    t = x.shape[1]
    m = torch.arange(t, device=x.device).unsqueeze(0) < n.unsqueeze(1)
    num = torch.where(m.unsqueeze(2), x, 0.0).sum(1)
    den = m.sum(1)
    mean = num / den.unsqueeze(1)
    std = torch.sqrt(torch.where(m.unsqueeze(2), x - mean.unsqueeze(1), 0.0).pow(2).sum(1) / (den.unsqueeze(1) - 1.0))
    std = std.masked_fill(std.isnan(), 0.0) + 1e-5
    y = (x - mean.unsqueeze(1)) / std.unsqueeze(1)
    return y.masked_fill(~m.unsqueeze(2), 0.0)


@attack(MEL, dims="N=1:2:2 T=1:16:70", feeds=at(MEL, N=(1, 2), T=(1, 2, 3, 31, 32, 33, 63, 64, 65, 70)))
class A6802RelPosCache(nn.Module):
    """Conformer's relative encoding: a table that is made anew when the sequence outgrows it, cut round its middle."""

    def __init__(self):
        super().__init__()
        self.pe = None
        self.extend(torch.zeros(1, 32, 8))

    def extend(self, x):
        if self.pe is not None and self.pe.size(1) >= x.size(1) * 2 - 1:
            return
        p = torch.arange(x.size(1), dtype=torch.float32).unsqueeze(1)
        d = torch.exp(torch.arange(0, 8, 2, dtype=torch.float32) * -(math.log(10000.0) / 8))
        pos, neg = torch.zeros(x.size(1), 8), torch.zeros(x.size(1), 8)
        pos[:, 0::2], pos[:, 1::2] = torch.sin(p * d), torch.cos(p * d)
        neg[:, 0::2], neg[:, 1::2] = torch.sin(-1 * p * d), torch.cos(-1 * p * d)
        self.pe = torch.cat([torch.flip(pos, [0]).unsqueeze(0), neg[1:].unsqueeze(0)], dim=1).to(x.dtype)

    def forward(self, x):
        self.extend(x)
        mid = self.pe.size(1) // 2
        return x * math.sqrt(8), self.pe[:, mid - x.size(1) + 1 : mid + x.size(1)]


@attack(WAVE, dims="N=1:1:2 T=400:480:900", feeds=at(WAVE, N=(1, 2), T=(400, 401, 404, 405, 410, 415, 499, 899)))
class A6803Wav2vecExtractor(nn.Module):
    """Wav2vec2: a group norm on the first of the layers, a positional convolution with weight norm and one frame cut."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.ModuleList([nn.Conv1d(1, 8, 10, 5, bias=False), nn.Conv1d(8, 8, 3, 2, bias=False), nn.Conv1d(8, 8, 2, 2, bias=False)])
        self.norm = nn.GroupNorm(8, 8)
        self.pos = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 4, padding=2, groups=2), dim=2)

    def forward(self, x):
        x = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-7)
        y = x[:, None]
        for i, c in enumerate(self.conv):
            y = c(y)
            y = F.gelu(self.norm(y) if i == 0 else y)
        return (y + F.gelu(self.pos(y)[:, :, :-1])).transpose(1, 2)


@attack(WAVE, dims="N=1:1:2 T=1:300:700", feeds=at(WAVE, N=(1, 2), T=(1, 2, 7, 8, 9, 319, 320, 321, 640, 641, 700)))
class A6804EncodecPad(nn.Module):
    """Encodec: extra padding to a whole frame, reflection that pads with zeros first where the signal is too short."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.conv = nn.Conv1d(1, 4, 16, 8)

    def forward(self, x):
        x = x[:, None]
        k, s = 16, 8
        total = k - s
        length = x.shape[-1]
        frames = (length - k + total) / s + 1
        extra = (math.ceil(frames) - 1) * s + (k - total) - length
        right = total // 2
        left = total - right
        right = right + extra
        most = max(left, right)
        more = 0
        if length <= most:
            more = most - length + 1
            x = F.pad(x, (0, more))
        y = F.pad(x, (left, right), "reflect")
        y = y[..., : y.shape[-1] - more]
        return self.conv(y)


@attack("x:float32[N,C]=-1:1", "s:float32[2,N,6]", dims="N=1:1:3 C=64:64:128%64")
class A6805SileroStep(nn.Module):
    """A VAD step: context of the chunk by reflection, spectrum, an LSTM cell with state, the state returned."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.basis = nn.Parameter(torch.randn(18, 1, 16))
        self.conv = nn.Conv1d(9, 6, 3, padding=1)
        self.rnn = nn.LSTMCell(6, 6)
        self.out = nn.Linear(6, 1)

    def forward(self, x, s):
        y = F.pad(x[:, None], (0, 8), "reflect")
        y = F.conv1d(y, self.basis, stride=8)
        y = torch.sqrt(y[:, :9] ** 2 + y[:, 9:] ** 2)
        y = F.relu(self.conv(y)).mean(-1)
        h, c = self.rnn(y, (s[0], s[1]))
        return torch.sigmoid(self.out(F.relu(h))).mean(1), torch.stack((h, c))


@forward("p:float32[N,T]=0:1", dims="N=1:1:2 T=1:20:60", feeds=tuple((lambda a=a: {"p": np.array([a], np.float32)}) for a in ([0.5, 0.35, 0.34, 0.5], [0.6, 0.4, 0.4, 0.4, 0.3, 0.3, 0.3, 0.3, 0.6], [0.5])))
def A6806VadHangover(self, p):
    """On above a half, off only below 0.35, held for three frames after: hysteresis by last events."""
    t = torch.arange(p.shape[1])
    on, off = p >= 0.5, p < 0.35
    last_on = torch.where(on, t, -1).cummax(1).values
    last_off = torch.where(off, t, -1).cummax(1).values
    active = last_on > last_off
    held = F.max_pool1d(F.pad(active.float()[:, None], (3, 0)), 4, 1)[:, 0] > 0
    start = active & ~F.pad(active, (1, 0))[:, :-1]
    return active, held, start.sum(1), torch.where(active.any(1), active.int().argmax(1), -1)


@forward("x:float32[N,T,5]", LEN, dims="N=1:2:3 T=2:12:40", feeds=lengths((0, 1), (2, 6), (40, 3), t=6, width=5))
def A6807CtcScores(self, x, n):
    """Greedy CTC within lengths, the blank last: kept tokens first by a stable sort, confidence as mean of the kept."""
    lp = x.log_softmax(-1)
    s, p = lp.max(-1)
    t = x.shape[1]
    valid = torch.arange(t)[None] < n[:, None]
    prev = F.pad(p[:, :-1], (1, 0), value=-1)
    keep = (p != prev) & (p != 4) & valid
    order = torch.sort((~keep).int(), dim=1, stable=True).indices
    count = keep.sum(1)
    tok = torch.where(torch.arange(t)[None] < count[:, None], p.gather(1, order), -1)
    conf = torch.exp((s * keep).sum(1) / count)
    return tok, count, torch.nan_to_num(conf, nan=0.0)


@attack(WAVE, dims="N=1:1:2 T=10:160:441", feeds=at(WAVE, N=(1, 2), T=(10, 11, 146, 147, 148, 294, 439, 440, 441)))
class A6808SincResample(nn.Module):
    """Torchaudio's resample of 441 to 160 after the gcd: a kernel of phases, a strided convolution, a cut by ceil."""

    def __init__(self):
        super().__init__()
        old, new = 44, 16
        g = math.gcd(old, new)
        self.o, self.n = old // g, new // g
        base = min(self.o, self.n) * 0.99
        self.width = math.ceil(6 * self.o / base)
        i = torch.arange(-self.width, self.width + self.o, dtype=torch.float64)[None, None] / self.o
        t = torch.arange(0, -self.n, -1, dtype=torch.float64)[:, None, None] / self.n + i
        t = (t * base).clamp(-6, 6)
        w = torch.cos(t * math.pi / 6 / 2) ** 2
        t = t * math.pi
        self.register_buffer("k", (torch.where(t == 0, torch.ones_like(t), t.sin() / t) * w * base / self.o).float())

    def forward(self, x):
        length = x.shape[-1]
        y = F.conv1d(F.pad(x, (self.width, self.width + self.o))[:, None], self.k, stride=self.o)
        y = y.transpose(1, 2).reshape(x.shape[0], -1)
        return y[..., : int(math.ceil(self.n * length / self.o))]


@forward(MEL, dims="N=1:1:2 T=1:12:50", feeds=at(MEL, N=(1, 2), T=(1, 2, 3, 4, 5, 49, 50)))
def A6809DeltasStacked(self, x):
    """compute_deltas twice with replicated ends; low frame rate by stacking three and skipping to every second."""
    def deltas(v, win=5):
        n = (win - 1) // 2
        k = torch.arange(-n, n + 1, 1, dtype=v.dtype).repeat(8, 1, 1)
        return F.conv1d(F.pad(v, (n, n), mode="replicate"), k, groups=8) / (n * (n + 1) * (2 * n + 1) / 3)

    v = x.transpose(1, 2)
    d = deltas(v)
    y = torch.cat((v, d, deltas(d)), 1).transpose(1, 2)
    t = y.shape[1]
    out = math.ceil(t / 2)
    y = torch.cat((y[:, :1], y), 1)
    pad = (out - 1) * 2 + 3 - y.shape[1]
    if pad > 0:
        y = torch.cat((y, y[:, -1:].expand(-1, pad, -1)), 1)
    return y.unfold(1, 3, 2).flatten(2)


@attack(MEL, dims="N=1:1:2 T=1:16:48", feeds=at(MEL, N=(1, 2), T=(1, 15, 16, 17, 31, 32, 33, 47)), refused="the path through the module depends on the si")
class A6810ChunkedConformerMask(nn.Module):
    """WeNet: attention within chunks of sixteen with one chunk of the left, a full mask when it is short."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.qkv = nn.Linear(8, 24)

    def mask(self, size, chunk, left):
        ret = torch.zeros(size, size, dtype=torch.bool)
        for i in range(size):
            start = 0 if left < 0 else max((i // chunk - left) * chunk, 0)
            ret[i, start : min((i // chunk + 1) * chunk, size)] = True
        return ret

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        m = self.mask(x.shape[1], 16, 1) if x.shape[1] > 16 else torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=m)


@attack("x:float32[N,T,6]", "c:float32[N,6,4]", dims="N=1:1:2 T=1:4:9", feeds=at("x:float32[N,T,6]", "c:float32[N,6,4]", N=(1, 2), T=(1, 2, 3, 4, 5, 9)))
class A6811StreamingConvCache(nn.Module):
    """A causal depthwise convolution with its cache given and given back, whatever the chunk's length."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.dw = nn.Conv1d(6, 6, 5, groups=6)
        self.bn = nn.BatchNorm1d(6, eps=0.37)
        self.bn.running_mean.uniform_(-1, 1)

    def forward(self, x, c):
        y = torch.cat((c, x.transpose(1, 2)), 2)
        return {"out": F.silu(self.bn(self.dw(y))).transpose(1, 2), "cache": y[:, :, -4:]}


@attack("x:float32[N,8,T]", dims="N=1:1:2 T=1:10:30", feeds=at("x:float32[N,8,T]", N=(1, 2), T=(1, 2, 29)))
class A6812HifiganStage(nn.Module):
    """Upsampling by a transposed convolution with weight norm and odd padding, and the mean of dilated residual blocks."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.up = nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(8, 4, 5, 3, padding=1, output_padding=0))
        self.res = nn.ModuleList([nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 3, dilation=d, padding=d)) for d in (1, 3, 5)])
        self.post = nn.Conv1d(4, 1, 7, padding=3)

    def forward(self, x):
        x = self.up(F.leaky_relu(x, 0.1))
        xs = None
        for r in self.res:
            y = r(F.leaky_relu(x, 0.1)) + x
            xs = y if xs is None else xs + y
        return torch.tanh(self.post(F.leaky_relu(xs / 3)))


@attack("x:float32[N,T,4]", "m:bool[N,T]", "w:float32[N,T]=0:1", "u:float32[N,T]=0:1", dims="N=1:1:2 T=2:8:20")
class A6813LocationAttention(nn.Module):
    """A Tacotron 2 step: location features of last and summed weights, padding to -inf, the sum given back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.conv = nn.Conv1d(2, 3, 5, padding=2, bias=False)
        self.loc, self.key, self.v = nn.Linear(3, 4, bias=False), nn.Linear(4, 4, bias=False), nn.Linear(4, 1, bias=False)

    def forward(self, x, m, w, u):
        p = self.loc(self.conv(torch.stack((w, u), 1)).transpose(1, 2))
        e = self.v(torch.tanh(p + self.key(x))).squeeze(-1)
        e = e.data.masked_fill_(m, -float("inf"))
        a = F.softmax(e, dim=1)
        return torch.bmm(a.unsqueeze(1), x).squeeze(1), a, u + a


@forward(WAVE, dims="N=1:1:2 T=20:160:300", feeds=at(WAVE, N=(1, 2), T=(20, 24, 25, 26, 34, 35, 36, 299)))
def A6814KaldiFrames(self, x):
    """Kaldi fbank without snip_edges: mirrored ends, DC off, pre-emphasis, energy, the next power of two."""
    t = x.shape[1]
    m = (t + 5) // 10
    pad = 25 // 2 - 10 // 2
    r = torch.flip(x, [1])
    y = torch.cat((r[:, -pad:], x, r), 1) if pad > 0 else torch.cat((x[:, -pad:], r), 1)
    f = y.unfold(1, 25, 10)[:, :m]
    f = f - f.mean(2, keepdim=True)
    e = torch.max(f.pow(2).sum(2), torch.tensor(torch.finfo(torch.float).eps)).log()
    off = F.pad(f, (1, 0), mode="replicate")
    f = f - 0.97 * off[..., :-1]
    f = f * torch.hann_window(25, periodic=False).pow(0.85)
    s = torch.fft.rfft(F.pad(f, (0, 7))).abs().pow(2.0)
    return torch.max(s, torch.tensor(torch.finfo(torch.float).eps)).log(), e

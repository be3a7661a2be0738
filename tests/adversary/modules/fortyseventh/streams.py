# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them
"""Speech, sounds, time series, caches of attention, recommenders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq, two
from tests.adversary.modules.fortysixth.sounds import WAVE, wav
from tests.adversary.values import values_at

X, IDS, MT = "x:float32[N,T]", "i:int64[N,T]=0:9", "m:bool[N,T]"


@forward(WAVE, **wav(WAVE, low=9))
def A5721SpectralGate(self, x):
    """Noise gated: a transform, a floor by the mean and deviation over frames in decibels, a mask smoothed, and back."""
    w = torch.hann_window(16)
    s = torch.stft(x, 16, 4, window=w, return_complex=True, pad_mode="reflect")
    db = 20 * torch.log10(s.abs().clamp(min=1e-10))
    db = torch.maximum(db, db.amax((1, 2), keepdim=True) - 80)
    floor = db.mean(-1, keepdim=True) + 1.5 * db.std(-1, keepdim=True, unbiased=False)
    m = F.avg_pool2d((db > floor).float()[:, None], (3, 3), 1, 1)[:, 0]
    return torch.istft(s * m, 16, 4, window=w, length=x.shape[-1]), m


@forward(WAVE, **wav(WAVE))
def A5722LoudnessByBlocks(self, x):
    """Blocks of a quarter that overlap by three of four, at least one, and a gate relative to the mean of the kept."""
    b = max(x.shape[-1] // 4, 1)
    hop = max(int(round(b * 0.25)), 1)
    z = x.unfold(-1, b, hop).square().mean(-1)
    l = -0.691 + 10 * torch.log10(z + 1e-12)  # noqa: E741
    keep = l > -70
    z1 = (z * keep).sum(-1) / keep.sum(-1)
    gate = -0.691 + 10 * torch.log10(z1 + 1e-12) - 10
    keep = keep & (l > gate[:, None])
    return -0.691 + 10 * torch.log10((z * keep).sum(-1) / keep.sum(-1) + 1e-12), keep


@forward(WAVE, **wav(WAVE, low=5))
def A5723ResampledByPolyphase(self, x):
    """3 to 2 by a windowed sinc: zeros put between by a view, a convolution, and every second with a ceiled length."""
    up, down, half = 3, 2, 6
    t = torch.arange(-half, half + 1) / up
    k = torch.sinc(t) * torch.cos(t * math.pi / (2 * (half / up + 0.5))).square()
    y = torch.zeros(x.shape[0], x.shape[1], up)
    y[..., 0] = x
    y = F.conv1d(y.reshape(x.shape[0], 1, -1), k.view(1, 1, -1), padding=half)[..., ::down]
    return y[..., : math.ceil(x.shape[1] * up / down)]


@forward(WAVE, **wav(WAVE))
def A5724MuLawAndBack(self, x):
    """Companding to bytes by truncation after + 0.5, and expanding, with what is beyond one clipped."""
    mu = torch.tensor(255, dtype=torch.float32)
    y = x.clamp(-1, 1)
    q = ((torch.sign(y) * torch.log1p(mu * y.abs()) / torch.log1p(mu) + 1) / 2 * mu + 0.5).to(torch.int64)
    b = q.to(torch.uint8)
    z = b.float() / mu * 2 - 1.0
    return b, torch.sign(z) * (torch.exp(z.abs() * torch.log1p(mu)) - 1.0) / mu, F.one_hot(q, 256).sum(1)[:, 120:136]


@attack(WAVE, "s:float32[N,2]", **wav(WAVE, "s:float32[N,2]"))
class A5725BiquadByBlocks(nn.Module):
    """A biquad in its transposed form, whose state comes in and goes out; samples by a loop over a split."""

    def __init__(self):
        super().__init__()
        w0 = 2 * math.pi * 60 / 16000 * 40
        alpha = math.sin(w0) / (2 * 0.707)
        a0 = 1 + alpha
        self.b = [(1 - math.cos(w0)) / 2 / a0, (1 - math.cos(w0)) / a0, (1 - math.cos(w0)) / 2 / a0]
        self.a = [-2 * math.cos(w0) / a0, (1 - alpha) / a0]

    def forward(self, x, s):
        z1, z2 = s.unbind(-1)
        out = []
        for v in x.split(1, 1):
            v = v.squeeze(1)
            y = self.b[0] * v + z1
            z1 = self.b[1] * v - self.a[0] * y + z2
            z2 = self.b[2] * v - self.a[1] * y
            out.append(y)
        return torch.stack(out, 1), torch.stack([z1, z2], 1)


@forward(X, **seq(X))
def A5726RevInWithTrend(self, x):
    """DLinear: a moving mean with copies of the ends, the rest normalised by the last value, and a guess of eight."""
    k = 5
    front, end = x[:, :1].repeat(1, (k - 1) // 2), x[:, -1:].repeat(1, k // 2)
    trend = F.avg_pool1d(torch.cat([front, x, end], 1)[:, None], k, 1)[:, 0]
    rest = x - trend
    sd = torch.sqrt(torch.var(rest, 1, keepdim=True, unbiased=False) + 1e-5)
    season = rest[:, -min(4, x.shape[1]) :].repeat(1, -(-8 // min(4, x.shape[1])))[:, :8]
    return trend[:, -1:] + season, rest / sd, trend


@forward(X4, **seq(X4), refused="the path through the module depends on the size")
def A5727AutoCorrelation(self, x):
    """Autoformer: the best int(ln(length)) delays of a correlation by transforms, rolled and added up."""
    t = x.shape[1]
    f = torch.fft.rfft(x.transpose(1, 2), dim=-1)
    corr = torch.fft.irfft(f * torch.conj(f), n=t, dim=-1).mean((0, 1))
    k = max(int(1 * math.log(t)), 1)
    w, at = torch.topk(corr, k)
    w = w.softmax(-1)
    y = torch.zeros_like(x)
    idx = torch.arange(t)
    for i in range(k):
        y = y + x[:, (idx + at[i]) % t] * w[i]
    return y


@forward(X4, **seq(X4))
def A5728ProbSparse(self, x):
    """Informer: a factor of ceil(log) queries with the largest spread, the mean for others, written by indices."""
    n, t, d = x.shape
    u = min(2 * math.ceil(math.log(t + 1)), t)
    s = x @ x.transpose(1, 2) / math.sqrt(d)
    m = s.max(-1)[0] - s.sum(-1) / t
    top = m.topk(u, sorted=False)[1]
    ctx = x.mean(1, keepdim=True).expand(n, t, d).clone()
    part = s[torch.arange(n)[:, None], top].softmax(-1) @ x
    ctx[torch.arange(n)[:, None], top] = part
    return ctx, m


class Kept(NamedTuple):
    """Keys and values."""

    k: torch.Tensor
    v: torch.Tensor


@attack(X4, "k:float32[N,S,4]", "v:float32[N,S,4]", **two(X4, "k:float32[N,S,4]", "v:float32[N,S,4]", zero=True))
class A5729SinksAndWindow(nn.Module):
    """StreamingLLM: keeps two sinks and the last six; positions are those within the cache."""

    def forward(self, x, k, v):
        k, v = torch.cat([k, x], 1), torch.cat([v, x.tanh()], 1)
        n, t = k.shape[1], x.shape[1]
        if n > 8:
            k = torch.cat([k[:, :2], k[:, n - 6 :]], 1)
            v = torch.cat([v[:, :2], v[:, n - 6 :]], 1)
        p = torch.arange(k.shape[1])[:, None] * torch.tensor([1.0, 0.1])
        rot = lambda z, a: torch.cat([z[..., :2] * a.cos() - z[..., 2:] * a.sin(), z[..., 2:] * a.cos() + z[..., :2] * a.sin()], -1)  # noqa: E731
        q = rot(x[:, -min(t, 8) :], p[-min(t, 8) :])
        a = (q @ rot(k, p).transpose(1, 2) / 2).softmax(-1)
        return a @ v, Kept(k, v)


@attack(X4, "l:int64[N]=0:40", **seq(X4, "l:int64[N]=0:40"))
class A5730GroupedWithLengths(nn.Module):
    """Grouped queries of four heads with two keys, an additive mask by lengths of which some are zero, and sdpa."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 8), nn.Linear(4, 8)

    def forward(self, x, l):  # noqa: E741
        n, t, _ = x.shape
        q = self.q(x).view(n, t, 4, 2).transpose(1, 2)
        k, v = self.kv(x).view(n, t, 2, 2, 2).unbind(2)
        k, v = (z.transpose(1, 2)[:, :, None].expand(n, 2, 2, t, 2).reshape(n, 4, t, 2) for z in (k, v))
        valid = torch.arange(t)[None] < l[:, None]
        mask = torch.zeros(n, 1, t, t).masked_fill(~valid[:, None, None], torch.finfo(torch.float32).min)
        mask = mask + torch.full((t, t), torch.finfo(torch.float32).min).triu(1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.clamp(min=torch.finfo(torch.float32).min))
        return out.transpose(1, 2).reshape(n, t, 8) * valid[..., None]


@dataclass
class Scored:
    """What a recommender gives back."""

    top: torch.Tensor
    ids: torch.Tensor
    seen: torch.Tensor


@attack(IDS, MT, **seq(IDS, MT))
class A5731ItemsNotSeen(nn.Module):
    """SASRec: items seen get -inf by a scatter, padding is item zero, the best three of the last that counts."""

    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(10, 4, padding_idx=0, max_norm=None)
        self.pos = nn.Embedding(40, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True, dropout=0.0)

    def forward(self, i, m):
        i = i.masked_fill(~m, 0)
        t = i.shape[1]
        x = self.items(i) * 4**0.5 + self.pos.weight[40 - t :]
        x = self.layer(x, src_mask=torch.ones(t, t, dtype=torch.bool).triu(1))
        last = (t - 1 - (i != 0).flip(1).int().argmax(1))
        h = x[torch.arange(x.shape[0]), last]
        score = h @ self.items.weight.t()
        seen = torch.zeros(i.shape[0], 10, dtype=torch.bool).scatter_(1, i, True)
        score = score.masked_fill(seen, -torch.inf)
        top, ids = score.topk(3, -1)
        return Scored(top, torch.where(top.isinf(), -1, ids), seen)


@attack("c:int64[N,3]=0:7", "d:float32[N,2]", "b:int64[N,T]=-1:7", **seq("c:int64[N,3]=0:7", "d:float32[N,2]", "b:int64[N,T]=-1:7"))
class A5732FieldsCrossed(nn.Module):
    """DeepFM with offsets of fields, a bag whose -1 are left out, and pairs by the square of the sum."""

    def __init__(self):
        super().__init__()
        self.register_buffer("offsets", torch.from_numpy(np.array((0, *np.cumsum([8, 8, 8])[:-1]), dtype=np.int64)), persistent=False)
        self.e, self.lin, self.bag = nn.Embedding(24, 3), nn.Embedding(24, 1), nn.EmbeddingBag(9, 3, mode="mean", padding_idx=0)

    def forward(self, c, d, b):
        at = c + self.offsets.unsqueeze(0)
        v = torch.cat([self.e(at), self.bag((b + 1).clamp(min=0))[:, None], torch.log1p(d.abs()).sum(1)[:, None, None].expand(-1, 1, 3)], 1)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        return torch.sigmoid(self.lin(at).sum((1, 2)) + pairs), v


@forward(X4, "l:int64[N]=1:40", **seq(X4, "l:int64[N]=1:40"))
def A5733SpecAugmentFixed(self, x, l):  # noqa: E741
    """Subsampled by four as Conformer's, lengths by the same formula, and masks of those lengths."""
    t = x.shape[1]
    out = l
    for _ in range(2):
        out = torch.floor((out.float() + 2 * 1 - 3) / 2 + 1).to(torch.int32)
    y = F.avg_pool1d(F.avg_pool1d(x.transpose(1, 2), 3, 2, 1), 3, 2, 1)
    pad = torch.arange(y.shape[-1]).unsqueeze(0) >= out.unsqueeze(1)
    return y.masked_fill(pad[:, None], 0), out, torch.div(l + 3, 4, rounding_mode="trunc") == out, (t + 3) // 4 - y.shape[-1] + pad.sum(1)


@attack(X4, **seq(X4), refused="the path through the module depends on the size")
class A5734ChunkedLstmStates(nn.Module):
    """An LSTM by chunks of five with its states from one to the next, the shorter one last, projected and turned."""

    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 6, 2, batch_first=True, proj_size=3)

    def forward(self, x):
        state, out = None, []
        for c in x.split(5, 1):
            y, state = self.r(c, state)
            state = tuple(s.detach() * 0.9 for s in state)
            out.append(y.flip(1))
        return torch.cat(out, 1), state


@forward(X4, "d:int64[N,T]=0:4", dims="N=1:2:2 T=1:5:12", kinds=FEW, feeds=tuple(values_at(X4, "d:int64[N,T]=0:4", N=2, T=t) for t in range(1, 13)))
def A5735LengthRegulated(self, x, d):
    """FastSpeech: durations added up to a grid of 48 frames, who is above which bound, gathered with a clamp."""
    end = d.cumsum(1)
    at = torch.arange(48)
    idx = torch.searchsorted(end, at.expand(end.shape[0], -1).contiguous(), right=True)
    valid = at[None] < end[:, -1:]
    return x.gather(1, idx.clamp(max=x.shape[1] - 1)[..., None].expand(-1, -1, 4)) * valid[..., None], valid.sum(1)


@forward("f:float32[N,T]=0:400", **seq("f:float32[N,T]=0:400"))
def A5736PitchInterpolated(self, f):
    """Pitch: unvoiced frames get what lies between the voiced by linear interpolation, the ends are held."""
    v = f > 60
    t = f.shape[1]
    at = torch.arange(t).expand_as(f)
    prev = torch.where(v, at, -1).cummax(1).values
    nxt = torch.where(v, at, t).flip(1).cummin(1).values.flip(1)
    lo = torch.where(prev < 0, nxt.clamp(max=t - 1), prev)
    hi = torch.where(nxt >= t, prev.clamp(min=0), nxt)
    a, b = f.gather(1, lo), f.gather(1, hi)
    w = (at - lo) / (hi - lo).clamp(min=1)
    out = torch.where(v.any(1, keepdim=True), a + (b - a) * w, 0)
    return torch.where(out > 0, torch.log2(out / 440) * 12 + 69, 0), v


@forward(X, **seq(X, low=3))
def A5737PeaksWithProminence(self, x):
    """Peaks above their neighbours and half of the maximum, the distance to the next of them, -1 after the last."""
    mid = x[:, 1:-1]
    p = F.pad((mid > x[:, :-2]) & (mid >= x[:, 2:]) & (mid > 0.5 * x.amax(1, keepdim=True)), (1, 1))
    t = x.shape[1]
    at = torch.where(p, torch.arange(t), t)
    nxt = at.flip(1).cummin(1).values.flip(1)
    after = torch.cat([nxt[:, 1:], torch.full_like(nxt[:, :1], t)], 1)
    gap = torch.where(p & (after < t), after - torch.arange(t), -1)
    return p, gap, gap.float().mean(1).nan_to_num()


@forward("q:float32[N,T,4]", "k:float32[N,S,4]", **two("q:float32[N,T,4]", "k:float32[N,S,4]"))
def A5738AlignedByDtw(self, q, k):
    """Dynamic time warping by rows: each row by a running minimum along it through a loop, and the path's cost."""
    d = torch.cdist(q, k)
    n, t, s = d.shape
    prev = d[:, 0].cumsum(-1)
    for i in range(1, t):
        cur = [prev[:, 0] + d[:, i, 0]]
        for j in range(1, s):
            cur.append(d[:, i, j] + torch.minimum(torch.minimum(prev[:, j], prev[:, j - 1]), cur[-1]))
        prev = torch.stack(cur, 1)
    return prev[:, -1] / (t + s)


@forward(WAVE, **wav(WAVE, low=16))
def A5739MfccByHand(self, x):
    """MFCC: frames, a window, a power spectrum, eight bands by triangles from numpy, logs, DCT and a lifter."""
    hz = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 8)
    bins = np.floor(17 * (700 * (10 ** (hz / 2595) - 1)) / 16000).astype(int)
    fb = np.zeros((6, 9), np.float32)
    for m in range(1, 7):
        for k in range(bins[m - 1], bins[m]):
            fb[m - 1, k] = (k - bins[m - 1]) / (bins[m] - bins[m - 1])
        for k in range(bins[m], bins[m + 1]):
            fb[m - 1, k] = (bins[m + 1] - k) / (bins[m + 1] - bins[m])
    f = F.pad(x, (0, (-x.shape[1]) % 8)).unfold(1, 16, 8) * torch.hamming_window(16, periodic=False)
    p = torch.fft.rfft(f, 16).abs().square() / 16
    e = torch.log(torch.where(p @ torch.from_numpy(fb).T == 0, torch.finfo(torch.float32).eps, p @ torch.from_numpy(fb).T))
    c = torch.cos(math.pi / 6 * (torch.arange(6) + 0.5)[None] * torch.arange(4)[:, None]) * math.sqrt(2 / 6)
    lift = 1 + 11 * torch.sin(math.pi * torch.arange(4) / 22)
    return e @ c.T * lift, e - e.mean(1, keepdim=True)


@forward(X4, **seq(X4))
def A5740PatchesWithStride(self, x):
    """PatchTST: padded by copies at the end, patches of four by three, how many by a formula, and their last values."""
    t = x.shape[1]
    y = F.pad(x.transpose(1, 2), (0, 3), mode="replicate")
    p = y.unfold(-1, 4, 3)
    count = int((max(t, 4) - 4) / 3 + 1) + 1
    return p[:, :, :count], p.mean(-1)[:, :, -1], F.pad(p, (0, 0, 0, max(0, count - p.shape[2])))

"""Audio front-ends written by hand and speech decoders: framing, filters, energies, pitch, CTC, beams, lengths."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

W = "x:float32[N,T]"
DW = "N=1:2:3 T=16:25:40"
L = "x:float32[N,T,5]"
DL = "N=1:2:3 T=1:6:9"


@attack(W, dims=DW, kinds=("normal", "unit", "zeros", "tiny", "large", "halves"))
class A8172MelByHand(nn.Module):
    """Pre-emphasis that keeps its first sample, frames by unfold with a Hann window, DFT by two matmuls, HTK mel filters made in forward, log10 with a floor, dB relative to the max."""

    def __init__(self) -> None:
        super().__init__()
        n = 8
        k = (
            torch.arange(n // 2 + 1, dtype=torch.float64)[:, None]
            * torch.arange(n, dtype=torch.float64)
            * (2 * math.pi / n)
        )
        self.register_buffer("c", torch.cos(k).float())
        self.register_buffer("s", torch.sin(k).float())

    def filters(self, dev):
        f = torch.linspace(0, 4000, 5, device=dev)
        m = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + 4000 / 700), 5, device=dev) / 2595) - 1)
        up = (f[:, None] - m[None, :-2]) / (m[1:-1] - m[:-2])
        down = (m[None, 2:] - f[:, None]) / (m[2:] - m[1:-1])
        return torch.minimum(up, down).clamp(min=0)

    def forward(self, x):
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
        f = x.unfold(1, 8, 3) * torch.hann_window(8, device=x.device)
        p = (f @ self.c.T) ** 2 + (f @ self.s.T) ** 2
        db = 10 * torch.log10((p @ self.filters(x.device)).clamp(min=1e-10))
        return torch.maximum(db, db.amax((1, 2), keepdim=True) - 80)


@forward(W, dims=DW, kinds=FINITE)
def A8173FramesByStride(self, x):
    """Frames by as_strided over the contiguous wave of moving length, hop 4, with a centre pad by reflect, energies in whole frames, ZCR by sign of products."""
    x = F.pad(x[:, None], (4, 4), mode="reflect")[:, 0].contiguous()
    n, t = x.shape
    k = (t - 8) // 4 + 1
    f = torch.as_strided(x, (n, k, 8), (t, 4, 1))
    z = ((f[..., 1:] * f[..., :-1]) < 0).sum(-1)
    return f.square().mean(-1).sqrt(), z, f[:, -1]


@forward(W, dims=DW, kinds=("normal", "unit", "halves", "zeros", "ones", "negative"), feeds=(halves(2, 24),))
def A8174EnergyVad(self, x):
    """Energy gate against the quietest tenth of the frames, hangover by a max pool, segments by diff with prepend, length of speech, first voiced frame or -1."""
    f = x.unfold(1, 6, 2)
    e = f.square().sum(-1)
    k = max(1, f.shape[1] // 10)
    floor = e.topk(k, dim=1, largest=False).values.mean(1, keepdim=True)
    v = (e > 2 * floor + 1e-3).float()
    h = F.max_pool1d(v[:, None], 3, 1, 1)[:, 0]
    d = torch.diff(h, dim=1, prepend=h.new_zeros(h.shape[0], 1), append=h.new_zeros(h.shape[0], 1))
    i = torch.arange(h.shape[1], device=x.device)
    first = torch.where(h.bool(), i, h.shape[1]).amin(1)
    first = torch.where(first == h.shape[1], -1, first)
    return h, (d > 0).sum(1), h.sum(1), first


@forward(W, dims=DW, kinds=("normal", "unit", "ones", "ascending", "zeros"), refused="the path through the module depends on the size:")
def A8175PitchByAutocorrelation(self, x):
    """Autocorrelation of each lag by a loop over lags under the size, normalised, first argmax beyond lag 2, Hz by integer rate over lag, zero where weak."""
    y = x - x.mean(1, keepdim=True)
    r = []
    for lag in range(2, 9):
        if lag >= x.shape[1] // 2:
            break
        a, b = y[:, lag:], y[:, :-lag]
        r.append((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1) + 1e-6))
    r = torch.stack(r, 1)
    v, i = r.max(1)
    return r, torch.where(v > 0.3, 16000 / (i + 2), 0.0), 16000 // (i + 2)


@forward(W, dims="N=1:2:3 T=2:8:15", kinds=("normal",))
def A8176MuLawAndDelta(self, x):
    """mu-law there and back with 256 levels by floor of x + 0.5, CMVN over time by a sliding window through cumsum, regression deltas by conv with replicated ends."""
    y = x.clamp(-1, 1)
    mu = 255.0
    q = ((torch.sign(y) * torch.log1p(mu * y.abs()) / math.log1p(mu) + 1) / 2 * mu + 0.5).to(torch.int64)
    b = 2 * (q.float() / mu) - 1
    b = torch.sign(b) * (torch.exp(b.abs() * math.log1p(mu)) - 1) / mu
    w = torch.tensor([-2.0, -1, 0, 1, 2], device=x.device).view(1, 1, 5) / 10
    d = F.conv1d(F.pad(b[:, None], (2, 2), mode="replicate"), w)[:, 0]
    return q, b, d


@forward(W, dims="N=1:2:3 T=4:11:17", kinds=FINITE)
def A8177SlidingMeanByCumsum(self, x):
    """Sliding mean over at most 5 with shrinking ends by a cumsum and gathers of clamped places, upsampling by zero stuffing of interleaved stacks, decimation by a step of the size."""
    t = x.shape[1]
    c = F.pad(x.cumsum(1), (1, 0))
    i = torch.arange(t, device=x.device)
    lo, hi = (i - 2).clamp(min=0), (i + 3).clamp(max=t)
    m = (c[:, hi] - c[:, lo]) / (hi - lo)
    u = torch.stack((x, torch.zeros_like(x)), -1).flatten(1)[:, :-1]
    return m, u, x[:, :: max(1, t // 4)], x[:, t % 3 :: 2]


@forward(L, dims=DL, kinds=("normal", "halves", "zeros", "ones", "negative"), feeds=(halves(2, 9, 5), halves(1, 4, 5)))
def A8178CtcGreedyPadded(self, x):
    """Greedy CTC: argmax, repeats and blanks dropped, kept tokens pushed left by a stable sort of the mask, padded with -1, lengths and mean confidence."""
    p = x.softmax(-1)
    c, a = p.max(-1)
    keep = (a != 0) & (F.pad(a[:, :-1], (1, 0), value=-1) != a)
    order = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)
    out = torch.where(keep, a, -1).gather(1, order)
    n = keep.sum(1)
    return out, n, (c * keep).sum(1) / n.clamp(min=1)


@forward(L, dims=DL, kinds=("normal", "halves", "zeros"), feeds=(halves(1, 7, 5),))
def A8179CtcScatterCollapse(self, x):
    """CTC collapse by cumsum places and a scatter into one spare column, alignment run lengths by scatter_add of ones into the segment ids."""
    a = x.argmax(-1)
    new = torch.cat([torch.ones_like(a[:, :1], dtype=torch.bool), a[:, 1:] != a[:, :-1]], 1)
    keep = new & (a > 0)
    t = a.shape[1]
    place = torch.where(keep, keep.cumsum(1) - 1, t)
    out = torch.full((a.shape[0], t + 1), -1, dtype=a.dtype, device=a.device).scatter(1, place, a)[:, :t]
    seg = new.cumsum(1) - 1
    runs = torch.zeros_like(a).scatter_add(1, seg, torch.ones_like(a))
    return out, runs


@attack(
    "h:float32[B,4]", "score:float32[B,3]", "last:int64[B,3]=0:6", dims="B=1:2:4", kinds=("normal", "unit", "negative")
)
class A8180BeamStep(nn.Module):
    """One beam step: log-probs of 7 words, finished beams only take the pad at no cost, length penalty, top 3 of beams x words, back pointers by // and %."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.emb, self.out = nn.Embedding(7, 4), nn.Linear(4, 7)

    def forward(self, h, score, last):
        lp = self.out(torch.tanh(h[:, None] + self.emb(last))).log_softmax(-1)
        done = last == 6
        stay = torch.full_like(lp, float("-inf"))
        stay[..., 6] = 0
        lp = torch.where(done[..., None], stay, lp)
        s = (score[..., None] + lp) / ((5 + 1) / 6) ** 0.6
        v, i = s.flatten(1).topk(3, 1)
        back = torch.div(i, 7, rounding_mode="floor")
        return v, back, i % 7, last.gather(1, back), done.gather(1, back).all(1)


@attack("x:float32[N,T,6]", "n:int64[N]=0:9", dims="N=1:2:3 T=3:6:9", kinds=FINITE)
class A8181ConformerMask(nn.Module):
    """Lengths after two strides of two by integer arithmetic, a chunk mask of left context, attention whose empty rows give zeros by nan_to_num, pooled statistics by valid frames with Bessel."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.c = nn.Conv1d(6, 4, 3, 2, 1)
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, n):
        y = self.c(x.transpose(1, 2)).transpose(1, 2)
        m = torch.div(n - 1, 2, rounding_mode="floor") + 1
        t = y.shape[1]
        i = torch.arange(t, device=x.device)
        valid = i[None] < m[:, None]
        chunk = (i[:, None] // 2 >= i // 2) & (i[:, None] // 2 - 1 <= i // 2)
        mask = chunk[None] & valid[:, None]
        a = (self.q(y) @ self.k(y).mT / 2).masked_fill(~mask, float("-inf")).softmax(-1)
        z = torch.nan_to_num(a) @ y * valid[..., None]
        c = valid.sum(1, keepdim=True)
        mu = z.sum(1) / c.clamp(min=1)
        var = (((z - mu[:, None]) * valid[..., None]) ** 2).sum(1) / (c - 1).clamp(min=1)
        return z, torch.cat((mu, (var + 1e-5).sqrt()), 1), m


@attack("x:float32[N,C,T]", dims="N=1:2:2 C=1:2:3 T=9:16:31", kinds=("normal", "unit", "zeros", "halves"))
class A8182StftMagPhase(nn.Module):
    """torch.stft of channels folded into the batch, not centred, one-sided; magnitude with power 0.3, phase by atan2, instantaneous frequency by unwrapped differences."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.hamming_window(8), persistent=False)

    def forward(self, x):
        n, c, t = x.shape
        s = torch.stft(x.reshape(n * c, t), 8, 3, 8, self.w, center=False, return_complex=True)
        s = s.view(n, c, 5, -1)
        m = s.abs().clamp_min(1e-4)
        return m**0.3, (s.real + 2) / m, torch.log(m).mean(-1), (m * m).sum(2) > 1


@forward("x:float32[N,T]", dims="N=1:2:3 T=12:21:30", kinds=("normal", "unit", "halves"), feeds=(normal(2, 30),))
def A8183ResampleLinearByHand(self, x):
    """Rate 3/2 by floors of float places, a gain that fades over a tenth of the length, overlap-add by F.fold of frames and normalisation by folded ones."""
    t = x.shape[1]
    m = t * 3 // 2
    p = torch.arange(m, device=x.device) * (2 / 3)
    i = p.floor().long().clamp(max=t - 1)
    j = (i + 1).clamp(max=t - 1)
    f = p - i
    y = x[:, i] * (1 - f) + x[:, j] * f
    k = math.ceil(t / 10)
    fade = torch.cat((torch.linspace(0, 1, k, device=x.device), torch.ones(m - k, device=x.device)))
    fr = x[:, : (t - 6) // 3 * 3 + 6].unfold(1, 6, 3).transpose(1, 2)
    size = (1, (t - 6) // 3 * 3 + 6)
    o = F.fold(fr, size, (1, 6), stride=(1, 3)) / F.fold(torch.ones_like(fr), size, (1, 6), stride=(1, 3))
    return y * fade, o[:, 0, 0]

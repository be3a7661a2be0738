"""Speech, streams and sequences: padding, states, decoders, beams, filters."""
# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack("q:float32[N,S,6]", "past:float32[N,P,6]", "mask:bool[N,P+S]", dims="N=1:1:2 P=1:3:6 S=1:2:5", kinds=FINITE)
class A7890PastAndNewMask(nn.Module):
    """A cache of P and S new steps in one mask of P+S; positions from the mask's cumulative sum; offsets by P."""

    def forward(self, q, past, mask):
        p = past.size(1)
        pos = (mask.long().cumsum(-1) - 1).clamp(min=0)
        k = torch.cat((past, q), 1) * torch.cos(pos[..., None].float() / 10)
        causal = torch.ones(q.size(1), k.size(1), dtype=torch.bool).tril(p)
        a = (q @ k.mT / math.sqrt(6)).masked_fill(~(causal & mask[:, None]), torch.finfo(q.dtype).min)
        return a.softmax(-1) @ k, k[:, -p:]


@attack("x:float32[N,3,H,W]", "m:float32[N,1,H//4,W//4]", dims="N=1:1:2 H=8:16:24%8 W=8:8:16%4", kinds=FINITE)
class A7891MaskOfQuarter(nn.Module):
    """A mask of a quarter of each side, brought to the side by nearest and by repeat, areas by pool of four."""

    def forward(self, x, m):
        up = F.interpolate(m, size=x.shape[-2:], mode="nearest")
        rep = m.repeat_interleave(4, 2).repeat_interleave(4, 3)
        return x * up + rep, F.avg_pool2d(x, 4) * m, (up - rep).abs().amax((1, 2, 3))


@attack("x:float32[N,2*T+1]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7892OddWindow(nn.Module):
    """A context of odd length 2T+1: the middle, both halves folded over it, the median of the whole."""

    def forward(self, x):
        t = x.shape[1] // 2
        left, mid, right = x.split([t, 1, t], 1)
        return left.flip(1) - right, mid * t, x.median(1).values, x.unfold(1, t + 1, 1).sum(1)


@attack(X, "l:int64[N]=1:2", dims=D, kinds=FINITE)
class A7893PackedUnsorted(nn.Module):
    """pack_padded_sequence enforce_sorted=False with lengths clamped, a two-layer GRU, total_length, the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.g = nn.GRU(6, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, x, l):
        p = pack_padded_sequence(x, l.clamp(1, x.shape[1]), batch_first=True, enforce_sorted=False)
        y, h = self.g(p)
        y, n = pad_packed_sequence(y, batch_first=True, total_length=x.shape[1], padding_value=-1.0)
        return y, h, n


@forward(X, dims=D, kinds=FINITE)
def A7894CtcGreedyPadded(self, x):
    """CTC greedy: unique_consecutive per row of the batch is padded by pad_sequence to the length with blanks."""
    best = x.argmax(-1)
    keep = F.pad(best[:, 1:] != best[:, :-1], (1, 0), value=True) & (best != 0)
    place = keep.long().cumsum(1) - 1
    out = torch.zeros_like(best)
    out = out.scatter_add(1, place.clamp(min=0), best * keep)
    return out, keep.sum(1), x.log_softmax(-1).amax(-1).sum(1)


@forward(X, dims=D, kinds=FINITE, refused="unique_consecutive")
def A7895RowsOfOwnLength(self, x):
    """unique_consecutive for each row and pad_sequence: sizes follow values."""
    rows = [torch.unique_consecutive(r.argmax(-1)) for r in x]
    return pad_sequence(rows, batch_first=True, padding_value=-1)


@forward(X, dims=D, kinds=FINITE)
def A7896KalmanWithJoseph(self, x):
    """A constant-velocity Kalman filter over time with Joseph's form, covariances made symmetric, gated by Mahalanobis."""
    n, t, _ = x.shape
    f = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    h, q, r = torch.tensor([[1.0, 0.0]]), torch.eye(2) * 0.01, torch.tensor([[0.5]])
    s, p = torch.zeros(n, 2, 1), torch.eye(2).expand(n, 2, 2)
    out = []
    for i in range(t):
        s, p = f @ s, f @ p @ f.T + q
        v = x[:, i, :1, None] - h @ s
        c = h @ p @ h.T + r
        k = p @ h.T / c
        gate = (v * v / c < 9.0).float()
        s = s + gate * (k @ v)
        m = torch.eye(2) - gate * (k @ h)
        p = m @ p @ m.mT + k @ k.mT * r * gate
        p = 0.5 * (p + p.mT)
        out.append(s[:, :, 0])
    return torch.stack(out, 1), p


@forward(X, dims=D, kinds=FINITE)
def A7897OneEuroFilter(self, x):
    """The one-euro filter of hand trackers: the cutoff follows the speed, state in Python locals."""
    def alpha(c):
        tau = 1.0 / (2 * math.pi * c)
        return 1.0 / (1.0 + tau * 30.0)

    prev, dprev, out = x[:, 0], torch.zeros_like(x[:, 0]), [x[:, 0]]
    for step in x.unbind(1)[1:]:
        d = (step - prev) * 30.0
        dprev = torch.lerp(dprev, d, alpha(torch.tensor(1.0)))
        prev = prev + alpha(1.0 + 0.007 * dprev.abs()) * (step - prev)
        out.append(prev)
    return torch.stack(out, 1)


@forward("x:float32[N,L]", dims="N=1:2:3 L=40:64:100", kinds=FINITE)
def A7898StftIstftRoundTrip(self, x):
    """torch.stft centred by reflect, a mask on magnitudes, torch.istft with the length asked for."""
    w = torch.hann_window(16)
    s = torch.stft(x, 16, 4, window=w, return_complex=True)
    mag, ph = s.abs(), s.angle()
    m = (mag > mag.mean((1, 2), keepdim=True)).float()
    return torch.istft(torch.polar(mag * m, ph), 16, 4, window=w, length=x.shape[1]), m.sum((1, 2))


@forward("x:float32[N,L]", dims="N=1:2:3 L=40:64:100", kinds=FINITE, refused="of complex numbers")
def A7899BiquadsByFft(self, x):
    """A cascade of biquads in the frequency domain with zero padding to the next power of two, and a chirp window."""
    n = 1 << (x.shape[1] - 1).bit_length()
    w = torch.exp(-1j * 2 * math.pi * torch.arange(n // 2 + 1) / n)
    h = (0.2 + 0.4 * w + 0.2 * w**2) / (1 - 0.5 * w + 0.3 * w**2)
    y = torch.fft.irfft(torch.fft.rfft(x, n=n) * h, n=n)[:, : x.shape[1]]
    return y, torch.fft.fftshift(torch.fft.fft(x).abs(), dim=-1)


@forward(X, dims=D, kinds=FINITE)
def A7900BeamStepWithFinished(self, x):
    """A beam step: finished beams may only pad, length penalty, top 2k, beams gathered by parents."""
    n, t, v = x.shape
    done = x[..., 0] > 1.0
    lp = x.log_softmax(-1)
    pad = torch.full((v,), -1e9).index_fill(0, torch.tensor([2]), 0.0)
    lp = torch.where(done[..., None], pad, lp)
    total = (lp + x.sum(-1, keepdim=True) * 0.1) / ((5 + t) / 6) ** 0.6
    k = min(2 * t, t * v)
    s, i = total.flatten(1).topk(k, dim=1)
    parent = torch.div(i, v, rounding_mode="floor")
    return s[:, :t], parent[:, :t], i[:, :t] % v, x.gather(1, parent[:, :t, None].expand(-1, -1, v))


@forward("x:float32[N,T,6]", "c:float32[N,2,6]", dims=D, kinds=FINITE)
def A7901StreamingCausalConvState(self, x, c):
    """A depthwise causal convolution with its own state of two frames, dilation 2 by index, new state returned for the next chunk."""
    y = torch.cat((c, x), 1)
    k = torch.tensor([0.5, -0.25, 1.0])
    z = sum(k[j] * y[:, j : j + x.shape[1]] for j in range(3))
    return z, y[:, -2:], y[:, x.shape[1] :], F.glu(torch.cat((z, x), -1))


@forward(X, dims=D, kinds=FINITE)
def A7902SpecAugmentFixed(self, x):
    """Masks of time and of channels whose place comes from the sizes; the mean fills."""
    n, t, f = x.shape
    lo, w = t // 3, max(t // 4, 1)
    y = x.clone()
    y[:, lo : lo + w] = x.mean((1, 2))[:, None, None]
    y[..., f // 2 : f // 2 + t % 3] = 0
    return y, (x - x.cumsum(1) / torch.arange(1, t + 1)[None, :, None])


@forward(X, dims=D, kinds=FINITE)
def A7903DurationsExpand(self, x):
    """FastSpeech's length regulator by a matrix: durations from values cut to whole numbers, to three frames per step at most."""
    d = x[..., 0].abs().round().clamp(max=3).long()
    end = d.cumsum(1)
    pos = torch.arange(3 * x.shape[1])
    m = (pos[None, :, None] < end[:, None]) & (pos[None, :, None] >= (end - d)[:, None])
    return m.float() @ x, end[:, -1]


@forward(X, dims=D, kinds=FINITE)
def A7904MonotonicAlign(self, x):
    """Glow-TTS's monotonic search: dynamic programming by columns with a shift, backwards by where."""
    s = x @ x.mT
    n, t, _ = s.shape
    v, steps = F.pad(s[:, 0, :1], (0, t - 1), value=-1e9), []
    for i in range(1, t):
        move = F.pad(v[:, :-1], (1, 0), value=-1e9)
        steps.append((move > v).long())
        v = torch.maximum(v, move) + s[:, i]
    j = torch.full((n,), t - 1)
    path = [j]
    for m in reversed(steps):
        j = j - m.gather(1, j[:, None])[:, 0]
        path.append(j)
    return torch.stack(path[::-1], 1), v.amax(1)

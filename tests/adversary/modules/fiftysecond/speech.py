# ruff: noqa: E501, E741 - attacks are written as users write them
"""Speech: endpoints, hops, companding, dithers, streams."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, normal
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
WAVE = "x:float32[N,T]=-1:1"
T400 = "N=1:1:3 T=30:160:400"


def at(*inputs, ns=(1, 2), **dims):
    """Own points at each of these sizes."""
    (name, sizes), = dims.items()
    return tuple(values_at(*inputs, N=ns[i % len(ns)], **{name: t}) for i, t in enumerate(sizes))


@forward(WAVE, dims=T400, kinds=FINITE, feeds=at(WAVE, T=(100, 200, 99, 101, 300, 400, 30)))
def A6680NoiseFloorKth(self, x):
    """A noise floor by the k-th least of magnitudes, k an int() of a decimal share that rounds down at hundreds."""
    a = x.abs()
    k = int(0.29 * x.shape[1])
    floor = a.kthvalue(k, 1).values[:, None]
    return (a / floor.clamp(min=1e-4)).clamp(1, 50).log10() * 20


QUIET = tuple((lambda n=n, t=t, at_=at_: {"x": np.stack([np.where(np.arange(t) < at_, 0.5, 0.001).astype(np.float32)] * n)}) for n, t, at_ in ((1, 60, 0), (1, 60, 35), (1, 60, 36), (2, 33, 8), (3, 60, 60)))


@forward(WAVE, dims=T400, kinds=FINITE, feeds=QUIET)
def A6681TrailingSilence(self, x):
    """The last loud sample, -1 where all is quiet, and whether 25 quiet ones are behind it."""
    loud = x.abs() >= 0.5
    last = x.shape[1] - 1 - loud.flip(1).int().argmax(1)
    last = torch.where(loud.any(1), last, -1)
    quiet = x.shape[1] - 1 - last
    return last, quiet >= 25, torch.where(quiet >= 25, quiet / x.shape[1], torch.zeros(()))


@forward(X, dims="N=1:1:3 T=2:90:300", feeds=at(X, T=(2, 7, 8, 9, 10)))
def A6682VadHangover(self, x):
    """A hangover of eight frames by a causal maximum, the whole utterance where it is short."""
    s = (x > 1.0).float()
    if x.shape[1] <= 8:
        h = s.cummax(1).values
    else:
        h = F.max_pool1d(F.pad(s, (7, 0))[:, None], 8, 1)[:, 0]
    edge = h.diff(dim=1, prepend=torch.zeros(x.shape[0], 1))
    return h.bool(), (edge > 0).sum(1), (edge < 0).sum(1)


@forward(WAVE, dims=T400, kinds=FINITE, feeds=at(WAVE, T=(30, 31, 399, 400)))
def A6683LcgDither(self, x):
    """Triangular dither of a linear congruential generator in 32 bits, then whole samples that saturate."""
    i = torch.arange(x.shape[1], dtype=torch.int32)
    s = i * 1664525 + 1013904223
    s = s * 1664525 + 1013904223
    u = (s >> 8 & 0xFFFF).float() / 65536
    v = (s >> 3 & 0xFFFF).float() / 65536
    y = x * 32767.0 + (u - v)
    return y.round().clamp(-32768, 32767).to(torch.int16), s


@forward(X, dims="N=1:2:3 T=25:104:400", feeds=at(X, T=(25, 35, 105, 165, 245, 395, 24 + 11, 36)))
def A6684FramesLessOne(self, x):
    """Frames of 25 by 10, of which a known library drops the last when nothing is left over."""
    t = x.shape[1]
    n = (t - 25) // 10 + 1
    if (t - 25) % 10 == 0 and n > 1:
        n -= 1
    f = x.unfold(1, 25, 10)[:, :n]
    return (f - f.mean(2, keepdim=True)).pow(2).mean((1, 2))


ZEROS = tuple((lambda v=v: {"x": np.array([v], np.float32)}) for v in ([-0.0, 0.0, -1, 1, -0.0], [0.0] * 6, [-0.0] * 7))


@forward(X, dims="N=1:1:2 T=5:20:60", kinds=("normal", "zeros", "halves"), feeds=ZEROS)
def A6685PhaseOfReal(self, x):
    """Angles of reals and the sign of zeros, put together again as polar numbers."""
    a = torch.angle(x)
    z = torch.polar(x.abs(), a)
    return a, z.real, torch.copysign(torch.ones(()), x), torch.signbit(x), torch.atan2(x, -x.abs())


@forward(WAVE, dims=T400, kinds=("normal", "halves", "zeros", "ones"), feeds=at(WAVE, T=(30, 31, 64)))
def A6686Levinson(self, x):
    """Four reflection coefficients by Levinson's recursion, nothing of silence."""
    w = x * torch.hann_window(x.shape[1], periodic=False)
    r = torch.stack([(w[:, k:] * w[:, : x.shape[1] - k]).sum(1) for k in range(5)], 1)
    r[:, 0] *= 1.001
    a = torch.zeros(x.shape[0], 5)
    a[:, 0] = 1
    e = r[:, 0].clone()
    ks = []
    for i in range(1, 5):
        k = -(a[:, :i] * r[:, 1 : i + 1].flip(1)).sum(1) / torch.where(e > 0, e, 1.0)
        ks.append(k)
        b = a[:, : i + 1] + k[:, None] * a[:, : i + 1].flip(1)
        a[:, : i + 1] = b
        e *= 1 - k * k
    return torch.stack(ks, 1), e


@forward(X, dims="N=1:2:4 T=7:90:400", feeds=(values_at(X, N=4, T=90), values_at(X, N=3, T=120), values_at(X, N=2, T=360), values_at(X, N=4, T=270), values_at(X, N=1, T=360)))
def A6687GcdOfRates(self, x):
    """A gain by the reduced ratio of two rates, one of them batch times length."""
    g = math.gcd(x.shape[0] * x.shape[1], 1080)
    return x * (g / 1080), torch.full((1,), x.shape[0] * x.shape[1] // g)


@forward(X, dims="N=1:1:2 T=2:80:300", kinds=FINITE, feeds=at(X, T=(21, 41, 61, 2, 3, 101, 201, 281)))
def A6688Percentiles(self, x):
    """Loudness between percentiles, each by another interpolation."""
    a = x.abs()
    q = torch.quantile(a, 0.95, 1)
    lo = torch.quantile(a, 0.1, dim=1, interpolation="lower")
    hi = torch.quantile(a, 0.7, dim=1, interpolation="higher")
    ne = torch.quantile(a, 0.35, dim=1, interpolation="nearest")
    return q, lo, hi, ne


@forward("x:float32[N,T,5]", "l:int64[N]=0:40", dims="N=1:2:3 T=1:40:90", feeds=(lambda: {"x": np.eye(5, dtype=np.float32)[[[0, 0, 0]]], "l": np.array([0])}, lambda: {"x": np.eye(5, dtype=np.float32)[[[1, 1, 0, 1, 2]]], "l": np.array([40])}))
def A6689CtcConfidence(self, x, l):
    """The mean of the log of what a greedy collapse keeps, zero where it keeps nothing, padded to the longest."""
    p = x.log_softmax(-1)
    s, i = p.max(-1)
    keep = (i != 0) & (i != F.pad(i, (1, 0), value=-1)[:, :-1])
    keep &= torch.arange(x.shape[1]) < l[:, None]
    n = keep.sum(1)
    return (s * keep).sum(1) / n.clamp_min(1), n, (i * keep).amax(1)


@forward(X4, dims="N=1:1:3 T=4:90:300", feeds=at(X4, T=(4, 5, 7, 8, 128, 257, 299)))
def A6690SpecAugmentSeeded(self, x):
    """A time mask whose place is drawn from a generator of one seed, in the span that the length allows."""
    g = torch.Generator().manual_seed(7)
    t = x.shape[1]
    w = int(torch.randint(0, max(1, t // 4), (1,), generator=g))
    s = int(torch.randint(0, t - w, (1,), generator=g))
    i = torch.arange(t)
    return x.masked_fill(((i >= s) & (i < s + w))[None, :, None], 0)


@attack("x:int64[N,12]=0:15", dims="N=1:2:4", feeds=tuple((lambda v=v: {"x": np.array([v] * 2)}) for v in ([7] * 12, [15] * 12, [0] * 12, [8, 7] * 6, [7, 15, 7, 15, 0, 0, 8, 8, 7, 7, 7, 7])))
class A6691Adpcm(nn.Module):
    """IMA's decoder over twelve nibbles: a table of steps, an index that clamps, a predictor that saturates."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor([int(7 * 1.1**k) for k in range(89)]))
        self.register_buffer("moves", torch.tensor([-1, -1, -1, -1, 2, 4, 6, 8] * 2))

    def forward(self, x):
        pred = torch.zeros(x.shape[0], dtype=torch.int64)
        idx = torch.full_like(pred, 60)
        out = []
        for k in range(12):
            c = x[:, k]
            s = self.steps[idx]
            d = (s >> 3) + ((c & 1) != 0) * (s >> 2) + ((c & 2) != 0) * (s >> 1) + ((c & 4) != 0) * s
            pred = (pred + torch.where(c & 8 != 0, -d, d)).clamp(-32768, 32767)
            idx = (idx + self.moves[c]).clamp_(0, 88)
            out.append(pred.to(torch.int16))
        return torch.stack(out, 1), idx


PH = "p:int64[N]=-50:50"


@forward(X, PH, dims="N=1:1:3 T=3:90:400", feeds=(lambda: {"x": np.ones((3, 7), np.float32), "p": np.array([-50, -7, -1])}, lambda: {"x": np.ones((2, 400), np.float32), "p": np.array([50, 0])}))
def A6692StreamPhase(self, x, p):
    """The phase of a resampler as a state: remainders and quotients of negatives, each in its own rounding."""
    t = x.shape[1]
    q = (p - t * 3) % 7
    r = torch.fmod(p - t * 3, 7)
    f = torch.div(p, 3, rounding_mode="trunc") + torch.div(p, -3, rounding_mode="floor")
    y = x.gather(1, ((q[:, None] + torch.arange(t)) % t))
    return y, q, r, f, p // 4, (p - t) / 7


@forward(X4, dims="N=1:1:2 T=1:90:300", kinds=("normal", "halves", "zeros", "ones"), feeds=at(X4, T=(1, 2, 9, 10, 11, 29, 30, 31, 32)))
def A6693SlidingCmn(self, x):
    """Kaldi's sliding mean: a window of thirty in the middle, pushed in at the ends, all of it where it is short."""
    t = x.shape[1]
    i = torch.arange(t)
    lo, hi = i - 15, i + 15
    lo, hi = torch.where(lo < 0, 0, lo), torch.where(lo < 0, hi - lo, hi)
    lo = torch.where(hi > t, (lo - (hi - t)).clamp(min=0), lo)
    hi = hi.clamp(max=t)
    c = F.pad(x.double().cumsum(1), (0, 0, 1, 0))
    m = (c[:, hi] - c[:, lo]) / (hi - lo)[:, None]
    return x - m.float(), normal.__name__.__len__() * x[:, -1]

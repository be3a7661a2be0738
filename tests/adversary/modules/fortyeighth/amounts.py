# ruff: noqa: E501, E741 - attacks are written as users write them
"""Numbers: types beside each other, steps and ties, bits, whole numbers beyond FP32, shares of lengths."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import ODD, own
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, MT = "x:float32[N,T]", "m:bool[N,T]"
BIG = "i:int64[N,T]=-40000000:40000000"
U8 = "u:uint8[N,T]=0:255"
EDGE = np.array([[16777216, 16777217, 16777218, -16777217, 33554433, 33554435, 0, 3, -3]], np.int64)


@forward("r:float32[N]=0:1", "x:float32[N,T]", **seq("r:float32[N]=0:1", X))
def A5956RelativeLengths(self, r, x):
    """SpeechBrain: lengths are shares of the longest, made whole by rounding, and a mask of them."""
    n = torch.round(r * x.shape[1]).long()
    mask = torch.arange(x.shape[1])[None] < n[:, None]
    m = (x * mask).sum(1) / n.clamp(min=1)
    return n, mask, m, ((x - m[:, None]) * mask).square().sum(1) / (n - 1).clamp(min=1)


@forward(BIG, **seq(BIG, own=own(EDGE, name="i")))
def A5957IdsBeyondDigits(self, i):
    """Whole numbers beyond 2^24 beside numbers with a point: compared, multiplied, divided, clamped, remainders."""
    return i > 16777216.0, i == 16777217.0, i * 1.0, i / 3, i + 0.5, i.clamp(max=16777217.0), i % 1000, i // 1000 * 1000, i.float().long() - i, torch.where(i > 0, i, 0.0)


@forward(BIG, "j:int64[N,T]=-40000000:40000000", **seq(BIG, "j:int64[N,T]=-40000000:40000000"))
def A5958HashedTwice(self, i, j):
    """Feature hashing: two multiplicative hashes into buckets, wrapped in int64, signs by a bit, crossed by xor."""
    h = (i * 2654435761 + j * 40503) & 0xFFFFFFFF
    g = (h ^ (h >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    s = 1 - 2 * ((g >> 31) & 1)
    return g % 1009, s, (i * 31 + j) % 97, torch.bitwise_xor(i, j) % 13, (i.abs() << 3 | 5) % 11


@forward(U8, "v:uint8[N,T]=0:255", **seq(U8, "v:uint8[N,T]=0:255"))
def A5959BlendedBytes(self, u, v):
    """Pictures in bytes: absolute differences that wrap, saturated sums by maxima, averages in bytes, alpha in 8.8."""
    d = torch.maximum(u, v) - torch.minimum(u, v)
    sat = torch.where(u > 255 - v, torch.tensor(255, dtype=torch.uint8), u + v)
    avg = (u >> 1) + (v >> 1) + (u & v & 1)
    a = (u.to(torch.int16) * 77 + v.to(torch.int16) * 179 + 128) >> 8
    return d, sat, avg, a.to(torch.uint8), u - v, ~u & v, -u, u * v, (u.int() - v.int()).abs().amax(1), u.float().lerp(v.float(), 0.25).to(torch.uint8)


@forward(X, **seq(X, own=own(ODD[:, :8], ODD[:, 8:])), refused="the module cannot be exported")
def A5960BitsOfFloats(self, x):
    """The bits of a float: its sign and exponent by shifts, the fast inverse root, rounded to bfloat16 by hand."""
    b = x.view(torch.int32)
    e = ((b >> 23) & 0xFF) - 127
    fast = (0x5F3759DF - (x.abs().clamp(1e-3, 1e3).view(torch.int32) >> 1)).view(torch.float32)
    return e, b < 0, fast, (b & 0x7FFFFFFF).view(torch.float32), ((b + 0x8000) & -65536).view(torch.float32).nan_to_num()


@forward(X, **seq(X))
def A5961LadderOfHalves(self, x):
    """Values at whole and half steps: all roundings, to a grid by a number that is no power of two, and back by bytes."""
    q = torch.round(x / 0.1) * 0.1
    z = torch.round(x * 255 / 6)
    up = torch.floor(x + 0.5)
    away = torch.sign(x) * torch.floor(x.abs() + 0.5)
    return q, z, up, away, torch.round(x), torch.round(x, decimals=2), (x * 4).round() / 4, torch.ceil(x * 2 - 0.5) / 2, torch.trunc(x * 10) / 10


@forward("h:float16[N,T]", "g:float16[N,T]", **seq("h:float16[N,T]", "g:float16[N,T]"))
def A5962HalfLosses(self, h, g):
    """Half precision: a Huber loss at its bend, a lerp, a norm of differences, a cosine, a log of a sum, ranges of 0.1."""
    d = h - g
    a = d.abs()
    return torch.where(a < 0.5, 0.5 * d * d, 0.5 * (a - 0.25)), h + 0.3 * (g - h), d.norm(dim=1), torch.logsumexp(h, 1), h / (a.sum(1, keepdim=True) + 1e-3), (h * 10).round() / 10, a <= 0.1, torch.maximum(h, g * 0.1), h.mean(1, dtype=torch.float32), h.var(1, unbiased=False)


@forward(X, **seq(X))
def A5963BfloatWithin(self, x):
    """bfloat16 within: products with decimals, whole numbers, sums and comparisons in it, and a running sum."""
    b = x.bfloat16()
    return (b * 0.1).float(), (b + 257).float(), b.sum(1).float(), b > 0.3, b.cumsum(1).float(), (b / 3).half().float(), b.softmax(1).float(), (b * b.round()).float()


@forward(X4, "l:int64[N]=0:45", **seq(X4, "l:int64[N]=0:45"))
def A5964LengthsThroughConvs(self, x, l):
    """Lengths through three convolutions with strides, in floats with floor, in whole numbers, and in ceilings."""
    a = torch.floor((l.float() + 2 * 1 - 3) / 2 + 1).int()
    b = torch.div(l + 2 - 3, 2, rounding_mode="floor") + 1
    c = (l - 1) // 2 + 1
    d = torch.ceil(l / 3).to(torch.int32)
    e = (l * 0.7).long()
    f = torch.div(l - 5, 4, rounding_mode="trunc")
    y = F.conv1d(x.transpose(1, 2), torch.ones(1, 4, 3), stride=2, padding=1)
    return a, b, c, d, e, f, y * (torch.arange(y.shape[2]) < b[:, None])[:, None]


@forward(X, **seq(X, own=own(np.array([[1e20, -1e20, 3e38, 1e-30, 0, 1]], np.float32))))
def A5965StableForms(self, x):
    """Stable forms by hand: sigmoid by sign, logaddexp, log1mexp in two ranges, entropy of logits, softplus and its inverse."""
    s = torch.where(x >= 0, 1 / (1 + torch.exp(-x.abs())), torch.exp(-x.abs()) / (1 + torch.exp(-x.abs())))
    a = x.abs() + 1e-6
    l1 = torch.where(a < math.log(2), torch.log(-torch.expm1(-a)), torch.log1p(-torch.exp(-a)))
    p = x.softmax(1)
    return s, l1, -(p * x.log_softmax(1)).nan_to_num().sum(1), torch.log(torch.expm1(a.clamp(max=20))), torch.clamp(x, max=0) - torch.log1p(torch.exp(-x.abs()))


@forward("i:int32[N,T]=-9:9", "k:int8[N,T]=-5:5", **seq("i:int32[N,T]=-9:9", "k:int8[N,T]=-5:5"))
def A5966NarrowBesideWide(self, i, k):
    """int8 beside int32 and numbers: promotion of sums, of wheres, of concatenations, of stacks, of comparisons, powers."""
    return i + k, torch.where(i > k, i, k), torch.cat([i, k], 1), k * 100, k + 1000 * (i > 0), k == 261, torch.stack([k, i]).sum(0), k.sum(1), k.to(torch.uint8), (k * k * k).clamp(-100, 100), i / k, torch.fmod(k, 3), k % 3, k // 3, torch.full_like(k, 7) - k, k.float() * 0.1 > 0.3


@forward("d:float64[N,T]", **seq("d:float64[N,T]"), refused="does not compute what the module computes")
def A5967Timestamps(self, d):
    """Seconds in doubles: fractions of the day, differences, and their sines in FP32."""
    t = d * 1000.0
    gap = t[:, 1:] - t[:, :-1]
    return (t % 24.0).float(), gap.float(), torch.sin(2 * math.pi * (t / 24.0).float()), (t > 12.5).long(), torch.floor(t / 60.0).to(torch.int32)


@forward(X, "w:float32[N,T]=0:1", **seq(X, "w:float32[N,T]=0:1"))
def A5968WeightedMedian(self, x, w):
    """A weighted median and quantiles: sorted together, running sums, the first place that reaches the half."""
    s, o = x.sort(dim=1, stable=True)
    c = w.gather(1, o).cumsum(1)
    half = c[:, -1:] * 0.5
    at = (c >= half).int().argmax(1, keepdim=True)
    q = torch.searchsorted(c.contiguous(), (c[:, -1:] * torch.tensor([0.25, 0.5, 1.0])).contiguous()).clamp(max=x.shape[1] - 1)
    return s.gather(1, at)[:, 0], s.gather(1, q), at.float() / x.shape[1]


@forward(X, **long(X), refused="the exported model differs from the module")
def A5969SharesByBuffer(self, x):
    """A share that is a float32 tensor of its own: its number cuts the length, in Python and in tensors."""
    r = torch.tensor(0.7).item()
    t = x.shape[1]
    return x[:, : int(t * r)], (torch.tensor(t) * 0.7).long(), torch.arange(t) < (torch.tensor(float(t)) * 0.3), x * (t * 0.1)


@forward(X, **long(X))
def A5970StepsOfTenths(self, x):
    """arange with steps of a tenth up to a tenth of the length: how many there are hangs on a last bit."""
    t = x.shape[1]
    return torch.arange(0, t * 0.1, 0.1), torch.arange(0.0, 1.0, 1.0 / t), torch.arange(t, 0, -3)


@attack(IMAGE, **pix(IMAGE))
class A5971DitheredByOrder(nn.Module):
    """Ordered dithering by a Bayer matrix tiled over the picture, thresholds met exactly, to two, four and eight levels."""

    def __init__(self):
        super().__init__()
        b = torch.tensor([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16
        self.register_buffer("b", b)

    def forward(self, x):
        h, w = x.shape[-2:]
        m = self.b.repeat(-(-h // 4), -(-w // 4))[:h, :w]
        v = x.clamp(0, 1)
        return [(torch.floor(v * (k - 1) + m)) / (k - 1) for k in (2, 4, 8)], (v > m).sum((2, 3)), (v * 7 + m).to(torch.uint8)


@forward("q:int8[N,T]=-128:127", "k:int8[N,S]=-128:127", **two("q:int8[N,T]=-128:127", "k:int8[N,S]=-128:127"))
def A5972CodesCompared(self, q, k):
    """Binary codes: Hamming distances by xor and counted bits, dot products of int8 in int32, the nearest by ties."""
    d = q[:, :, None] ^ k[:, None]
    n = sum(((d.int() >> b) & 1) for b in range(8))
    dot = (q.int()[:, :, None] * k.int()[:, None]).sum(-1)
    return n, n.argmin(-1), n.min(-1).values, dot, (n == n.amin(-1, keepdim=True)).sum(-1)


@forward("x:float32[N,T]=-5:5", **seq("x:float32[N,T]=-5:5", own=own(np.array([[2.5, -2.5, 0.5, 1.5, -0.5, 3.5]], np.float32))))
def A5973SoftHistogram(self, x):
    """A histogram: which bin by floor of a quotient, the last includes its end, counts by scatter, cumulated, equalised."""
    b = torch.floor((x + 5) / 10 * 20).long().clamp(0, 19)
    h = torch.zeros(x.shape[0], 20).scatter_add(1, b, torch.ones_like(x))
    c = h.cumsum(1)
    lo = torch.where(c > 0, c, c[:, -1:]).amin(1, keepdim=True)
    eq = torch.round((c - lo) / (x.shape[1] - lo).clamp(min=1) * 255)
    return b, h, eq.gather(1, b), torch.histc(x, 10, -5, 5)


@forward(X, MT, **seq(X, MT))
def A5974BooleansInArithmetic(self, x, m):
    """Masks as factors, subtracted from one, as powers, as indices, as exponents, negated by minus, compared by order."""
    f = m.to(x.dtype)
    return x * m, (1.0 - f) * -1e4 + x, x**f, torch.tensor([5.0, 7.0])[m.long()], 1 - m.int(), m < (x > 0), m ^ True, m.long() * 2 - 1, torch.where(m, x, -x).sum(1) / m.sum(1), (m | False).float().std(1, unbiased=False), m.float().argmax(1), m.cumsum(1) * m


@forward("t:int64[N,T]=0:2000000000", **seq("t:int64[N,T]=0:2000000000"))
def A5975CalendarOfSeconds(self, t):
    """Unix seconds: minute, hour, weekday, day of the year by civil days, and their encodings."""
    days = t // 86400
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    return t % 60, t // 60 % 60, t // 3600 % 24, (days + 4) % 7, yoe + era * 400 + (mp >= 10), torch.where(mp < 10, mp + 3, mp - 9), torch.sin(2 * math.pi * (t % 86400) / 86400)

# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them
"""Numbers: halves, halves of halves, signs of nothing, promotions, wraps, ties and edges."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE, sprinkled
from tests.adversary.values import values_at

X = "x:float32[N,T]"
D = "N=1:2:3 T=1:12:40"
CALM = ("normal", "unit", "zeros", "halves", "ones", "tenths")
NAN = float("nan")
INF = float("inf")


def floats(*rows):
    """Own points of one row each."""
    return tuple((lambda r=r: {"x": np.array([r], np.float32)}) for r in rows)


def whole(*rows, dtype=np.int64, **more):
    """Own points of one row of whole numbers."""
    return tuple((lambda r=r: {"x": np.array([r], dtype), **more}) for r in rows)


HALF = (0.49999997, -0.49999997, 0.5, -0.5, 1.5, 2.5, -2.5, 8388609.0, 4194304.5, -0.0, 0.0)


@forward("x:float32[N,T]=-9000000:9000000", dims=D, kinds=FINITE, feeds=floats(HALF, HALF[::-1]))
def A6766HalfAway(self, x):
    """Rounding half away from nothing, three ways that differ just below a half and at great numbers."""
    a = torch.trunc(x + torch.copysign(torch.tensor(0.5), x))
    b = torch.where(x >= 0, (x + 0.5).floor(), (x - 0.5).ceil())
    c = torch.sign(x) * (x.abs() + 0.5).long()
    return a, b, c, (x - a) * 4, torch.round(x, decimals=1), (x * 2).round().int() // 2


EXTREME = (65504.0, 65519.0, 65520.0, -65536.0, 6e-8, 2.9e-8, 5.96e-8, 1.00390625, 1.01171875, 3.3895e38, 1e-40)


@forward("x:float32[N,T]=-1e38:1e38", dims=D, kinds=FINITE, feeds=floats(EXTREME, [1e38, -1e38, 65520.0]))
def A6767ThroughHalves(self, x):
    """Through half floats and bfloat: what overflows, ties, and what is too small."""
    h = x.half()
    return h.float(), h.isinf(), x.bfloat16().float(), (h.clamp(-100, 100) * 3 + 1).float(), h.double().sign().float()


@forward("x:uint8[N,T]=0:255", "y:int8[N,T]=-128:127", dims=D, feeds=tuple((lambda a=a, b=b: {"x": np.array([a], np.uint8), "y": np.array([b], np.int8)}) for a, b in (([255, 0, 128, 200], [-128, 127, -1, 1]), ([255] * 3, [-128] * 3), ([0, 1], [-128, -127]))))
def A6768Promotions(self, x, y):
    """Bytes with and without a sign together, by numbers, by a boolean, by a tensor without dims."""
    s = x + y
    return s, x * 2, y.abs(), -y, x / y, (x > y) + y, x + torch.tensor(300), x * torch.tensor(2.5), y - torch.tensor(True).int(), (x == y).sum(1) / 2, x.float() // y.where(y != 0, 1)


@forward(X, dims="N=1:2:3 T=2:12:40", feeds=floats([1, 1, 1, 0], [0, -0.0, 0.0], [3, 1, 3, 1, 2], [INF, INF, -INF], [2, 2]))
def A6769OrderOfTies(self, x):
    """Indices of ties by what keeps the first, the last, or the order."""
    v, i = x.cummax(1)
    w, j = x.cummin(1)
    s = x.sort(dim=1, stable=True, descending=True)
    m, k = x.median(1)
    return v, i, w, j, s.indices, m, x.argmax(1), x.argmin(1), x.msort(), x.kthvalue(2, 1).values, x.argsort(dim=1, stable=True).argsort(1)


BIG = 2**31 - 1


@forward("x:int32[N,T]=-2147483648:2147483647", dims=D, feeds=whole([BIG, BIG, 1], [-BIG - 1] * 5, [BIG] * 40, [65536, 65536, 46341, 3], [-1, -BIG - 1, 7], dtype=np.int32), refused="the exported model differs from the module")
def A6770SumsOfInts(self, x):
    """Sums that widen, products that wrap, means of what does not fit a float, differences and the least."""
    return x.sum(1), x.cumsum(1), x.prod(1, dtype=torch.int32), x * x, x.abs(), -x, x.float().mean(1), x.diff(dim=1), x.sum(1, dtype=torch.int32), x >> 31, x // -1 if x.dtype == torch.int64 else x // 3, x % 7, x.amin(1) - 1


EDGES = (0.0, -0.0, 0.1, 0.2, 0.30000001192092896, 0.3, 1.0, 0.99999994, 5.0)


@forward(X, dims=D, feeds=floats(EDGES, EDGES[::-1], [INF, -INF, 1.0]), refused="returns 'output_5' as int32")
def A6771Buckets(self, x):
    """Buckets by edges in doubles that are rounded to floats, each edge left or right, and a ladder of comparisons."""
    e = torch.tensor([0.0, 0.1, 0.2, 0.1 + 0.2, 1.0])
    a = torch.bucketize(x, e)
    b = torch.bucketize(x, e, right=True, out_int32=True)
    c = torch.searchsorted(e.double(), x.double(), side="right")
    d = (x[..., None] >= e).sum(-1)
    h = torch.floor(x.clamp(0, 1) * 10).long().clamp(max=9)
    return a, b, c, d, h, (x * 10).int() if not x.isinf().any() else a


@forward(X, dims="N=1:2:3 T=2:12:40", feeds=floats([-INF] * 4, [NAN] * 3, [NAN, 1, 2], [INF, -INF], [-INF, 0.0, NAN, INF, 3]))
def A6772NothingIsANumber(self, x):
    """Sums, means, medians and maxima that skip what is not a number, and softmaxes of nothing."""
    y = x.masked_fill(x > 1e30, NAN)
    return y.nansum(1), y.nanmean(1), torch.nan_to_num(y, nan=7.0, neginf=-5.0), torch.fmax(y[:, :1], y), torch.maximum(y[:, :1], y), y.isnan().sum(1), x.logsumexp(1), torch.nan_to_num(x.softmax(1), nan=0.25), y != y


@forward("x:float32[N,T]=-100:100", dims=D, kinds=FINITE, feeds=floats([1.0, 0.3, 0.6, 0.7, -0.3, 2.0, -1.0, 100.0], [-0.0, 0.0, 5.5, -5.5, 7, -7], [0.1, 0.2, 0.5, 0.9, 1.1, 1.2]))
def A6773FloorByTenth(self, x):
    """Quotients by a tenth and remainders of floats: what divides and what nearly does."""
    q = x // 0.1
    r = x % -2
    return q, r, torch.fmod(x, 0.5), torch.div(x, 0.7, rounding_mode="floor"), torch.div(x, 0.1, rounding_mode="trunc"), torch.remainder(torch.tensor(7.5), x.where(x != 0, 1)), (x / 0.1).floor() - q, torch.remainder(x, 0.3)


@forward("x:float32[N,T]=-60:60", dims=D, kinds=FINITE, feeds=floats([0.0, -0.0, 1, -1, 2, -2, 0.5, -8, 60, -60], [-0.0] * 3))
def A6774Powers(self, x):
    """Powers at nothing, of negatives, of two; roots of a negative nothing."""
    i = x.long()
    return x**0, x**-1, torch.pow(2.0, x), x**0.5, (-x.abs()) ** 3, torch.pow(-2, i), i**3, torch.pow(x, i.clamp(-3, 3)), x.sqrt(), x**-2.0, torch.float_power(x, 2).float(), x.rsqrt(), x.square() ** (1 / 3)


@forward(X, dims="N=1:2:3 T=2:60:400", feeds=tuple(values_at(X, N=1, T=t) for t in (2, 3, 4, 7, 50, 94, 95, 183, 187, 375, 399, 400)), refused="a size is computed in floats")
def A6775StepsThatTruncate(self, x):
    """Places by evenly spaced floats that are cut to whole numbers, ends and steps by the length."""
    t = x.shape[1]
    a = torch.linspace(0, t - 1, t // 3 + 2).long()
    b = (torch.arange(t) / t * 49).long() * t // 49
    c = torch.tensor([k * t / 7 for k in range(7)]).int()
    d = torch.logspace(0, math.log10(t), 6).long().clamp(max=t) - 1
    return x[:, a], x[:, b.clamp(max=t - 1)], x[:, c], x[:, d], a.sum()[None] + b.sum()


@forward("x:float32[N,T]=-100:100", dims=D, kinds=FINITE, feeds=floats([0.0, -0.0, 1, -1, 0.75, 100, 3e-39], [1e-45, -1e-45, 64, 63.999996]))
def A6776BitsOfFloats(self, x):
    """Mantissas, exponents, a step at nothing, powers of two below, and what is left after a great shift."""
    m, e = torch.frexp(x)
    h = torch.exp2(torch.floor(torch.log2(x.abs().clamp(min=1e-3))))
    return m, e, torch.ldexp(m, e), torch.heaviside(x, torch.tensor(0.25)), h, torch.signbit(x), torch.ldexp(x, torch.tensor(-140)) != 0


@forward("x:float32[N,T]=-1:1", dims=D, kinds=FINITE, feeds=floats([0, 1, -1, 0.5, 0.99999994], [-0.0, 1e-8, -1e-8]))
def A6777SpecialOnes(self, x):
    """Functions at the ends of where they are defined."""
    p = x.abs()
    return torch.logit(p), torch.logit(p, 1e-6), torch.erfinv(x * 0.999), torch.xlogy(p, p), torch.special.entr(x), torch.sinc(x), torch.atanh(x), torch.acos(x), F.softplus(x * 40, 1, 20), torch.log1p(-p), torch.expm1(x * 1e-4), torch.logaddexp(x * 300, -x * 300), torch.hypot(x * 1e20, x * 1e20)


@forward("x:float32[N,T]=-4:4", "y:float32[N,T]=-4:4", dims=D, kinds=FINITE, feeds=tuple((lambda a=a, b=b: {"x": np.array([a], np.float32), "y": np.array([b], np.float32)}) for a, b in (([-1, -1, 0, 0, -4], [0.0, -0.0, 0.0, -0.0, -0.0]), ([0] * 3, [-4, 4, 0]))))
def A6778BranchCuts(self, x, y):
    """Complex numbers on the cuts: roots, logarithms, angles, signs, powers."""
    z = torch.complex(x, y)
    r = torch.sqrt(z)
    l = torch.log(z + (z == 0))
    return torch.view_as_real(r), torch.view_as_real(l), z.angle(), torch.view_as_real(z.sgn()), torch.view_as_real(z**2 * z.conj()), (z * 1j).real, torch.view_as_real(torch.exp(z))


@forward(X, dims=D, kinds=CALM, feeds=floats([0.0], [5.0], [2, 2, 2], [0, 0], [1e-9, 0]) + sprinkled(0.0, sizes=((1, 2), (2, 7))))
def A6779DegenerateMoments(self, x):
    """Deviations of one, correlations of constants, norms and cosines of nothing."""
    c = torch.nan_to_num(torch.corrcoef(torch.cat((x[:1], x[:1] * 2 + 1)) + 0), nan=9.0)
    return x.std(1), x.var(1, correction=0), F.normalize(x, dim=1), F.cosine_similarity(x, x.flip(1) * 2, dim=1), (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3), c.round(decimals=2), x.std(1).isnan()

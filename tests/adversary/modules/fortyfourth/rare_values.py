# ruff: noqa: E501 - attacks are written as users write them
"""Rare values in operators that are seldom used, types that meet, and decisions of torch itself by value."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
INF, NAN = math.inf, math.nan
VALUES = {"dims": ROWS, "kinds": FEW}


def rows(*values: float, dtype: type = np.float32, name: str = "x", **more: object) -> tuple:
    """One row of values, and the same turned round in three."""
    first = np.array([values], dtype)
    return (lambda: {name: first, **more}, lambda: {name: np.concatenate([first, first[:, ::-1], first])})


def both(name: str, a: list, b: list, dtype: type = np.int32) -> tuple:
    """All pairs of two lists as `x` and another input, as rows of twenty at most."""
    pairs = [(p, q) for p in a for q in b]
    parts = [np.array(pairs[i:i + 20], dtype).T for i in range(0, len(pairs), 20)]
    return tuple(partial(dict, {"x": np.ascontiguousarray(p[:1]), name: np.ascontiguousarray(p[1:])}) for p in parts)


ENDS = [0, 1, -1, 7, -7, 2**31 - 1, -(2**31) + 1, 46341, -46341, 65536]


@forward("x:int32[N,T]=-2147483647:2147483647", "y:int32[N,T]=-2147483647:2147483647", feeds=both("y", ENDS, ENDS), **VALUES, refused="the module cannot be exported")
def A4731GcdLcmOfEnds(self, x, y):
    """gcd and lcm with zero, negatives and products that wrap."""
    return torch.gcd(x, y), torch.lcm(x % 1000, y % 1000)
@forward("x:int32[N,T]=-2147483647:2147483647", "y:int32[N,T]=-2147483647:2147483647", feeds=both("y", ENDS, ENDS), **VALUES)
def A4732MeanOfTwoWithoutOverflow(self, x, y):
    """The midpoint by and and exclusive or, a saturating sum by signs, a sign by shifts, the absolute without a branch."""
    s = x + y
    over = ((x ^ s) & (y ^ s)) < 0
    m = x >> 31
    return (x & y) + ((x ^ y) >> 1), torch.where(over, torch.where(x < 0, -(2**31), 2**31 - 1).int(), s), (x ^ m) - m, (x < y).int() - (x > y).int(), x.float() < y.float()
@forward(XT, feeds=rows(-0.0, 0.0, 0.5, -0.5, 1e-45, -1e-45, INF, -INF, NAN, 1.0, 3.4e38), **VALUES)
def A4733HeavisideAndNext(self, x):
    """heaviside at both zeros, nextafter towards zero, ldexp at the ends, frexp, copysign of NaN."""
    v = torch.tensor(0.25)
    m, e = torch.frexp(x.nan_to_num(0.0, 1.0, -1.0))
    return torch.heaviside(x, v), torch.ldexp(x, torch.tensor(3)), m, e, torch.copysign(x, -x), torch.heaviside(-x, x)
@forward(XT, feeds=rows(7.5, -7.5, 0.0, -0.0, 2.5, INF, -INF, NAN, 1e30, -3, 6, 5e-39), **VALUES)
def A4734RemaindersOfFloats(self, x):
    """remainder and fmod by negatives, by an infinity, floor_divide of an infinity, a divisor that is a tensor of ends."""
    y = x.flip(1)
    return x.remainder(-2.5), x.fmod(-2.5), x % INF, torch.fmod(x, INF), x // -2.5, torch.remainder(x, y), torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc"), torch.remainder(5.0, x)
@forward(XT, feeds=rows(1, 2, NAN, 4), **VALUES)
def A4735ReductionsThatSkip(self, x):
    """nanmean, nansum, nanmedian, nan_to_num, a mean of none, count_nonzero of NaN, aminmax."""
    lo, hi = torch.aminmax(x, dim=1)
    return x.nansum(1), x.nanmean(1), x.nanmedian(1).values, torch.count_nonzero(x, 1), lo, hi, x.isnan().sum(1), torch.where(x > 99, x, NAN).nanmean(1)
@forward(XT, feeds=rows(3, 1, 1, 2, 2, 2, 5, 0, -1, 9), **VALUES)
def A4736QuantilesOfAllKinds(self, x):
    """quantile by lower, higher, nearest and midpoint, of a tensor of shares, at places that are whole or half."""
    q = torch.tensor([0.0, 0.125, 0.5, 0.9, 1.0])
    return tuple(x.quantile(q, dim=1, interpolation=k) for k in ("linear", "lower", "higher", "nearest", "midpoint"))
@forward(XT, feeds=sprinkled(0.0, -2.5, 1e20, sizes=((1, 1), (2, 2), (3, 3), (1, 20))), **VALUES, refused="the exported model differs from the module")
def A4737DeviationsCorrected(self, x):
    """var of correction two and zero, cov and corrcoef of rows, one row alone, a deviation of one step that is NaN."""
    return x.var(1, correction=2), x.std(1, correction=0), torch.cov(x), torch.corrcoef(x + torch.arange(x.shape[1])), x.std(1), torch.cov(x, correction=0)
@forward(XT, "y:int64[N,T]=-1:3", dims="N=1:2:3 T=4:9:20", kinds=FEW, feeds=(lambda: {"x": np.ones((1, 4), np.float32), "y": np.full((1, 4), -1)}, lambda: {"x": np.ones((3, 4), np.float32) * 80, "y": np.array([[-1, -1, -1, -1], [0, 1, -1, 2], [3, 3, 3, 3]])}))
def A4738CrossEntropyOfNothing(self, x, y):
    """Cross entropy with all rows ignored, with weights and smoothing, sums and each; nll of a log softmax."""
    z = x[:, :4]
    w = torch.tensor([0.5, 1.0, 0.0, 2.0])
    t = y[:, 0]
    return F.cross_entropy(z, t, ignore_index=-1), F.cross_entropy(z, t, weight=w, ignore_index=-1, label_smoothing=0.1), F.cross_entropy(z, t, ignore_index=-1, reduction="sum"), F.nll_loss(F.log_softmax(z, -1), t, weight=w, ignore_index=-1, reduction="none")
@forward(XT, "y:float32[N,T]", feeds=(lambda: {"x": np.array([[0, -5, 20, 1, 1e4]], np.float32), "y": np.array([[0, 1, -1, 1.5, 1]], np.float32)},), **VALUES, refused="the module cannot be exported")
def A4739LossesAtTheirEnds(self, x, y):
    """kl_div of zero targets, both forms; poisson with Stirling; gaussian nll of a variance of none; huber and smooth L1 at their knees; hinge."""
    p = y.abs()
    return F.kl_div(x, p, reduction="none"), F.kl_div(x, -p, reduction="none", log_target=True), F.poisson_nll_loss(x.clamp(max=9), p, full=True, reduction="none"), F.gaussian_nll_loss(x, y, p, full=True, reduction="none"), F.huber_loss(x, y, delta=0.5, reduction="none"), F.smooth_l1_loss(x, y, beta=0.0, reduction="none"), F.hinge_embedding_loss(x, torch.where(y > 0, 1.0, -1.0), reduction="none")
@forward(XT, feeds=rows(0, -0.0, 1, -1, 30, -30, 0.3, 1e-6, 100, -100, 5), **VALUES, refused="the module cannot be exported")
def A4740SpecialOnes(self, x):
    """i0, i0e, i1, erfcx, entr, ndtri, log_ndtr, sinc, logit with eps, polygamma, multigammaln, zeta."""
    y = x.abs()
    return torch.special.i0(y.clamp(max=20)), torch.special.i0e(x), torch.special.i1(x.clamp(-9, 9)), torch.special.erfcx(y), torch.special.entr(x), torch.special.ndtri(x / 200 + 0.5), torch.special.log_ndtr(x), torch.sinc(x), torch.logit(x, 1e-6), torch.digamma(y + 0.5), torch.special.multigammaln(y + 2, 2)
@forward(XT, feeds=rows(2, -2, 0, 65504, 6.1e-5, 6e-8, 3e-8, 1e5, 0.1, 2049, 4098), **VALUES)
def A4741IslandsOfHalf(self, x):
    """Half products that are added in FP32, an island in bfloat16 between, a half sum of many, a mean, a norm and a softmax of halves."""
    h, b = x.half(), x.bfloat16()
    return (h @ h.mT).float().isfinite(), (h.float() * h.float()).half().float(), (b * b + b).float(), h.sum(1).float().isinf(), h.softmax(1).float(), (b.float() - x).abs() < x.abs() / 128, (h / 3).float(), (h + 1 - 1).float(), h.clamp(-1e4, 1e4).float()
@forward(XT, feeds=rows(-1, 256, 255.5, 300, -300, 0.999, 2**31, -(2**31) - 300, 1e10), dims=ROWS, kinds=("normal", "halves", "tenths"))
def A4742FloatsToBytesClamped(self, x):
    """A picture back to bytes: clamped and rounded, by 255.999, by half up, added as int16 and clamped."""
    a = (x.clamp(0, 1) * 255).round().to(torch.uint8)
    b = x.clamp(0, 255).to(torch.uint8)
    c = (x.clamp(0, 1) * 255 + 0.5).to(torch.uint8)
    return a, b, c, (a.to(torch.int16) - 128 + b).clamp(0, 255).to(torch.uint8), a - c, (x.clamp(0, 1) * 255.999).to(torch.uint8)
@forward("x:uint8[N,3,T,T]=0:255", dims="N=1:1:2 T=1:6:9", feeds=(lambda: {"x": np.full((1, 3, 2, 2), 255, np.uint8)}, lambda: {"x": np.arange(27, dtype=np.uint8).reshape(1, 3, 3, 3) * 9}))
def A4743ImagesOfBytes(self, x):
    """Bytes: flipped, inverted, thresholded, averaged with a shift, posterised, solarised, a grey by whole numbers, contrast about a byte mean."""
    g = (x[:, 0].int() * 77 + x[:, 1].int() * 150 + x[:, 2].int() * 29) >> 8
    m = x.float().mean((1, 2, 3), keepdim=True)
    return x.flip(-1), 255 - x, (x & 0xF0), torch.where(x >= 128, 255 - x, x), g.to(torch.uint8), ((x - m) * 1.5 + m).clamp(0, 255).to(torch.uint8), (x[..., :1] + x) // 2, x.amax(1) - x.amin(1), x * 2 + 1, ((x.float() / 255 - 0.5) / 0.25)
@forward(XT, feeds=(*rows(1, 1, 2, 2, 3, 3), *rows(*[1.0] * 18)), **VALUES)
def A4744TiesFromTheEnd(self, x):
    """Last of ties by a flip, sort descending of a flipped one, argsort of a negative, ranks by two argsorts, top of ties among masks, unique ranks."""
    f = x.flip(1)
    n = x.shape[1]
    s = x.argsort(dim=1, descending=True, stable=True)
    return n - 1 - f.argmax(1), s, s.argsort(1), (-x).argsort(dim=1, stable=True), x.topk(min(3, n), largest=False).values, torch.where(x > 1, x, -INF).argmax(1), (x[:, :, None] > x[:, None]).sum(2), x.cummax(1).indices
@forward(XT, "i:int64[N,T]=-3:9", feeds=(lambda: {"x": np.zeros((1, 3), np.float32), "i": np.array([[-3, 9, 0]])},), **VALUES)
def A4745IndexByClampedIds(self, x, i):
    """Ids clamped, wrapped by a remainder and masked out before a table, one_hot of a remainder, isin of a list of both ends."""
    t = torch.arange(12.0).view(6, 2)
    j = i.clamp(0, 5)
    return F.embedding(j, t), t[i % 6], torch.where((i < 0) | (i > 5), 0, i), F.one_hot(i % 4, 4), torch.isin(i, torch.tensor([-3, 9])), t[j].gather(-1, (i % 2)[..., None]), torch.where(i[..., None] == torch.arange(6), t[:, 0], 0.0).sum(-1), F.embedding(j, t, padding_idx=0)
@forward("x:int64[N,T]=-20:20", feeds=rows(2**53 + 1, -(2**53) - 1, 2**62, 2**31, -(2**31), 3, dtype=np.int64), **VALUES)
def A4746LongIdsHashed(self, x):
    """splitmix's steps in int64 that wrap, a logical shift by a mask, buckets by a remainder, a pair packed into one and back."""
    z = (x + -7046029254386353131) * -4658895280553007687
    z = z ^ ((z >> 30) & 0x3FFFFFFFF)
    p = (x << 20) | (x & 0xFFFFF)
    return z % 1009, z, p >> 20, p & 0xFFFFF, (x * 31 + 7).abs() % 64, x // 1000 * 1000
@attack(XT, feeds=rows(0.25, 0.75, 0.375, 0.125, -0.125, 31.9, -32.1, 1e9), **VALUES)
class A4747RoundHalfAwayQuantiser(nn.Module):
    """A quantiser whose ties go away from zero, one to even, one by floor(x + .5), a scale as a parameter of one dim, per-token and back."""
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor([0.25]))
        self.register_buffer("z", torch.tensor(3, dtype=torch.int32))
    def forward(self, x):
        y = x / self.s
        a = (torch.sign(y) * torch.floor(y.abs() + 0.5)).clamp(-128, 127).to(torch.int8)
        b = torch.clamp(torch.round(y) + self.z, 0, 255).to(torch.uint8)
        c = torch.floor(y + 0.5).clamp(-8, 7)
        k = x.abs().amax(1, keepdim=True).clamp(min=1e-5) / 127
        return a * self.s, (b.int() - self.z) * self.s, c, (x / k).round() * k, (a.int() * b.int()).sum(1)
@forward(XT, feeds=rows(1, -1, 0, INF, -INF, NAN, 1e38, 5), **VALUES)
def A4748MaskedWithInfinities(self, x):
    """masked_fill with minus infinity and a softmax of a row of none, where beside NaN, products of masks, logsumexp of none, max of none."""
    m = x.isfinite() & (x > 0)
    y = x.masked_fill(~m, -INF)
    return y.softmax(1).nan_to_num(0.0), y.logsumexp(1), y.amax(1), torch.where(m, x, 0.0).sum(1), F.log_softmax(y, 1).masked_fill(~m, 0.0), torch.where(m.any(1, keepdim=True), y, torch.zeros_like(y)).softmax(1), m.all(1), (y.argmax(1) * m.any(1))
@forward(XT, "y:float32[N,T]", feeds=(lambda: {"x": np.array([[0, 0, 1, -1, NAN, INF, 3]], np.float32), "y": np.array([[0, -0.0, 1, 1, 1, INF, NAN]], np.float32)},), **VALUES)
def A4749EqualityOfAllKinds(self, x, y):
    """isclose with equal_nan, sign bits, allclose as a tensor, fmin, hypot of ends, xlogy, comparisons with bool tensors, logical ones of floats."""
    return torch.isclose(x, y), torch.isclose(x, y, equal_nan=True, rtol=0.0, atol=0.0), torch.fmin(x, y), torch.xlogy(x, y), torch.logical_xor(x, y), torch.logical_not(x), (x > 0) > (y > 0), x.sgn(), torch.isposinf(x), torch.logical_and(x, y), torch.float_power(x, 2).float()
@forward(XT, feeds=rows(0, 1, 2, 10, -1, 0.5, 1.5, 100, -0.5), **VALUES)
def A4750PowersOfAllKinds(self, x):
    """float_power, negative bases, a base of zero to a negative, powers of whole tensors, square roots by pow, exp2, log of a base, cbrt by sign."""
    i = x.long()
    return x.pow(0.5), x.pow(-1.0), torch.pow(-2.0, i.clamp(-5, 5).float()), i.clamp(0, 9) ** 3, 2 ** i.clamp(0, 20), torch.exp2(x), torch.pow(x, x.round()), x.sign() * x.abs() ** (1 / 3), torch.pow(0.0, x), x.rsqrt().square(), torch.pow(1.0, x * INF)
@forward(XT, feeds=rows(0, -0.0, 1, -1, 3e38, 1e-40, INF, 2), **VALUES, refused="the exported model differs from the module")
def A4751ComplexAtEnds(self, x):
    """Complex numbers of real parts at their ends: abs, angle of minus zero, division, polar, sqrt of a negative, exp."""
    c = torch.complex(x, -x.flip(1))
    p = torch.polar(x.abs().clamp(max=9), x.clamp(-9, 9))
    q = c.clone() * p.conj()
    d = torch.complex(x.clamp(-9, 9).nan_to_num(1.0), torch.ones_like(x))
    return c.abs().isfinite(), d.angle(), p.real, q.imag.isnan(), (1 / d).real, (d * d).imag, torch.view_as_real(d.exp() / 9), (d.real**2 + d.imag**2).sqrt() - d.abs(), torch.sgn(d).real
@forward(XT, "y:float32[N,T]", feeds=(lambda: {"x": np.array([[1, 2, 3, 4]], np.float32), "y": np.array([[2, 2, 2, 2]], np.float32)}, lambda: {"x": np.full((3, 20), 5, np.float32), "y": np.full((3, 20), 5, np.float32)}), **VALUES, refused="the exported model differs from the module")
def A4752DistancesOfAlike(self, x, y):
    """cdist of norms none, a half, one and infinity; a product form whose roots go below zero; cosine of zeros; pdist; renorm."""
    a, b = x[..., None], y[..., None]
    return torch.cdist(a, b, p=0.0), torch.cdist(a, b, p=1.0), torch.cdist(a, b, p=3.0), (x.square().sum(1)[:, None] - 2 * x @ y.mT + y.square().sum(1)).clamp(min=0).round(), F.cosine_similarity(x, y, eps=1e-3), torch.renorm(x, 2, 0, 1.0), torch.linalg.vector_norm(x, 0.5, dim=1), torch.linalg.vector_norm(x, 0, dim=1), torch.linalg.vector_norm(x, -INF, dim=1)
@forward(XT, feeds=rows(1e-20, 1e20, -1e20, 1e38, -1e38, 3e38, 1, 0), **VALUES)
def A4753SumsThatOverflow(self, x):
    """A mean as a sum over a size, a running mean that does not overflow, a norm that is scaled, a product by logs, softmax of ends."""
    m = x.abs().amax(1, keepdim=True)
    s = (x / m.clamp(min=1e-30)).square().sum(1).sqrt() * m[:, 0]
    return x.mean(1).isfinite(), (x / x.shape[1]).sum(1).isfinite(), s, x.softmax(1), (x.clamp(-9, 9).abs() + 1).log().sum(1).exp(), x.clamp(-1e30, 1e30).sign().sum(1), x.square().sum(1).isinf()

# ruff: noqa: E501, E731 - attacks are written as users write them
"""Numbers: types beside each other, wrapping, thresholds, halves, empties, sizes computed in Python."""

from __future__ import annotations

import bisect
import fractions
import math
import statistics

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, MT, I8, I32 = "x:float32[N,T]", "m:bool[N,T]", "i:int8[N,T]=-128:127", "i:int32[N,T]=-2147483648:2147483647"
U8, H = "u:uint8[N,T]=0:255", "h:float16[N,T]"
ODD = np.array([[0.0, -0.0, 1e-40, -1e-45, np.inf, -np.inf, 3.4e38, -3.4e38, 0.5, 1.5, 2.5, -0.5, 1.0, 0.1, 0.3, 0.7, 127.5, 16777217.0]], np.float32)
NAN = np.array([[np.nan, 1.0, np.inf, -np.inf, 0.0, -0.0]], np.float32)
own = lambda *a, name="x": tuple((lambda v=v: {name: v}) for v in a)


@forward(I8, U8, **seq(I8, U8))
def A5763BytesAgainstBytes(self, i, u):
    """int8 beside uint8: sums in int16, products that wrap, shifts, absolute values of -128, means by promotion."""
    return i + u, i * i, u * u, i.abs(), -i, i >> 1, u << 1, i / u.clamp(min=1), i // torch.tensor(3, dtype=torch.int8), u - 200, (i.sum(1), u.sum(1), u.sum(1, dtype=torch.uint8)), i % 7, u.float().mean(1), ~i, i ^ 5


@forward(I32, **seq(I32))
def A5764EndsOfInt32(self, i):
    """The ends of int32: times 31, shifted, divided by -1 and 7, clamped by floats, to int64 and back."""
    return i * 31 + 7, i << 3, i >> 30, i // 7, torch.div(i, -3, rounding_mode="trunc"), i.long() * 3, (i.long() * 3).int(), i.clamp(-1000, 1000), i.float(), i % 1000, torch.remainder(i, -7), i.sum(1), i.cumsum(1), (i & 0xFF).to(torch.uint8), i.bitwise_xor(i >> 16)


@forward(X, **seq(X, own=own(ODD[:, :6], ODD[:, 8:])))
def A5765QuotientsOfFloats(self, x):
    """Floor division and remainders of floats by tenths, of both signs, and what the two say together."""
    return x // 0.1, x % 0.1, torch.div(x, -0.3, rounding_mode="trunc"), torch.fmod(x, 0.7), torch.remainder(x, -0.7), (x * 10) // 1 / 10, divmod(5, 3)[1] * x


@forward(X, **seq(X, own=own(ODD, NAN)))
def A5766SignsAndBits(self, x):
    """Signs of zeros, copysign, heaviside, finite or not, nan_to_num, sorted with both zeros, minima with NaN."""
    return torch.copysign(torch.ones_like(x), x), torch.signbit(x), torch.heaviside(x, torch.tensor(0.5)), torch.nan_to_num(x, 7.0, 9.0, -9.0), x.isposinf(), x.sgn(), torch.fmax(x, x.flip(1)), torch.clamp(x, -0.0, 1.0), torch.reciprocal(x), x.relu(), F.hardtanh(x), torch.where(x == 0, x, 0.0) + 0.0


@forward(H, **seq(H, own=own(np.array([[65504, -65504, 60000, 6e-8, 2049, 0.1, 0.2, 0.3]], np.float16), name="h")))
def A5767HalvesThroughout(self, h):
    """Halves: sums that overflow, means, products, a softmax, a norm, powers, comparisons with 0.1, whole numbers."""
    return h * h, h.sum(1), h.mean(1), h.softmax(1), F.layer_norm(h, (h.shape[1],)), h > 0.1, h == 0.1, (h * 0.1).float(), h + 2049, h.float().mul(0.1).half(), h.round().clamp(-100, 100).long(), h**2, h.cumsum(1), 1 / h, h.exp()


@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A5768BfloatNetwork(nn.Module):
    """A network in bfloat16 between FP32 ends: a linear, a norm in FP32, a residual, a softmax in FP32."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(4, 8).bfloat16(), nn.Linear(8, 4).bfloat16(), nn.LayerNorm(4)

    def forward(self, x):
        y = x.bfloat16()
        z = self.b(F.silu(self.a(y))) + y
        return self.norm(z.float()), (z.float() @ z.float().transpose(1, 2)).softmax(-1).to(torch.bfloat16).float()


@forward(X, MT, **seq(X, MT))
def A5769BooleansAsNumbers(self, x, m):
    """Booleans: added, multiplied, summed up in types, maxima, products, argmax, sorted, compared, cumulated."""
    return m + m, m * m, m.sum(1), m.sum(1, dtype=torch.int32), m.float().mean(1), m.int().argmax(1), m & (x > 0), m.any(1) ^ m.all(1), m.cumsum(1), m * 2.5, m * 3, m == 1, m > 0.5, torch.where(m, 1, 0.5), m.prod(1), x[:, :1] * m.count_nonzero(1)[:, None], m.amax(1), m.int().cumprod(1), m.sort(1).values


@forward(X, **seq(X, own=own(ODD[:, :4], ODD[:, 8:])))
def A5770ToWholeNumbers(self, x):
    """Floats of within range to whole numbers in all ways, and back; ties and what is just below a whole number."""
    y = x.clamp(-100, 100)
    return y.int(), y.long(), y.to(torch.int8), y.abs().to(torch.uint8), y.round(), y.round(decimals=1), y.floor().short(), y.ceil(), y.trunc(), (y * 255 + 0.5).clamp(0, 255).to(torch.uint8), y.frac(), torch.floor(y * 10) / 10, torch.round(y / 0.05) * 0.05, torch.bucketize(y, torch.tensor([-0.5, 0.0, 0.1, 0.5])), torch.bucketize(y, torch.tensor([-0.5, 0.0, 0.1, 0.5]), right=True)


@forward(X4, **seq(X4), refused="a size is handed to code that takes plai")
def A5771SizesInFractions(self, x):
    """Sizes in Fraction, statistics.median, bisect over a table, isqrt, comb, bit_length and hex."""
    t = x.shape[1]
    f = fractions.Fraction(t, 6)
    k = [1, 3, 7, 15, 31][bisect.bisect_left([2, 5, 9, 20], t)]
    m = statistics.median([t, 4, 11])
    s = math.isqrt(t) + t.bit_length() + math.comb(min(t, 5), 2)
    return x * f.numerator / f.denominator, x[:, : max(1, t - k)], x + m, x * s, x[:, :: 1 + len(hex(t)) - 3]


@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5772PowersOfTheLength(self, x):
    """Powers and roots of the length in floats, thresholds at their exact values, and 10 ** of a rounded logarithm."""
    t = x.shape[1]
    p = 2 ** math.ceil(math.log2(t))
    c = round(t ** (1 / 3), 6)
    g = 10 ** round(math.log10(t))
    y = F.pad(x, (0, 0, 0, p - t))
    return y, x * g, x * (c == int(c)), x * math.sqrt(t) / math.exp(-t / 40), x[:, : int(t**0.5)], x * (t / 3 == t // 3)


@forward(IMAGE, **pix(IMAGE), refused="the path through the module depends on the size")
def A5773AspectBuckets(self, x):
    """Ratios of sides: nearest of a list of ratios, landscape or portrait, rounded to a tenth, and a hypotenuse."""
    h, w = x.shape[-2:]
    r = round(w / h, 1)
    ratios = [0.5, 0.8, 1.0, 1.25, 2.0]
    best = min(range(5), key=lambda i: abs(ratios[i] - w / h))
    d = math.hypot(h, w)
    y = x.transpose(2, 3) if w > h else x
    return x * r, x + best, y.flatten(2)[..., : int(d)], torch.tensor([h, w]).float() / d


@forward(X, **seq(X, low=0), refused="the exported model differs from the module")
def A5774NothingAtAll(self, x):
    """Of nothing: sums, products, means that are NaN, any, all, a softmax, concatenated, argsorted, padded, counted."""
    y = F.pad(x, (0, 1), value=-1.0)
    return x.sum(1), x.prod(1), x.mean(1), (x > 0).any(1), (x > 0).all(1), x.softmax(1), torch.cat([x, y], 1).amax(1), x.argsort(dim=1, stable=True), y, x.numel() + torch.zeros(1), x.cumsum(1), x.norm(dim=1), torch.logsumexp(x, 1), x.flip(1), x.repeat(1, 2), x.new_zeros(3)


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]", zero=True))
def A5775PairsOfAny(self, x, y):
    """Two lengths of which one may be zero: outer products, concatenations, who is longer, cut to the shorter."""
    k = min(x.shape[1], y.shape[1])
    d = x.shape[1] - y.shape[1]
    longer = x if d >= 0 else y
    z = F.pad(y, (0, max(d, 0)))[:, : x.shape[1]]
    return x[:, :, None] * y[:, None], torch.cat([x, y], 1), longer, x[:, :k] + y[:, :k], z, (x[:, :, None] - y[:, None]).abs().sum(-1), x[:, k:], x * (d / max(x.shape[1] + y.shape[1], 1))


@forward(X, "i:int64[N,S]=-3:3", **two(X, "i:int64[N,S]=-3:3"))
def A5776PromotedBySides(self, x, i):
    """Whole numbers beside floats: scalars of numpy, 0-d tensors of doubles, powers, means, comparisons, where."""
    k = min(x.shape[1], i.shape[1])
    a, b = x[:, :k], i[:, :k]
    return a + b, b / 2, b * 0.5, b // 2, b**2, torch.pow(2, b + 3), torch.pow(b, 2.0), b + torch.tensor(0.5), a * torch.tensor(0.1, dtype=torch.float64), torch.where(a > 0, b, 1), torch.where(a > 0, b, 1.5), b > 0.5, b.float().std(1, unbiased=False), b * np.float32(0.5), torch.maximum(b, torch.tensor(1)), b.sum() / k, torch.add(b, 1, alpha=3), b.true_divide(3), torch.rsub(b, 1), b.clamp(min=-1.5)


@attack(X4, **seq(X4))
class A5777QuantisedByHand(nn.Module):
    """W8A8: weights in int8 as buffers, activations by row with halves rounded to even, products in int32, scales."""

    def __init__(self):
        super().__init__()
        w = torch.randn(6, 4)
        s = w.abs().amax(1, keepdim=True) / 127
        self.register_buffer("w", (w / s).round().to(torch.int8))
        self.register_buffer("s", s)

    def forward(self, x):
        a = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        q = (x / a).round().clamp(-128, 127).to(torch.int8)
        acc = q.to(torch.int32) @ self.w.to(torch.int32).T
        packed = (self.w[::2] & 0xF) | (self.w[1::2] << 4)
        lo, hi = (packed << 4) >> 4, packed >> 4
        return acc.float() * a * self.s.T, q, torch.stack([lo, hi], 1)


@forward(X, **seq(X, low=2, own=own(np.repeat(ODD[:, 8:9], 4, 1), np.array([[1e19, -1e19, 1e19, 3e19]], np.float32), np.array([[1e-23, 2e-23, -1e-23, 0]], np.float32))))
def A5778NormsBeyondSquares(self, x):
    """Norms, distances and similarities whose squares overflow or vanish; logs and roots of sums."""
    return x.norm(dim=1), torch.hypot(x[:, 0], x[:, 1]), F.normalize(x, dim=1), torch.logaddexp(x[:, 0], x[:, 1]), x.abs().pow(3).sum(1).pow(1 / 3), torch.linalg.vector_norm(x, 4, dim=1), torch.linalg.vector_norm(x, math.inf, dim=1), torch.linalg.vector_norm(x, 0, dim=1)


@forward("z:float32[N,T,2]", **seq("z:float32[N,T,2]"))
def A5779ComplexAlgebra(self, z):
    """Complex numbers: products with conjugates, polar forms, roots, exponentials, quotients, a power of three."""
    c = torch.view_as_complex(z.contiguous())
    p = torch.polar(c.abs(), c.angle() * 0.5)
    q = c * c.conj() / (c.abs().square() + 1)
    return torch.view_as_real(p), q.real, torch.view_as_real(torch.exp(1j * c.real) * c), torch.view_as_real((c**3).cumsum(1)), torch.view_as_real(c / (1 + 2j)), torch.view_as_real(c.mean(1)), c.imag.sum(1), torch.view_as_real(c[:, :, None] @ c.conj()[:, None])


@forward(X, MT, **seq(X, MT))
def A5780UniqueByCounts(self, x, m):
    """Unique-like: sorted, who differs from its neighbour, numbered by a running sum, counted by scatter, ranked densely."""
    r = x.round().long()
    s, at = r.sort(dim=1, stable=True)
    new = torch.cat([torch.ones_like(m[:, :1]), s[:, 1:] != s[:, :-1]], 1)
    num = new.cumsum(1) - 1
    inv = torch.zeros_like(num).scatter(1, at, num)
    counts = torch.zeros_like(num).scatter_add(1, inv, torch.ones_like(num))
    first = torch.full_like(num, x.shape[1]).scatter_reduce(1, inv, torch.arange(x.shape[1]).expand_as(inv), "amin")
    mode = counts.argmax(1)
    return inv, counts, first, num[:, -1] + 1, s.gather(1, first.clamp(max=x.shape[1] - 1)), mode, torch.where(m, inv, -1).amax(1)


@forward(X4, **seq(X4, low=2))
def A5781ScatterKinds(self, x):
    """scatter_reduce of all kinds with duplicates, with and without what was there; index_reduce; put with accumulation."""
    t = x.shape[1]
    at = (torch.arange(t) * 3 % max(t // 2, 1))[None, :, None].expand_as(x)
    base = x.flip(1)
    kinds = [base.scatter_reduce(1, at, x, k, include_self=s) for k in ("sum", "prod", "mean", "amax", "amin") for s in (True, False)]
    y = base.clone()
    y.index_put_((torch.zeros(t, dtype=torch.long), at[0, :, 0]), x[0], accumulate=True)
    return (*kinds, y, base.index_add(1, at[0, :, 0], x, alpha=-0.5))


@forward(X, **seq(X, low=1))
def A5782StatisticsOfOrder(self, x):
    """Medians of even counts, quantiles of kinds, kthvalue, modes of what is rounded, a trimmed mean, histogram, ranks."""
    t = x.shape[1]
    k = max(t // 3, 1)
    s = x.sort(1).values
    q = torch.quantile(x, torch.tensor([0.0, 0.1, 0.5, 0.95, 1.0]), dim=1)
    return x.median(1).values, q, x.kthvalue(k, 1).values, s[:, t // 4 : t - t // 4].mean(1), torch.quantile(x, 0.3, dim=1, interpolation="lower"), torch.quantile(x, 0.3, dim=1, interpolation="nearest"), x.argsort(dim=1, stable=True).argsort(dim=1), x.nanmedian(1).values, (x[:, :, None] > x[:, None]).sum(-1), x.aminmax(dim=1).max, x.msort()[0]


@forward("x:float32[N,T]=-0.2:1.2", "y:float32[N,T]=0:1", **seq("x:float32[N,T]=-0.2:1.2", "y:float32[N,T]=0:1"), refused="the module cannot be exported")
def A5783LossesAtTheirEdges(self, x, y):
    """Losses as outputs at 0 and 1: BCE clamped at -100, focal, KL with zeros, Huber at its bend, hinge, dice, triplet."""
    p = x.clamp(0, 1)
    ce = F.binary_cross_entropy_with_logits(x, y, reduction="none", pos_weight=torch.tensor(2.0))
    pt = torch.exp(-ce)
    return F.binary_cross_entropy(p, y, reduction="none"), ((1 - pt) ** 2 * ce).mean(), F.kl_div(p.clamp(min=1e-8).log(), y, reduction="batchmean"), F.huber_loss(x, y, delta=0.5), F.smooth_l1_loss(x, y, beta=0.25, reduction="sum"), F.hinge_embedding_loss(x, torch.where(y > 0.5, 1, -1)), 1 - 2 * (p * y).sum(1) / (p.sum(1) + y.sum(1) + 1e-7), F.margin_ranking_loss(x, y, torch.sign(x - 0.5), margin=0.1), F.poisson_nll_loss(x, y, log_input=False, full=True, reduction="none"), F.gaussian_nll_loss(x, y, p), F.soft_margin_loss(x, torch.where(y > 0.5, 1.0, -1.0))

# ruff: noqa: E501 - attacks are written as users write them
"""Numbers: what is no number and swallowed, infinities, denormals, signs of zeros, wraps, casts, widths."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import constant, sprinkled
from tests.adversary.modules.fiftyfourth.sequences import seq

X = "x:float32[N,T]=-4:4"


SAME = constant((1, 4), (2, 9), (1, 40), value=2.0) + constant((1, 6), value=0.0) + constant((2, 33), value=-4.0)
ZEROS = sprinkled(0.0, -0.0, 4.0, -4.0, 1.0, sizes=((1, 9), (2, 31)))


@forward(X, **seq(X, low=4, own=(*SAME, *ZEROS)), refused="the exported model differs from the module")
def A6943NormedThenPooled(self, x):
    """Over the range of each row, which is zero where all are the same, then the maximum of windows."""
    a, b = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    y = (x - a) / (b - a)
    return F.max_pool1d(y, 3, 2, 1), F.adaptive_max_pool1d(y, 2), y.clamp(0, 1), F.relu(y), F.hardtanh(y)


@forward(X, **seq(X, low=2, own=(*SAME, *ZEROS)), refused="expected nan")
def A6944RootsThenQuantiles(self, x):
    """Roots, of negatives too, then quantiles and medians with and without what is no number."""
    y = torch.sqrt(x[:, :-1] - x[:, 1:])
    return (
        y.nanmedian(1).values,
        y.median(1).values,
        y.nanmean(1),
        torch.nanquantile(y, 0.3, 1),
        torch.quantile(y, 0.7, 1, interpolation="lower"),
    )


@forward(X, **seq(X, low=3, own=(*SAME, *ZEROS)), refused="got nan")
def A6945LogsThenSorted(self, x):
    """Logarithms of any sign, sorted and chosen: what is no number is the largest, the best and the last."""
    y = torch.log(x)
    return (
        y.sort(1).values,
        y.topk(2, 1).values,
        y.argmax(1),
        y.argmin(1),
        y.cummax(1).values,
        y.aminmax(dim=1).min,
        torch.fmax(y, x),
        torch.maximum(y, x),
    )


@forward(X, **seq(X, own=(*SAME, *ZEROS)))
def A6946BoundsOfRatios(self, x):
    """Clamped between bounds that are ratios, no numbers at zeros; counted as true, compared, chosen by sign."""
    lo = x.flip(1) / x.flip(1).abs()
    y = torch.clamp(x, min=lo)
    return (
        y,
        torch.minimum(x, lo),
        torch.where(lo > 0, 1.0, torch.where(lo <= 0, -1.0, 0.5)),
        lo.bool().sum(1),
        torch.sign(lo),
        (lo != lo).any(1),
        F.leaky_relu(lo),
        F.softplus(lo * 1e2),
    )


BIG = "x:float32[N,T]=-1e30:1e30"
BIGS = sprinkled(1e30, -1e30, 1e19, 1e-30, 0.0, 2e19, sizes=((1, 9), (2, 31), (1, 40)))


@forward(BIG, **seq(BIG, own=BIGS, kinds=("normal", "large", "halves", "zeros", "ones")), refused="expected 1, got 0")
def A6947Overflowed(self, x):
    """Norms whose squares overflow, hypot that need not, directions, and a variance; the angle of the pair."""
    n = x.pow(2).sum(1, keepdim=True).sqrt()
    h = torch.hypot(x, x.flip(1))
    return (
        x / n.clamp(min=1e-12),
        h,
        F.normalize(x, dim=1),
        torch.logaddexp(x, x.flip(1)),
        x.var(1, unbiased=False) > 1,
        torch.atan2(x, x.flip(1)),
        F.cosine_similarity(x, x.flip(1), dim=1),
    )


ONES = "x:float32[N,T]=-1:1"
SMALL = sprinkled(1e-7, 1.0, -1.0, 1e-3, 0.0, sizes=((1, 9), (2, 31)))


@forward(ONES, **seq(ONES, own=SMALL))
def A6948Denormals(self, x):
    """Products in the range of denormals: are they above zero, what is their sign, back to size."""
    y = x * 1e-38
    z = y * 1e-4
    return (
        z * 1e35 * 1e7,
        z > 0,
        torch.sign(z),
        (z == 0).sum(1),
        torch.exp(x * 20 - 90) * 1e30,
        torch.sigmoid(x * 100) > 0,
        (x * x * 1e-44).sqrt() * 1e22,
    )


@forward(X, **seq(X, own=ZEROS), refused="expected -9, got 9")
def A6949SignsOfZero(self, x):
    """Zeros with a sign: by rounding, by products, by minima; seen by division, by the angle and by the sign bit."""
    r, f, p = torch.round(x / 4), torch.ceil(x / 5), x * 0
    return (
        (1 / r).clamp(-9, 9), (1 / f).clamp(-9, 9), torch.atan2(p, p - 1), torch.copysign(torch.ones_like(x), p), torch.signbit(p),
        torch.atan2(F.relu(x), -F.relu(-x) - 1), (1 / torch.fmod(r, 1)).clamp(-9, 9), (1 / torch.trunc(x / 5)).clamp(-9, 9), (1 / (-p.sum(1))).clamp(-9, 9),
    )  # fmt: skip


I32 = "x:int32[N,T]=-2147483648:2147483647"
WRAP = tuple(
    (lambda a=a: {"x": np.array([a], np.int32)})
    for a in ([-2147483648, 2147483647, -1, 0, 1], [46340, 46341, -46341, 65536], [2147483647] * 7, [-2147483648] * 4)
)


@forward(I32, **seq(I32, own=WRAP), refused="whole numbers or exact")
def A6950Wrapped(self, x):
    """Whole numbers of four bytes that wrap: squares, negatives, absolute values, sums that are wide, a hash."""
    h = x * 31 + 17
    h = h ^ (h >> 7)
    return (
        x * x,
        -x,
        x.abs(),
        x.sum(1),
        x.cumsum(1),
        x.cumsum(1, dtype=torch.int32),
        h % 8,
        x // 7,
        x.float().mean(1),
        (x - 1 < x),
        x.prod(1),
    )


U8 = "x:uint8[N,T]=0:255"


@forward(U8, **seq(U8))
def A6951Bytes(self, x):
    """Bytes: differences that wrap, a mean of two, inverses, shifts, gains that saturate or do not, a parity."""
    y = x.flip(1)
    return (
        x - y,
        (x + y) // 2,
        ~x,
        x >> 3,
        x << 2,
        (x * 1.5).to(torch.int32),
        (x.float() * 1.5).clamp(0, 255).to(torch.uint8),
        x * 3,
        -x,
        x.sum(1),
        (x - 128).float(),
        x % 7,
        (x.int() - y.int()).abs().to(torch.uint8),
        x.to(torch.int8),
    )


A, C = "a:int64[N,T]=-20:20", "c:int64[N,T]=-4:4"


@forward(A, C, **seq(A, C), refused="no form of gcd")
def A6952Divided(self, a, c):
    """Division of whole numbers of any sign: floors, remainders, truncation, powers, true division, no zero below."""
    d = torch.where(c == 0, 5, c)
    return (
        a // d,
        a % d,
        torch.fmod(a, d),
        torch.div(a, d, rounding_mode="trunc"),
        a / d,
        (a / d).round(),
        torch.div(a + 3, -7, rounding_mode="floor"),
        (a - 21) % -8,
        c**3,
        torch.gcd(a, d),
        torch.div(a.float(), d, rounding_mode="floor"),
    )


K = "k:int32[N,T]=0:31"


@forward(I32, K, **seq(I32, K))
def A6953Shifted(self, x, k):
    """Arithmetic shifts of any sign by up to thirty-one, bits picked, a rotation, a popcount by masks."""
    one = torch.ones_like(x)
    bit = (x >> k) & 1
    low = x & ((one << (k % 31)) - 1)
    v = x - ((x >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return (
        x >> k,
        bit,
        low,
        (v & 0xFF) + ((v >> 8) & 0xFF) + ((v >> 16) & 0xFF) + (v >> 24),
        x << (k % 8),
        x & -x,
        ~x | k,
    )


CAST = "x:float32[N,T]=-300:300"
CASTS = sprinkled(127.5, -128.5, 126.5, 0.5, -0.5, 1.5, 2.5, 0.49999997, 255.5, -0.0, sizes=((1, 9), (2, 31)))


@forward(CAST, **seq(CAST, own=CASTS))
def A6954Casts(self, x):
    """Quantised codes: round half to even or up, truncated casts, saturated bytes, and back; a fraction's sign."""
    q = torch.clamp(torch.round(x / 0.5), -128, 127).to(torch.int8)
    u = (x + 0.5).clamp(0, 255).to(torch.uint8)
    return (
        q,
        u,
        x.to(torch.int32),
        torch.floor(x + 0.5).long(),
        x.frac(),
        x.bool(),
        x.to(torch.int16) // 3,
        (q.float() - x / 0.5).abs() > 0.5,
        torch.round(x, decimals=1),
        x.trunc().long() % 5,
    )


OFF = "x:float32[N,T]=1000:1001"
OFFS = tuple(
    (lambda t=t: {"x": (1000 + np.arange(2 * t).reshape(2, t) % 3 * 2**-14).astype(np.float32)}) for t in (2, 9, 32, 40)
) + constant((1, 5), (2, 33), value=1000.5)


@forward(OFF, **seq(OFF, low=2, own=OFFS, kinds=("normal",)), refused="computes in FP64")
def A6955Doubles(self, x):
    """A variance by squares in doubles: small and never negative; whether all are the same; a phase of long time."""
    d = x.double()
    v = (d * d).mean(1) - d.mean(1) ** 2
    ph = (d * 12345.678).cumsum(1) % 1.0
    return v.float(), v > 1e-12, (2 * math.pi * ph).sin().float(), (d - 1000).float()


WIDE = "x:float32[N,T]=-70000:70000"
WIDES = sprinkled(65504.0, 65519.0, 65520.0, -65520.0, 70000.0, 2049.0, 1e-8, 0.1, sizes=((1, 9), (2, 31)))


@forward(WIDE, **seq(WIDE, own=WIDES, kinds=("normal", "halves", "tiny", "tenths", "zeros", "bytes")))
def A6956Halves(self, x):
    """Through halves: above their range infinite, whole numbers that merge, small ones lost; and brain floats."""
    h = x.half()
    b = x.bfloat16()
    return (
        h.float(),
        h.isinf().sum(1),
        (h == x).sum(1),
        b.float(),
        (b + 1 == b).sum(1),
        (h * 0 != 0).any(1),
        h.float().diff(dim=1),
        (b.float() - x).abs() > 100,
    )


REM = sprinkled(-1e-8, 1e-8, 0.3, -0.3, 0.6, -4.0, 0.1, 0.7, sizes=((1, 9), (2, 31)))


@forward(X, **seq(X, own=REM))
def A6957Remainders(self, x):
    """Remainders of floats: a small negative one gives the divisor itself; floors of quotients; wrapped angles."""
    a = torch.remainder(x, 1.0)
    return (
        a,
        a == 1.0,
        torch.fmod(x, 0.25),
        x // 0.1,
        torch.remainder(x, -0.7),
        (x + math.pi) % (2 * math.pi) - math.pi,
        (a * 8).long(),
        torch.floor_divide(x, 0.3),
        F.one_hot((x.remainder(2.0) * 2).long().clamp(max=3), 4).sum(1),
    )

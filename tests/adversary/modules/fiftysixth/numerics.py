# ruff: noqa: E501 - attacks are written as users write them
"""Numbers: softmaxes with infinities, norms, running sums, divisions of integers, shifts, halves, casts, special functions."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, sprinkled

X = "x:float32[N,K]"
D = "N=1:2:4 K=1:7:20"
INF, NAN = float("inf"), float("nan")
SIZES = ((1, 1), (2, 7), (4, 20))


def _ints(*values, dtype=np.int64, name="x", **more):
    return lambda: {name: np.array([values], dtype), **more}


@forward(X, dims=D, feeds=(*sprinkled(INF, -INF, NAN, 88.0, -104.0, sizes=SIZES), lambda: {"x": np.full((1, 7), -INF, np.float32)}, lambda: {"x": np.full((1, 3), INF, np.float32)}))
def A7160LogSumExps(self, x):
    """logsumexp of rows without anything, logaddexp of equal infinities, logcumsumexp, a softmax of minus infinities."""
    return torch.logsumexp(x, 1), torch.logaddexp(x, x.flip(1)), torch.logcumsumexp(x, 1), x.log_softmax(1)


@forward(X, dims=D, feeds=(*sprinkled(0.0, 1e-20, 1e-6, 3e19, INF, NAN, sizes=SIZES), lambda: {"x": np.zeros((2, 7), np.float32)}), noted="in its inputs the file differs")
def A7161Norms(self, x):
    """Norms of orders 0, 0.5, 1, 2, inf and -inf; normalize with its clamp; cosine similarity of a zero row."""
    v = torch.linalg.vector_norm
    a = torch.stack([v(x, o, dim=1) for o in (0, 1, 2, INF, -INF)], 1)
    return a, F.normalize(x, dim=1), F.cosine_similarity(x, x.flip(1), dim=1), x.renorm(2, 0, 1.0)


@forward("x:int64[N,K]=-9:9", "y:int64[N,K]=1:5", dims=D,
         feeds=(lambda: {"x": np.arange(-9, 10)[None], "y": np.full((1, 19), 4)}, lambda: {"x": np.arange(-9, 10)[None], "y": np.full((1, 19), 3)}))  # fmt: skip
def A7162IntDivision(self, x, y):
    """All divisions of integers with signs: floor, trunc, remainder, fmod, true, by a negative constant, by floor_divide."""
    d = torch.div
    return (
        d(x, y, rounding_mode="floor"), d(x, -y, rounding_mode="trunc"), x % -y, torch.fmod(x, -y), x / y,
        x // -4, x % -4, torch.remainder(-7, y), torch.floor_divide(x, 2.5),
    )  # fmt: skip


@forward("x:float32[N,K]=-9:9", "y:float32[N,K]=-3:3", dims=D,
         feeds=(lambda: {"x": np.arange(-9, 10, dtype=np.float32)[None] / 2, "y": np.full((1, 19), -1.5, np.float32)}, lambda: {"x": np.array([[0.0, -0.0, 1, -1, 3]], np.float32), "y": np.array([[-1, 1, 0, 0, -0.0]], np.float32)}, lambda: {"x": np.array([[-1e-20, 5.5]], np.float32), "y": np.array([[3, -0.1]], np.float32)}), kinds=FINITE)  # fmt: skip
def A7163FloatDivision(self, x, y):
    """Floor division, remainder and fmod of floats, by zero, by both signs; the sign of a zero by atan2."""
    r, m = torch.remainder(x, y), torch.fmod(x, y)
    return x // y, r, m, torch.atan2(torch.zeros_like(r) + r, -torch.ones_like(r)), torch.trunc(x / 2.0), torch.frac(x)


@forward("x:int32[N,K]=-70000:70000", "y:int64[N,K]=0:31", dims=D,
         feeds=(lambda: {"x": np.array([[-1, -2, -70000, 70000, 1]], np.int32), "y": np.array([[31, 1, 16, 15, 31]])},))  # fmt: skip
def A7164Shifts(self, x, y):
    """Shifts of signed numbers, both ways, results that wrap in thirty-two bits, masks of bits, nots, counts of bits."""
    y32 = y.int()
    up, down = x << y32, x >> y32
    bits = ((x[..., None] >> torch.arange(32, dtype=torch.int32)) & 1).sum(-1)
    return up, down, bits, ~x ^ (x >> 31), (x * x), torch.bitwise_left_shift(x.long(), 33) >> 31


@forward(X + "=-20:20", dims=D, feeds=(halves(1, 20), halves(4, 7), lambda: {"x": np.array([[-0.5, 0.5, 1.5, 2.5, -2.5, 0.125, 0.375, 12.345, 0.49999997, -0.49999997]], np.float32)}))
def A7165Rounding(self, x):
    """round half to even, with decimals, half up by floor, half away by sign, to a negative decimal, to eighths."""
    away = torch.sign(x) * torch.floor(x.abs() + 0.5)
    return x.round(), (x + 0.5).floor(), away, torch.round(x / 8) * 8, x.round(decimals=-1), torch.round(x * 8) / 8, x.ceil().int() - x.int()


@forward(X + "=-300:300", dims=D, feeds=(lambda: {"x": np.array([[-300, -129, -128.5, -1.5, -0.9, 0.9, 127.9, 128, 255.9, 256, 300]], np.float32)},))
def A7166Casts(self, x):
    """Casts beyond the range of bytes and signed bytes through int32, where they wrap; saturating ones by a clamp."""
    i = x.int()
    return i.to(torch.uint8), i.to(torch.int8), x.clamp(-128, 127).to(torch.int8), x.to(torch.int16).to(torch.uint8), x.bool(), i.to(torch.int8).float() * 2


@forward(X, dims=D, kinds=FINITE, feeds=(lambda: {"x": np.array([[0.25, -0.25, 0.75, 63.5, -64, 1e5, -1e5]], np.float32)}, halves(2, 7)))
def A7167FakeQuantise(self, x):
    """Per-row symmetric quantisation with a scale of the greatest, of a zero row; an asymmetric one of fixed scale; back."""
    s = x.abs().amax(1, keepdim=True) / 127
    q = torch.where(s > 0, torch.round(x / s), 0.0).clamp(-128, 127).to(torch.int8)
    z = torch.fake_quantize_per_tensor_affine(x, 0.5, 3, 0, 255)
    lo, hi = x.amin(1, keepdim=True).clamp(max=0), x.amax(1, keepdim=True).clamp(min=0)
    sc = ((hi - lo) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zp = (-lo / sc).round().to(torch.int32)
    return q, q.float() * s, z, zp, ((x / sc).round() + zp).clamp(0, 255).to(torch.uint8)


@forward(X, dims=D, feeds=sprinkled(1e-8, 65520.0, 65519.0, 6e-8, 2.0**-25, 3.389e38, INF, NAN, sizes=SIZES))
def A7168LowPrecision(self, x):
    """Through half and bfloat16 and back, differences of them in half, an overflow to infinity, sums in float of halves."""
    h, b = x.half(), x.bfloat16()
    return h.float(), b.float(), (h * 2).float(), (h - h.round()).float(), torch.isinf(h), h.float().sum(1)


@forward(X, dims=D, feeds=(*sprinkled(NAN, INF, -INF, -0.0, sizes=SIZES), lambda: {"x": np.full((2, 3), NAN, np.float32)}), target="tensorrt==8.6")
def A7169NanComparisons(self, x):
    """Comparisons with NaN, maximum against fmax, clamps of NaN, where by unequal to itself, nan_to_num, nansum, isclose."""
    y = x.flip(1)
    return (
        x != x, ~(x > y), torch.maximum(x, y), torch.fmax(x, y), torch.fmin(x, y), x.clamp(-1, 1), torch.nan_to_num(x, nan=3.0, posinf=9.0),
        torch.nansum(x, 1), torch.isclose(x, y), torch.sign(x), x.relu(),
    )  # fmt: skip


@forward(X, "y:float32[N,K]", dims=D,
         feeds=(lambda: {"x": np.array([[0.0, -0.0, 0.0, -0.0, 1, INF, INF, -INF, 1e30, 1e-30]], np.float32), "y": np.array([[0.0, 0.0, -0.0, -0.0, -0.0, INF, -INF, -INF, 1e30, 1e-30]], np.float32)},), noted="with an infinity in an input the file differs")  # fmt: skip
def A7170Angles(self, x, y):
    """atan2 of all zeros and infinities, hypot that would overflow, copysign of zeros, heaviside, signbit."""
    return torch.atan2(x, y), torch.hypot(x, y), torch.copysign(x, y), torch.heaviside(x, y), torch.signbit(x), torch.xlogy(x, y)


@forward(X + "=-100:100", "y:int32[N,K]=-20:20", dims=D, kinds=FINITE,
         feeds=(lambda: {"x": np.array([[0.5, 1.0, 0.99999994, -8.0, 0.0, 100.0]], np.float32), "y": np.array([[20, -20, 0, 3, 5, -1]], np.int32)},), refused="the exporter has no form of view")  # fmt: skip
def A7171Mantissas(self, x, y):
    """frexp, ldexp, the exponent by bits of a view, nextafter of float by the same view, float_power and exp2."""
    m, e = torch.frexp(x)
    bits = x.view(torch.int32)
    return m, e, torch.ldexp(x, y), (bits >> 23 & 255) - 127, torch.exp2(y.float()), torch.ldexp(m, e) - x


@forward(X + "=-6:6", dims=D, kinds=FINITE, feeds=sprinkled(0.0, 1.0, -1.0, 0.5, 1e-7, 6.0, sizes=SIZES), refused="the exporter has no form of lgamma")
def A7172Special(self, x):
    """lgamma, digamma, erfinv beyond one, i0, sinc at zero, entropy, expit, ndtr, log1p at minus one, expm1 of little."""
    s = torch.special
    return torch.lgamma(x.abs() + 0.1), torch.erfinv(x), torch.sinc(x), s.entr(x), s.ndtr(x), torch.log1p(x), torch.expm1(x), s.i0(x), torch.erfc(x)


@forward(X, dims=D, kinds=FINITE, feeds=(halves(1, 20), halves(4, 7), halves(2, 1), *sprinkled(0.0, 1e20, sizes=SIZES)), target="tensorrt==8.6")
def A7173Running(self, x):
    """cumprod by zeros, cummax with last indices of ties, cummin, reversed cumsum, diff of second order, running mean."""
    a, i = x.cummax(1)
    b, j = x.cummin(0)
    return x.clamp(-2, 2).cumprod(1), a, i, b, j, x.clamp(-99, 99).flip(1).cumsum(1).flip(1), x.clamp(-99, 99).cumsum(1) / torch.arange(1, x.shape[1] + 1)


@attack("x:int64[N,K]=-2147483648:2147483647", dims=D,
        feeds=(lambda: {"x": np.array([[-(2**31), 2**31 - 1, 0, 1, -1, 65536, 46341]])},), target="tensorrt==8.6", refused="the exported model differs from the module")  # fmt: skip
class A7174WideInts(nn.Module):
    """Products of wide integers beyond thirty-two bits, taken by a prime; TensorRT 8.6 holds thirty-two bits only."""

    def forward(self, x):
        return (x * 48271) % 2147483647, (x * x) >> 32, x.sum(1), x.abs().amax(1)

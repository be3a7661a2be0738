# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Values at their ends: halves, bytes, whole numbers over 2^24, signs of zero, subnormal numbers, NaN in comparisons, ties, roundings, remainders, searches, scatters."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"
INF, NAN = float("inf"), float("nan")


def row(*values: float, dtype: type = np.float32, name: str = "x", more: dict | None = None) -> tuple:
    """One row of values."""
    return (lambda: {name: np.array([values], dtype), **(more or {})},)


ODD = row(0.0, -0.0, 1, -1, NAN, INF, -INF, 1e-40, -1e-40, 3e38, -3e38, 2.5, -2.5, 16777217, 0.49999997)


@forward(XT, dims=ROWS, kinds=FEW, feeds=ODD)
def A4561NotANumberCompared(self, x):
    """Negated comparisons, fmax, maximum, clamp, sort and argmax beside NaN."""
    y = x.flip(1)
    return ~(x > y), torch.fmax(x, y), torch.maximum(x, y), x.clamp(-1, 1), torch.where(x <= y, x, y), x.argmax(1), x.isnan() | (x != x), x.nan_to_num(1.5, 2.5)
@forward(XT, dims=ROWS, kinds=FEW, feeds=ODD)
def A4562SignsOfZero(self, x):
    """One over what relu, clamp, round, trunc, min, sign and a product leave of a zero's sign."""
    def inv(v):
        return (1 / v).sign()
    return inv(F.relu(x)), inv(x.clamp(min=0.0)), inv(x.round()), inv(x.trunc()), inv(torch.minimum(x, x * 0)), inv(x * 0.0), inv(-x), inv(x.abs()), torch.signbit(x), torch.copysign(torch.ones_like(x), x)
@forward(XT, dims=ROWS, kinds=FEW, feeds=row(0.5, 1.5, 2.5, -0.5, -1.5, 0.125, 0.375, 0.45, 1e10, 16777217, 8388609.5))
def A4563Roundings(self, x):
    """round with decimals, positive and negative, floors of quotients, halves away from zero by an own rule."""
    return x.round(decimals=1), x.round(decimals=-1), torch.div(x, 0.1, rounding_mode="floor"), torch.div(x, -0.3, rounding_mode="trunc"), x // 0.1, x % 0.1, torch.fmod(x, -0.3), torch.sign(x) * (x.abs() + 0.5).floor(), x.frac()
@forward("i:int32[N,T]=-2147483648:2147483647", dims=ROWS, feeds=row(-2147483648, 2147483647, -7, 7, 0, 16777217, -16777217, dtype=np.int32, name="i"), refused="the module computes in FP64")
def A4564WholeNumbers(self, i):
    """int32 that wraps in sums and products, floors and remainders of negatives, a float mean over 2^24, abs of the least."""
    return i * 3, i + i.roll(1, 1), i // 7, i % 7, i // -7, i % -7, torch.fmod(i, 7), i.float(), i / 3, i.abs(), i.sum(1), (i.double() * 0.1).long(), i == 16777216.0, i.clamp(max=2147483646), -i, i.float().int() == i
@forward("i:int64[N,T]=0:9", dims=ROWS, feeds=row(2**62, -(2**62), 2**53 + 1, -5, 5, 2**31, name="i", dtype=np.int64))
def A4565LongNumbers(self, i):
    """int64 over 2^53: division to a float, an int of it, powers, shifts, comparisons to a decimal."""
    return i / 2, (i / 2).long(), i * i, i**2, i >> 3, i > 4.5, i % 1000003, i // 3, torch.div(i, 3, rounding_mode="trunc"), i.sign() * i, i & -i, torch.bitwise_not(i), i.to(torch.int32)
@forward(XT, dims=ROWS, kinds=FEW, feeds=row(65504, 65519, 65520, 7e4, 6e-8, 2e-8, 2049, 0.1, -0.1, 1e-3))
def A4566HalvesBetween(self, x):
    """Halves that overflow between two steps, products by scalars, sums, means, a norm in half, bfloat16 beside."""
    h = x.half()
    b = x.bfloat16()
    return (h * 2 / 2).float(), (h * 0.1).float(), (b * 0.1 + 1).float(), (h + b).float(), h.square().float(), (b.sum(1)).float() > 0, (h - 2048).float(), h.to(torch.bfloat16).float(), (x + h).dtype == torch.float32 and x + h
@forward("b:uint8[N,T]=0:255", "s:int8[N,T]=-128:127", dims=ROWS)
def A4567BytesThatWrap(self, b, s):
    """Bytes: differences, averages of two, doubled, negated, as an index, mixed with signed ones, flags and scalars."""
    return b - b.flip(1), (b + b.flip(1)) // 2, b * 2, -s, s.abs(), s * s, b + s, b + 1, b + 1.5, b / 2, s // 3, s % 3, b > s, 255 - b, s << 1, s >> 1, b ^ 0xFF, (b.int() - 128).to(torch.int8), s.to(torch.uint8), b.sum(1), b.max(1).values, s.clamp(0), b.float().mean(1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=(*row(2, 2, 2, 1, 1, 0), *row(*([0.5] * 20))))
def A4568TiesOfAllKinds(self, x):
    """Ties of argmax, argmin, topk of moving k, sort down, kthvalue, median, mode, max over two axes, unique counts by sort."""
    k = max(1, x.shape[1] // 2)
    v, i = x.topk(k, 1)
    s, o = x.sort(dim=1, descending=True, stable=True)
    r = o.argsort(1)
    m = x.median(1)
    return v, s, r, m.values, x.argmax(1), x.argmin(1), x.kthvalue(k, 1).values, x.flatten().argmax(), (s[:, 1:] != s[:, :-1]).sum(1) + 1, x.amax((0, 1)), (x == x.amax(1, keepdim=True)).float()
@forward(XT, "i:int64[N,T]=0:5", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.arange(10, dtype=np.float32)[None], "i": np.array([[0, 0, 0, 1, 1, 5, 5, 2, 2, 2]])},), refused="the exporter has no form of bincount")
def A4569ScattersTwice(self, x, i):
    """Duplicate places: scatter_add, scatter_reduce of five kinds with and without self, index_add, index_put accumulate, index_reduce, bincount with weights."""
    z = torch.ones(x.shape[0], 6)
    out = [z.scatter_add(1, i, x)]
    for kind in ("sum", "prod", "amax", "amin", "mean"):
        out.append(z.scatter_reduce(1, i, x, kind, include_self=kind in ("sum", "amax")))
    f, g = x.flatten(), i.flatten()
    a = torch.zeros(6).index_add(0, g, f, alpha=0.5)
    b = torch.zeros(6).index_put((g,), f, accumulate=True)
    return *out, a, b, torch.bincount(g, f, minlength=6), F.one_hot(i, 6).sum(1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=ODD)
def A4570Searches(self, x):
    """bucketize and searchsorted at edges, both sides, in a moving sorted row, digitize by a sum, histc."""
    e = torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.5])
    s = x.nan_to_num(0.0).sort(1).values
    return torch.bucketize(x, e), torch.bucketize(x, e, right=True), torch.searchsorted(s, torch.zeros(x.shape[0], 1)), torch.searchsorted(s, s, right=True), (x[..., None] >= e).sum(-1), torch.searchsorted(e, 0.5), torch.bucketize(0.5, e, right=True)
@forward(XT, dims=ROWS, kinds=FEW, feeds=ODD)
def A4571RunningOnes(self, x):
    """cummax, cummin with their places at ties, logcumsumexp, cumprod through zero, a cumsum of flags, diffs of two orders."""
    v, i = x.nan_to_num(0.0).cummax(1)
    w, j = x.nan_to_num(0.0).cummin(1)
    y = x.clamp(-3, 3).nan_to_num(0.0)
    return v, i, w, j, y.logcumsumexp(1), y.cumprod(1), (x > 0).cumsum(1), torch.diff(y, dim=1, prepend=y[:, :1]), torch.diff(F.pad(y, (1, 1)), n=2, dim=1), torch.trapezoid(y, dim=1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=row(1e20, -1e20, 3e38, 100, -100, 88.8, 0, 1e-30, 17, 20.5))
def A4572LargeIntoFunctions(self, x):
    """softplus with beta and threshold, logsigmoid, gelu of both, mish, elu, log1p, expm1, logaddexp, logsumexp, sinh, atan2, hardswish."""
    y = x.flip(1)
    return F.softplus(x, 2.0, 10.0), F.logsigmoid(x), F.gelu(x), F.gelu(x.clamp(-1e3, 1e3), approximate="tanh"), F.mish(x), F.elu(x, 0.5), torch.logaddexp(x, y), x.logsumexp(1), torch.atan2(x, y), F.hardswish(x), F.celu(x, 2.0), x.softmax(1), F.silu(x), torch.sigmoid(-x), F.softsign(x), F.tanhshrink(x)
@forward(XT, dims=ROWS, kinds=FEW, feeds=row(0, -1, 1, 0.999999, -0.999999, 1.0000001, 2, -2, 1e-8, INF, -INF))
def A4573Domains(self, x):
    """acos, asin, atanh, acosh, log, sqrt, rsqrt, powers of negatives by whole and decimal numbers, x to the x, 0 to 0, remainder by 0."""
    return x.acos(), x.asin(), x.clamp(-1, 1).atanh(), x.acosh(), x.log(), x.sqrt(), x.rsqrt(), x**3, x**-2, x**0.5, x**1.5, x.abs() ** x, x**0, 2.0**x, torch.fmod(x, 1.0), x / 0.0, x.log2(), x.erfinv(), torch.xlogy(x, x)
@forward(X4, dims=ROWS, kinds=FEW)
def A4574ScalarsPromoted(self, x):
    """A tensor without dims in double beside floats, whole numbers beside scalars, flags in sums, where of a number and a tensor of ints."""
    d = torch.tensor(0.1, dtype=torch.float64)
    i = torch.arange(x.shape[1])
    m = x > 0
    return x * d, i * d, i * 0.5, m * 2, m + m, m.sum(-1) / 2, torch.where(m, 1, 0.5), torch.where(m, i[:, None], 0), i / i.clamp(min=1), i + True, torch.tensor(3) * m, (m.int() * 0.3).dtype.is_floating_point * x, i.float().mean(), m.float().mean(1), x.sum(1, dtype=torch.float64)
@forward(X4, dims=ROWS, kinds=FEW)
def A4575FourierOfMoving(self, x):
    """rfft of odd and even lengths, an inverse with n, shifts, fftn, ortho, hfft, a filter by frequencies, an analytic signal."""
    t = x.shape[1]
    f = torch.fft.rfft(x, dim=1, norm="ortho")
    freq = torch.fft.rfftfreq(t)
    y = torch.fft.irfft(f * (freq < 0.3)[:, None], n=t, dim=1, norm="ortho")
    g = torch.fft.fft(x, dim=1)
    h = torch.zeros(t)
    h[0] = 1
    h[1 : (t + 1) // 2] = 2
    if t % 2 == 0:
        h[t // 2] = 1
    a = torch.fft.ifft(g * h[:, None], dim=1)
    return y, a.abs(), torch.fft.fftshift(g.abs(), 1), torch.fft.ifftshift(freq), torch.view_as_real(torch.fft.fft2(x))
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=2:5:9 W=2:6:9", kinds=FEW)
def A4576PoolsAndResizes(self, x):
    """Pools with ceil, padding and dilation, adaptive ones to two, LP, resizes of all modes by scale and by size with and without corners, fractional scales kept."""
    m = F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)
    return (*m, F.avg_pool2d(x, 2, 2, 1, True, False), F.adaptive_avg_pool2d(x, 2), F.adaptive_max_pool2d(x, (2, 1)), F.lp_pool2d(x.abs(), 2, 2), F.interpolate(x, scale_factor=1.7, mode="bicubic"),
            F.interpolate(x, scale_factor=0.6, mode="bilinear", recompute_scale_factor=True), F.interpolate(x, (3, 5), mode="nearest-exact"), F.interpolate(x, scale_factor=(2, 0.5)), F.interpolate(x, (4, 4), mode="area"), F.interpolate(x, (7, 2), mode="bilinear", align_corners=True))
@attack("x:float32[N,3,T]", dims="N=1:2:3 T=2:9:20", kinds=FEW)
class A4577ConvolutionsOfKinds(nn.Module):
    """Transposed with output_padding, groups and dilation; same with an even kernel; circular, reflect pads; a stride over the end."""
    def __init__(self):
        super().__init__()
        self.t = nn.ConvTranspose1d(3, 3, 4, 3, 1, output_padding=2, groups=3, dilation=2)
        self.s = nn.Conv1d(3, 2, 4, padding="same", dilation=1)
        self.c = nn.Conv1d(3, 2, 3, padding=1, padding_mode="circular")
        self.r = nn.Conv1d(3, 2, 3, stride=2, padding=1, padding_mode="reflect")
    def forward(self, x):
        y = self.t(x)
        return y, self.s(x), self.c(x), self.r(x), self.t(x, output_size=[y.shape[-1] - 1])
@forward(X4, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.full((1, 3, 4), 3e19, np.float32)}, lambda: {"x": np.full((2, 3, 4), 1e-25, np.float32)}, lambda: {"x": np.zeros((1, 1, 4), np.float32)}))
def A4578NormsAtTheirEnds(self, x):
    """normalize, cosine, cdist, pairwise distances, layer and RMS norms, hypot, var of what overflows in squares."""
    return F.normalize(x, dim=-1), F.cosine_similarity(x, x.flip(1), -1), torch.cdist(x, x.flip(1)), F.pairwise_distance(x, x.flip(-1)), F.layer_norm(x, (4,)), x.norm(dim=-1), x.norm(p=1, dim=1), x.norm(p=INF, dim=-1), torch.hypot(x, x), x.abs().amax(-1), F.rms_norm(x, (4,))
@forward(X4, "m:bool[N,T]", dims=ROWS, kinds=FEW, refused="the exported model differs from the module")
def A4579ChosenRows(self, x, m):
    """masked_select, nonzero, a mask as an index, masked_scatter, counts, the first and the last chosen, means of none."""
    n = m.sum(1)
    return x[m], m.nonzero(), x.masked_select(m[..., None]), torch.zeros_like(x).masked_scatter(m[..., None], x), (x * m[..., None]).sum(1) / n[:, None], m.int().argmax(1), m.shape[1] - 1 - m.flip(1).int().argmax(1), x[m].mean(0), torch.where(m)[1].sum()
@forward(X4, "i:int64[N,T]=-4:3", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.arange(16, dtype=np.float32).reshape(1, 4, 4), "i": np.array([[-1, -4, 3, 0]])},))
def A4580NegativePlacesOfTensors(self, x, i):
    """Indices that are negative in fancy reads and writes, mixed with slices and None, take, roll by moving shifts."""
    r = torch.arange(x.shape[0])[:, None]
    j = torch.arange(x.shape[1])
    y = x.clone()
    y[r, j, i] = -1.0
    z = x.clone()
    z[..., i[0, 0].abs() % 4 - 4] += 1
    return x[r, j, i], y, z, x[:, -1, None, ::3], x.roll(x.shape[1] // 2, 1), torch.take(x, i), x[..., [0, -1, 2]], math.prod(x.shape) * x[:, :1].mean()

# ruff: noqa: E501 - attacks are written as users write them
"""Values: thresholds behind norms, tables by value, saturation, huge and denormal numbers, casts, narrow types, NaN that one value makes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
X5 = "x:float32[N,T,5]"


def rows(*values, width=5):
    """A point of these values, each in a row of its own, the rest of the row by halves."""
    def make():
        x = (np.arange(len(values) * width).reshape(1, len(values), width) % 5 / 2).astype(np.float32)
        x[0, :, 0] = values
        return {"x": x}
    return make


def flat(*values, dtype=np.float32):
    return lambda: {"x": np.array([values], dtype)}


EDGES = (flat(0.5, 1.5, 2.5, -0.5, -1.5, 1e-40, -1e-40, 3e38, -3e38, 16777217.0), flat(0.1, 0.3, 0.7, 0.35, 0.45, 2.675, 1.005, -0.0, 0.0), flat(255.5, 256.0, -1.0, 127.5, 128.0, -128.5, -129.0, 65504.0, 65519.9, 65520.0), flat(2147483520.0, 2147483648.0, -2147483648.0, 4294967296.0, 9.2e18, 1e20))


@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=EDGES[:3])
def A4050RoundedToDecimals(self, x):
    """Rounding to tens and to tenths, halves to the even, and what is left."""
    y = torch.round(x, decimals=1)
    return y, torch.round(x * 10) / 10, (x.round(decimals=-1)), x - x.round(), torch.round(x / 0.05) * 0.05, (x * 100).trunc() / 100
@attack(X5, dims=ROWS, kinds=FINITE, feeds=(rows(0.0, 1.0, 2.0), rows(1e-3, 1e3)))
class A4051GateBehindNorm(nn.Module):
    """A norm, a projection, and a gate that opens at exactly half: frames of equal numbers come to the bias alone."""
    def __init__(self):
        super().__init__()
        self.norm, self.lin = nn.LayerNorm(5), nn.Linear(5, 3)
        with torch.no_grad():
            self.lin.bias.copy_(torch.tensor([0.0, 0.5, -0.5]))
    def forward(self, x):
        y = self.lin(self.norm(x))
        gate = (y.sigmoid() >= 0.5)
        return torch.where(gate, y, torch.zeros_like(y)), F.hardtanh(y, -0.5, 0.5), F.hardshrink(y, 0.5), F.threshold(y, 0.5, -7.0)
@forward("x:float32[N,T]=-10:10", dims=ROWS, kinds=FEW, feeds=(flat(-8.0, -1.0, 0.0, 8.0, -0.0, 1.0), flat(-1e-8, 1e-8, 9.999999, -10.0)))
def A4052MuLawAndLogs(self, x):
    """mu-law codes of 256, cube roots by powers of negative numbers, logs near 0, remainders of tiny negatives."""
    y = x.clamp(-1, 1)
    mu = torch.sign(y) * torch.log1p(255 * y.abs()) / math.log1p(255)
    code = ((mu + 1) / 2 * 255 + 0.5).to(torch.int64)
    root = x.sign() * x.abs() ** (1 / 3)
    return code, root, torch.remainder(x, 1.0), torch.fmod(x, -0.5), torch.frac(x), (x ** (1 / 3)).isnan(), torch.copysign(torch.ones_like(x), x)
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(*EDGES[:3], flat(1e-30, 1e-38, 1e-45, 2e-45, 1e30, 1e38)))
def A4053Denormals(self, x):
    """Scaled down and up again, reciprocals of denormals, an epsilon that is none in FP32."""
    tiny = x * 1e-30
    back = tiny * 1e-10 * 1e20 * 1e20
    return back, (x.abs() > 1e-38).int(), x / (x.abs() + 1e-45), torch.sqrt(x.abs() * 1e-30) * 1e15, (x == 0) | (x * 0.5 == x), 1 / (x.abs() + 1e-39)
@attack("ids:int64[N,T]=0:99", dims=ROWS, feeds=(lambda: {"ids": np.array([[13, 14, 98, 0, 99, 37]])}, lambda: {"ids": np.array([[55, 54, 34, 89]])}))
class A4054TableOfFibonacci(nn.Module):
    """A table that is 1 at few ids, a second one behind it by the product of neighbours, odd ones by bits."""
    def __init__(self):
        super().__init__()
        fib = torch.zeros(100)
        fib[[1, 2, 3, 5, 8, 13, 21, 34, 55, 89]] = 1.0
        self.register_buffer("fib", fib)
        self.emb = nn.Embedding(100, 3)
    def forward(self, ids):
        a = self.fib[ids]
        b = self.fib[(ids * ids.roll(1, 1) + 31) % 100]
        special = (ids * 7919 % 101 == 17) & (a == 1)
        return self.emb(ids) * (1 + b)[..., None], torch.where(special, -ids, ids >> 1), (ids ^ (ids << 1)) & 0x55
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=EDGES)
def A4055ToBytesAndBack(self, x):
    """Saturating casts by clamps, halves to the even, a pack of two fours in a byte, a look-up of 256."""
    q = (x * 127).round().clamp(-128, 127).to(torch.int8)
    u = x.mul(255).add(0.5).clamp(0, 255).to(torch.uint8)
    lo, hi = u & 15, u >> 4
    lut = torch.arange(256, dtype=torch.float32).sqrt()
    return q, u, lo * 16 + hi, lut[u.long()], -q, q.abs(), q // 16, (q.float() * q).sum(1), u - 1, ~u, q * q
@forward("x:float32[N,T]=-60000:60000", dims=ROWS, kinds=FEW, feeds=(flat(0.1, 0.3, 2049.0, 2051.0, 60000.0, 255.9), flat(1e-7, 6e-8, 2.9e-8, 3e-8, -6e-8), flat(300.0, 256.5, 257.0, -257.5)))
def A4056HalfArithmetic(self, x):
    """Sums of halves, a square that overflows, a scalar that is no half, comparisons of halves with each other."""
    h = x.half()
    return h + h.roll(1, 1), (h * h).float(), h / 3, h.float() - x, h > h.roll(1, 1), h == 0.1, (h * 0.1).float(), h - 0.3, h.bfloat16().float(), h.sum(1), h.max(1)[0], (h + 2048)
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(1.0, 257.0, 258.0, 3.0e38, 1.00390625), flat(0.1, 0.2, 0.3, 33.25)))
def A4057BrainFloats(self, x):
    """bfloat16: ties in the cast, sums, a mean, a matrix product, a softmax, an index by its rounding."""
    b = x.to(torch.bfloat16)
    g = b[:, :, None] * b[:, None]
    return b.float(), (b + 1).float(), b.float().cumsum(1), (b * 3).float(), g.float().diagonal(dim1=1, dim2=2), b >= 0.2, b.round().float(), (b / 7).to(torch.float16)
@forward("x:int64[N,T]=-9007199254740000:9007199254740000", dims=ROWS, feeds=(flat(2**53 + 1, -(2**53) - 1, 2**62, -(2**62), 2**31, -(2**31), dtype=np.int64), flat(-(2**63), 2**63 - 1, -1, 0, dtype=np.int64)))
def A4058SixtyFourBits(self, x):
    """Hashes and halves of 64 bits: high and low words, a multiply that wraps, shifts of negatives, divisions down."""
    hi, lo = x >> 32, x & 0xFFFFFFFF
    h = (x ^ (x >> 30)) * -4658895280553007687
    h = (h ^ (h >> 27))
    return hi, lo, h, h & 1023, x // 10, x % 10, torch.div(x, 10, rounding_mode="trunc"), (x > 2**53), x.sign()
@forward("x:int32[N,T]=-2147483648:2147483647", dims=ROWS, feeds=(flat(2**31 - 1, -(2**31), 16777217, -16777217, 46341, 65536, dtype=np.int32), flat(33554433, 7, -7, 0, dtype=np.int32)))
def A4059Int32Mixed(self, x):
    """Whole numbers beside floats: comparisons at 2^24, quotients, means, squares that wrap, sums that widen."""
    return x * x, x.sum(1), x.cumsum(1), x / 2, x > 16777216.5, x.float() - 1, x % 7, x // -3, -x, x.abs(), x.float().mean(1), torch.clamp(x, -5, 5) ** 3, x + 0.5
@attack(X5, dims=ROWS, kinds=FINITE, feeds=(rows(3.0, 20.0, 20.000002, 88.0, 89.0), rows(-88.0, -104.0, -17.0, 0.0)))
class A4060Activations(nn.Module):
    """Forms with thresholds: softplus by beta, GELUs, SELU, ELU's far end, mish, softsign, hard forms at three."""
    def forward(self, x):
        return (F.softplus(x, beta=2, threshold=15), F.gelu(x), F.gelu(x, approximate="tanh"), F.selu(x), F.elu(x, 1.5), F.mish(x), F.softsign(x), F.hardsigmoid(x), F.hardswish(x), F.logsigmoid(x), F.celu(x, 0.5), F.relu6(x * 2), torch.expm1(-x.abs()), torch.special.log_ndtr(x), torch.special.entr(x.abs()))
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(0.0, 1.0, 0.2, 0.25, 0.75, 0.49999997), flat(-1.0, 5.0, 4.9999995, 3.0)))
def A4061Histogram(self, x):
    """Bins of a fifth over [0, 1] with the upper edge in the last one, right-open and right-closed boundaries, a soft count."""
    edges = torch.linspace(0, 1, 6)
    left, right = torch.bucketize(x, edges), torch.bucketize(x, edges, right=True)
    inside = (x >= 0) & (x <= 1)
    i = (x * 5).long().clamp(0, 4)
    h = torch.zeros(x.shape[0], 5).scatter_add(1, i, inside.float())
    cdf = h.cumsum(1) / h.sum(1, keepdim=True).clamp(min=1)
    return left, right, h, (cdf > 0.5).int().argmax(1), torch.searchsorted(cdf.contiguous(), torch.full((x.shape[0], 1), 0.5)), cdf.gather(1, i)
@forward("x:float32[N,T,5]", dims=ROWS, kinds=FEW, feeds=(rows(0.0, 0.0, 0.0), rows(3e38, -3e38, 3e38), lambda: {"x": np.zeros((1, 4, 5), np.float32)}), noted="in its inputs the file differs")
def A4062SafeAndUnsafeMeans(self, x):
    """Masked means whose mask is made by value: none above, all alike; a NaN is a number by the end, or is counted."""
    m = x > 0.25
    mean = (x * m).sum(-1) / m.sum(-1)
    std = x.std(1, correction=0) / x.abs().amax(1).clamp(min=1e-12)
    return mean.nan_to_num(-1.0), mean.isnan().sum(1), torch.nansum(mean, 1), std, torch.nanmean(torch.where(m, x, math.nan), 1).nan_to_num(7.0), F.normalize(x, p=1, dim=1), F.cosine_similarity(x, x.roll(1, 1), dim=-1)
@forward("x:float32[N,T,5]", dims=ROWS, kinds=FEW, feeds=(rows(1.0, 1.0, 1.0, 0.5), rows(2.0, 2.0), lambda: {"x": np.ones((2, 6, 5), np.float32)}))
def A4063TiesEverywhere(self, x):
    """First and last of equal ones, in maxima by value, in sorts, in ranks, in modes; an index of the last by a flip."""
    last = x.shape[1] - 1 - x.flip(1).argmax(1)
    _v, i = x.sort(dim=1, descending=True, stable=True)
    return x.argmax(1), last, i, x.max(-1).indices, x.flatten(1).argmin(1), x.aminmax(dim=1).max, (x == x.amax(1, keepdim=True)).sum(1), x.cummax(1).indices, x.median(1).indices
@attack("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(0.999, 1.0, 1.0000001, -1.0), flat(0.95, 0.9500001, 0.94999996, 2.0), flat(0.5, 0.5)))
class A4064NarrowBand(nn.Module):
    """A correction that is written for a narrow band of a normalised value, in a buffer's own numbers."""
    def __init__(self):
        super().__init__()
        self.register_buffer("lo", torch.tensor(0.613))
        self.register_buffer("hi", torch.tensor(0.613 + 2**-12))
    def forward(self, x):
        y = torch.tanh(x) * 0.805
        band = (y > self.lo) & (y < self.hi)
        return torch.where(band, y * 100, y), band.any(1), y.masked_fill(band, -1.0).cumsum(1)
@attack("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(0.0, 1e-4, 100.0), flat(1e4, -1e4, 50.0)))
class A4065FakeQuant(nn.Module):
    """Quantised per tensor and by columns, a scale that is no float, dynamic ranges with zero points, int4 packs."""
    def __init__(self):
        super().__init__()
        self.scale = 0.1
    def forward(self, x):
        a = torch.fake_quantize_per_tensor_affine(x, self.scale, 3, 0, 255)
        lo, hi = x.amin(1, keepdim=True).clamp(max=0), x.amax(1, keepdim=True).clamp(min=0)
        s = ((hi - lo) / 255).clamp(min=torch.finfo(torch.float32).eps)
        z = (-lo / s).round().clamp(0, 255)
        q = (x / s + z).round().clamp(0, 255)
        i4 = (x / self.scale).round().clamp(-8, 7).to(torch.int8)
        return a, q.to(torch.uint8), (q - z) * s, i4, (i4 & 15).to(torch.uint8), i4.float() * self.scale, z
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(88.0, 89.0, -104.0, 1e10), flat(3e38, 3e38, -3e38), flat(1e19, 2e19, -1e19), flat(1e-20, 1e-23)))
def A4066HugeNumbers(self, x):
    """Log-sum-exps, softmax, norms and products of numbers whose squares overflow; means of the largest."""
    return (x.logsumexp(1), x.softmax(1), torch.logaddexp(x, x.roll(1, 1)), x.sigmoid(), torch.tanh(x), (x.abs() + 1).log2(), x.mean(1), torch.hypot(x, x.roll(1, 1)), x.norm(p=math.inf, dim=1), torch.linalg.vector_norm(x, 1, dim=1), x.log_softmax(1))
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(0.0, -0.0, 1.0, -1.0), flat(0.5, 0.25, -0.25)))
def A4067ZeroSigned(self, x):
    """Angles of zero, reciprocals of both zeros, 0 ** 0, xlogy, sinc, heaviside, and comparisons of them."""
    return torch.atan2(x, x.abs()), 1 / x, x ** 0, torch.pow(0.0, x.abs()), torch.xlogy(x, x.abs()), torch.sinc(x), torch.heaviside(x, torch.tensor(0.25)), torch.signbit(x), torch.sgn(x), x * 0.0 == 0, torch.special.xlog1py(x, x)
@attack("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(flat(3.7, 3.2, 4.0, -3.7, 0.0), flat(12.0, 12.5, 11.999999, 13.0)))
class A4068DurationToFrames(nn.Module):
    """FastSpeech's regulator with a fixed number of frames: exp, minus one, rounded, summed up, and compared with places."""
    def __init__(self):
        super().__init__()
        self.alpha = 1.1
    def forward(self, x):
        d = torch.clamp(torch.round((x.clamp(max=3).exp() - 1) * self.alpha), min=0).long()
        ends = d.cumsum(1)
        at = torch.arange(16)
        owner = (at[None, :, None] >= ends[:, None]).sum(-1)
        y = F.pad(x, (0, 1)).gather(1, owner.clamp(max=x.shape[1]))
        return d, y, ends[:, -1].clamp(max=16), (at < ends[:, -1:]), torch.where(owner < x.shape[1], owner, -1)
@forward("x:float32[N,T]", "limit:float32[1]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[1, 2, 3.0]], np.float32), "limit": np.array([np.nan], np.float32)}, lambda: {"x": np.array([[0.5, np.inf, -1.0]], np.float32), "limit": np.array([-2.0], np.float32)}))
def A4069ClampByTensor(self, x, limit):
    """Bounds that cross (min above max gives max), bounds of one side, of tensors; where of a scalar and another type."""
    return torch.clamp(x, min=limit, max=limit.neg()), x.clamp(min=-limit.abs(), max=limit.abs()), torch.where(x > limit, 1, 0), torch.where(x > limit, x, 2), torch.maximum(x, limit) - torch.minimum(x, limit), x.clip(0.3, 0.1)
@attack("x:uint8[N,T]", dims="N=1:2:3 T=2:9:24", feeds=(flat(255, 254, 1, 0, 128, 127, dtype=np.uint8), flat(200, 100, dtype=np.uint8)))
class A4070BytesThatWrap(nn.Module):
    """Differences, sums, products, shifts and means of bytes; a scalar beyond a byte; a comparison with a negative."""
    def forward(self, x):
        d = x[:, 1:] - x[:, :-1]
        return d, x + 200, x * 2, (x << 1), x >> 3, x.sum(1), x.float().mean(1), x / 255, x > -1, x // 7, x % 7, torch.maximum(x, 255 - x), x.to(torch.int8), -x, x.bitwise_not() & 0xF0, d.max(1)[0], x.cumsum(1, dtype=torch.uint8)
@attack("x:float32[N,T,4]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.zeros((1, 3, 4), np.float32)}, lambda: {"x": np.tile(np.array([1.0, 0, 0, 0], np.float32), (1, 4, 1))}, lambda: {"x": np.tile(np.array([-0.5, 0.5, 0.5, 0.5], np.float32), (1, 2, 1))}))
class A4071Quaternions(nn.Module):
    """Rotations from quaternions, back by the largest of four, slerp with its linear case, axis and angle at zero."""
    def forward(self, x):
        q = F.normalize(x, dim=-1)
        w, a, b, c = q.unbind(-1)
        r = torch.stack([1 - 2 * (b * b + c * c), 2 * (a * b - w * c), 2 * (a * c + w * b), 2 * (a * b + w * c), 1 - 2 * (a * a + c * c), 2 * (b * c - w * a), 2 * (a * c - w * b), 2 * (b * c + w * a), 1 - 2 * (a * a + b * b)], -1)
        d = torch.stack([1 + r[..., 0] + r[..., 4] + r[..., 8], 1 + r[..., 0] - r[..., 4] - r[..., 8]], -1)
        p = q.roll(1, 1)
        dot = (p * q).sum(-1, keepdim=True)
        p = torch.where(dot < 0, -p, p)
        th = torch.acos(dot.abs().clamp(max=1 - 1e-6))
        slerp = torch.where(dot.abs() > 0.9995, p + 0.25 * (q - p), (torch.sin(0.75 * th) * p + torch.sin(0.25 * th) * q) / torch.sin(th))
        n = q[..., 1:].norm(dim=-1, keepdim=True)
        angle = 2 * torch.atan2(n, w[..., None])
        small = n < 1e-6
        return r, d.argmax(-1), slerp, torch.where(small, 2 - angle**2 / 12, angle / torch.where(small, torch.ones_like(n), n)) * q[..., 1:]
@forward("x:float32[N,T]", dims="N=1:2:3 T=2:9:24", kinds=FEW, feeds=(flat(0.3, 0.1, 0.2, 0.3), flat(1.0, 3.0, 2.0, 3.0, 1.0), flat(16777216.0, 1.0, 1.0, -16777216.0)))
def A4072RunningForms(self, x):
    """Sums, products, maxima and log sums along a row, of floats and of what is compared; resets by a mask."""
    c = x.cumsum(1)
    up = (x.diff(dim=1, prepend=x[:, :1]) > 0)
    run = up.long().cumsum(1)
    since = run - torch.where(up, 0, run).cummax(1)[0]
    return c, x.clamp(-1.5, 1.5).cumprod(1), x.logcumsumexp(1), since, torch.cumsum(x > 0.25, 1), (c > 0.6).int().argmax(1), torch.trapezoid(x, dx=0.5, dim=1), x.flip(1).cummin(1)[0]
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(*EDGES[:1], flat(-0.5, -1.5, 7.0, -7.0, 2.0 ** 31), flat(1000000000.0, -1000000000.0, 2147483000.0)))
def A4073FloatToInt(self, x):
    """Casts down: int32, int16 by int32, bool of a fraction, whole numbers of quotients, floor against cut."""
    y = x.clamp(-2.1e9, 2.1e9)
    return y.int(), y.long() % 7, x.bool(), y.floor().long() - y.long(), (y / 3).int(), torch.floor_divide(y, 3), y // 0.1, y.to(torch.int32).to(torch.int16), (y.int() & 255).to(torch.uint8), y.int() / 7
@attack(X5, "seen:float32[5]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.full((1, 3, 5), 2.0, np.float32), "seen": np.full(5, 2.0, np.float32)},), refused="the path through the module depends on the size")
class A4074BatchStatisticsInEval(nn.Module):
    """Instance norms with running numbers, a batch norm that has none and so takes the batch's in eval too, a group of one value."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.InstanceNorm1d(5, affine=True, track_running_stats=True), nn.BatchNorm1d(5, track_running_stats=False)
        self.c = nn.LocalResponseNorm(3)
    def forward(self, x, seen):
        y = x.mT - seen[:, None]
        return self.a(y), self.b(y) if y.shape[0] * y.shape[2] > 1 else y, self.c(y), F.rms_norm(x, (5,)), F.lp_pool1d(y, 2, 2, ceil_mode=True)
@forward("x:float32[N,T,5]", dims=ROWS, kinds=FEW, feeds=(halves(1, 1, 5), halves(2, 24, 5)))
def A4021PercentileNorm(self, x):
    """Robust scaling: medians, absolute deviations, quartiles by 'nearest' and 'midpoint', ranks of ties."""
    med = x.median(1, keepdim=True)
    mad = (x - med.values).abs().median(1, keepdim=True)[0]
    q1, q3 = x.quantile(0.25, dim=1, interpolation="nearest"), torch.quantile(x, 0.75, dim=1, interpolation="midpoint")
    order = x.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    return (x - med.values) / (1.4826 * mad + 1e-6), med.indices, q1, q3, order, x.kthvalue((x.shape[1] + 1) // 2, dim=1)[0], x.mode(1)[0]
@attack("x:float32[N,C,T]", dims="N=1:1:2 C=4 T=1:9:24", kinds=FINITE, feeds=(normal(1, 4, 1), normal(1, 4, 23)))
class A4022ResidualVq(nn.Module):
    """EnCodec: three codebooks one behind the other, nearest by an expanded square, straight through, codes and usage."""
    def __init__(self):
        super().__init__()
        self.books = nn.Parameter(torch.randn(3, 6, 4))
    def forward(self, x):
        r, out, codes = x.mT, torch.zeros_like(x.mT), []
        for book in self.books:
            d = r.pow(2).sum(-1, keepdim=True) - 2 * r @ book.T + book.pow(2).sum(-1)
            i = d.argmin(-1)
            q = F.embedding(i, book)
            out = out + (r + (q - r).detach())
            r -= q
            codes.append(i)
        c = torch.stack(codes, 1)
        return out.mT, c, F.one_hot(c, 6).sum((1, 2)).clamp(max=3), r.abs().amax((1, 2))
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:8:16%4 W=4:12:20%4", kinds=FINITE, feeds=(normal(1, 3, 4, 4), normal(1, 3, 8, 20)), refused="the path through the module depends on the size")
class A4023ShiftedWindows(nn.Module):
    """Swin: windows of four, a shift by two where the map is larger than a window, with its mask by slices."""
    def __init__(self):
        super().__init__()
        self.qkv, self.bias = nn.Linear(3, 9), nn.Parameter(torch.randn(16, 16))
    def forward(self, x):
        n, c, h, w = x.shape
        shift = 0 if min(h, w) <= 4 else 2
        y = x.permute(0, 2, 3, 1).roll((-shift, -shift), (1, 2))
        win = y.view(n, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)
        q, k, v = self.qkv(win).chunk(3, -1)
        a = q @ k.mT + self.bias
        if shift:
            m = torch.zeros(h, w)
            for i, s in enumerate((slice(0, -4), slice(-4, -2), slice(-2, None))):
                for j, u in enumerate((slice(0, -4), slice(-4, -2), slice(-2, None))):
                    m[s, u] = i * 3 + j
            m = m.view(h // 4, 4, w // 4, 4).transpose(1, 2).reshape(-1, 16)
            a = (a.view(n, -1, 16, 16) + (m[:, None] != m[:, :, None]) * -100.0).view(-1, 16, 16)
        o = (a.softmax(-1) @ v).view(n, h // 4, w // 4, 4, 4, c).transpose(2, 3).reshape(n, h, w, c)
        return o.roll((shift, shift), (1, 2)).permute(0, 3, 1, 2)
@attack("x:float32[N,C,T,H,W]", dims="N=1 C=3 T=1:4:9 H=3:5:8 W=3:6:8", kinds=FINITE, feeds=(normal(1, 3, 1, 3, 3), normal(1, 3, 9, 8, 8), normal(1, 3, 4, 3, 8)))
class A4024TemporalShift(nn.Module):
    """TSM: a third of the channels forward, a third back, in place in a copy; a causal 3D convolution; the middle frame."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(3, 3, (3, 3, 3), stride=(1, 2, 2))
    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, :1, :-1] = x[:, :1, 1:]
        y[:, 1:2, 1:] = x[:, 1:2, :-1]
        y[:, 2:] = x[:, 2:]
        z = self.conv(F.pad(y, (0, 0, 0, 0, 2, 0)))
        mid = z[:, :, z.shape[2] // 2]
        return z, mid, F.adaptive_max_pool3d(x, (2, 2, 2)), F.avg_pool3d(x, (1, 2, 2), ceil_mode=True)

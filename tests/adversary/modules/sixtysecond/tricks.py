"""Types that wrap and narrow, sizes that decide by odd routes, values that decide, seeds, and both targets."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import functools
import math
import operator
from collections import OrderedDict, defaultdict
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

BIG = "i:int64[N,T]=-9000000000000:9000000000000"


@forward(BIG, dims="N=1:2:3 T=1:4:9")
def A7551HashesOfInt64(self, i):
    """splitmix64 with wrapping products and logical shifts by masks, modulo buckets of negatives, xor folded to 32 bits, popcount by adds, a bloom filter's bits."""
    z = i + (-7046029254386353131)
    z = (z ^ ((z >> 30) & ((1 << 34) - 1))) * (-4658895280553007687)
    z = (z ^ ((z >> 27) & ((1 << 37) - 1))) * (-7723592293110705685)
    z = z ^ ((z >> 31) & ((1 << 33) - 1))
    b = z - ((z >> 1) & 0x5555555555555555)
    b = (b & 0x3333333333333333) + ((b >> 2) & 0x3333333333333333)
    b = (b + (b >> 4)) & 0x0F0F0F0F0F0F0F0F
    pop = (b * 0x0101010101010101) >> 56
    return z, z % 1000, torch.fmod(z, 1000), pop, z.to(torch.int32), (z >> 63) | 1, (z.abs() % 64)


@forward("i:int32[N,T]=-2000000000:2000000000", "u:uint8[N,T]=0:255", dims="N=1:2:3 T=1:4:9")
def A7552WrapsOfEachWidth(self, i, u):
    """int32 products and sums that wrap, cumsum to int64, int16 and int8 casts, bytes below zero, an average of bytes without widening, abs of the least, bytes compared with what does not fit."""
    w = i * 3 + 7
    s = u + u.flip(-1)
    return w, w // 5, w % 7, i.cumsum(-1), i.sum(-1, dtype=torch.int32), (i >> 3).to(torch.int16), i.to(torch.int8) * 2, u - 200, s // 2, (u.to(torch.int16) + u.flip(-1)) // 2, u.to(torch.int8).abs(), -u, ~u, u > 255, i.to(torch.int16).float() / 3


@forward("x:float16[N,T,4]=-4:4", "y:float32[N,T,4]=-4:4", dims="N=1:2:3 T=1:4:9", kinds=FINITE)
def A7553HalvesAndBrains(self, x, y):
    """float16 and bfloat16 meet (float32), half sums, softmax with another dtype, half products with a Python scalar that does not fit, comparison with 0.1 in half, mean of bfloat16, layer norm in half."""
    y = y.to(torch.bfloat16)
    z = x + y
    a = (x * 1000).clamp(-60000, 60000)
    return z, a, x.softmax(-1), y.softmax(-1, dtype=torch.float32), x > 0.1, y.mean(-1).float(), F.layer_norm(x, (4,)), x.to(torch.bfloat16) == y, (x.float() * 0.1).half(), x.sum(1), torch.where(x > 0, x, 0.1)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="view of the bits as another type")
def A7554BitsOfFloats(self, x):
    """The fast inverse root by views as int32, exponents from bits, a half made by shifts, sortable keys from sign bits, random rounding by adding bits, bfloat16 by masks."""
    i = x.abs().clamp(min=1e-3).contiguous().view(torch.int32)
    y = (0x5F3759DF - (i >> 1)).view(torch.float32)
    y = y * (1.5 - 0.5 * x.abs().clamp(min=1e-3) * y * y)
    b = x.contiguous().view(torch.int32)
    key = torch.where(b < 0, b ^ 0x7FFFFFFF, b)
    trunc = (b & -65536).view(torch.float32)
    return y, ((i >> 23) & 255) - 127, key.argsort(dim=-1, stable=True), trunc, torch.frexp(x)[0], torch.ldexp(x, torch.tensor([-3, 2])[:1])


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:700:1500", kinds=FINITE, refused="depends on the size")
def A7555SizeByStruct(self, x):
    """A size that decides by its text's nines and by the digits' sum, at few of 1,500 lengths."""
    t = x.shape[-1]
    if str(t).count("9") == 3 or sum(map(int, str(t))) == 27:
        return x * 2
    return x + 1


@forward("x:float32[N,C,H,W]=-3:3", dims="N=1:1:2 C=1:2:3 H=2:20:60 W=2:20:60", kinds=FINITE, refused="depends on the size")
def A7556SizesByNumelAndStride(self, x):
    """Decisions by numel, strides, nbytes and ndim products: strides of a slice over 3,000, numel equal to a square of a prime, gcd of both sides."""
    y = x * 1.5
    if x.stride(0) > 3000:
        y = y - 0.5
    if x[0, 0].numel() == 37 * 37:
        y = y + 3
    if math.gcd(x.shape[2], x.shape[3]) == 29:
        y = y.flip(-1)
    if functools.reduce(operator.xor, x.shape[2:]) == 63:
        y = y.neg()
    return y


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:100:400", kinds=FINITE, refused="depends on the size")
def A7557SizesAsBytesAndRange(self, x):
    """len(range), bit_length, isqrt, divmod, slices by indices(), a power of two asked by &, pieces by split of a half and three."""
    t = x.shape[1]
    pow2 = (t & (t - 1)) == 0
    side = math.isqrt(t)
    q, r = divmod(t, 7)
    steps = len(range(3, t, 5))
    start, stop, step = slice(-11, None, 2).indices(t)
    y = x[:, start:stop:step].sum(1) + steps + q * 0.5 - r
    if side * side == t and t > 200:
        y = y * 2
    if pow2 and t.bit_length() == 8:
        y = y - 100
    return y, sum(p.mean() for p in x.split(max(1, t // 2), 1))


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="Generator")
def A7558SeedsWithin(self, x):
    """Drawn by generators of fixed seeds at fixed and moving shapes, a permutation, a dropout that is active by functional training=True of p=0."""
    g = torch.Generator().manual_seed(5)
    a = torch.rand(4, generator=g)
    p = torch.randperm(4, generator=g)
    return x.mean() * a[p], F.dropout(x, 0.0, training=True), x * torch.bernoulli(torch.full((1,), 0.5), generator=g)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="manual_seed expected")
def A7559SeedsByShape(self, x):
    """A projection drawn for the length at each call from a fixed seed."""
    g = torch.Generator().manual_seed(x.shape[1])
    return x @ torch.randn(x.shape[1], 3, generator=g)


@forward("x:float32[N,T]=-300:300", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="depends on the values")
def A7560DecidedByRareValues(self, x):
    """A clip that is asked for only beyond 250, an early exit for constant rows, and another where the first equals the last."""
    if x.abs().max() > 250:
        x = x.clamp(-250, 250) * 0.9
    if (x == x[:, :1]).all():
        return torch.zeros_like(x)
    if bool(x[0, 0] == x[0, -1]):
        return x.flip(1)
    return x - x.mean(1, keepdim=True)


@attack("x:float32[N,T]=-3:3", "o:float32[N,2]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7561OutputsOfManyKinds(nn.Module):
    """Nested: an OrderedDict of a list with None and a tuple, the same tensor twice, an input given back, an int of a size, a defaultdict's items, a view of an output."""

    def forward(self, x: Any, o: Any = None):
        y = x.exp()
        d: Any = defaultdict(list)
        for k in range(3):
            d[k % 2].append(y.sum(1) * k)
        return OrderedDict(b=[y, None, (y, o)], a=dict(d), v=y[:, :1])


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", target="tensorrt==8.6", kinds=FINITE, refused="computes in FP64")
def A7562OldTargetWithDoubles(self, x):
    """For 8.6: doubles within (a mean of squares of values near a thousand), int64 beyond int32 that is only compared, floor of a quotient of doubles."""
    d = x.double() + 1000.0
    v = (d * d).mean(1) - d.mean(1) ** 2
    big = torch.arange(x.shape[1], dtype=torch.int64) * 3_000_000_000
    return v.float(), (big > 5_000_000_000) & (x > 0), torch.floor(x.double() / 0.1).float()


@forward("i:int64[N,T]=0:4000000000", dims="N=1:2:3 T=2:5:9", target="tensorrt==8.6", refused="clamps 64-bit integers")
def A7563OldTargetWithLargeIds(self, i):
    """For 8.6: ids above 2**31 hashed into buckets."""
    return (i * 31 + 7) % 1009, i > 3_000_000_000


@forward("x:float32[N,T]=-3:3", "y:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A7564SeldomPointwise(self, x, y):
    """hypot beyond squares, copysign of -0, heaviside with a value, xlogy at zero, float_power, remainder of negative zero, logit with eps, sinc, clamp with tensors crossing, lerp by tensor."""
    return (
        torch.hypot(x * 1e30, y * 1e30), torch.copysign(x, -0.0 * y), torch.heaviside(x.round(), y), torch.xlogy(x.round().abs(), y.abs() + 1),
        torch.float_power(x.abs(), 2.5).float(), torch.remainder(x, -0.7), torch.logit(x, 0.1), torch.sinc(x),
        torch.clamp(x, y, -y), torch.lerp(x, y, x), torch.floor_divide(x, 0.3), torch.fmod(x, y.round()), torch.deg2rad(x), torch.nan_to_num(x / y.round(), nan=7.0, posinf=5.0, neginf=-5.0),
    )  # fmt: skip


@forward("x:float32[N,T]=-3:3", "i:int64[N,T]=0:5", dims="N=1:2:3 T=6:8:9", kinds=FINITE, refused="has no form of")
def A7565SeldomReductions(self, x, i):
    """cummax with ties, logcumsumexp, kthvalue, trapezoid with dx, cov, quantiles of three by lower, aminmax, nansum, count_nonzero, std of one axis with correction 2, vander."""
    r = x.round()
    v, j = r.cummax(1)
    return (
        v, j, x.logcumsumexp(1), r.kthvalue(2, 1).values, torch.trapezoid(x, dx=0.3), torch.cov(x.T), torch.quantile(x, torch.tensor([0.1, 0.5, 0.77]), dim=1, interpolation="lower"),
        *torch.aminmax(x, dim=1), r.count_nonzero(1), x.std(1, correction=2), torch.linalg.vander(x[:, 0], N=4), x.renorm(2, 0, 1.5),
    )  # fmt: skip


@forward("x:float32[N,T,4]=-3:3", "m:bool[N,T]", "u:float32[K]=-3:3", dims="N=1:2:3 T=2:5:9 K=27:27:27", kinds=FINITE, refused="differs from the module")
def A7566WritesThroughMasks(self, x, m, u):
    """masked_scatter of a running source, boolean writes of a row, index_put by pairs accumulated, a diagonal filled, slices with negative ends written by themselves shifted, a flip written in place through select."""
    y = x.clone()
    y[:, 1:] = y[:, :-1].clone() * 0.5 + y[:, 1:]
    y[m] = torch.tensor([1.0, -1.0, 0.5, 0.0])
    y[:, -1].mul_(2).clamp_(max=1.5)
    rows = torch.arange(x.shape[0])
    y.index_put_((rows, torch.zeros_like(rows) - 1), x[:, 0], accumulate=True)
    z = x[..., 0].masked_scatter(m, u)
    y.select(2, 3).copy_(y[..., 0].flip(1))
    sq = x[:, :2, :2].clone()
    sq.diagonal(dim1=1, dim2=2).fill_(9.0)
    return y, z, sq


@forward("x:float32[N,4]=-3:3", "k:int64[]=0:3", dims="N=1:2:3", kinds=FINITE, refused="Python reads a value")
def A7567ChosenByAnInput(self, x, k):
    """A scalar input that picks a branch through a list, and a column by narrow."""
    fs = [torch.relu, torch.tanh, torch.exp, torch.neg]
    return fs[int(k)](x), x.narrow(1, int(k), 1)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:300", kinds=FINITE)
def A7568RootsOfSizes(self, x):
    """Numbers of sizes: a temperature of log(t) / log(50), 1 / sqrt(t) in three forms, a float compared with a count of values above it, round half even of t * 0.5, ceil of log2."""
    t = x.shape[1]
    n = math.ceil(math.log2(t)) if t > 1 else 0
    return x * (math.log(t + 1) / math.log(50)), x * t**-0.5, (x > 0).sum(1) > t * 0.37, x.sum(1) / round(t * 0.5 + 0.5), x + n


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7569AutocastWithin(nn.Module):
    """bfloat16 autocast around a linear and a softmax, left for a norm in FP32, a buffer in float16 cast at use, an addition of both."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l, self.n = nn.Linear(8, 8), nn.LayerNorm(8)
        self.register_buffer("b", torch.randn(8).half())

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.l(x)
            with torch.autocast("cpu", enabled=False):
                z = self.n(y.float()) + self.b
        return z, y.float()


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=8:12:16 W=8:12:16", kinds=FINITE)
class A7570QuantisedByHand(nn.Module):
    """Integer arithmetic of a quantised conv by hand: uint8 activations with a zero point, int8 weights per channel, int32 accumulations as floats, a requantisation by multiplier and shift with rounding half away."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("w", torch.randint(-127, 128, (4, 3, 3, 3)).to(torch.int8))
        self.register_buffer("m", torch.randint(1 << 30, (1 << 31) - 1, (4,)))

    def forward(self, x):
        q = torch.clamp(torch.round(x / 0.02) + 128, 0, 255).to(torch.uint8)
        acc = F.conv2d(F.pad(q.float() - 128, (1, 1, 1, 1)), self.w.float()).to(torch.int64)
        p = acc * self.m.view(1, 4, 1, 1)
        r = (p + (1 << 37)) >> 38
        away = torch.where(p < 0, -((-p + (1 << 37)) >> 38), r)
        return q, r.to(torch.int32), (away + 3).clamp(-128, 127).to(torch.int8)

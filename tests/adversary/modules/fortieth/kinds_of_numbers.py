# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Types and values: bytes that wrap, shifts, signs of division, truncating writes, ties, infinities and NaN in the middle, boundaries, bits."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import halves, normal

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
XT = "x:float32[N,T]"


def flat(*values, dtype=np.float32, **more):
    return lambda: {"x": np.array([values], dtype), **more}


EDGES = (flat(0.5, 1.5, 2.5, -0.5, -1.5, 1e-40, 3e38, 16777217.0, -0.0), flat(255.5, 256.0, -1.0, 127.5, 128.0, -129.0, 65519.9), flat(2147483648.0, -2147483648.0, 4294967296.0, 1e18, -7.9))


@forward("x:uint8[N,T]=0:255", "y:uint8[N,T]=0:255", dims=ROWS)
def A4262BytesAgainstBytes(self, x, y):
    """Frame differences of bytes: wrapping, absolute by two ways, blending, a checksum in bytes, a mean rounded, gamma by a table."""
    d = x - y
    ad = torch.where(x > y, x - y, y - x)
    wide = (x.short() - y.short()).abs()
    blend = (x.int() * 77 + y.int() * 179 + 128) >> 8
    lut = ((torch.arange(256) / 255.0) ** 0.45 * 255).round().to(torch.uint8)
    return d, ad, wide > 25, blend.to(torch.uint8), x.sum(1, dtype=torch.uint8), (x + y) // 2, lut[x.long()], x * 2, x ^ y, x.cumsum(1, dtype=torch.uint8), -x, x < y
@forward("x:int32[N,T]=-2147483648:2147483647", "k:int32[N,T]=0:31", dims=ROWS, feeds=(flat(-1, 1, 2**31 - 1, -(2**31), 0x12345678, dtype=np.int32, k=np.array([[31, 31, 1, 31, 8]], np.int32)),))
def A4263ShiftsByTensors(self, x, k):
    """Shifts by amounts of the input, rotations, a xorshift, a population count, Morton codes, parity, the lowest bit."""
    r = (x << 7) | ((x >> 25) & 0x7F)
    y = x ^ (x << 13)
    y = y ^ ((y >> 17) & 0x7FFF)
    y = y ^ (y << 5)
    v = x - ((x >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    m = x & 0xFF
    m = (m | (m << 4)) & 0x0F0F
    m = (m | (m << 2)) & 0x3333
    return x >> k, r, y, (v + (v >> 4)) & 0x0F0F0F0F, (m | (m << 1)) & 0x5555, x & -x, torch.bitwise_left_shift(x & 1, k), ~x
@forward("x:int64[N,T]=-100:100", "y:int64[N,T]=1:7", dims=ROWS, feeds=(flat(-7, 7, -8, -1, 0, dtype=np.int64, y=np.array([[2, -2, -3, 5, -5]])),))
def A4264SignsOfDivision(self, x, y):
    """Floor, truncation, remainder and fmod of whole numbers and of them with decimals; a clock that wraps; gcd by steps."""
    hours = (x - y * 5) % 24
    a, b = x.abs(), y.clone()
    for _ in range(6):
        a, b = torch.where(b != 0, b, a), torch.where(b != 0, a % b.clamp(min=1), b)
    return x // y, torch.div(x, y, rounding_mode="trunc"), x % y, torch.fmod(x, y), x % -y, hours, x / y, (x * 0.1) // 0.3, torch.remainder(x, 2.5), torch.fmod(x, -2.5), x - x // y * y, a, x.float() // -y
@forward(XT, "i:int64[N,T]=0:9", dims=ROWS, kinds=FEW, feeds=tuple((lambda f=f: {**f(), "i": np.zeros_like(f()["x"], np.int64)}) for f in EDGES[:2]))
def A4265WritesThatCutDecimals(self, x, i):
    """What is written into whole numbers is cut: item assignment, fill, full, where against scalars, in-place operators, copy."""
    a = i.clone()
    a[:, 0] = 2.9
    a[i == 0] = -1.5
    b = torch.full_like(i, -3.99)
    c = i.clone()
    c.copy_(x.clamp(-9, 9) * 1.7)
    c += 1
    d = torch.zeros_like(i, dtype=torch.uint8)
    d[:, :2] = 300 - 1 - 299 + 7
    e = torch.where(i > 4, i, 0.5)
    f = i.clone()
    f[:] = x.clamp(-5, 5)
    return a, b, c, d, e, f, torch.clamp(i, 0.5, 3.5), i.float().fill_(0.1), i.new_full(i.shape, 7.9), torch.zeros_like(i).masked_fill(x > 0, True)
@forward(XT, dims="N=1:2:3 T=3:9:24", kinds=FEW, feeds=(halves(1, 24), halves(3, 8), flat(1, 1, 1, 0, 0, 0, 2, 2), flat(-0.0, 0.0, -0.0, 0.0)), refused="the module cannot be exported")
def A4266TiesEverywhere(self, x):
    """Median, mode, kthvalue, cummax, sort and rank of what is equal, quantiles between, unique runs, argmin of booleans."""
    v, i = x.median(1)
    k, ki = x.kthvalue(2, 1)
    rank = x.argsort(dim=1, stable=True, descending=True).argsort(dim=1, stable=True)
    return v, x.mode(1)[0], k, x.cummax(1)[1], x.cummin(1)[1], rank, x.quantile(0.5, 1), x.quantile(0.3, 1, interpolation="nearest"), (x > 0).int().argmin(1), x.nanmedian(1)[0], x.argmax(), x.max(1)[1], torch.unique_consecutive(x[0], return_inverse=True)[1], x.aminmax(dim=1)[0], x.topk(2, 1, largest=False)[1]
@forward(XT, dims="N=1:2:3 T=3:9:24", kinds=FEW, feeds=(flat(1, 0, 1, 0), flat(*[float("-inf")] * 3), flat(float("inf"), 1, 2), flat(0, 0, 0)))
def A4267NotANumberBetween(self, x):
    """NaN by 0/0 and logs within, taken out by nan_to_num, nanmean, nansum, isnan, fmax, where, comparisons that are false, sorts to the end."""
    z = torch.where(x == 0, x / x, x)
    log = x.log()
    return torch.nan_to_num(log, nan=-7.0, neginf=-99.0), z.nansum(1), z.nanmean(1), torch.fmax(z, torch.zeros(())), (z > 0) | (z <= 0), z == z, torch.where(z.isnan(), -1.0, z).sort(1)[0], log.isfinite(), torch.sign(z.nan_to_num()), F.relu(torch.where(x < 0, 0.0, z).nan_to_num(3.0)), z.clamp(min=0).isnan(), torch.maximum(z, -z).isnan()
@forward(XT, "m:bool[N,T]", dims=ROWS, kinds=FEW)
def A4268RowsOfNothing(self, x, m):
    """Softmax, log-sum-exp, maxima, means, deviations, products and argmax of rows in which the mask leaves nothing."""
    y = x.masked_fill(~m, float("-inf"))
    n = m.sum(1)
    p = y.softmax(1)
    return p, p.nan_to_num(0), y.logsumexp(1), y.amax(1), (x * m).sum(1) / n, y.argmax(1), torch.where(m, x, 1.0).prod(1), y.log_softmax(1).isnan(), torch.logcumsumexp(y, 1), y.exp().sum(1).log(), y.max(1)[0].exp(), m.all(1), torch.where(n == 0, n, -n)
@forward(XT, dims=ROWS, kinds=FEW, feeds=(*EDGES, flat(0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0), flat(-0.25, 0.25, 0.75, 0.49999997, 0.50000006)))
def A4269Boundaries(self, x):
    """Bins whose edge belongs to one side: bucketize both ways, searchsorted with a sorter, histc, digitize by floor, floor of a quotient, equality of thirds."""
    e = torch.tensor([0.1, 0.25, 0.5, 0.75, 1.0])
    rev = torch.tensor([1.0, 0.5, 0.0, -0.5])
    s = torch.searchsorted(rev, x, sorter=torch.argsort(rev))
    return torch.bucketize(x, e), torch.bucketize(x, e, right=True), s, torch.floor(x / 0.1), torch.floor_divide(x, 0.25), (x * 10).int() % 7, (x / 3 * 3 == x), torch.histc(x.clamp(0, 1), 5, 0, 1), (x * 3).ceil().clamp(-9, 9), x.trunc().clamp(-9, 9), torch.round(x * 2) / 2
@forward(XT, dims=ROWS, kinds=FEW, feeds=EDGES)
def A4270CastsOutOfRange(self, x):
    """Casts without a clamp: floats to bytes, to 16 and 32 bits, negative to unsigned, whole numbers down, booleans of fractions."""
    y = x * 40
    i = y.clamp(-1e6, 1e6).to(torch.int64)
    return i.to(torch.uint8), i.to(torch.int8), i.to(torch.int16), (x * 1000).clamp(-3e4, 3e4).to(torch.int16).to(torch.uint8), x.bool(), (x * 0.3).bool(), i.bool(), i.to(torch.int32).to(torch.float16), x.clamp(-6e4, 6e4).half().to(torch.int32), (i * 2**31).to(torch.int32), i.double().float()
@forward(XT, dims=ROWS, kinds=FEW, feeds=EDGES)
def A4271FloatsToBytesAsTheyAre(self, x):
    """An image to bytes with no clamp, whatever it holds."""
    return (x * 255).to(torch.uint8), (x * 255 + 0.5).byte()
@forward(XT, dims=ROWS, kinds=FEW, feeds=(flat(1.0, -2.0, 0.5, 0.0, -0.0, 3.14),), refused="the module cannot be exported")
def A4272BitsOfFloats(self, x):
    """The bits of floats: the fast inverse root, exponents by shifts, parts of a half, bytes of a number."""
    i = x.view(torch.int32)
    y = (0x5F3759DF - (i >> 1)).view(torch.float32)
    return y, ((i >> 23) & 255) - 127, x.to(torch.bfloat16).view(torch.int16)
@forward("x:float16[N,T]", "y:int64[N,T]=0:4000", dims=ROWS, feeds=(lambda: {"x": np.array([[2048, 2050, 0.1, 65504, 6e-8, -0.0]], np.float16), "y": np.array([[2049, 2051, 1, 4000, 0, 0]])},))
def A4273HalvesBesideOthers(self, x, y):
    """Halves with whole numbers, floats of one element, Python numbers, booleans; means, norms and running sums; where and cat promote."""
    one = torch.tensor(0.1)
    col = torch.full((1, 1), 0.1)
    return x + y, x > y, x * one, x * col, x + True, x.mean(1), x.cumsum(1), torch.where(x > 0, x, 0.1), torch.cat([x, col.expand(x.shape[0], 1)], 1), x.pow(2), x / 3, (x * 3.3).sum(1), x.norm(dim=1), torch.maximum(x, -x), torch.lerp(x, -x, 0.3), x.float().std(1, unbiased=False), torch.addcmul(x, x, x, value=0.1), F.softmax(x, 1)
@forward("x:float64[N,T]=1700000000:1700000100", "ref:float64[N]=1700000000:1700000100", dims=ROWS, feeds=(lambda: {"x": 1.7e9 + np.array([[0, 1e-3, 0.0333, 0.5, 99.999]]), "ref": np.array([1.7e9 + 0.016])},), refused="the module computes in FP64")
def A4274TimesOfTheClock(self, x, ref):
    """Seconds since 1970 in doubles, whose differences matter: steps, frames of a thirtieth, gaps, milliseconds as whole numbers."""
    d = (x - ref[:, None])
    return d.float(), torch.round(d * 30).to(torch.int64), (torch.diff(x, dim=1, prepend=ref[:, None]).float() > 0.05), (x * 1000).to(torch.int64) % 1000, (x % 60).float()
@forward("x:float32[N,T]=-8:8", "y:float32[N,T]=-8:8", dims=ROWS, kinds=FEW, feeds=(flat(0.0, -0.0, 1.0, -1.0, 0.0, y=np.array([[0.0, -1.0, 0.0, -0.0, -0.0]], np.float32)),))
def A4275ComplexSigns(self, x, y):
    """Complex numbers: angles on the cut, roots, logs and powers on it, products of conjugates, phases unwrapped, equality."""
    z = torch.complex(x, y)
    a = torch.angle(z)
    d = torch.diff(a, dim=1)
    d = (d + math.pi) % (2 * math.pi) - math.pi
    w = z * z.conj().roll(1, 1)
    return a, a[:, :1] + d.cumsum(1), torch.view_as_real(w), z.abs(), torch.view_as_real(z.sgn()), torch.view_as_real(1j * z - 2), (z == z.conj()), torch.view_as_real(torch.exp(z * 0.1)), z.real.atan2(z.imag), (z.mean(1)).abs()
@forward(XT, dims=ROWS, kinds=FEW, feeds=(flat(0, 1, 2, 0.5, 1e-8, 30, -30, 88, 170), flat(-1, -0.5, 0.99999, 1.0, -1.0, 1e-20)), refused="the module cannot be exported")
def A4276SpecialFunctions(self, x):
    """lgamma, digamma, i0, sinc, xlogy, entr, logit with an epsilon, erfcx, hypot, exp2, polynomials of sign, heaviside, nextafter."""
    p = x.abs()
    return torch.lgamma(p + 0.5), torch.digamma(p + 1), torch.special.i0(x.clamp(-5, 5)), torch.sinc(x), torch.xlogy(p, p), torch.special.entr(p), torch.logit(x, eps=1e-6), torch.hypot(x, p + 1), torch.exp2(x.clamp(-20, 20)), torch.heaviside(x, torch.tensor(0.5)), torch.special.i1(x.clamp(-5, 5)), torch.special.erfcx(p.clamp(max=5)), torch.deg2rad(x), torch.float_power(p, 0.3).float()
@forward("x:bool[N,T]", "y:bool[N,T]", dims=ROWS)
def A4277BooleansAsNumbers(self, x, y):
    """Booleans in arithmetic: sums, products, order, minima, running sums, means, indices, sorts, xor chains, all and any of parts."""
    return x + y, x * y, x > y, x.int() - y.int(), torch.minimum(x, y), x.cumsum(1), x.float().mean(1), x.sort(dim=1, stable=True)[1], (x ^ y).sum(1) % 2, x.any(), x | y & ~x, x * 2, x + 0.5, x.logical_not(), torch.where(x, y, ~y), x == y, x.prod(1), x.long().cumprod(1), ~x, torch.tensor([3, 5])[x.long()], x.max(1)[0]
@forward("x:float32[N,T]=-1e4:1e4", dims="N=1:1:2 T=1:50:200", kinds=FEW, feeds=(lambda: {"x": np.full((1, 200), 0.1, np.float32)}, lambda: {"x": np.where(np.arange(200) % 2, 1e4, -1e4).astype(np.float32)[None]}, normal(1, 200, scale=1e3)))
def A4278SumsOfMany(self, x):
    """Running sums and products, means and deviations by one pass, scans that reset, exponential averages by cumulative sums, Kahan's sum."""
    t = torch.arange(1, x.shape[1] + 1)
    m = x.cumsum(1) / t
    v = (x * x).cumsum(1) / t - m * m
    decay = 0.9 ** torch.arange(x.shape[1] - 1, -1, -1).float()
    return m, (v + 1.0).clamp(min=0).sqrt(), (x * decay).sum(1), x.double().sum(1).float(), (x.sign() + (x == 0)).cumprod(1), torch.logcumsumexp(x / 1e3, 1), x.std(1, unbiased=False), x.var(1, correction=0), torch.trapezoid(x, dx=0.01)
@forward("x:uint8[N,T]=0:255", "n:int8[N,T]=-128:127", dims=ROWS)
def A4279UnlikeNarrowTypes(self, x, n):
    """uint8 beside int8, numbers beyond the type, minus one as a mark, quotients and powers of narrow types, clamps by negative bounds."""
    return x + n, x * n, x > n, torch.where(x > 200, x, 0) - 1, x // 7 * 7, n // 7, n % 16, n >> 2, n.abs(), x / 2, n * 0.5, torch.maximum(x.short(), n.short()), x.float() - n, (x >= 128).to(torch.int8) - 1, n.clamp(-100, 50), n * n, x == 255, -n, x.sum(1) - n.sum(1), torch.cat([x, n], 1)
@forward("x:int64[N,T]=-1000000000000:1000000000000", dims=ROWS, feeds=(flat(2**40 + 1, -(2**40) - 1, 10**12, 999999999999, 2**53 - 1, dtype=np.int64),))
def A4280NanosecondsAndKeys(self, x):
    """Nanoseconds of 64 bits: to milliseconds, to seconds as floats, keys packed of two fields, hashes by primes modulo a table, digits."""
    ms = torch.div(x, 1000000, rounding_mode="floor")
    key = (ms << 20) | (x & 0xFFFFF)
    h = (x * 2654435761) % 1021
    digits = torch.stack([(x.abs() // 10**k) % 10 for k in (0, 5, 11)], -1)
    return ms, key, key >> 20, h, digits, (x.double() * 1e-9).float(), x.sort(1)[0], (x - x.amin(1, keepdim=True)).float(), x.diff(dim=1), x * x, x.cumsum(1), (x == x.roll(1, 1)), x.float() * 1e-9
@forward(XT, dims=ROWS, kinds=FEW, feeds=(flat(0.0, -0.0, 1.0, -1.0), flat(*np.linspace(-3, 3, 24))), refused="the exported model differs from the module")
def A4281SignedZeros(self, x):
    """Where -0.0 shows: reciprocals, copysign, atan2, signbit, roots, minima, maxima, rounding, products with zero, abs."""
    z = torch.round(x * 0.2)
    return torch.copysign(torch.ones(()), z), torch.atan2(z, -torch.ones(())), torch.signbit(x * 0), (1 / z).clamp(-9, 9), torch.signbit(x.clamp(min=-0.0)), torch.signbit(x.relu()), torch.signbit(torch.sqrt(x.abs()) * x.sign()), torch.signbit(-x), torch.signbit(x.trunc()), torch.signbit(x.fmod(1.0)), torch.signbit(x.remainder(1.0)), torch.signbit(F.hardshrink(x, 5.0)), torch.signbit(x.ceil())
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=2:9:20 W=2:10:20", kinds=FEW, feeds=(halves(1, 3, 4, 4), lambda: {"x": np.array([1, 0, 0, 1, 0.5, 0.5, 0, 1, 0, 0, 1, 0.25], np.float32).reshape(1, 3, 2, 2)}))
def A4219HueAndBack(self, x):
    """torchvision's RGB to HSV and back: equal channels, a hue that goes round at six, sectors by a mask of integers."""
    r, g, b = x.unbind(1)
    hi, lo = x.max(1).values, x.min(1).values
    eq = hi == lo
    d = hi - lo
    one = torch.ones_like(hi)
    s = d / torch.where(eq, one, hi)
    k = torch.where(eq, one, d)
    rc, gc, bc = (hi - r) / k, (hi - g) / k, (hi - b) / k
    hr = (hi == r) * (bc - gc)
    hg = ((hi == g) & (hi != r)) * (2.0 + rc - bc)
    hb = ((hi != g) & (hi != r)) * (4.0 + gc - rc)
    h = torch.fmod((hr + hg + hb) / 6.0 + 1.0, 1.0)
    i = torch.floor(h * 6.0)
    f = h * 6.0 - i
    sector = i.to(torch.int32) % 6
    p, q, t = (hi * (1 - s)).clamp(0, 1), (hi * (1 - s * f)).clamp(0, 1), (hi * (1 - s * (1 - f))).clamp(0, 1)
    mask = sector.unsqueeze(1) == torch.arange(6).view(1, -1, 1, 1)
    a = torch.stack([torch.stack(c, 1) for c in ((hi, q, p, p, t, hi), (t, hi, hi, q, p, p), (p, p, t, hi, hi, q))], 1)
    return torch.einsum("nihw,ncihw->nchw", mask.to(x.dtype), a), h, sector
@forward("x:float32[1,1,H,W]", dims="H=2:7:12 W=2:8:12", kinds=FEW, feeds=(halves(1, 1, 6, 6), halves(1, 1, 12, 2)))
def A4220ComponentsByPooling(self, x):
    """Labels that spread by maxima within a mask, twelve times; how many there are, and how large each pixel's is."""
    m = (x > 0).float()
    h, w = x.shape[-2:]
    lab = torch.arange(1, h * w + 1).view(1, 1, h, w).float() * m
    for _ in range(12):
        lab = F.max_pool2d(lab, 3, 1, 1) * m
    flat = lab.flatten().long()
    size = torch.zeros(h * w + 1, dtype=torch.long).scatter_add_(0, flat, torch.ones_like(flat))
    size[0] = 0
    return lab, (size > 0).sum(), size[flat].view(h, w), torch.unique(flat, return_inverse=True)[1].view(h, w)

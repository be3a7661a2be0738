"""Numerics: wrapping, floors, rounding, casts, ties, borders, medians, complex numbers, FFTs, resizes, grids, pools."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at


@forward("a:uint8[N,T]=0:255", "b:uint8[N,T]=0:255", dims="N=1:2:3 T=2:5:9")
def A7764BytesAllWays(self, a, b):
    """uint8: sums that wrap, differences, products, means in float, shifts, a saturated sum, sums of bytes."""
    d = a - b
    sat = torch.where(a > 255 - b, torch.full_like(a, 255), a + b)
    return a + b, d, a * b, (a.float() + b) / 2, (a.int() << 3).to(torch.uint8), sat, d.to(torch.int32).sum(1), a // (b | 1), a % (b | 1)


@forward("a:int32[N,T]=-2147483648:2147483647", "b:int64[N,T]=-9:9", dims="N=1:2:3 T=2:5:9")
def A7765WrapsOfThirtyTwoBits(self, a, b):
    """A hash in int32 and int64: multiplications that wrap, xor of shifts, floor division and modulo of negative numbers."""
    h = (a * 0x45D9F3B) ^ (a >> 16)
    q = b * 6364136223846793005 + 1442695040888963407
    s = torch.where(b == 0, torch.ones_like(b), b)
    return h, q ^ (q >> 33), a.long() // s, a.long() % s, torch.fmod(a.long(), s), torch.div(a.long(), s, rounding_mode="trunc")


@forward("x:float32[N,T]=-300:300", dims="N=1:2:3 T=2:5:9", kinds=("normal", "halves", "tenths", "zeros", "ascending"))
def A7766CastsAndRounds(self, x):
    """Rounding half to even, at decimals, trunc and frac, floats to whole numbers, -0.0 and copysign, nextafter."""
    return x.round(), x.round(decimals=1), x.to(torch.int16), x.trunc(), x.frac(), torch.copysign(x, -x.round()), x.long() // 2, (x * 100).int() % 7


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7767OrderStatistics(self, x):
    """Quantiles of even and odd counts with all interpolations, median (the lower), nanmedian, mode, kthvalue by size, var of one."""
    t = x.shape[1]
    q = torch.tensor([0.0, 0.25, 0.5, 0.9])
    return (
        torch.quantile(x, q, dim=1), torch.quantile(x, 0.3, dim=1, interpolation="nearest"), torch.quantile(x, 0.5, dim=1, interpolation="higher"),
        x.median(1).values, x.kthvalue((t + 1) // 2, dim=1).values, x.var(1, unbiased=False), x.cummax(1).values, x.logcumsumexp(1),
    )  # fmt: skip


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=("normal", "halves", "ones", "zeros", "ascending"))
def A7768BordersOfBins(self, x):
    """searchsorted on both sides, bucketize, a histogram by comparisons as histc counts (the last bin closed), bincount of whole numbers."""
    edges = torch.tensor([-2.0, -1.0, 0.0, 0.5, 0.5, 2.0])
    s = x.sort(1).values
    lo = torch.searchsorted(edges, x)
    hi = torch.searchsorted(edges, x, right=True)
    own = torch.searchsorted(s, torch.zeros(x.shape[0], 1), side="right")
    return lo, hi, own, torch.bucketize(x, edges, right=True), torch.histc(x, bins=5, min=-2, max=2), torch.bincount(lo.flatten(), minlength=7)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:7:12", kinds=("normal", "unit", "halves", "ones"))
def A7769FftsOfAllParities(self, x):
    """rfft with n other than T, irfft back to T, fftshift, an analytic signal (Hilbert), hfft, norm ortho, a 2-d fft of rows."""
    n, t = x.shape
    f = torch.fft.fft(x)
    h = torch.zeros(t)
    h[0] = 1
    if t % 2 == 0:
        h[t // 2] = 1
        h[1 : t // 2] = 2
    else:
        h[1 : (t + 1) // 2] = 2
    a = torch.fft.ifft(f * h)
    r = torch.fft.rfft(x, n=9, norm="ortho")
    return a.abs(), a.real, torch.fft.fftshift(f.abs(), dim=1), torch.fft.irfft(r, n=t), torch.fft.rfft2(x).abs(), torch.fft.fftfreq(t, 0.5)


@forward("x:float32[N,T,2]", dims="N=1:2:3 T=2:5:9", kinds=("normal", "unit", "halves", "positive"), refused="no form of unsqueeze of complex numbers")
def A7770ComplexNumbers(self, x):
    """view_as_complex, polar rotation, conj products, angle, complex matmul, exp and abs of complex, cumprod of complex."""
    z = torch.view_as_complex(x)
    p = torch.polar(torch.ones(x.shape[1]), torch.arange(x.shape[1]) * 0.3)
    w = z * p
    m = w[:, :, None] * w.conj()[:, None]
    return torch.view_as_real(w), m.real, m.imag, (w * 0.1).exp().abs(), torch.view_as_real((w / (1 + w.abs())).cumprod(1))


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=3:5:8 W=2:4:7", kinds=FINITE)
def A7771ResizesAtOddRatios(self, x):
    """Sizes h*5//3 and w*2-1, nearest, nearest-exact, bicubic, area, antialias; a scale factor with recompute_scale_factor."""
    h, w = x.shape[-2:]
    s = (h * 5 // 3, w * 2 - 1)
    return (
        F.interpolate(x, s, mode="nearest"), F.interpolate(x, s, mode="nearest-exact"), F.interpolate(x, s, mode="bicubic", align_corners=True),
        F.interpolate(x, (h // 2 + 1, w), mode="area"), F.interpolate(x, (2, 3), mode="bilinear", antialias=True),
        F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True), F.interpolate(x, scale_factor=(0.6, 1.3), mode="nearest"),
    )  # fmt: skip


@forward("x:float32[N,2,H,W]", "g:float32[N,3,4,2]=-1.5:1.5", dims="N=1:1:2 H=1:4:7 W=1:3:6", kinds=("normal", "unit", "halves", "ones"))
def A7772GridSampleBorders(self, x, g):
    """All paddings and modes at the border and beyond, with maps of one pixel."""
    return [
        F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=a)
        for m in ("bilinear", "nearest", "bicubic")
        for p, a in (("zeros", True), ("border", False), ("reflection", False))
    ]


@forward("x:float32[N,4,H,W]", dims="N=1:1:2 H=5:7:10 W=5:6:9", kinds=FINITE)
def A7773PoolsAndFolds(self, x):
    """Pools with ceil_mode, divisor_override, dilation and indices, lp and fractional windows by adaptive sizes, unfold with stride, unshuffle of a crop."""
    h, w = x.shape[-2:]
    m, i = F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)
    u = F.unfold(x, (2, 3), dilation=(2, 1), stride=(2, 1))
    return (
        m, i, F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.avg_pool2d(x, (2, 3), 2, divisor_override=5),
        F.max_pool2d(x, 2, 2, dilation=2), F.lp_pool2d(x, 2.0, 3, 2, ceil_mode=True), F.adaptive_max_pool2d(x, (3, None)), F.adaptive_avg_pool2d(x, (h // 2, 4)),
        u.amax(1), F.pixel_unshuffle(x[..., : h // 2 * 2, : w // 2 * 2], 2), F.channel_shuffle(x, 2),
    )  # fmt: skip


@forward("x:float32[N,T,T]", "m:bool[N,T,T]", dims="N=1:2:3 T=1:4:7", kinds=("normal", "unit", "halves", "ones"))
def A7774SoftmaxOfEmptyRows(self, x, m):
    """Rows of -inf alone give NaN that nan_to_num makes zero; log_softmax, logsumexp, softmin and norms of them."""
    s = x.masked_fill(~m, -torch.inf)
    return s.softmax(-1).nan_to_num(0.0), s.logsumexp(-1), s.amax(-1), torch.where(m.any(-1, keepdim=True), s.softmax(-1), x), s.exp().sum(-1)


@forward("i:int64[N,T]=-9007199254740000:9007199254740000", dims="N=1:2:3 T=2:5:9", feeds=(values_at("i:int64[N,T]=-9007199254740000:9007199254740000", N=2, T=7),))
def A7775LongsBeyondFiftyThreeBits(self, i):
    """Cumulated sums, sorts, equality and maxima of int64 beyond 2^53; a division by three in whole numbers."""
    return i.cumsum(1), i.sort(dim=1, stable=True).values, i == i.roll(1, 1) + 1, i.amax(1), torch.div(i, 3, rounding_mode="floor"), i & 0xFFFFF, i.float()


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=("halves", "zeros", "ones", "normal"))
def A7776TiesInAllOrders(self, x):
    """Ties: argmax and argmin, max with indices, stable sort both ways, topk smallest, argsort of bools, unique_consecutive counts by cumsum."""
    b = x > 0
    return x.argmax(1), x.argmin(1), x.max(1).indices, x.sort(dim=1, descending=True, stable=True).indices, x.topk(2, 1, largest=False).values, b.to(torch.uint8).argsort(dim=1, stable=True), b.to(torch.uint8).argmax(1), x.cummin(1).values

"""Numbers at their edges: integer division, overflow, casts, -inf rows, quantiles, modes, histograms, distances, variances of one."""
# ruff: noqa: E501, E741 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE, halves, sprinkled

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
I = "i:int64[N,T]=-9:9"


@forward(I, "k:int64[T]=-4:-1", dims=D)
def A8279NegativeDivisors(self, i, k):
    """//, %, torch.div with each rounding, remainder, fmod, float % and divmod by negative divisors."""
    f = i.float() / 2
    return (
        i // k,
        i % k,
        torch.div(i, k, rounding_mode="trunc"),
        i.fmod(k),
        f % k.float(),
        f.fmod(k),
        f // -1.5,
        f % -1.5,
        i / k,
    )


@forward("i:int32[N,T]=-2147483648:2147483647", dims=D)
def A8280Int32Overflow(self, i):
    """Sums, products and shifts of int32 that wrap, abs of the lowest, int64 mixes, a python scalar that promotes."""
    return i + i, i * 3, i.abs(), -i, i << 1, i >> 3, i.sum(1), i.cumsum(1), i.to(torch.int64) * i, i * 0.5


@forward("x:float32[N,T]=-300:300", dims=D, kinds=("normal", "unit", "halves", "zeros", "negative"))
def A8281NarrowCasts(self, x):
    """float to uint8, int8 and int16 by clamping first, bool, and back; round half to even with decimals."""
    u = x.clamp(0, 255).to(torch.uint8)
    s = x.clamp(-128, 127).to(torch.int8)
    return (
        (u + 200).float(),
        (s * 2).int(),
        s.abs(),
        u // 7,
        ~u,
        x.round(decimals=1),
        x.round().to(torch.int16) + 32000,
        x.bool(),
    )


@forward("u:uint8[N,T]=0:255", dims=D)
def A8282Uint8Arithmetic(self, u):
    """uint8 that wraps: sums, differences, products, means by float, a shift, a comparison with 300, the sum of all."""
    return (
        u + 100,
        u - 100,
        u * 3,
        -u,
        u.float().mean(1),
        u >> 2,
        u < 300,
        u.sum(1),
        u & 15,
        u // 3,
        u % 7,
        (u - u.flip(1)).abs(),
    )


@forward(X, dims=D, kinds=FINITE, feeds=sprinkled(0.0, -1.0, sizes=((2, 5), (1, 9))))
def A8283WhereNanUnused(self, x):
    """torch.where whose unused branch is nan or inf; a product with a mask instead of where; nan_to_num; log of negatives in a sum that skips."""
    a = torch.where(x > 0, x.log(), torch.zeros_like(x))
    b = torch.where(x != 0, 1 / x, x)
    c = (x.sqrt()).nan_to_num(nan=-1.0)
    d = torch.where(x > 0, x.log(), float("nan")).nanmean(1)
    return a, b, c, d.nan_to_num(0.5), torch.where(x > 0, x.log(), float("nan")).nansum(1)


@forward(X, "m:bool[N,T]", dims=D, kinds=FINITE)
def A8284MinusInfinityRows(self, x, m):
    """softmax, log_softmax, logsumexp and max over rows that are all -inf, with nan_to_num after the first."""
    y = x.masked_fill(~m, float("-inf"))
    return (
        y.softmax(1).nan_to_num(0),
        y.logsumexp(1),
        y.amax(1),
        y.log_softmax(1).exp().nan_to_num(0).sum(1),
        y.logcumsumexp(1),
    )


@forward(X, dims=D, kinds=("tiny", "normal", "zeros", "unit"))
def A8285NearZero(self, x):
    """log1p, expm1, sinc, x/sin-like ratios, hypot, logaddexp, cosh - 1, atan2 of zeros, softplus at small beta."""
    return (
        x.abs().log1p(),
        x.expm1(),
        x.sinc(),
        torch.hypot(x, x),
        torch.logaddexp(x, -x),
        x.atan2(x * 0),
        F.softplus(x, beta=0.5, threshold=2),
        x.sgn(),
        x.copysign(-x),
    )


@forward(X, dims=D, kinds=FINITE)
def A8286NormsOfZeros(self, x):
    """normalize, cosine_similarity with eps, norms of order 0, inf, -inf, 0.5 and 3, renorm, pairwise_distance."""
    z = x - x.mean()
    return (
        F.normalize(x, dim=1, eps=1e-3),
        F.cosine_similarity(x, z, dim=1, eps=0.1),
        x.norm(0, 1),
        x.norm(float("-inf"), 1),
        x.abs().add(0.1).norm(0.5, 1),
        x.norm(3, 1),
        F.pairwise_distance(x, z, p=1, eps=0.01),
        x.renorm(2, 0, 1.0),
    )


@forward(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size:")
def A8287VarianceOfOne(self, x):
    """var with correction 1 guarded for one, correction 0 and 2, std over both dims, var_mean, cov and corrcoef of rows."""
    t = x.shape[1]
    v = x.var(1) if t > 1 else torch.zeros_like(x[:, 0])
    s, m = torch.var_mean(x, 1, correction=0)
    return v, x.var(1, correction=0), x.std((0, 1), unbiased=False), s, m, torch.cov(x, correction=0)


@forward(X, dims=D, kinds=FINITE, feeds=(halves(2, 4), halves(1, 9), halves(4, 8)))
def A8288OrderStatistics(self, x):
    """median of even counts with index values, nanmedian, kthvalue at (t+1)//2, quantiles in each interpolation, mode, aminmax."""
    t = x.shape[1]
    q = [torch.quantile(x, 0.3, dim=1, interpolation=i) for i in ("linear", "lower", "higher", "midpoint", "nearest")]
    lo, hi = x.aminmax(dim=1)
    return (
        x.median(1).values,
        x.kthvalue((t + 1) // 2, 1).values,
        *q,
        lo,
        hi,
        x.sort(dim=1, descending=True, stable=True).indices,
        x.median(),
        torch.quantile(x, torch.tensor([0.0, 0.5, 1.0]), dim=0),
    )


@forward("i:int64[N,T]=0:5", dims=D)
def A8289ModeAndCounts(self, i):
    """mode of integers, bincount of the flat with minlength, histc of floats, one_hot sums, searchsorted both sides, bucketize."""
    f = i.float()
    e = torch.tensor([0.0, 1.0, 1.0, 3.5])
    return (
        i.mode(1).values,
        torch.bincount(i.flatten(), minlength=6)[:6],
        torch.histc(f, 4, 0, 5),
        F.one_hot(i, 6).sum(1),
        torch.bucketize(f, e, right=True),
        torch.searchsorted(e, f),
    )


@forward(X, dims=D, kinds=FINITE)
def A8290Cumulations(self, x):
    """cumprod, logcumsumexp, cummax with indices, cummin, diff with prepend, trapezoid, cumulative_trapezoid, flips of cumsum, prod."""
    v, i = x.cummax(1)
    return (
        x.cumprod(1),
        x.logcumsumexp(1),
        v,
        i,
        x.cummin(0).values,
        x.diff(dim=1, prepend=x[:, :1]),
        torch.trapezoid(x, dx=0.5, dim=1),
        x.flip(1).cumsum(1).flip(1),
        x.prod(1),
    )


@forward("x:float32[N,T,3]", "z:float32[N,S,3]", dims="N=1:2:3 T=1:4:7 S=1:3:6", kinds=FINITE, refused="the exported model differs from the module: output")
def A8291Distances(self, x, z):
    """cdist with p 1, 2 (both modes), inf, 0 and 3; chamfer minima; pdist-free upper triangles; einsum with ellipsis and broadcasting."""
    d = torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
    return (
        d, torch.cdist(x, z, p=1), torch.cdist(x, z, p=float("inf")), torch.cdist(x, z, p=3.0), torch.cdist(x, z, p=0.0),
        d.amin(1).mean(1) + d.amin(2).mean(1), torch.einsum("...td,...sd->...st", x, z), torch.einsum("ntd,nse->de", x, z),
    )  # fmt: skip


@forward("x:float64[N,T]", "h:float16[N,T]", dims=D, kinds=("normal", "unit", "zeros", "halves"), refused="from tests/adversary/modules/seventyfirst/numerics")
def A8292MixedPrecisions(self, x, h):
    """float64 and float16 beside one another: promotion, a sum in half, a mean with dtype, comparison across types, int true division."""
    return (
        x + h,
        h.sum(1),
        h.mean(1, dtype=torch.float32),
        h > x,
        (h * 300).float(),
        x.float().double() - x,
        h.softmax(1),
        (h.int() / 3),
    )


@forward("c:float32[N,T,2]", dims=D, kinds=("normal", "unit", "zeros", "halves"))
def A8293ComplexNumbers(self, c):
    """view_as_complex, polar rotation, abs, angle and conj products, back by view_as_real."""
    z = torch.view_as_complex(c)
    r = torch.polar(torch.ones(c.shape[1]), torch.arange(c.shape[1]) * 0.3)
    y = z * r
    return torch.view_as_real(y), y.abs(), (y * z.conj()).real, torch.view_as_real(y.conj() + 1j)

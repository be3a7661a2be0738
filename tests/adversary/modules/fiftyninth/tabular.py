# ruff: noqa: E501 - attacks are written as users write them
"""Tables, statistics and numbers: bins, ranks, sorts with ties, whole numbers, casts, scatter, linear algebra, other dtypes."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves


@forward("x:float32[N,5]=-4:4", dims="N=1:4:7", kinds=FINITE, feeds=(halves(4, 5), halves(7, 5)))
def A7314Binning(self, x):
    """Bucketize both ways, digitise by a sum of comparisons, histc of fixed bounds, one-hot of clipped bins, quantile bins by interpolation."""
    e = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
    a = torch.bucketize(x, e)
    b = torch.bucketize(x, e, right=True, out_int32=True)
    c = (x[..., None] >= e).sum(-1)
    h = torch.histc(x, bins=4, min=-4, max=4)
    lo = e[(a - 1).clamp(0, 4)]
    hi = e[a.clamp(max=4)]
    t = torch.where(hi > lo, (x - lo) / (hi - lo).clamp(min=1e-6), 0.0)
    return a, b, c, h, t


@forward("x:float32[N,6]=-3:3", dims="N=1:3:6", kinds=FINITE, feeds=(halves(3, 6), halves(6, 6)))
def A7315RanksAndModes(self, x):
    """Dense ranks with ties by comparisons, average ranks, mode of rounded values, median of an even row, nanmean of masked, kthvalue from the end."""
    r = x.round()
    lt = (r[:, None, :] < r[:, :, None]).sum(-1)
    eq = (r[:, None, :] == r[:, :, None]).sum(-1)
    avg = lt + (eq + 1) / 2
    q = torch.where(r > 1, torch.nan, r)
    med = x.median(dim=1)
    return lt, avg, q.nanmean(1), q.nansum(1), med.values, x.kthvalue(x.size(1) - 1, 1).values, r.mode(1).values, torch.nanmedian(q, 1).values


@forward("x:int32[N,5]=-100000:100000", "d:int32[N,5]=1:9", dims="N=1:3:6", refused="no form of gcd")
def A7316WholeNumbers(self, x, d):
    """int32 products that overflow, floor division and remainder of negatives, truncation, shifts, gcd, int8 casts that wrap, bool sums."""
    return x * 65537, x // d, x % d, torch.div(x, d, rounding_mode="trunc"), torch.fmod(x, d), x >> 3, (x << 4), x.to(torch.int8), x.to(torch.uint8), torch.gcd(x, d), (x > 0).sum(), x.sum(1), x.prod(1), x.float().mean(1)


@forward("x:float32[N,6]=-200:300", dims="N=1:3:6", kinds=("normal", "unit", "halves", "tenths", "zeros", "ones"), refused="does not compute what the module computes")
def A7317CastsInForward(self, x):
    """half and bfloat16 inside, float64 sums, int16 fixed point with rounding, bytes by clamp, bools by value, long of a half."""
    h = x.half() * 3
    b = (x.bfloat16() + 1).float()
    d = (x.double() * 1e3).round().sum(1) / 1e3
    q = (x * 64).round().to(torch.int16)
    return h, b, d.float(), q, (q.int() * 3) >> 1, x.clamp(0, 255).to(torch.uint8), x.bool(), h.long(), torch.round(x, decimals=1)


@forward("x:float32[N,4]=-3:3", "i:int64[N]=0:3", dims="N=1:4:7", kinds=FINITE, refused="no form of put")
def A7318Scatters(self, x, i):
    """Every scatter_reduce with duplicates, with and without self, index_reduce, bincount-like, index_add of int64, put with accumulate, take, segment softmax."""
    n = x.size(0)
    e = i[:, None].expand(-1, 4)
    outs = [torch.full((4, 4), 0.5).scatter_reduce(0, e, x, r, include_self=s) for r in ("sum", "prod", "mean", "amax", "amin") for s in (True, False)]
    m = torch.full((4, 4), -torch.inf).scatter_reduce(0, e, x, "amax")
    ex = (x - m[i]).exp()
    den = torch.zeros(4, 4).index_add(0, i, ex)
    cnt = torch.zeros(4, dtype=torch.long).scatter_add_(0, i, torch.ones_like(i))
    y = torch.zeros(8)
    y.put_(i, x[:, 0], accumulate=True)
    return torch.stack(outs), ex / den[i], cnt, y, x.take((i * 3) % (n * 4)), cnt[i].cumsum(0)


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE, refused="in FP64")
class A7319DoubleModule(nn.Module):
    """A calibrator in FP64 with a small temperature, an isotonic table by searchsorted and gather, Platt's sigmoid, logits clipped at 1e-7."""

    def __init__(self):
        super().__init__()
        self.register_buffer("t", torch.tensor(0.37, dtype=torch.float64))
        self.register_buffer("xs", torch.linspace(0, 1, 7))
        self.register_buffer("ys", torch.tensor([0.0, 0.1, 0.1, 0.4, 0.6, 0.9, 1.0]))

    def forward(self, x):
        p = torch.softmax(x.double() / self.t, -1).float()
        j = torch.searchsorted(self.xs, p.contiguous()).clamp(1, 6)
        x0, x1 = self.xs[j - 1], self.xs[j]
        y = torch.lerp(self.ys[j - 1], self.ys[j], (p - x0) / (x1 - x0))
        c = p.clamp(1e-7, 1 - 1e-7)
        return y, torch.logit(c, eps=1e-6), F.softplus(x, beta=2.5, threshold=3.0), torch.special.xlogy(p, p)


@forward("a:float32[N,3,3]=-1:1", "b:float32[N,3]=-2:2", dims="N=1:2:4", kinds=("normal", "unit", "ones", "zeros"))
def A7320SmallLinearAlgebra(self, a, b):
    """A 3x3 inverse by cofactors, det, a Cholesky by hand, power iterations, Gram-Schmidt, matrix powers, outer and cross products."""
    c = torch.linalg.cross(a[:, 0], a[:, 1])
    det = (c * a[:, 2]).sum(-1)
    s = a @ a.mT + torch.eye(3)
    l00 = s[:, 0, 0].sqrt()
    l10 = s[:, 1, 0] / l00
    l11 = (s[:, 1, 1] - l10**2).sqrt()
    v = torch.ones_like(b)
    for _ in range(4):
        v = F.normalize((s @ v[..., None])[..., 0], dim=-1)
    q = [F.normalize(s[:, 0], dim=-1)]
    for k in (1, 2):
        u = s[:, k]
        for w in q:
            u = u - (u * w).sum(-1, keepdim=True) * w
        q.append(F.normalize(u, dim=-1))
    return det, torch.stack([l00, l10, l11], -1), v, torch.stack(q, 1), torch.linalg.matrix_power(s, 3), torch.trace(s[0]), b[:, :, None] * b[:, None]


@forward("x:float32[N,6]=-3:3", "m:bool[N,6]", dims="N=1:3:5", kinds=FINITE)
def A7321MaskedStatistics(self, x, m):
    """Masked softmax with empty rows, var with a count clamp, masked min and max with the dtype's ends, first and last true, runs of trues."""
    w = m.float()
    n = w.sum(1, keepdim=True)
    mu = (x * w).sum(1, keepdim=True) / n.clamp(min=1)
    var = ((x - mu) ** 2 * w).sum(1) / (n[:, 0] - 1).clamp(min=1)
    big = torch.finfo(x.dtype).max
    mn = x.masked_fill(~m, big).amin(1)
    mx = torch.where(m, x, -big).amax(1)
    p = torch.nan_to_num(x.masked_fill(~m, -torch.inf).softmax(1))
    first = m.int().argmax(1)
    last = x.size(1) - 1 - m.flip(1).int().argmax(1)
    c = m.int().cumsum(1)
    run = c - torch.where(m, 0, c).cummax(1).values
    return mu, var, mn, mx, p, first, last, run


@forward("x:float32[N,T]=-3:3", dims="N=1:2:4 T=2:6:11", kinds=FINITE)
def A7322TimeFeatures(self, x):
    """Differences, diffs of order two, exponential smoothing by a matrix of powers, autocorrelation at half the length, seasonal means by reshape of what divides by 3."""
    t = x.shape[1]
    i = torch.arange(t)
    w = torch.tril(0.7 ** (i[:, None] - i[None]).clamp(min=0).float()) * 0.3
    w[:, 0] = w[:, 0] / 0.3
    lag = t // 2
    z = x - x.mean(1, keepdim=True)
    ac = (z[:, lag:] * z[:, : t - lag]).sum(1) / z.pow(2).sum(1).clamp(min=1e-6)
    full = t - t % 3
    s = x[:, :full].reshape(x.size(0), -1, 3).sum(1) / max(full // 3, 1)
    return x.diff(dim=1), torch.diff(x, n=2, prepend=x[:, :1], append=x[:, -1:]), x @ w.T, ac, s, torch.trapezoid(x, dx=0.5), torch.cumulative_trapezoid(x, dim=1)


@forward("x:float32[N,3]=-9:9", dims="N=1:3:6", kinds=FINITE)
def A7323Geodesy(self, x):
    """Haversine, angles wrapped by remainder and by atan2, degrees, hypot, sinc, copysign, ldexp, cyclic features, nextafter-free rounding to a grid."""
    lat, lon, h = (x.unbind(1))
    r = torch.deg2rad(lat * 10)
    a = torch.sin(r / 2) ** 2 + torch.cos(r) * torch.sin(lon / 2) ** 2
    d = 2 * 6371.0088 * torch.asin(a.clamp(0, 1).sqrt())
    w = torch.remainder(lon + math.pi, 2 * math.pi) - math.pi
    w2 = torch.atan2(torch.sin(lon), torch.cos(lon))
    grid = torch.floor(h / 0.25 + 0.5) * 0.25
    return d, w, w2.abs(), torch.hypot(lat, h), torch.sinc(h), torch.copysign(lat, h), torch.ldexp(lat, torch.tensor(3)), grid, torch.frac(h), torch.trunc(lat), torch.heaviside(h, torch.tensor(0.5))


@forward("x:float32[N,T]=-3:3", "k:int64[N,2]=0:20", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
def A7324UniqueAtFixedSize(self, x, k):
    """Ids hashed to embeddings by modulo of primes, isin, a set difference by comparisons, combinations by triu indices, cartesian pairs, repeat_interleave by sizes."""
    t = x.shape[1]
    iu = torch.triu_indices(t, t, offset=0)
    pair = x[:, iu[0]] * x[:, iu[1]]
    known = torch.tensor([3, 7, 13, 20])
    rep = x.repeat_interleave(2, dim=1)[:, : t + 1]
    return pair, torch.isin(k, known), (k * 2654435761) % 97, rep, torch.stack(torch.meshgrid(x[0], x[-1], indexing="xy"), -1), torch.tril(x[:, :, None] - x[:, None], -1)


@attack("x:float32[N,5]=-3:3", dims="N=2:4:8", kinds=FINITE)
class A7325TabNetBits(nn.Module):
    """Sparsemax by a sort and cumsum, entmax by bisection, ghost batch norm by chunks, GLU blocks, an oblivious tree by one-hot of thresholds."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(13)
        self.l = nn.Linear(5, 6)
        self.register_buffer("thr", torch.tensor([0.1, -0.3, 0.7]))
        self.register_buffer("leaf", torch.randn(8, 2))

    def forward(self, x):
        z, _ = x.sort(-1, descending=True)
        k = torch.arange(1, 6)
        c = z.cumsum(-1) - 1
        sup = (k * z > c).sum(-1, keepdim=True)
        sp = (x - c.gather(-1, sup - 1) / sup).clamp(min=0)
        lo, hi = x.amax(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
        for _ in range(20):
            mid = (lo + hi) / 2
            f = (x - mid).clamp(min=0).sum(-1, keepdim=True) - 1
            lo, hi = torch.where(f >= 0, mid, lo), torch.where(f >= 0, hi, mid)
        bits = (x[:, :3] > self.thr).long()
        tree = self.leaf[(bits * torch.tensor([4, 2, 1])).sum(-1)]
        return sp, (x - lo).clamp(min=0), F.glu(self.l(x)), tree

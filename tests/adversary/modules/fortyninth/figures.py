# ruff: noqa: E501 - attacks are written as users write them
"""Rare values: steps of quantisers, ends of types, ties, signed zeros, thresholds that are weights, empty selections."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import ODD, own
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
STEPS = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 0.125, 0.375, 127.5, -128.5, 0.0, -0.0, 448.0, 464.0, 480.0, 6.0, 5.0]], np.float32)


@attack(X, **seq(X, own=own(np.array([[-32768.0, 1.0, 511.75, 3.0, -32768.0]], np.float32))))
class A6281MarkInAWeight(nn.Module):
    """What is missing is marked by a number that stands in a buffer, and a limit in a parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("missing", torch.tensor(-32768.0))
        self.limit = nn.Parameter(torch.tensor([511.75]))

    def forward(self, x):
        gone = x == self.missing
        y = torch.where(gone, 0.0, x)
        return y.sum(1) / (~gone).sum(1).clamp(min=1), torch.where(y >= self.limit, self.limit, y), torch.isin(x, torch.stack([self.missing, self.limit[0]])).any(1)


@forward(X, **seq(X, own=own(STEPS)))
def A6282Fp8ByHand(self, x):
    """E4M3 by arithmetic: an exponent by frexp, mantissas rounded to even, saturated at 448, subnormals, and FP4 by a table with ties."""
    s = x.clamp(-448, 448)
    _, e = torch.frexp(s)
    e = (e - 1).clamp(min=-6)
    q = torch.round(s / torch.exp2((e - 3).float())) * torch.exp2((e - 3).float())
    tab = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    mid = (tab[1:] + tab[:-1]) / 2
    code = torch.bucketize(x.abs(), mid)
    return q, code, tab[code] * torch.sign(x), torch.bucketize(x.abs(), mid, right=True)


@forward(X, **seq(X, own=own(STEPS)))
def A6283QuantisersOfGroups(self, x):
    """GPTQ-like: groups of four with a scale by range and a zero point that is rounded, codes of three bits, and a symmetric one by 2/3 of a maximum."""
    y = F.pad(x, (0, -x.shape[1] % 4)).unflatten(1, (-1, 4))
    lo, hi = y.amin(-1, keepdim=True).clamp(max=0), y.amax(-1, keepdim=True).clamp(min=0)
    s = ((hi - lo) / 7).clamp(min=1e-5)
    z = torch.round(-lo / s)
    q = torch.clamp(torch.round(y / s) + z, 0, 7)
    t = torch.round(y / (y.abs().amax(-1, keepdim=True) / 1.5).clamp(min=1e-5)).clamp(-1, 1)
    return (q - z) * s, z, t.to(torch.int8), (q.long() << (3 * torch.arange(4))).sum(-1)


@forward("h:float16[N,T]", **seq("h:float16[N,T]"))
def A6284HalfSteps(self, h):
    """Half inputs: steps of a tenth, remainders, a sign of a difference, a floor of a quotient, sums to a half and back, a comparison with a size."""
    return torch.floor(h / 0.1), torch.remainder(h, 0.3), torch.sign(h - 0.1), (h * 3).round() == 2, h.cumsum(1), torch.where(h > h.mean(1, keepdim=True), h, -h), h.clamp(-0.3, 0.7), h + h.shape[1], torch.addcmul(h, h, h, value=0.5), h.pow(2).mean(1), torch.hypot(h, h * 0.1)


@forward(X, **seq(X))
def A6285BrainWithin(self, x):
    """bfloat16 within: a product with a tenth, a sum, a comparison, an argmax among what became equal."""
    b = x.bfloat16()
    return (b * 0.1).float(), b.sum(1).float(), b > 0.3, (b * 4).argmax(1), (b - b.float()).abs().amax(1)


@forward(X, "y:float32[N,T]", **seq(X, "y:float32[N,T]", own=tuple((lambda a=a, b=b: {"x": a, "y": b}) for a, b in ((ODD[:, :6], ODD[:, ::-1][:, :6]), (np.array([[0.0, -0.0, 0.0, -0.0]], np.float32), np.array([[-0.0, 0.0, 0.0, -0.0]], np.float32))))))
def A6286TwoAtTheirEdges(self, x, y):
    """Two operands at their edges: maxima, copysign, fmod, hypot, ldexp by clamped ones, xlogy, comparisons, nextafter's order, atan2 times four."""
    return torch.fmax(x, y), torch.fmin(x, y), torch.fmod(x, y), torch.xlogy(x.abs(), y.abs()), torch.special.xlog1py(x, y.abs()), torch.ldexp(x, y.round().clamp(-9, 9)), (x <= y) ^ (y <= x), torch.where(x == y, 1.0, torch.atan2(x, y) * 4), torch.copysign(x, y) + 1, torch.logaddexp(x, y)


@forward(X, MT, **seq(X, MT))
def A6287SelectionsThatAreEmpty(self, x, m):
    """Means, maxima, softmaxes, variances and quantiles over what a mask leaves, which may be nothing: by infinities, by nan, by counts."""
    lo = x.masked_fill(~m, -math.inf)
    top = lo.amax(1)
    nan = x.masked_fill(~m, math.nan)
    p = lo.softmax(1).nan_to_num(0.0)
    v = nan.nanmean(1)
    return torch.where(m.any(1), top, -1.0), p, v.nan_to_num(7.0), nan.nansum(1), torch.nanmedian(nan, 1).values.nan_to_num(9.0), lo.logsumexp(1), (lo == top[:, None]).sum(1), lo.argmax(1) * m.any(1)


@forward("i:int64[N,T]=-5:5", "j:int32[N,T]=-5:5", **seq("i:int64[N,T]=-5:5", "j:int32[N,T]=-5:5"))
def A6288WholeMix(self, i, j):
    """Whole numbers of two widths and signs: floor and trunc quotients by a clamped divisor, powers, shifts, clamps by tensors, mod of both signs, argsort ties."""
    d = torch.where(j == 0, 1, j)
    return i // d, i % d, torch.div(i, d, rounding_mode="trunc"), torch.fmod(i, d), i**2 - j**3, torch.clamp(i, j, j + 3), (i * j).cumsum(1), torch.maximum(i, j), i.float() / d, (i + j).argsort(dim=1, stable=True), i.bitwise_not() & j, (i > j) + (i == j).int(), i.sign() * j


@forward("u:uint8[N,T]=0:255", "k:int8[N,T]=-128:127", **seq("u:uint8[N,T]=0:255", "k:int8[N,T]=-128:127"))
def A6289BytesAtWork(self, u, k):
    """Bytes: gamma by a table, nibbles swapped, a rotate, a Gray code, parity by folding, saturating sums by int16, a checksum mod 255, sign extension."""
    lut = ((torch.arange(256) / 255) ** (1 / 2.2) * 255).round().to(torch.uint8)
    sw = (u << 4) | (u >> 4)
    rot = (u << 3) | (u >> 5)
    gray = u ^ (u >> 1)
    p = u ^ (u >> 4)
    p = p ^ (p >> 2)
    p = (p ^ (p >> 1)) & 1
    sat = (k.to(torch.int16) + k.flip(1).to(torch.int16)).clamp(-128, 127).to(torch.int8)
    return lut[u.long()], sw, rot, gray, p, sat, u.long().cumsum(1) % 255, u.view(torch.int8) if False else (u.to(torch.int16) - 256 * (u > 127)).to(torch.int8), k >> 2, -k, k.abs()


@forward(X, **seq(X, own=own(np.array([[0.25, 0.5, 0.75, 1.0, -0.25, 0.0]], np.float32))))
def A6290PhasesThatWrap(self, x):
    """Phases: wrapped by floor, by remainder, by atan2; a saw, a triangle, a square by sign of a sine at whole turns, unwrapped by jumps."""
    w = x - torch.floor(x + 0.5)
    r = torch.remainder(x + 0.5, 1.0) - 0.5
    saw = 2 * (x - torch.floor(x)) - 1
    tri = 1 - 4 * (w.abs() - 0.25).abs()
    d = F.pad(w[:, 1:] - w[:, :-1], (1, 0))
    un = w - torch.round(d).cumsum(1)
    return w, r, saw, tri, un, (torch.frac(x) >= 0.5).int() * 2 - 1, torch.where(d.abs() > 0.5, -d.sign(), 0.0)


@forward(X, **seq(X))
def A6291SortsOfAllKinds(self, x):
    """Orders among ties: sort both ways, unique by neighbours, ranks with means for ties, medians, modes, kth from a size, top halves."""
    y = (x * 2).round()
    s, o = y.sort(dim=1, descending=True, stable=True)
    new = F.pad(s[:, 1:] != s[:, :-1], (1, 0), value=True)
    lt, eq = (y[:, :, None] > y[:, None]).sum(2), (y[:, :, None] == y[:, None]).sum(2)
    k = y.shape[1] // 2 + 1
    return s, o, new.cumsum(1), lt + (eq + 1) / 2, y.median(1).values, y.kthvalue(k, 1).values, y.topk(k, 1).values.sum(1), y.mode(1).values, torch.msort(y.T)


@attack(X4, **seq(X4))
class A6292ExponentialMovingByDecay(nn.Module):
    """Running averages that a window closes: decays as powers, their sum from a geometric series whose ratio may be one in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("r", torch.tensor([0.5, 0.9, 1.0, 0.0]))

    def forward(self, x):
        t = x.shape[1]
        k = torch.arange(t - 1, -1, -1)
        w = self.r[None] ** k[:, None]
        s = torch.where(self.r == 1, float(t), (1 - self.r**t) / (1 - self.r).clamp(min=1e-9))
        return (x * w).sum(1) / s, w.sum(0) + s, torch.cumprod(self.r.expand(t, 4), 0)


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]"))
def A6293HistogramsCompared(self, x, y):
    """Sorted samples at common quantiles: Wasserstein, Kolmogorov-Smirnov by searchsorted both sides, ties between the two."""
    a, b = (x * 2).round().sort(1).values, (y * 2).round().sort(1).values
    al = torch.cat([a, b], 1).sort(1).values.contiguous()
    fa = torch.searchsorted(a.contiguous(), al, right=True) / x.shape[1]
    fb = torch.searchsorted(b.contiguous(), al, side="right") / y.shape[1]
    return (fa - fb).abs().amax(1), ((fa - fb).abs()[:, :-1] * (al[:, 1:] - al[:, :-1])).sum(1), torch.searchsorted(a.contiguous(), b.contiguous())


@forward(IMAGE, **pix(IMAGE))
def A6294MorphologyAndDistance(self, x):
    """Erosion by minus a maximum, opening, a distance transform by rows of cumulated minima, edges by hysteresis in four rounds."""
    m = (x[:, :1] > 0.5).float()
    er = -F.max_pool2d(-m, 3, 1, 1)
    op = F.max_pool2d(er, 3, 1, 1)
    big = x.shape[2] + x.shape[3]
    d = torch.where(m > 0, float(big), 0.0)
    for dim in (2, 3):
        i = torch.arange(x.shape[dim]).view([-1 if k == dim else 1 for k in range(4)])
        f = (d - i).cummin(dim).values + i
        g = ((d + i).flip(dim).cummin(dim).values).flip(dim) - i
        d = torch.minimum(torch.minimum(f, g), d)
    weak, strong = x[:, :1] > 0.2, x[:, :1] > 1.0
    for _ in range(4):
        strong = (F.max_pool2d(strong.float(), 3, 1, 1) > 0) & weak
    return er, op, d, strong.sum((1, 2, 3))


@forward(X4, **seq(X4))
def A6295NormsByHand(self, x):
    """Normalisations: power norm, RMS with an epsilon within or beside the root, batch statistics over valid steps, Lp by 3, a maximum norm, dynamic tanh."""
    rms = x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-6)
    rm2 = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    lp = F.normalize(x, p=3.0, dim=1)
    li = F.normalize(x, p=math.inf, dim=-1)
    v, mu = torch.var_mean(x, (0, 1), correction=0)
    l0 = torch.linalg.vector_norm(x, 0, -1)
    return rms, rm2, lp, li, (x - mu) / (v + 1e-3).sqrt(), l0, torch.tanh(0.5 * x), torch.linalg.vector_norm(x, -math.inf, 1), x.norm(p=0.5, dim=-1)

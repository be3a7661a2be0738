# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them
"""Kinds of numbers: halves beside tensors without axes, promotion in choices, ties and places of extremes, NaN, integers of all widths, complex."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"
HT = "h:float16[N,T]"


def lengths(*sizes: int, text: str = XT, rows: int = 1) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=rows, T=t) for t in sizes)


def grid(count: int, step: float, name: str = "h", dtype: type = np.float16) -> tuple:
    """One row of multiples of a step about zero."""
    return (lambda: {name: ((np.arange(count) - count // 2) * step).astype(dtype)[None]},)


@attack(HT, dims="N=1:2:3 T=1:9:400", kinds=FEW, feeds=(*grid(400, 0.1), *grid(400, 0.03), *grid(400, 1 / 64)))
class A4440HalvesBesideNumbersInTensors(nn.Module):
    """A half times, over, plus, less a parameter of FP32 without axes: torch keeps the number in FP32, but rounds the result."""
    def __init__(self):
        super().__init__()
        self.s, self.t = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor(0.1))
        self.register_buffer("k", torch.tensor(3.3333))
    def forward(self, h):
        return h * self.s, h / self.k, h + self.t, h - self.s, self.t * h + self.k, (h / self.k).round()
@attack(HT, dims="N=1:2:3 T=1:9:400", kinds=FEW, feeds=(*grid(400, 0.1), *grid(400, 0.05)))
class A4441HalvesAgainstLimitsInTensors(nn.Module):
    """A half compared with, bounded by, chosen against a limit of FP32 and of FP64 without axes, in one axis, as a number."""
    def __init__(self):
        super().__init__()
        self.lim, self.one = nn.Parameter(torch.tensor(0.3)), nn.Parameter(torch.tensor([0.7]))
        self.register_buffer("d", torch.tensor(0.1, dtype=torch.float64))
    def forward(self, h):
        return h > self.lim, h >= self.d, h < self.one, torch.maximum(h, self.lim), torch.where(h > 0, h, self.lim), torch.clamp(h, self.lim, self.d + 1), torch.minimum(h, self.one), h == self.d
@attack("h:float32[N,T]", dims="N=1:2:3 T=1:9:300", kinds=FEW, feeds=(*grid(300, 0.1, dtype=np.float32), *grid(300, 0.37, dtype=np.float32)))
class A4442Bfloat16BesideTensors(nn.Module):
    """The same of bfloat16 made within: products with a number of FP32, a lerp, addcmul, a fused scale, cast back."""
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.7))
        self.register_buffer("v", torch.tensor([1.1, 2.3]).bfloat16())
    def forward(self, h):
        b = h.bfloat16()
        return (b * self.s).float(), (b / self.s).float(), (b[..., None] * self.v).float(), torch.lerp(b, b * 2, 0.3).float(), torch.addcmul(b, b, b, value=0.3).float(), (b > self.s), b.pow(2).float(), (b * 0.7 + 0.1).float(), torch.rsub(b, 0.3).float()
@forward(HT, "i:int64[N,T]=-3000:3000", dims=ROWS, kinds=FEW, feeds=(lambda: {"h": np.array([[1, 2, 3, 4]], np.float16), "i": np.array([[2049, 2051, -4097, 70000]])},))
def A4443ChoicesPromote(self, h, i):
    """torch.where of halves, whole numbers, numbers of Python and tensors without axes; masked_fill keeps the type, cat and stack promote."""
    m = h > 0
    return torch.where(m, h, 0.1), torch.where(m, i, 0.5), torch.where(m, 1, 0), torch.where(m, torch.tensor(1.5), i), torch.where(m, h, i), i.masked_fill(m, 7), torch.cat([h, i], 1), torch.stack([i, m.long()]), torch.where(m, h, torch.tensor(0.1, dtype=torch.float64)), torch.where(m, 2.0, 3)
@forward(XT, dims=ROWS, kinds=FEW, feeds=(halves(2, 20), lambda: {"x": np.array([[2, 2, 1, 2, 3, 3, 0, -0.0, 0.0]], np.float32)}, lambda: {"x": np.zeros((1, 20), np.float32)}))
def A4444PlacesOfTies(self, x):
    """cummax and cummin give the last of equals, max the first, median and kthvalue and mode their own, sort stable both ways, aminmax, argsort of flags."""
    a, b = x.cummax(1), x.cummin(1)
    s = torch.sort(x, dim=1, descending=True, stable=True)
    return a.indices, b.indices, x.max(1).indices, x.flip(1).argmin(1), x.median(1).values, s.indices, (x > 0).int().argsort(dim=1, stable=True), (x == x.amax(1, keepdim=True)).float().argmax(1), x.mode(1).values, *torch.aminmax(x, dim=1), (x > 0).max(1).indices
@forward(XT, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[0, 1, -1, 0, 2]], np.float32)}, lambda: {"x": np.array([[3, 1, 0, -4]], np.float32)}), refused="the exported model differs from the module")
def A4445NotNumbersInOrder(self, x):
    """0/0 and log of negatives made within: extremes, clamps, sorts, searches, nan-aware means, relu, sign, comparisons, where they stand."""
    y = x / x
    z = x.log()
    return y.clamp(0, 0.5), F.relu(z), y.nansum(1), z.nanmean(1), torch.nan_to_num(z, 1.0, 2.0, -3.0), y != y, z.isinf(), torch.fmin(y, x), torch.maximum(y, x), z.amax(1), z.argmax(1), torch.sign(z), z.clamp(min=-1), y.cumsum(1), torch.where(y.isnan(), 9.0, z), z.max(1).values, F.hardtanh(z), F.leaky_relu(y)
@forward("x:float32[N,T]", "e:float32[5]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[-1, 0, 0.5, 1, 1.5, 2, 3]], np.float32), "e": np.array([0, 0.5, 0.5, 1.5, 2], np.float32)},), refused="the module cannot be exported: the exporter has no form of searchsorted")
def A4446Searches(self, x, e):
    """searchsorted by rows, by a sorter, both sides, in int32; bucketize of edges with duplicates; histogram by them, digitised and interpolated as numpy.interp does."""
    s = e.sort().values
    i = torch.searchsorted(s, x)
    j = torch.bucketize(x, s, right=True, out_int32=True)
    rows = torch.searchsorted(s.expand(x.shape[0], 5).contiguous(), x, side="right")
    o = e.argsort(stable=True)
    k = torch.searchsorted(e, x, sorter=o)
    lo = (i - 1).clamp(0, 3)
    w = ((x - s[lo]) / (s[lo + 1] - s[lo]).clamp(min=1e-6)).clamp(0, 1)
    y = torch.lerp(s.square()[lo], s.square()[lo + 1], w)
    return i, j, rows, k, y, F.one_hot(i, 6).sum(1), torch.histc(x, 4, -2, 2)
@forward("a:int32[N,T]=-100:100", "b:uint8[N,T]=0:255", "c:int16[N,T]=-300:300", dims=ROWS, feeds=(lambda: {"a": np.array([[2147483647, -2147483648, 65536, -1]], np.int32), "b": np.array([[255, 128, 1, 0]], np.uint8), "c": np.array([[32767, -32768, 255, -1]], np.int16)},), refused="the exported model differs from the module")
def A4447WidthsBesideEachOther(self, a, b, c):
    """uint8 less uint8, minus a byte, bytes by a number, int16 times a byte, sums of each, products, running ones, means that are asked in a type, comparisons across widths, remainders."""
    return b - b.roll(1, 1), -b, b * 3, c * b, a + c, b.sum(1), c.prod(1), b.cumsum(1), c.cumprod(1), a.sum(1, dtype=torch.int32), b // 7, (c % 7), torch.remainder(c, -7), torch.fmod(c, 7), b > c, a * a, b.float().mean(1), a.abs(), torch.bitwise_xor(b, 0x5A), (b << 1), (c >> 3), torch.div(c, b.clamp(min=1).to(c.dtype), rounding_mode="trunc"), b.bitwise_not(), a.to(torch.int8), a.to(torch.uint8), a.short()
@forward("i:int64[N,T]=0:1000000", dims=ROWS, feeds=(lambda: {"i": np.array([[0, 1, 2**31, 2**53 + 1, 2**62, 86399, 86400]])},), refused="the module cannot be exported: the exporter has no form of gcd")
def A4448ClocksAndCodes(self, i):
    """Days, hours, minutes by divmod; a date of a day number (Hinnant); bases by powers; a Morton code; the sum of digits; a pairing of Cantor; gcd and lcm."""
    m, s = i // 60, i % 60
    h, m = m // 60, m % 60
    z = i % 3000000 + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = torch.where(mp < 10, mp + 3, mp - 9)
    year = yoe + era * 400 + (month <= 2).long()
    v = i & 0xFFFF
    for k, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        v = (v | (v << k)) & mask
    digits = (i[..., None] // 10 ** torch.arange(7)) % 10
    t = i.shape[1]
    j = torch.arange(t)
    return h, m, s, year, month, doy - (153 * mp + 2) // 5 + 1, v, digits.sum(-1), (i % 1000 + j) * (i % 1000 + j + 1) // 2 + j, torch.gcd(i % 5040, j + 1), torch.lcm(i % 12, j + 1)
@forward(X4, dims=ROWS, kinds=FEW, feeds=(normal(1, 1, 4), halves(2, 20, 4)), refused="the exported model differs from the module")
def A4449ComplexThroughout(self, x):
    """exp, log, powers, roots of complex numbers, polar and back, conj products, a complex mean, abs of squares, angles at the cut, real comparisons, where of complex."""
    c = torch.view_as_complex(x.unflatten(-1, (2, 2)))
    d = c.exp() * torch.polar(torch.tensor(0.5), torch.tensor(math.pi / 3))
    e = torch.where(c.abs() > 1, c / c.abs().clamp(min=1e-6), c)
    q = c**2 + c.conj() * 1j
    f = (c * c.conj()).real.sqrt() - c.abs()
    g = torch.sgn(c)
    parts = [torch.view_as_real(v) for v in (d, e, q, c.mean(1), c.sum(-1), g, c.cumsum(1), (c @ torch.eye(2).to(c.dtype)), c.reciprocal().nan_to_num() if False else c * 1)]
    return *parts, f, c.angle(), (-c.abs() + 0j).angle(), c.imag.sign()
@forward(XT, dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.array([[0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5]], np.float32)},), refused="the module cannot be exported: the exporter has no form of bessel_i0")
def A4450SpecialFunctions(self, x):
    """i0, i1e, entr, ndtri, log_ndtr, erfcx, digamma, polygamma, lgamma, zeta, sinc, logit with eps, xlogy, bessel_j0, exp2, expit, heaviside, hypot, copysign, nextafter, float_power."""
    u = x.abs() + 0.25
    p = torch.sigmoid(x)
    return torch.i0(x), torch.special.i1e(x), torch.special.entr(p), torch.special.ndtri(p), torch.special.log_ndtr(x), torch.digamma(u), torch.lgamma(u), torch.sinc(x), torch.logit(x, eps=1e-3), torch.xlogy(x.abs(), u), torch.exp2(x), torch.heaviside(x, torch.tensor(0.5)), torch.hypot(x, u), torch.copysign(u, x), torch.float_power(u, 2)
@forward(XT, dims="N=1:2:3 T=1:9:20", kinds=FEW, feeds=(*lengths(1, 2, 3, 20), *lengths(1, rows=3)))
def A4451DeviationsOfOne(self, x):
    """var and std with corrections at a size of one, cov and corrcoef, kurtosis, a z-score guarded against NaN, quantiles of four kinds, nanquantile, a trimmed mean."""
    v, m = torch.var_mean(x, 1, correction=1)
    z = torch.nan_to_num((x - m[:, None]) / v[:, None].sqrt(), 0.0, 0.0, 0.0)
    q = [torch.quantile(x, 0.35, dim=1, interpolation=k) for k in ("linear", "lower", "higher", "nearest", "midpoint")]
    c = torch.cov(x) if x.shape[0] > 1 else x.var(1).view(1, 1)
    k = x.shape[1] // 10
    s = x.sort(1).values[:, k : x.shape[1] - k].mean(1)
    return v, z, *q, s, x.std(1, unbiased=False), c
@forward(X4, "y:int64[N,T]=-1:3", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.ones((1, 2, 4), np.float32), "y": np.array([[-1, -1]])}, lambda: {"x": np.eye(4, dtype=np.float32)[None], "y": np.array([[0, -1, 2, 3]])}), refused="the module cannot be exported")
def A4452LossesInForward(self, x, y):
    """Cross entropy with an ignored index, weights and smoothing (NaN where all are ignored), nll by element, KL of logs, Huber, focal, dice, margins, cosine."""
    w = torch.tensor([1.0, 0.5, 2.0, 0.25])
    f, t = x.flatten(0, 1), y.flatten()
    ce = F.cross_entropy(f, t, weight=w, ignore_index=-1, label_smoothing=0.1)
    each = F.cross_entropy(x.mT, y, ignore_index=-1, reduction="none")
    k = F.kl_div(x.log_softmax(-1), x.flip(-1).log_softmax(-1), reduction="batchmean", log_target=True)
    hot = F.one_hot(y.clamp(min=0), 4).float() * (y >= 0)[..., None]
    p = x.sigmoid()
    focal = ((1 - torch.where(hot > 0, p, 1 - p)) ** 2 * F.binary_cross_entropy_with_logits(x, hot, reduction="none")).mean()
    dice = 1 - (2 * (p * hot).sum() + 1) / (p.sum() + hot.sum() + 1)
    return ce, each, k, focal, dice, F.huber_loss(x, hot, delta=0.7), F.smooth_l1_loss(x, hot, beta=0.5), F.multilabel_soft_margin_loss(f, hot.flatten(0, 1)), F.triplet_margin_loss(f, f.flip(0), hot.flatten(0, 1)), F.gaussian_nll_loss(x, hot, x.abs()), F.poisson_nll_loss(x.clamp(max=3), hot, full=True), F.cosine_embedding_loss(f, hot.flatten(0, 1), torch.ones(f.shape[0]))
@forward(XT, dims=ROWS, kinds=FEW, feeds=(*lengths(1, 20), lambda: {"x": np.array([[65504, 65520, 7e4, -7e4, 6e-8, 3e-8, 2.98e-8, 1e-9]], np.float32)}))
def A4453HalvesAtTheirEnds(self, x):
    """FP16 of what overflows and underflows, sums of halves, a softmax and a norm in halves, exponents beyond range, back to FP32; finfo limits as fills."""
    h = x.half()
    m = torch.finfo(torch.float16)
    return h, h.float() - x, (h * h).float(), torch.where(x > 0, h, m.min).amax(1), h.clamp(m.min, m.max), (h + 1).float() - 1, h.sum(1).isfinite(), (x.bfloat16() + 0.0).float(), h.masked_fill(x < 0, m.min).softmax(-1), (h / 3).float()
@forward("x:float64[N,T]", "y:float32[N,T]", dims=ROWS, kinds=FEW, refused="does not compute what the module computes")
def A4454DoublesBesideFloats(self, x, y):
    """FP64 sums of FP32, a cumulative product in FP64, a mean that cancels, a phase modulo one, cast at the end."""
    s = y.double().cumsum(1)
    p = (x.cumsum(1) * 0.1) % 1.0
    return (x + y).float(), s.float(), p, (x * y).sum(1), (y.double() - y.double().mean(1, keepdim=True)).float()
@forward("b:bool[N,T]", "k:int8[N,T]=-8:7", dims=ROWS)
def A4455FlagsAndNibbles(self, b, k):
    """Sums, products, running ands and ors, any and all over axes, xor of flags, flags as an index, nibbles packed to bytes and back with their sign, parity of bits."""
    n, t = b.shape
    e = F.pad(k, (0, t % 2))
    lo, hi = e[:, ::2] & 0xF, e[:, 1::2] & 0xF
    packed = (hi << 4 | lo).view(torch.uint8) if False else ((hi.int() << 4) | lo.int()).to(torch.uint8)
    back = torch.stack([packed & 15, packed >> 4], -1).flatten(1)[:, :t].to(torch.int8)
    back = torch.where(back > 7, back - 16, back)
    run = b.long().cumsum(1)
    since = torch.arange(t) - torch.where(b, torch.arange(t), -1).cummax(1).values
    return packed, back, b.cumprod(1).bool(), run > 0, since, b.sum(1), b.float().mean(1), torch.tensor([10, 20])[b.long()], (run % 2).bool() ^ b, b * k, b & (k > 0), ~b | b.flip(1), b.all(1), b.any(0), k[:, :1] * b, b.prod(1)
@attack(XT, dims="N=1:2:3 T=1:9:20", kinds=FEW, feeds=(*grid(20, 0.5, "x", np.float32), lambda: {"x": np.array([[1e-3, -1e-3, 7.4999995, 7.5, -7.5, 127.5]], np.float32)}))
class A4456ObserversAndLsq(nn.Module):
    """PACT, LSQ with a gradient scale that is one, DoReFa by tanh and the largest, a log2 quantiser, zero points in float, an asymmetric one by row with ties."""
    def __init__(self):
        super().__init__()
        self.alpha, self.s = nn.Parameter(torch.tensor(3.0)), nn.Parameter(torch.tensor(0.25))
        self.register_buffer("n", torch.tensor(0))
    def forward(self, x):
        p = 0.5 * (x.abs() - (x - self.alpha).abs() + self.alpha)
        p = torch.round(p * 15 / self.alpha) * self.alpha / 15
        g = 1.0 / math.sqrt(4 * 7)
        s = (self.s - self.s * g).detach() + self.s * g
        l = ((x / s).clamp(-8, 7).round()) * s
        t = x.tanh()
        d = t / (2 * t.abs().amax() + 1e-6) + 0.5
        lo, hi = x.amin(1, keepdim=True).clamp(max=0), x.amax(1, keepdim=True).clamp(min=0)
        sc = ((hi - lo) / 255).clamp(min=1e-8)
        z = (-lo / sc).round()
        q = ((x / sc).round() + z).clamp(0, 255)
        return p, l, (q - z) * sc, d
@attack(X4, "lens:int64[N]=1:9", dims="N=1:2:3 T=9", kinds=FINITE[:4])
class A4511OrdinaryRecurrence(nn.Module):
    """A bidirectional LSTM over packed rows that are not sorted, its last states joined, a GRU of two layers, an attention over it."""
    def __init__(self):
        super().__init__()
        self.l, self.g, self.a = nn.LSTM(4, 3, bidirectional=True, batch_first=True), nn.GRU(6, 3, 2, batch_first=True), nn.Linear(3, 1)
    def forward(self, x, lens):
        p = nn.utils.rnn.pack_padded_sequence(x, lens.cpu(), batch_first=True, enforce_sorted=False)
        y, (h, _) = self.l(p)
        y, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
        z, _ = self.g(y)
        return torch.cat([h[-2], h[-1]], 1), (self.a(z).softmax(1) * z).sum(1), n
@attack("x:uint8[H,W,3]=0:255", dims="H=4:9:16 W=4:10:16")
class A4512OrdinaryPreprocess(nn.Module):
    """A picture as bytes, its channels turned, resized to a shorter side of eight with antialias, a crop of the middle, normalised."""
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
    def forward(self, x):
        x = x.flip(-1).permute(2, 0, 1)[None].float() / 255
        h, w = x.shape[-2:]
        short = min(h, w)
        nh, nw = int(8 * h / short), int(8 * w / short)
        y = F.interpolate(x, (nh, nw), mode="bilinear", antialias=True)
        top, left = round((nh - 8) / 2), round((nw - 8) / 2)
        return (y[0, :, top : top + 8, left : left + 8] - self.mean) / self.std
@attack("ids:int64[N,T]=0:9", dims="N=1:2:3 T=1:6:12")
class A4513OrdinaryDecoder(nn.Module):
    """A small GPT: learnt positions, a causal mask by torch.tril kept as a buffer, tied weights, the logits of the last real token by its id, a loss that is shifted."""
    def __init__(self):
        super().__init__()
        self.e, self.p, self.ln = nn.Embedding(10, 4), nn.Embedding(12, 4), nn.LayerNorm(4)
        self.qkv, self.head = nn.Linear(4, 12), nn.Linear(4, 10, bias=False)
        self.head.weight = self.e.weight
        self.register_buffer("tril", torch.tril(torch.ones(12, 12)))
    def forward(self, ids):
        b, t = ids.shape
        x = self.e(ids) + self.p(torch.arange(t))
        q, k, v = self.qkv(self.ln(x)).split(4, 2)
        w = (q @ k.transpose(-2, -1) / 2).masked_fill(self.tril[:t, :t] == 0, float("-inf")).softmax(-1)
        y = self.head(x + w @ v)
        last = (ids == 0).int().argmax(-1) - 1
        last = last % t
        loss = F.cross_entropy(y[:, :-1].reshape(-1, 10), ids[:, 1:].reshape(-1), reduction="none") if t > 1 else y.sum()
        return y[torch.arange(b), last], loss.mean()
@attack("x:float32[N,1,T]", dims="N=1:1:2 T=16:40:80", kinds=FINITE[:4], feeds=tuple(values_at("x:float32[N,1,T]", N=1, T=t) for t in (16, 17, 79, 80)))
class A4514OrdinaryCodec(nn.Module):
    """A streamed codec: causal convolutions whose extra padding depends on the length, Snake, a transposed convolution cut on the right, weight norm, a VQ of the middle."""
    def __init__(self):
        super().__init__()
        wn = nn.utils.parametrizations.weight_norm
        self.down, self.up = wn(nn.Conv1d(1, 4, 8, 4)), wn(nn.ConvTranspose1d(4, 1, 8, 4))
        self.alpha, self.book = nn.Parameter(torch.rand(1, 4, 1)), nn.Embedding(8, 4)
    def forward(self, x):
        t = x.shape[-1]
        k, s = 8, 4
        frames = (t - k + (k - s)) / s + 1
        extra = (math.ceil(frames) - 1) * s + (k - (k - s)) - t
        y = self.down(F.pad(x, (k - s, extra)))
        y = y + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * y).pow(2)
        i = torch.cdist(y.mT, self.book.weight[None]).argmin(-1)
        z = self.up(self.book(i).mT)
        return z[..., : z.shape[-1] - (k - s)][..., :t], i, y
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=7:14:20 W=7:13:20", kinds=FINITE[:3], feeds=tuple(values_at("x:float32[N,3,H,W]", N=1, H=h, W=w) for h, w in ((7, 7), (7, 20), (20, 20), (15, 13))))
class A4515OrdinaryVit(nn.Module):
    """Patches padded to seven, positions resized by bicubic to the grid, registers, a window partition of what is padded, layer scale, the picture back and cut."""
    def __init__(self):
        super().__init__()
        self.pe, self.pos, self.reg = nn.Conv2d(3, 4, 7, 7), nn.Parameter(torch.randn(1, 10, 4)), nn.Parameter(torch.randn(1, 2, 4))
        self.att, self.g, self.out = nn.MultiheadAttention(4, 1, batch_first=True), nn.Parameter(torch.full((4,), 0.1)), nn.Linear(4, 49)
    def forward(self, x):
        n, _, h, w = x.shape
        x = F.pad(x, (0, (7 - w % 7) % 7, 0, (7 - h % 7) % 7))
        y = self.pe(x)
        gh, gw = y.shape[2:]
        p = self.pos[:, 1:].reshape(1, 3, 3, 4).permute(0, 3, 1, 2)
        if (gh, gw) != (3, 3):
            p = F.interpolate(p, size=(gh, gw), mode="bicubic", align_corners=False)
        t = (y + p).flatten(2).mT
        t = torch.cat([self.pos[:, :1].expand(n, -1, -1), self.reg.expand(n, -1, -1), t], 1)
        t = t + self.g * self.att(t, t, t, need_weights=False)[0]
        z = self.out(t[:, 3:]).view(n, gh, gw, 7, 7).permute(0, 1, 3, 2, 4).reshape(n, gh * 7, gw * 7)
        return t[:, 0], z[:, :h, :w]
@attack("x:float32[N,T]", dims="N=1:2:3 T=1:9:20", kinds=FEW, feeds=(*lengths(1, 2, 20), *lengths(1, 3, rows=3)))
class A4516MovingStatistics(nn.Module):
    """A running minimum and a counter of calls that forward writes, a queue of the last four means that moves, an EMA that starts with the first, all as buffers."""
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        q = torch.cat([self.queue[1:], x.mean().view(1)])
        y = x - q.mean() * (self.calls + 1)
        return y, q, self.calls + 1
@forward(X4, "y:float32[M,T,4]", "z:float32[N,T]", dims="N=1:2:3 M=1:1:1 T=1:5:9", kinds=FEW)
def A4517BroadcastByOne(self, x, y, z):
    """Batches against one row, a mask from a matrix with an axis of one, where with three shapes, an outer comparison, lerp with a weight that widens, addmm-like sums, a reduction kept and one not kept."""
    a = torch.where(z[..., None] > 0, x, y)
    b = x.mean(1, keepdim=True) * y + z.unsqueeze(-1)
    c = torch.lerp(y, x, z[..., None].sigmoid())
    d = (z[:, :, None] >= z[:, None]).sum(-1)
    e = torch.addcdiv(y, x, y.abs() + 1, value=0.5) - x.sum(1)[:, None]
    f = z * torch.arange(z.shape[1]) - z.mean(0)
    return a, b, c, d, e, f, torch.atan2(y, x), torch.maximum(z.amax(1, keepdim=True), y[..., 0]), torch.einsum("ntd,mtd->nm", x, y), (x @ y.mT), torch.broadcast_shapes(x.shape, y.shape)[0] * z
@forward("x:float32[N,T]", "k:int64[N]=0:5", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": np.arange(20, dtype=np.float32)[None], "k": np.array([5])}, lambda: {"x": np.ones((1, 1), np.float32), "k": np.array([0])}))
def A4518RollsByValue(self, x, k):
    """Each row rolled by its own count, time warped, masked bands by counts modulo the size, gathered from the end by negative remainders, SpecAugment by given starts, a rotation of bits."""
    t = x.shape[1]
    i = torch.arange(t)
    r = x.gather(1, (i - k[:, None]) % t)
    e = x.gather(1, (-1 - i - k[:, None]) % t)
    s = (k * 7) % t
    band = (i >= s[:, None]) & (i < (s + k)[:, None])
    pos = (i * (t - 1) / max(t - 1, 1)).clamp(max=t - 1)
    return r, e, x.masked_fill(band, 0.0), x * (i < t - k[:, None]), torch.fmod(-k, 3), -k // 3, (k << 2 | k >> 1) & 7, x[torch.arange(x.shape[0]), -1 - k % t], pos

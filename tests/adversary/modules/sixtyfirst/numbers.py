"""Numerical code as it is written: decimals, wraps, casts, ties, special functions, reductions with repeated indices."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,T]=-9:9", dims="N=1:2:4 T=2:5:9", kinds=FINITE)
def A7432RoundDecimals(self, x):
    """round with decimals both ways, at halves; floor of quotients; true, floor and trunc divisions; remainder and fmod by negatives."""
    a = torch.round(x, decimals=1)
    b = torch.round(x * 100, decimals=-1)
    c = torch.div(x, -2.5, rounding_mode="trunc") + torch.div(x, -2.5, rounding_mode="floor") * 10
    d = torch.remainder(x, -3) + 10 * torch.fmod(x, -3)
    e = x.frac() + x.trunc() * 2 + torch.floor_divide(x, 0.7)
    return a, b, c, d, e


@forward("x:int64[N,T]=-300:300", "u:uint8[N,T]=0:255", dims="N=1:2:4 T=1:5:9", kinds=FINITE)
def A7433NarrowIntegers(self, x, u):
    """int8 products that wrap, uint8 minus mean, int16 shifts, ~ of uint8, negative of uint8, abs of int8's lowest, right shifts of negatives."""
    i8 = x.to(torch.int8)
    p = (i8 * 3).int()
    q = (u + u).int() - (u - 200).int()
    r = (-u).int() + (~u).int() * 2
    s = (x.to(torch.int16) << 3).long() + (x >> 2) + (x.int() << 2).long()
    m = u.float() - u.float().mean(-1, keepdim=True)
    a = i8.abs().int()
    return p, q, r, s, m, a


@forward("x:float32[N,T]=-400:400", dims="N=1:2:4 T=1:5:9", kinds=("normal", "halves", "bytes", "zeros", "tenths", "negative"))
def A7434FloatToSmallIntegers(self, x):
    """Floats to int16 by int32, clamped to bytes, booleans to floats, truncation of negatives, division of ints, // of negative ints, % of both signs."""
    i = x.int()
    w = i.to(torch.int16).float()
    b = x.clamp(0, 255).round().to(torch.uint8)
    c = (b // 7).int() * 10 + (b % 7).int()
    d = i // 7 + (i % -7) * 100 + torch.div(i, 4, rounding_mode="trunc")
    e = (x > 0) + (x > 5) + (i != 0).sum(-1, keepdim=True)
    f = i / 3 + (x > 3).float().cumsum(-1) + (x > 1).cumsum(-1)
    return w, b, c, d, e, f, (x > 0) ^ (x < 4), torch.logical_xor(i, (i % 2))


@forward("x:float32[N,T]=-3:3", dims="N=1:2:4 T=3:5:9", kinds=FINITE)
def A7435OrderStatistics(self, x):
    """median and its index in odd and even sizes, kthvalue by a size, quantiles of three interpolations, nanmedian, mode-like counts, stable sorts of rounded values."""
    t = x.shape[-1]
    m, mi = x.median(-1)
    k, _ = x.kthvalue((t + 1) // 2 + 1, dim=-1)
    q = torch.quantile(x, torch.tensor([0.1, 0.5, 0.9]), dim=-1)
    ql = torch.quantile(x, 0.35, dim=-1, interpolation="lower") + torch.quantile(x, 0.35, dim=-1, interpolation="midpoint")
    r = x.round()
    v, i = torch.sort(r, dim=-1, stable=True, descending=True)
    _, j = torch.sort(r, dim=-1, stable=True)
    c = (r.unsqueeze(-1) == r.unsqueeze(-2)).sum(-1)
    return m, x.gather(-1, mi[:, None]), k, q, ql, v, i, j, c.argmax(-1), r.argmin(-1)


@forward("x:float32[N,T]=-30:30", dims="N=1:2:4 T=1:5:9", kinds=(*FINITE, "minus-infinity"))
def A7436LogDomain(self, x):
    """logcumsumexp, logaddexp and logaddexp2, logsumexp of masked rows, xlogy at zeros, nan_to_num, softplus with beta, logsigmoid, expm1 and log1p."""
    a = torch.logcumsumexp(x, -1)
    b = torch.logaddexp(x, x.flip(-1)) + torch.logaddexp2(x, torch.zeros_like(x))
    c = torch.logsumexp(x.masked_fill(x < 0, float("-inf")), -1)
    p = torch.softmax(x, -1)
    d = torch.xlogy(p, p).sum(-1) + torch.special.entr(p).sum(-1) * 3
    e = torch.nan_to_num(x / x.round(), nan=1.5, posinf=7.0, neginf=-7.0)
    f = F.softplus(x, beta=2.0, threshold=5.0) + F.logsigmoid(x)
    return a, b, c, d, e, f


@forward("x:float32[N,T]=-5:5", "y:float32[N,T]=-2:2", dims="N=1:2:4 T=1:5:9", kinds=FINITE, refused="bessel_i0e")
def A7437SpecialFunctions(self, x, y):
    """sinc, i0e, i1, erfcx, ndtr, log_ndtr, digamma-free gammaln, zeta-free; atan2 at zeros, hypot, copysign of zeros, heaviside, ldexp, signbit."""
    a = torch.sinc(x) + torch.special.i0e(x) + torch.special.i1(y)
    b = torch.special.ndtr(x) + torch.special.log_ndtr(y)
    c = torch.lgamma(x.abs() + 0.5)
    d = torch.atan2(y, x) + torch.hypot(x, y)
    e = torch.copysign(x.abs() + 1, y) + torch.heaviside(x, torch.tensor(0.25)) + torch.ldexp(y, x.round().int())
    return a, b, c, d, e, torch.signbit(-y), torch.special.erfcx(y), torch.isclose(x, x.round(), rtol=0.0, atol=0.05)


@forward("x:float32[N,T]=-3:3", "i:int64[N,T]=0:3", dims="N=1:2:4 T=2:5:9", kinds=FINITE)
def A7438ScatterModes(self, x, i):
    """scatter_reduce in all modes with and without self, index_add, index_reduce-free, index_put with accumulate, bincount, histc, bucketize left and right."""
    z = x.new_full((x.shape[0], 4), 0.5)
    outs = [z.scatter_reduce(1, i, x, reduce=m, include_self=s) for m in ("sum", "prod", "mean", "amax", "amin") for s in (True, False)]
    f = torch.zeros(4, 2)
    f.index_put_((i[0],), torch.stack([x[0], x[0] * 2], -1), accumulate=True)
    g = torch.zeros(4).index_add(0, i[0], x[0], alpha=2.0)
    b = torch.bincount(i.flatten(), minlength=4)[:4]
    e = torch.tensor([-1.0, 0.0, 0.0, 1.5])
    k = torch.bucketize(x, e) + 10 * torch.bucketize(x, e, right=True) + 100 * torch.searchsorted(e, x, side="right")
    return torch.stack(outs), f, g, b, k


@forward("x:float32[N,4,T]=-3:3", dims="N=1:2:4 T=1:5:9", kinds=FINITE)
def A7439ComplexParts(self, x):
    """view_as_complex of interleaved channels, polar, products by conjugates, abs and angle, exp of imaginary, real and imag views, a complex sum."""
    z = torch.view_as_complex(x.transpose(1, 2).reshape(x.shape[0], -1, 2, 2).contiguous())
    w = torch.polar(torch.ones_like(z.real), z.real * 0.5)
    p = z * w.conj() + 2j * z
    q = torch.exp(1j * z.imag) * z
    s = p.sum(1)
    return torch.view_as_real(p).flatten(2), p.abs(), torch.angle(q * 1.0 + 3.0), s.real, (q / (w + 2)).imag, torch.stack([q.real, q.imag], -1)


@attack("x:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=5:8:13 W=4:7:11", kinds=FINITE)
class A7440PoolsAndFolds(nn.Module):
    """avg_pool with ceil, divisor_override and no padding counted, dilated max with ceil and indices, lp pools, unfold with strides and fold, fractional scale factors, unshuffle of padded."""

    def forward(self, x):
        h, w = x.shape[-2:]
        a = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        b = F.avg_pool2d(x, (2, 3), stride=2, padding=(1, 0), ceil_mode=True, divisor_override=5)
        c, i = F.max_pool2d(x, 2, 2, 1, dilation=(2, 1), ceil_mode=True, return_indices=True)
        d = F.lp_pool2d(x, 3.0, (2, 2), stride=1)
        u = F.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=(2, 1))
        f = F.fold(u * 0.5, (h, w), (3, 2), dilation=(1, 2), padding=1, stride=(2, 1))
        g = F.interpolate(x, scale_factor=(1.3, 0.7), mode="bilinear", align_corners=False)
        j = F.interpolate(x, scale_factor=(1.3, 0.7), mode="bicubic", align_corners=True, recompute_scale_factor=True)
        k = F.interpolate(x, scale_factor=2.5, mode="nearest-exact")
        m = F.pixel_unshuffle(F.pad(x, (0, w % 2, 0, h % 2), mode="replicate"), 2)
        return a, b, c, i, d, f, g, j, k, m


@forward("x:float32[N,3,T]=-3:3", "m:bool[N,3,T]", dims="N=1:2:4 T=2:5:9", kinds=FINITE)
def A7441IndexAndMask(self, x, m):
    """masked_scatter, take, take_along_dim, einsum with repeated letters and an ellipsis, tril with diagonals by a size, diag_embed, diagonal_scatter, trace-like sums, cross, cdist with p=1, vander-free."""
    t = x.shape[-1]
    a = x.masked_scatter(m, torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape))
    b = torch.take(x, torch.tensor([0, 5, -1]))
    c = torch.take_along_dim(x, x.argsort(-1, descending=True), -1)
    g = torch.einsum("...it,...jt->...ij", x, x)
    d = torch.einsum("nii->n", g) + torch.einsum("nij,nji->n", g, g)
    e = torch.diag_embed(x[:, 0], offset=-1).tril(t // 2 - 1).sum(1) + 0
    f = torch.diagonal_scatter(g, torch.ones(x.shape[0], 2), offset=1, dim1=-1, dim2=-2)
    h = torch.cdist(x, x.flip(1), p=1.0) + torch.cdist(x, x * 2)
    k = torch.cross(x, x.roll(1, -1), dim=1)
    return a, b, c, d, e, f, h, k, x.flatten(1).roll((1, -2), (0, 1)), torch.renorm(x, 2, 0, 1.5)

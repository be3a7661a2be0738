"""Images: colours, histograms, morphology, integral images, odd norms, shuffles, spectra, complex numbers, thresholds of sizes."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at


@forward("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=2:4:6 W=2:3:5", kinds=("normal", "unit", "halves", "ones", "zeros", "tenths"))
def A7822RgbHsvBack(self, x):
    """kornia's rgb_to_hsv (argmax ties, % 1.0 of hues), hsv_to_rgb by floor and fmod with gathers."""
    eps = 1e-8
    mx, am = x.max(-3)
    mn = x.min(-3)[0]
    dc = mx - mn
    s = dc / (mx + eps)
    dz = torch.where(dc == 0, torch.ones_like(dc), dc)
    rc, gc, bc = torch.unbind(mx.unsqueeze(-3) - x, dim=-3)
    h = torch.stack((bc - gc, (rc - bc) + 2.0 * dz, (gc - rc) + 4.0 * dz), dim=-3) / dz.unsqueeze(-3)
    h = torch.gather(h, dim=-3, index=am.unsqueeze(-3)).squeeze(-3)
    h = (h / 6.0) % 1.0
    hi = torch.floor(h * 6) % 6
    f = ((h * 6) % 6) - hi
    one = torch.tensor(1.0)
    p, q, t = mx * (one - s), mx * (one - f * s), mx * (one - (one - f) * s)
    idx = torch.stack([hi, hi + 6, hi + 12], dim=-3).long()
    out = torch.stack((mx, q, p, p, t, mx, t, mx, mx, q, p, p, p, p, t, mx, mx, q), dim=-3)
    return torch.gather(out, -3, idx), torch.stack([s, mx], 1)


@forward("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=2:4:6 W=2:3:5", kinds=("normal", "unit", "halves", "ones", "zeros", "tenths"))
def A7823RgbLabGamma(self, x):
    """sRGB to linear by a mask assignment, XYZ by a matrix, Lab with cube roots and thresholds, atan2 hue in degrees mod 360."""
    lin = torch.where(x > 0.04045, ((x + 0.055) / 1.055).clamp(min=1e-9).pow(2.4), x / 12.92)
    m = torch.tensor([[0.412453, 0.35758, 0.180423], [0.212671, 0.71516, 0.072169], [0.019334, 0.119193, 0.950227]])
    xyz = torch.einsum("nchw,kc->nkhw", lin, m) / torch.tensor([0.95047, 1.0, 1.08883])[..., :, None, None]
    thr = 0.008856
    f = torch.where(xyz > thr, torch.pow(xyz.clamp(min=thr), 1 / 3.0), 7.787 * xyz + 4.0 / 29.0)
    lab = torch.stack([116.0 * f[:, 1] - 16.0, 500.0 * (f[:, 0] - f[:, 1]), 200.0 * (f[:, 1] - f[:, 2])], -3)
    back = x.clone()
    mask = back <= 0.0031308
    back[mask] = back[mask] * 12.92
    back[~mask] = 1.055 * back[~mask] ** (1 / 2.4) - 0.055
    return lab, torch.hypot(lab[:, 1], lab[:, 2]), back


@forward("x:uint8[N,H,W]=0:255", dims="N=1:2:3 H=2:5:8 W=3:4:7")
def A7824EqualizeBytes(self, x):
    """torchvision's equalize, batched: scatter_add histogram in int32, step from the last non-zero bin, a lookup table clamped, step zero keeps the image."""
    n, h, w = x.shape
    flat = x.flatten(-2).long()
    hist = flat.new_zeros(n, 256, dtype=torch.int32)
    hist.scatter_add_(1, flat, hist.new_ones(1).expand_as(flat))
    cum = hist.cumsum(-1)
    index = cum.argmax(-1)
    num_non_max = h * w - hist.gather(-1, index.unsqueeze(-1))
    step = num_non_max.div_(255, rounding_mode="floor")
    valid = step.ne(0).unsqueeze(-1)
    step.clamp_(min=1)
    cum = cum.add(step // 2).div(step, rounding_mode="floor").clamp(0, 255)
    lut = F.pad(cum[:, :-1], (1, 0)).to(torch.uint8)
    eq = lut.gather(1, flat).view_as(x)
    return torch.where(valid, eq, x), 255 - x, (x.to(torch.int16) * 2 - 100).clamp(0, 255).to(torch.uint8)


@forward("x:float32[N,1,H,W]", dims="N=1:1:2 H=3:6:9 W=3:5:8", kinds=tuple(k for k in FINITE if k != "tenths"))
def A7825MorphologyIntegral(self, x):
    """Dilation and erosion by unfold with -1e4 padding, opening by max pools, an integral image by two cumsums and box sums by corners, a Chamfer-like distance by iterations over H + W."""
    n, _, h, w = x.shape
    k = torch.tensor([[0.0, 1, 0], [1, 1, 1], [0, 1, 0]]).view(1, 9, 1)
    u = F.unfold(F.pad(x, (1, 1, 1, 1), value=-1e4), 3)
    dil = (u + torch.where(k > 0, 0.0, -1e4)).amax(1).view(n, 1, h, w)
    ero = -F.max_pool2d(-x, 3, 1, 1)
    opened = F.max_pool2d(ero, 3, 1, 1)
    ii = F.pad(x.cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    box = ii[..., 3:, 3:] - ii[..., :-3, 3:] - ii[..., 3:, :-3] + ii[..., :-3, :-3]
    d = torch.where(x > 0, 0.0, 1e3)
    for _ in range((h + w) // 4):
        d = torch.minimum(d, 1 - F.max_pool2d(-d, 3, 1, 1).neg().neg() * -1 * -1) if False else torch.minimum(d, -F.max_pool2d(-d, 3, 1, 1) + 1)
    return dil, opened, box / 9, d


@attack("x:float32[N,6,H,W]", dims="N=1:2:3 H=1:4:6 W=1:3:5", kinds=FINITE)
class A7826NormsInOddLayouts(nn.Module):
    """GroupNorm over a channels-last view, InstanceNorm without affine (1x1 maps add eps only), LayerNorm over (C, W) by permutes, GRN, RMS over H, weight standardisation."""

    def __init__(self) -> None:
        super().__init__()
        self.gn, self.inn = nn.GroupNorm(3, 6), nn.InstanceNorm2d(6, eps=1e-3)
        self.ln = nn.LayerNorm(6)
        self.conv = nn.Conv2d(6, 4, 1)
        with torch.no_grad():
            self.gn.weight.uniform_(0.5, 1.5)
            self.gn.bias.normal_()

    def forward(self, x):
        y = self.gn(x.permute(0, 2, 3, 1).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last))
        z = self.inn(x) if x.shape[2] * x.shape[3] > 1 else x
        ln = self.ln(x.transpose(1, -1)).transpose(1, -1)
        gx = torch.norm(x, p=2, dim=(2, 3), keepdim=True)
        grn = x * (gx / (gx.mean(1, keepdim=True) + 1e-6)) + x
        rms = x * torch.rsqrt(x.pow(2).mean(2, keepdim=True) + 1e-5)
        w = self.conv.weight
        m = w.mean((1, 2, 3), keepdim=True)
        ws = (w - m) / torch.sqrt(w.var((1, 2, 3), keepdim=True, unbiased=False) + 1e-5)
        return y, z, ln, grn, rms, F.conv2d(x, ws, self.conv.bias)


@forward("x:float32[N,C,H,W]", dims="N=1:1:2 C=8:8:24%8 H=1:3:5 W=2:4:6%2", kinds=FINITE)
def A7827ShufflesInOddOrders(self, x):
    """Depth to space with the block innermost, outermost, on one axis; space to depth of Focus; a patch merge; channel shuffle by C // 4; a squeeze for flows."""
    n, c, h, w = x.shape
    a = x.view(n, 2, 2, c // 4, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // 4, h * 2, w * 2)
    b = x.view(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 3, 5, 2).reshape(n, c // 4, h * 2, w * 2)
    d = x.view(n, c // 2, 2, h, w).permute(0, 1, 3, 4, 2).reshape(n, c // 2, h, w * 2)
    f = torch.cat([a[..., ::2, ::2], a[..., 1::2, ::2], a[..., ::2, 1::2], a[..., 1::2, 1::2]], 1)
    g = x.reshape(n, c // 4, 4, h, w).transpose(1, 2).flatten(1, 2)
    s = x.view(n, c, h, w // 2, 2).permute(0, 1, 4, 2, 3).reshape(n, c * 2, h, w // 2)
    return a, b, d, f, g, s, F.pixel_shuffle(x, 2)


@forward("x:float32[N,T,4]", dims="N=1:2:3 T=2:6:9", kinds=("normal", "unit", "halves", "positive"), refused="cannot be exported")
def A7828FnetAndFourierLayer(self, x):
    """FNet's real part of a 2-d FFT, an FNO layer with the first modes by einsum of complex weights, gaussian Fourier features with sin and cos, an autocorrelation by irfft."""
    n, t, c = x.shape
    fnet = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
    g = torch.Generator().manual_seed(2)
    w = torch.complex(torch.randn(4, 3, 2, generator=g), torch.randn(4, 3, 2, generator=g))
    ft = torch.fft.rfft(x.transpose(1, 2))
    out = torch.zeros(n, 3, t // 2 + 1, dtype=torch.cfloat)
    out[:, :, :2] = torch.einsum("bix,iox->box", ft[:, :, :2], w)
    fno = torch.fft.irfft(out, n=t)
    b = torch.randn(4, 5, generator=g)
    p = 2 * math.pi * x @ b
    f = torch.fft.rfft(x, n=2 * t, dim=1)
    ac = torch.fft.irfft(f * f.conj(), dim=1, n=2 * t)[:, :t]
    return fnet, fno, torch.cat([p.sin(), p.cos()], -1), ac / ac[:, :1].clamp(min=1e-3)


@attack("x:float32[N,3,S,S]", dims="N=1:1:2 S=28:40:72", kinds=("normal", "unit", "halves"))
class A7829PathsBySize(nn.Module):
    """size > 32 goes through a resize, size % 8 pads, size == 64 exactly skips, and sizes beyond 64 are tiled in two halves; the names of sizes in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, 2, 1)
        self.gains = {"small": 1.0, "mid": 0.5, "large": 0.25}

    def forward(self, x):
        s = x.shape[-1]
        name = "small" if s <= 32 else "mid" if s < 64 else "large"
        if s > 32 and s != 64:
            x = F.interpolate(x, size=(32, 32), mode="bilinear", align_corners=False)
        if s % 8:
            x = F.pad(x, (0, 8 - s % 8, 0, 8 - s % 8), mode="replicate")
        y = self.c(x) * self.gains[name]
        if s > 64:
            a, b = y.chunk(2, -1)
            y = torch.cat([a, b.flip(-1)], -1)
        return y.mean((2, 3)), y.std((2, 3))


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:6:12", kinds=FINITE, refused="cannot be exported")
def A7830AsStridedAndViews(self, x):
    """as_strided windows, in-place on overlapping views, a diagonal written through, unfold in place, a transpose written, expand then clone."""
    n, t = x.shape
    p = F.pad(x, (2, 0))
    win = p.as_strided((n, t, 3), (p.stride(0), 1, 1))
    y = x.clone()
    y[:, ::2].mul_(2)
    y[:, 1::3] += 1
    y.T[0] = 7
    y[..., -1] -= y[..., 0]
    sq = torch.zeros(n, t, t)
    sq.diagonal(dim1=1, dim2=2).copy_(x)
    sq[:, range(t), [0] * t] = -1.0
    y.narrow(1, 0, (t + 1) // 2).clamp_(min=0).neg_()
    return win.mean(-1), y, sq


@forward("a:int64[N,T]=-20:20", "b:int32[N,T]=-7:7", "f:float32[N,T]=-20:20", dims="N=1:2:3 T=2:5:9", kinds=("normal", "halves", "zeros", "tenths"))
def A7831DivisionsOfNegatives(self, a, b, f):
    """//, %, remainder, fmod, floor_divide with scalars and tensors of both signs, in floats with negative divisors, divmod of sizes by negative numbers, bit shifts of negative numbers."""
    d = torch.where(b == 0, torch.full_like(b, -3), b)
    k = -x if (x := f.shape[1]) else 0
    q, r = divmod(k, 4)
    return (
        a // d, a % d, torch.fmod(a, d), a // -4, a % -4, f // -1.5, f % -1.5, torch.remainder(f, d), torch.fmod(f, 0.7),
        f + q * 10 + r, a >> 1, -a // 2, (a * d.long()).sign() * (a.abs() // d.abs()), torch.div(f, d, rounding_mode="floor"), a / d,
    )  # fmt: skip


@forward("p:bool[N,T]", "q:bool[N,T]", "x:float32[N,T]", dims="N=1:2:3 T=1:5:9", kinds=("normal", "halves", "zeros"))
def A7832BoolArithmetic(self, p, q, x):
    """Sums, products, comparisons, any/all of nothing, xor by !=, max of booleans, argmax of a bool as int, cumsum, masks as numbers, ~ of uint8."""
    n = p.shape[1]
    empty = p[:, n:]
    return (
        p + q, p * q, p.sum(1), p.float().mean(1), p ^ q, p != q, p < q, p <= q, empty.any(1), empty.all(1), p.int().argmax(1), p.cumsum(1),
        ~p.to(torch.uint8), torch.where(p, x, q), x * p - x * ~q, p.any() & q.all(), p.to(torch.int8) - q.to(torch.int8), p.amax(1), torch.maximum(p, q), p.prod(1),
    )  # fmt: skip


@forward("x:float32[N,T]=-4:4", dims="N=1:2:3 T=2:5:9", kinds=("normal", "halves", "zeros", "ones", "tenths", "ascending"))
def A7833HalfwaysAndEdges(self, x):
    """round, floor(x + 0.5), int casts, ceil of divided, clamp by tensors with min above max, bucketize right both ways, digitize by floor, nearest codes."""
    lo, hi = x.mean(1, keepdim=True), x.amax(1, keepdim=True) - 1
    e = torch.tensor([-1.5, -0.5, 0.5, 1.5])
    codes = ((x + 4) / 8 * 15).round().clamp(0, 15).to(torch.uint8)
    return (
        x.round(), (x + 0.5).floor(), (x + 0.5).int(), (x / 0.5).ceil(), x.clamp(lo, hi), torch.bucketize(x, e), torch.bucketize(x, e, right=True),
        codes, (x[..., None] - e).abs().argmin(-1), torch.nan_to_num(x / x, nan=9.0), torch.fake_quantize_per_tensor_affine(x, 0.25, 3, -8, 7), x.sign() * x.abs().floor(),
    )  # fmt: skip


@forward("x:float32[N,2,T]", dims="N=1:1:2 T=1:4:33", kinds=("normal", "unit", "ones"), feeds=tuple(values_at("x:float32[N,2,T]", N=1, T=t) for t in (1, 2, 15, 16, 17, 31, 32, 33)), refused="the path through the module depends on the size")
def A7834PowersOfTwo(self, x):
    """Pads to the next power of two (bit_length, log2 of floats), a Haar pyramid by a while loop on the size, up to the first level."""
    t = x.shape[-1]
    size = 1 << (t - 1).bit_length()
    y = F.pad(x, (0, size - t))
    depth = 0
    while y.shape[-1] > 1:
        y = (y[..., ::2] + y[..., 1::2]) / 2
        depth += 1
    return y, y.sum() * 0 + depth, x * 2 ** math.ceil(math.log2(t)), x + int(math.sqrt(t)) + t**0.5

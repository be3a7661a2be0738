# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them
"""Variants: operators with the parameters that few use."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq
from tests.adversary.modules.fortysixth.sounds import WAVE, wav
from tests.adversary.values import values_at

XC, MT = "x:float32[N,4,T]", "m:bool[N,T]"


@forward(IMAGE, "g:float32[N,3,4,2]", **pix(IMAGE, "g:float32[N,3,4,2]"))
def A5446SampledOtherwise(self, x, g):
    """Bicubic, reflected and nearest samples, without aligned corners."""
    return F.grid_sample(x, g, "bicubic", "reflection", False), F.grid_sample(x, g, "nearest", "reflection", True), F.grid_sample(x, g * 2, "bilinear", "reflection", False), F.grid_sample(x, g, "bicubic", "zeros", True)
@forward(IMAGE, **pix(IMAGE), refused="the exported model differs from the module")
def A5447ResizedOtherwise(self, x):
    """Cubic with antialias, area, nearest-exact, by factors that are computed anew."""
    h, w = x.shape[-2:]
    return F.interpolate(x, (h * 2 - 1, w + 3), mode="bicubic", align_corners=True), F.interpolate(x, (max(h // 2, 1), max(w // 3, 1)), mode="bilinear", antialias=True), F.interpolate(x, (h + 1, max(w - 1, 1)), mode="nearest-exact"), F.interpolate(x, (max(h // 2, 1), w * 2), mode="area"), F.interpolate(x, scale_factor=(1.5, 2.25), mode="bicubic", recompute_scale_factor=True)
@forward(IMAGE, **pix(IMAGE, low=3))
def A5448PooledOtherwise(self, x):
    """A divisor of its own, norms, adaptive pools with places, unpooled to a size, and ceilings."""
    y, i = F.max_pool2d(x, 2, return_indices=True)
    return F.avg_pool2d(x, 3, 2, 1, divisor_override=5), F.lp_pool2d(x.abs(), 2.5, 2), F.max_unpool2d(y, i, 2, output_size=x.shape[-2:]), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.adaptive_max_pool2d(x, (3, 2)), F.max_pool2d(x, 3, 2, 1, dilation=1, ceil_mode=True)
@attack(IMAGE, **pix(IMAGE, low=4))
class A5449ConvolvedOtherwise(nn.Module):
    """Even kernels with same padding, circular padding, a transposed one to a size, and depths by a deformed view."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(2, 2, (4, 2), padding="same", dilation=(1, 2))
        self.b = nn.Conv2d(2, 4, 3, padding=2, padding_mode="circular", groups=2)
        self.c = nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1)
        self.d = nn.Conv2d(2, 2, 3, padding=(3, 1), padding_mode="reflect")

    def forward(self, x):
        h, w = x.shape[-2:]
        return self.a(x), self.b(x), self.c(x, output_size=(h * 2, w * 2 - 1)), self.d(x)
@attack("x:float32[T,N,6]", "m:bool[N,T]", dims="N=1:2:3 T=1:5:12", kinds=FEW, feeds=tuple(values_at("x:float32[T,N,6]", "m:bool[N,T]", N=2, T=t) for t in range(1, 13)))
class A5450AttentionOtherwise(nn.Module):
    """Bias for keys, a zero key, a mask of floats, weights of each head."""

    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)
        self.b = nn.MultiheadAttention(6, 3, kdim=6, vdim=6, bias=False)

    def forward(self, x, m):
        t = x.shape[0]
        causal = nn.Transformer.generate_square_subsequent_mask(t)
        y, w = self.a(x, x, x, key_padding_mask=m, attn_mask=causal > -1, average_attn_weights=False)
        z, v = self.b(x, x.flip(0), x, attn_mask=causal)
        return y, w, z, v
@attack("x:float32[N,T,6]", MT, dims="N=1:2:3 T=1:5:12", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,6]", MT, N=2, T=t) for t in range(1, 13)))
class A5451EncoderOfTorch(nn.Module):
    """nn.TransformerEncoder with padding: its fast path gives zeros where it pads."""

    def __init__(self):
        super().__init__()
        self.e = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, activation="gelu"), 2)

    def forward(self, x, m):
        m = m.clone()
        m[:, 0] = False
        return self.e(x, src_key_padding_mask=m)
@attack(X4, "l:int64[N]=1:40", **seq(X4, "l:int64[N]=1:40"), refused="the module cannot be exported")
class A5452PackedOfOtherOrder(nn.Module):
    """A packed LSTM of lengths in any order with projections; the last states of both directions."""

    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True, proj_size=3)

    def forward(self, x, l):
        l = l.clamp(max=x.shape[1])
        p = nn.utils.rnn.pack_padded_sequence(x, l.cpu(), batch_first=True, enforce_sorted=False)
        y, (h, c) = self.r(p)
        y, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1], padding_value=-1.0)
        return y, h[-2:].transpose(0, 1).flatten(1), n
@forward(WAVE, **wav(WAVE, low=9))
def A5453TransformsOtherwise(self, x):
    """Spectra cut and filled up, of other norms, shifted at odd lengths, with frequencies of a moving length."""
    n = x.shape[1]
    s = torch.fft.rfft(x, n=12, norm="ortho")
    f = torch.fft.rfft(x)
    return s.abs(), torch.fft.irfft(f, n=n), torch.fft.fftshift(torch.fft.fft(x), dim=1).abs(), (torch.fft.rfftfreq(n, 0.5) * f.abs()).sum(1), torch.fft.ifftshift(x, dim=1), torch.fft.fftfreq(n)
@forward(WAVE, **wav(WAVE, low=9), refused="the exported model differs from the module")
def A5454StftOtherwise(self, x):
    """Not centred, with a window shorter than the frame, two-sided, normalised; and back to a length."""
    w = torch.hamming_window(6)
    s = torch.stft(x, 8, 3, 6, w, center=False, normalized=True, onesided=False, return_complex=True)
    c = torch.stft(x, 8, 2, window=torch.hann_window(8), center=True, pad_mode="constant", return_complex=True)
    return torch.view_as_real(s), c.angle() * (c.abs() > 1e-2), torch.istft(c, 8, 2, window=torch.hann_window(8), length=x.shape[1])
@forward(X4, "i:int64[N,T]=0:8", **seq(X4, "i:int64[N,T]=0:8"))
def A5455BagsOtherwise(self, x, i):
    """Bags by weights, with a padding, of the greatest; a table whose rows are scaled down as they are looked up."""
    w = torch.arange(36.0).view(9, 4).sin()
    return F.embedding_bag(i, w, mode="sum", per_sample_weights=x[..., 0], padding_idx=2), F.embedding_bag(i, w, mode="max"), F.embedding(i, w.clone(), max_norm=1.0), F.embedding_bag(i, w, mode="mean", padding_idx=2)
@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5456SpecialOnes(self, x):
    """Functions of torch.special at ordinary places."""
    s = torch.special
    return s.ndtri(x.sigmoid()), s.entr(x.sigmoid()), s.i0e(x), s.i1e(x), s.erfcx(x.clamp(-3, 9)), s.log_ndtr(x), s.xlog1py(x, x.abs()), s.expit(x), s.sinc(x), s.multigammaln(x.abs() + 2, 2)
@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5457GammaAndBessel(self, x):
    """Gamma functions and Bessel functions."""
    y = x.abs() + 0.1
    return torch.lgamma(y), torch.digamma(y), torch.polygamma(1, y), torch.special.gammaincc(y, y + 1)
@forward(X4, **seq(X4, low=2))
def A5458StatisticsOtherwise(self, x):
    """Covariances, correlations, quantiles of other kinds, trapezoids, differences of a second order."""
    y = x[0]
    return torch.cov(y.T), torch.corrcoef(y.T + torch.eye(4, y.shape[0])), x.quantile(0.3, 1, interpolation="midpoint"), x.quantile(torch.tensor([0.1, 0.9]), 1, interpolation="lower"), torch.trapezoid(x, dx=0.5, dim=1), torch.cumulative_trapezoid(x, dim=1), torch.diff(x, n=2, dim=1, append=x[:, :1]), x.kthvalue(2, 1).values
@forward(X4, "i:int64[N,T]=0:9", **seq(X4, "i:int64[N,T]=0:9"), refused="the module cannot be exported")
def A5459LossesOtherwise(self, x, i):
    """Label smoothing with weights, ignored classes, focal and Gaussian losses, of what is given."""
    t = torch.where(i < 4, i, -100)
    w = torch.tensor([1.0, 2.0, 0.0, 0.5])
    return F.cross_entropy(x.transpose(1, 2), t, w, label_smoothing=0.1, reduction="none"), F.gaussian_nll_loss(x, x.flip(1), x.abs(), full=True), F.kl_div(x.log_softmax(-1), x.flip(1).log_softmax(-1), log_target=True, reduction="batchmean"), F.huber_loss(x, x.flip(1), delta=0.3), F.binary_cross_entropy_with_logits(x, x.sigmoid().round(), pos_weight=w + 1), F.multi_margin_loss(x[:, 0], i[:, 0] % 4, p=2), F.poisson_nll_loss(x.clamp(max=9), x.abs(), full=True)
@attack(X4, **seq(X4))
class A5460LayersOtherwise(nn.Module):
    """Layers that few use."""

    def __init__(self):
        super().__init__()
        self.b, self.p, self.c = nn.Bilinear(4, 4, 3), nn.PairwiseDistance(3.0, keepdim=True), nn.CosineSimilarity(2, 0.5)
        self.r, self.t, self.s = nn.RReLU(0.1, 0.3), nn.Threshold(0.1, -20), nn.Softmin(1)
        self.l, self.h, self.k = nn.LocalResponseNorm(3, 0.1, 0.5, 2), nn.Hardshrink(0.3), nn.Softshrink(0.2)

    def forward(self, x):
        f = x.flip(1)
        return self.b(x, f), self.p(x, f + 1), self.c(x, f), self.r(x), self.t(x), self.s(x), self.l(x.transpose(1, 2)), self.h(x) + self.k(f), F.glu(x), F.normalize(x, 1.5, 1, 1e-2)
@forward("x:float32[N,T,5]", MT, **seq("x:float32[N,T,5]", MT), refused="what was exported cannot be compared")
def A5461IndexedOtherwise(self, x, m):
    """Places by several masks and indices, with a step, an ellipsis and a new axis; sources that are masked in order."""
    t = x.shape[1]
    i = torch.arange(t)
    y = x.clone()
    y[:, i[::2], None, [4, 0][0]] = 1.5
    y[..., [0, -1]] = y[..., [-1, 0]]
    y[m] = -y[m]
    y.masked_scatter_(m[..., None] & (x > 0), x.flip(1).contiguous())
    y[:, ::3, 1::2] += 1
    return y, x[:, i[None] - i[:, None], 0], x[:, [0, -1, t // 2]], y.index_fill(1, i[: t // 2], 7)
@forward(X4, "i:int64[N,T]=0:5", **seq(X4, "i:int64[N,T]=0:5"))
def A5462ScatteredOtherwise(self, x, i):
    """Means, products and extremes of scatters, with and without what was there; index_reduce; put; unsafe indices."""
    z = torch.ones(x.shape[0], 6, 4) * 0.5
    at = i[..., None].expand(-1, -1, 4)
    return z.scatter_reduce(1, at, x, "mean"), z.scatter_reduce(1, at, x, "prod", include_self=False), z.scatter_reduce(1, at, x, "amin", include_self=False), torch.index_reduce(z, 1, i[0], x, "mean", include_self=False), z.scatter(1, at, x), z.index_copy(1, i[0, :1], x[:, :1])
@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5463ShapedOtherwise(self, x):
    """Unflatten with a guess, moved axes, turns by quarters, stacks of columns, tiles, blocks and grids of pairs."""
    t = x.shape[1]
    return x.unflatten(-1, (2, -1)).movedim(-1, 1), torch.rot90(x, 3, (1, 2)), torch.column_stack((x[0], x[0].sum(1))), x.tile(2, 1, 1, 2), torch.cartesian_prod(torch.arange(t), torch.arange(2)), torch.vander(x[0, :, 0].clamp(-2, 2), 4), torch.kron(x[0], torch.eye(2)), torch.atleast_3d(x[0]), x.swapaxes(0, 1).ravel()[: t * 2], torch.block_diag(x[0], x[0].T)
@forward(X4, **seq(X4), refused="the exported model differs from the module")
def A5464MatricesOtherwise(self, x):
    """Determinants, inverses, powers, exponentials and norms of small matrices; distances of p three."""
    g = x.transpose(1, 2) @ x / 10 + 3 * torch.eye(4)
    g2, g3 = g[:, :2, :2], g[:, :3, :3]
    return torch.linalg.det(g3), torch.linalg.inv(g2), torch.linalg.matrix_power(g3 / 5, 3), torch.linalg.matrix_norm(g, 1), torch.linalg.vector_norm(x, 0.5, 1), torch.cdist(x, x.flip(1) + 1, p=3.0), torch.linalg.multi_dot([x[0], g[0], x[0].T]), torch.baddbmm(g, g, g, beta=0.5, alpha=-2), torch.linalg.cross(x[..., :3], x[..., 1:])
@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5465CholeskyOfThree(self, x):
    """A small Cholesky, a triangular solve and a log-determinant."""
    g = x.transpose(1, 2)[:, :3] @ x[..., :3] + torch.eye(3)
    l = torch.linalg.cholesky(g)
    return l, torch.linalg.solve_triangular(l, torch.eye(3).expand_as(l), upper=False), torch.logdet(g)
@forward(X4, "i:int64[N,T]=-9:9", **seq(X4, "i:int64[N,T]=-9:9"))
def A5466SetsOtherwise(self, x, i):
    """What is in a set, inverted, next to each other and unique; histograms, searches in sorted rows, by sides."""
    s = i.sort(1).values
    return torch.isin(i, torch.tensor([1, 2, -9]), invert=True), torch.searchsorted(s, i, side="right"), torch.searchsorted(s, i), (s[:, 1:] != s[:, :-1]).sum(1), torch.bincount((i + 9).flatten(), minlength=19), torch.isclose(x, x.round(), rtol=0.1, atol=1e-2), torch.unique_consecutive(s[0], return_inverse=True)[1]
@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5467ComplexOnes(self, x):
    """Complex numbers that are made, turned, multiplied, conjugated and taken apart."""
    z = torch.view_as_complex(x.unflatten(-1, (2, 2)).contiguous())
    p = torch.polar(x[..., 0].abs(), x[..., 1])
    w = z * p[..., None] / (z.conj() + 2)
    return w.real, (z.abs() ** 2).sum(-1), torch.view_as_real(w.cumsum(1)), (z @ z.mH).imag, torch.exp(1j * x[..., 2]).real, (z**2).imag, z.prod(-1).real, torch.sgn(z).real
@forward(XC, **seq(XC, low=5))
def A5468FoldedOtherwise(self, x):
    """Patches with dilation and strides of two kinds and back, windows of windows."""
    u = F.unfold(x[:, None], (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    t = x.shape[2]
    return u, F.fold(x.unfold(2, 3, 1).permute(0, 1, 3, 2).flatten(1, 2), (1, t), (1, 3)), x.unfold(2, 4, 2).unfold(1, 2, 2).sum(-1), F.pixel_unshuffle(F.pad(x, (0, t % 2))[:, None], 2), F.channel_shuffle(x, 2)
@forward("x:float32[N,3,H,W]", **pix("x:float32[N,3,H,W]", high=10))
def A5469ColoursOfKornia(self, x):
    """RGB to HSV and Lab with where of maxima that tie, and back by a table of sectors."""
    x = x.sigmoid()
    v, at = x.max(1)
    mn = x.amin(1)
    d = v - mn
    s = d / (v + 1e-8)
    dd = torch.where(d == 0, torch.ones_like(d), d)
    r, g, b = (v.unsqueeze(1) - x).unbind(1)
    h = torch.stack([b - g, (r - b) + 2 * dd, (g - r) + 4 * dd], 1)
    h = (torch.gather(h / dd.unsqueeze(1), 1, at.unsqueeze(1)).squeeze(1) / 6.0) % 1.0
    hi = torch.floor(h * 6) % 6
    f = ((h * 6) % 6) - hi
    p, q, t = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)
    idx = hi.long().unsqueeze(1)
    out = torch.stack((v, q, p, p, t, v, t, v, v, q, p, p, p, p, t, v, v, q), 1)
    out = torch.gather(out, 1, torch.cat([idx, idx + 6, idx + 12], 1))
    lin = torch.where(x > 0.04045, torch.pow((x + 0.055) / 1.055, 2.4), x / 12.92)
    return h, out, torch.where(lin > 0.008856, torch.pow(lin.clamp(min=0.008856), 1 / 3), 7.787 * lin + 4 / 29)

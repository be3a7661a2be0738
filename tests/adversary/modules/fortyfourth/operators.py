# ruff: noqa: E501 - attacks are written as users write them
"""Operators and layers at seldom used arguments, at sizes where stride and padding change their rounding, at axes of one and of none."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "unit", "halves", "zeros", "tenths", "ones")
ROWS = "N=1:2:3 T=1:9:40"
XT, X4, IMAGE = "x:float32[N,T]", "x:float32[N,T,4]", "x:float32[N,3,H,W]"
PLANE = "N=1:1:2 H=1:8:24 W=1:9:24"


def points(text: str, names: str, *sizes: tuple[int, ...], more: tuple = ()) -> tuple:
    """Points at sizes of dims that are named by a letter each."""
    return tuple(values_at(text, *more, **dict(zip(names, s, strict=True))) for s in sizes)


SEQ = {"dims": ROWS, "kinds": FEW, "feeds": points(X4, "NT", (1, 1), (3, 1), (1, 2), (2, 7), (2, 8), (1, 33), (3, 40))}
PIX = {"dims": PLANE, "kinds": FEW, "feeds": points(IMAGE, "NHW", (1, 1, 1), (1, 1, 24), (2, 24, 1), (1, 11, 13), (1, 12, 12), (1, 23, 17), (2, 23, 24))}


@attack(IMAGE, **PIX)
class A4801StridesAndRests(nn.Module):
    """Convolutions whose last window does not fit: stride three, dilation two, transposed ones to a size asked for, unlike strides on both axes."""
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, (3, 2), (3, 2), (2, 1), dilation=(2, 1))
        self.b = nn.ConvTranspose2d(4, 2, (4, 3), (3, 2), (1, 0), output_padding=(1, 0))
        self.c = nn.Conv2d(3, 3, 5, 2, 2, groups=3, padding_mode="replicate")
    def forward(self, x):
        y = self.a(x)
        z = self.b(y)
        return y, z[..., :x.shape[2], :x.shape[3]], self.b(y, output_size=(z.shape[2] + 1, z.shape[3])), self.c(x)
@forward(IMAGE, dims="N=1:1:2 H=2:8:24 W=2:9:24", kinds=FEW, feeds=points(IMAGE, "NHW", (1, 2, 2), (1, 3, 24), (2, 23, 23), (1, 13, 7), (1, 5, 5)), refused="the module cannot be exported")
def A4802PoolsThatOverhang(self, x):
    """Max pools with ceil_mode whose last window lies in the padding, averages with a divisor, places given back to max_unpool, LP pools, adaptive to a third."""
    v, i = F.max_pool2d(x, 2, 2, return_indices=True)
    u = F.max_unpool2d(v, i, 2, 2, output_size=x.shape[2:])
    return u, F.max_pool2d(x, 2, 3, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.avg_pool2d(x, 2, 2, ceil_mode=True, divisor_override=3), F.lp_pool2d(x, 3.0, 2, ceil_mode=True), F.adaptive_avg_pool2d(x, (max(1, x.shape[2] // 3), 2)), F.max_pool2d(x, (1, x.shape[3])), F.avg_pool2d(x, (x.shape[2], 1))
@forward(IMAGE, **PIX, refused="the exported model differs from the module")
def A4803ResizesOfAllSorts(self, x):
    """Antialiased bilinear and bicubic to a third and to twice plus one, nearest-exact by a scale, by sizes joined from both axes, area to a prime, from one pixel."""
    h, w = x.shape[2:]
    small = (max(1, h // 3), max(1, w // 3))
    return F.interpolate(x, size=small, mode="bilinear", antialias=True), F.interpolate(x, size=(2 * h + 1, w), mode="bicubic", align_corners=True), F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), F.interpolate(x, size=(w, h), mode="bilinear"), F.interpolate(x, size=(7, 5), mode="area"), F.interpolate(x, size=small, mode="bicubic", antialias=True)
@forward("x:float32[N,2,D,H,W]", "g:float32[N,3,2,2,3]=-1.5:1.5", dims="N=1:1:2 D=1:3:5 H=1:4:6 W=1:5:6", kinds=FEW, feeds=points("x:float32[N,2,D,H,W]", "NDHW", (1, 1, 1, 1), (2, 5, 1, 6), (1, 2, 6, 6), more=("g:float32[N,3,2,2,3]=-1.5:1.5",)), refused="the module cannot be exported")
def A4804VolumesSampled(self, x, g):
    """grid_sample of volumes: bilinear and nearest, border, reflection and zeros, both corners, an affine grid of a moving volume, trilinear resizes."""
    t = torch.eye(3, 4)[None].expand(x.shape[0], 3, 4) * 0.9
    a = F.affine_grid(t, list(x.shape), align_corners=False)
    return F.grid_sample(x, g, align_corners=True), F.grid_sample(x, g, padding_mode="border", align_corners=False), F.grid_sample(x, g, padding_mode="reflection", align_corners=True), F.grid_sample(x, a, align_corners=False), F.interpolate(x, size=(4, 3, 7), mode="trilinear", align_corners=False), F.max_pool3d(F.pad(x, (1, 1) * 3), 2, 2, ceil_mode=True), F.avg_pool3d(x, (1, 1, 1), (2, 2, 2))
@forward("x:float32[N,3,H,W]", "g:float32[N,4,5,2]=-2.5:2.5", dims="N=1:1:2 H=1:8:12 W=1:9:12", kinds=FEW, feeds=points(IMAGE, "NHW", (1, 1, 1), (1, 1, 12), (2, 12, 1), (1, 2, 2), more=("g:float32[N,4,5,2]=-2.5:2.5",)))
def A4805BicubicSampled(self, x, g):
    """grid_sample bicubic in three paddings and both corners, at pictures of one row; NaN in a grid is sampled as the corner."""
    n = torch.where(g > 2, torch.nan, g)
    return *(F.grid_sample(x, g, "bicubic", p, c) for p in ("zeros", "border", "reflection") for c in (True, False)), F.grid_sample(x, n.nan_to_num(-1.0), "nearest", "border", True)
@attack(X4, **SEQ)
class A4806RecurrentOnesOfAllKinds(nn.Module):
    """A GRU of two layers both ways with time last, an LSTM with a projection, an RNN with relu, states given and taken, one step alone."""
    def __init__(self):
        super().__init__()
        self.g = nn.GRU(4, 3, 2, bidirectional=True, batch_first=True)
        self.l = nn.LSTM(4, 5, proj_size=3, batch_first=False)
        self.r = nn.RNN(4, 3, nonlinearity="relu", bias=False, batch_first=True)
    def forward(self, x):
        a, h = self.g(x, x.new_ones(4, x.shape[0], 3) / x.shape[1])
        b, (p, c) = self.l(x.transpose(0, 1))
        d, _ = self.r(x.flip(1))
        e, f = self.r(x[:, -1:], d[:, -1][None].contiguous())
        return a, h, b, p, c, d, e, f
@attack(X4, "m:bool[N,T]", dims=ROWS, kinds=FEW, feeds=tuple((lambda n, t, v: lambda: {"x": np.arange(n * t * 4, dtype=np.float32).reshape(n, t, 4) % 5 - 2, "m": np.full((n, t), v)})(*a) for a in ((1, 1, True), (2, 9, True), (3, 40, False))))
class A4807TransformerOfTorch(nn.Module):
    """nn.TransformerEncoder with a key mask that may hide all, its fast path in eval, norm first, a decoder layer with a causal flag, averaged weights."""
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.e = nn.TransformerEncoder(layer, 2)
        self.f = nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, batch_first=True, activation="gelu")
        self.d = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
    def forward(self, x, m):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.e(x, src_key_padding_mask=m).masked_fill(m[..., None], 0.0), self.f(x, src_mask=mask, is_causal=True), self.d(x, x.flip(1), tgt_mask=mask, tgt_is_causal=True)
@attack(X4, **SEQ)
class A4808AttentionOfTorch(nn.Module):
    """MultiheadAttention with keys of another width, a bias of keys, a zero attention, weights for each head; grouped queries, a scale, a float mask by size, dropout of none."""
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(4, 2, kdim=2, vdim=2, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    def forward(self, x):
        t = x.shape[1]
        y, w = self.m(x, x[..., :2], x[..., 2:], average_attn_weights=False)
        q = x.view(*x.shape[:2], 4, 1).transpose(1, 2)
        k = q[:, :2]
        bias = -(torch.arange(t)[:, None] - torch.arange(t)).abs() * torch.tensor([1.0, 0.5, 0.25, 0.125])[:, None, None]
        return y, w, F.scaled_dot_product_attention(q, k, k, bias, scale=0.7, enable_gqa=True), F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q[:, :, -1:], q, q, is_causal=True)
@attack("i:int64[N,T]=0:6", dims=ROWS, feeds=points("i:int64[N,T]=0:6", "NT", (1, 1), (3, 40), (1, 2)))
class A4809BagsOfAllModes(nn.Module):
    """Bags: sum with weights, mean and max with a padding id, bags of nothing but padding; an embedding with a padding id whose row is written."""
    def __init__(self):
        super().__init__()
        self.s = nn.EmbeddingBag(7, 3, mode="sum", padding_idx=0)
        self.m = nn.EmbeddingBag(7, 3, mode="mean", padding_idx=-1)
        self.x = nn.EmbeddingBag(7, 3, mode="max", padding_idx=3)
        self.e = nn.Embedding(7, 3, padding_idx=2, scale_grad_by_freq=True)
        self.e.weight.data[2] = 5.0
    def forward(self, i):
        return self.s(i, per_sample_weights=(i + 1) / 7), self.m(i), self.x(i), self.e(i), F.embedding_bag(i.flatten(), self.e.weight, torch.arange(i.shape[0]) * i.shape[1], mode="mean")
@attack(X4, dims="N=1:2:3 T=2:9:40", kinds=FEW, feeds=points(X4, "NT", (1, 2), (3, 40), (1, 3)))
class A4810NormsOfAllKinds(nn.Module):
    """Group norms of all and of one, a layer norm over two axes of fixed size behind a pad, local response, weight-free RMS, instance norm of one step guarded, softmax over channels."""
    def __init__(self):
        super().__init__()
        self.g, self.l = nn.GroupNorm(4, 4, affine=False), nn.LayerNorm((40, 4), elementwise_affine=True, bias=False)
        self.r, self.p = nn.LocalResponseNorm(3, 0.1, 0.75, 2.0), nn.PReLU(4)
    def forward(self, x):
        y = x.mT
        return self.g(y), self.l(F.pad(x, (0, 0, 0, 40 - x.shape[1]))), self.r(y), F.rms_norm(x, (4,), eps=None), self.p(y), nn.Softmax2d()(y[..., None]), F.normalize(x, 1.0, dim=1), F.glu(x, -1), F.softmin(y, 1)
@forward(X4, **SEQ)
def A4811RearrangedByHand(self, x):
    """einops by reshapes: (t p) with a pad, channels to space, tiles repeated, outer joins, unflatten by minus one, swapped axes twice, flips of two axes, rot90."""
    n, t, c = x.shape
    y = F.pad(x, (0, 0, 0, -t % 3)).unflatten(1, (-1, 3))
    return y.permute(0, 2, 1, 3).flatten(1, 2), y.reshape(n, -1, 3 * c).sum(1), x.repeat_interleave(2, 1)[:, :t], x.repeat(1, 2, 1)[:, t:], x.view(n, t, 2, 2).swapaxes(1, 3).flatten(2), torch.rot90(x, 1, (1, 2)), torch.einsum("ntc,nsc->nts", x, y.flatten(1, 2)), torch.tensordot(x, x[0], ([1], [0])), x.tile(2, 1, 1).unfold(0, n, n).mean(-1)
@forward(X4, **SEQ, refused="the path through the module depends on the size")
def A4812SlicesOfAllKinds(self, x):
    """Ends from the size, steps, empty slices, an index of none, masks by parity, take_along_dim, index_select by a moving range, a roll by minus the size less one, diagonals off the main one."""
    t = x.shape[1]
    i = torch.arange(t - 1, -1, -2)
    return x[:, -(t // 2):], x[:, t // 3:-(t // 4) or None], x[:, t:], x[:, torch.arange(t) % 3 == 1], x[:, i], x.index_select(1, i), torch.take_along_dim(x, x.argsort(1), 1), x.roll((1 - t, 1), (1, 2)), torch.diagonal(x, t - 2 if t > 2 else 0, 1, 2), x.narrow(1, t - 1, 1), x[:, ::t]
@forward(X4, **SEQ, refused="the path through the module depends on the size")
def A4813JoinedAndSplit(self, x):
    """split by sizes from the size, chunk into three of fewer, tensor_split at places, hstack, column_stack, block_diag, stack of a list by the size, unbind and zip."""
    t = x.shape[1]
    a, b, c = x.split([t // 2, t - t // 2 - t // 5, t // 5], 1)
    p = x.tensor_split((t // 4, t // 2), 1)
    return a.sum(1), b, c, torch.cat([v.mean(1, keepdim=True) for v in x.chunk(3, 1)], 1).mean(1), torch.hstack([p[1], p[0]]), torch.stack(x.unbind(1)[::-1], 1), torch.block_diag(x[0], x[-1]), torch.column_stack([x[0], x[-1]]), torch.cartesian_prod(x[0, :, 0], x[0, :, 1])
@forward(X4, "k:int64[1]=1:4", dims="N=1:2:3 T=4:9:40", kinds=FEW, feeds=points(X4, "NT", (1, 4), (3, 40), (1, 5), more=("k:int64[1]=1:4",)))
def A4814CountsFromInputs(self, x, k):
    """The k best by a mask of ranks, where k is an input; thresholds by the k-th, places below k, a moving topk of the size, sort and cut."""
    t = x.shape[1]
    s = x[..., 0]
    v, i = s.sort(dim=1, descending=True, stable=True)
    kth = v.gather(1, (k - 1).expand(s.shape[0], 1))
    keep = torch.zeros_like(s).scatter(1, i, (torch.arange(t) < k).float().expand_as(s))
    return keep, s >= kth, s.topk(max(1, t // 4), 1).values, s.topk(t - 3, 1, largest=False).values.sum(1), torch.where(torch.arange(t) < k, v, 0.0).sum(1) / k, v[:, : math.isqrt(t)]
@forward(X4, **SEQ, refused="the module cannot be exported")
def A4815SmallAlgebra(self, x):
    """Gram matrices: determinants and their signs, an inverse, Cholesky with a load, a solve by triangles, a power of minus one, traces, matrix norms, cross products of rolled rows."""
    g = x.mT @ x / x.shape[1] + torch.eye(4)
    c = torch.linalg.cholesky(g)
    s, d = torch.linalg.slogdet(g[:, :3, :3])
    return torch.linalg.det(g[:, :2, :2]), s, d, torch.linalg.inv(g), torch.linalg.solve_triangular(c, x.mT, upper=False), torch.matrix_power(g, 3), g.diagonal(dim1=1, dim2=2).sum(1), torch.linalg.matrix_norm(g, 1), torch.linalg.cross(x[..., :3], x[..., 1:]), torch.cumulative_trapezoid(x, dim=1).sum(1), torch.baddbmm(x, x, g, beta=0.5, alpha=2)
@forward(X4, "i:int64[N,T]=0:5", dims=ROWS, kinds=FEW, feeds=points(X4, "NT", (1, 1), (3, 40), (1, 2), more=("i:int64[N,T]=0:5",)))
def A4816GatheredSparsely(self, x, i):
    """Messages by index_add over a flattened batch, mean by counts of one, maxima by scatter_reduce from minus infinity, a sparse product, softmax over groups, unique places by a sort."""
    n, t = i.shape
    f = (i + torch.arange(n)[:, None] * 6).flatten()
    s = torch.zeros(n * 6, 4).index_add(0, f, x.flatten(0, 1))
    c = torch.zeros(n * 6).index_add(0, f, torch.ones(n * t))
    m = torch.full((n * 6, 4), -torch.inf).scatter_reduce(0, f[:, None].expand(-1, 4), x.flatten(0, 1), "amax")
    e = (x.flatten(0, 1) - m[f]).exp()
    a = e / torch.zeros(n * 6, 4).index_add(0, f, e)[f]
    o = i.sort(dim=1, stable=True)
    new = F.pad(o.values[:, 1:] != o.values[:, :-1], (1, 0), value=True)
    return (s / c.clamp(min=1)[:, None]).view(n, 6, 4), m.where(m > -torch.inf, 0.0), a, new.cumsum(1).gather(1, o.indices.argsort(dim=1)), F.one_hot(i, 6).cumsum(1).gather(2, i[..., None])[..., 0] - 1
@forward("x:float32[N,T,4]", dims="N=0:2:3 T=0:9:20", kinds=FEW, feeds=points(X4, "NT", (0, 0), (0, 5), (3, 0), (1, 1), (2, 20)), refused="the exported model differs from the module")
def A4817FromNone(self, x):
    """Batches and steps of none: sums, any and all, running ones, joins with a row, softmaxes, products with none within, counts, reshapes by given sizes."""
    n, t, c = x.shape
    return x.sum(1), (x > 0).any(1), (x > 0).all(1), x.prod(1), F.pad(x, (0, 0, 1, 0)).amax(1), torch.cat([x, x.new_ones(n, 1, c)], 1), x.softmax(-1), x @ x.mT, x.mT @ x, x.reshape(n * t, c), x.cumsum(1), (x > 0).sum(), x.logsumexp(-1), x.mean(-1)
@forward(XT, dims="N=1:2:3 T=1:16:40", kinds=FEW, feeds=points(XT, "NT", (1, 1), (1, 2), (1, 3), (3, 39), (2, 40)), refused="the module cannot be exported")
def A4818SpectraOfSizes(self, x):
    """rfft with n shorter and longer, irfft to odd sizes, a convolution by transforms, a DCT by an even mirror, an envelope, Parseval, a Hilbert mask, frequencies."""
    t = x.shape[1]
    f = torch.fft.rfft(x, n=2 * t)
    d = torch.fft.rfft(torch.cat([x, x.flip(1)], 1)).real[:, :t]
    w = torch.blackman_window(t, periodic=False)
    y = torch.fft.irfft(f * f.conj(), n=2 * t)[:, :t]
    z = torch.fft.irfft(torch.fft.rfft(x), n=t)
    return y, d, z, x * w, torch.fft.rfft(x, n=8).abs(), torch.fft.rfftfreq(2 * t, 1 / 16000)[: f.shape[1]], (f.abs().square().sum(1) * 2 - f[:, 0].abs().square() - f[:, -1].abs().square()) / (2 * t), torch.fft.fft(x, norm="forward").imag, x * torch.kaiser_window(40, True, 8.0)[:t]

"""Round 29, follow-ups: what refusals hid, one danger each."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"
IMAGE = "N=1:1:2 H=8:16:40 W=8:18:40"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _f(values, *shape):
    return lambda: {"x": np.array(values, np.float32).reshape(shape)}


def _im(h, w, n=1, c=3, scale=1.0):
    return lambda: {"x": _r(n, c, h, w, scale=scale)}


def _t(t, n=1, scale=1.0):
    return lambda: {"x": _r(n, t, 4, scale=scale)}


@forward("x:float32[N,T,4]", "t:int64[N,T]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4), "t": np.array([[-100, -100, -100]])}, lambda: {"x": _r(1, 3, 4, scale=100), "t": np.array([[0, -100, 3]])}))
def F29CrossEntropy(self, x, t):
    t = torch.where(t < 0, -100, t % 4)
    return F.cross_entropy(x.mT, t, weight=torch.tensor([1.0, 2, 3, 4]), label_smoothing=0.1)


@forward("x:float32[N,T,4]", "t:int64[N,T]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4), "t": np.array([[-100, -100, -100]])}, lambda: {"x": _r(1, 3, 4, scale=100), "t": np.array([[0, -100, 3]])}))
def F29NllIgnores(self, x, t):
    t = torch.where(t < 0, 2, t % 4)
    return F.nll_loss(x.log_softmax(-1).mT, t, ignore_index=2), F.cross_entropy(x.mT, t, reduction="none", ignore_index=2), F.cross_entropy(x.mT, t, label_smoothing=0.2)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _f([0.0, 1, 100, -100] * 3, 1, 3, 4)))
def F29Losses(self, x):
    one = (x > 0).float()
    return (
        F.binary_cross_entropy_with_logits(x, one, pos_weight=torch.tensor([0.5, 2, 1, 1])), F.kl_div(x.log_softmax(-1), one, reduction="batchmean"),
        F.smooth_l1_loss(x, one, beta=0.5, reduction="none"), F.huber_loss(x, one, delta=2), F.gaussian_nll_loss(x, one, x.abs()), F.poisson_nll_loss(x.clamp(max=20), one * 3, full=True),
        F.hinge_embedding_loss(x, one * 2 - 1), F.soft_margin_loss(x.clamp(-50, 50), one * 2 - 1), F.multilabel_soft_margin_loss(x, one), F.margin_ranking_loss(x, x.flip(1), one * 2 - 1, margin=0.5),
    )  # fmt: skip


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(5, scale=0)))
def F29MarginLosses(self, x):
    y = x.flatten(0, 1)
    return F.triplet_margin_loss(y, y + 1, y - 1, swap=True), F.cosine_embedding_loss(y, y + 1, torch.where(y[:, 0] > 0, 1, -1)), F.multi_margin_loss(y, y.argmax(-1), margin=0.5), F.ctc_loss(y.log_softmax(-1)[:3, None], torch.tensor([[1, 2]]), torch.tensor([3]), torch.tensor([2]))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([1.5, -2, 1e-3, 3e38, 0.0, -0.0, 1, 7, 2, 4, 8, 16], 1, 3, 4),))
def F29Frexp(self, x):
    m, e = torch.frexp(x)
    return m, e, torch.copysign(x.abs(), -x), torch.signbit(x), torch.ldexp(m, e)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([0, 0, 0, 0] * 3, 1, 3, 4), lambda: {"x": np.round(_r(2, 6, 4))}))
def F29TiesOfMedians(self, x):
    return x.argmax(1), x.max(1)[1], x.min(-1).indices, (x > 0).int().argmax(1), x.cummin(1)[1], x.flatten(1).argmin(1, keepdim=True)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([0, 0, 0, 0] * 3, 1, 3, 4), lambda: {"x": np.round(_r(2, 6, 4))}))
def F29Kth(self, x):
    return x.kthvalue(2, 1)[0], x.mode(-1)[0], x.median(1)[0], (x > 0).max(1)[1]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([-0.25, 0, 0.25, 0.5, 0.75, 1, 1.25, -1, 0.1, 0.9, 0.999, 0.3], 1, 3, 4),))
def F29HistogramOfFloats(self, x):
    edges = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    return torch.histc(x, 4, 0, 1), torch.bucketize(x, edges), torch.bucketize(x, edges, right=True), torch.searchsorted(edges, x, side="right", out_int32=True)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([-0.25, 0, 0.25, 0.5, 0.75, 1, 1.25, -1, 0.1, 0.9, 0.7, 0.3], 1, 3, 4), lambda: {"x": np.linspace(0, 1, 80, dtype=np.float32).reshape(1, 20, 4)}))
def F29HistogramOfTen(self, x):
    """histc by tenths: which bin has 0.7?"""
    return torch.histc(x, 10, 0.0, 1.0), torch.histc(x.clamp(-1, 1), bins=7, min=-1, max=1), torch.bincount((x.clamp(0, 1) * 10).long().flatten(), minlength=11)


@forward("b:bool[N,T]", "x:float32[N,T]", dims=SHORT, feeds=(lambda: {"b": np.ones((2, 18), bool), "x": _r(2, 18)}, lambda: {"b": np.zeros((1, 3), bool), "x": _r(1, 3)}))
def F29BoolArithmetic(self, b, x):
    p = x > 0
    return b + p, b * p, b ^ p, b.sum(1), b.cumsum(1), b.to(torch.uint8) - 1, b * 2, b.float().mean(1), b <= p, b.any(1) & p.all(1), b.to(torch.int8).cumsum(1, dtype=torch.int8) * 100, torch.where(b, 1, 2.5), ~b, b.logical_xor(x), -b.int()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([3e9, -3e9, 2147483520, 1e15, 255.9, -0.9, 256, 70000, -129, 1, 2, 3], 1, 3, 4),))
def F29CastsDown(self, x):
    big = x.clamp(-1e15, 1e15).long()
    return big.to(torch.int32), big.to(torch.int16), big.to(torch.uint8), (big & 0xFFFF).float(), big.abs() // 1000, big.bool()


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=5:9:20", feeds=(lambda: {"x": np.round(_r(2, 8, 4) * 4) / 4}, lambda: {"x": np.zeros((1, 5, 4), np.float32)}))
def F29Quantiles(self, x):
    mid = x[:, 1:-1]
    return ((mid > x[:, :-2]) & (mid >= x[:, 2:])).sum(1), torch.quantile(x, torch.tensor([0.25, 0.5, 0.9]), dim=1, interpolation="nearest"), torch.quantile(x, 0.3, dim=1, interpolation="higher"), torch.quantile(x, 0.1, dim=1), torch.gradient(x, dim=1)[0], torch.heaviside(x, torch.tensor(0.5)), x.unfold(1, 3, 2).median(-1)[0]


@forward("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(13, 31), _im(9, 9)))
def F29ReflectsBySize(self, x):
    h, w = x.shape[-2:]
    return F.pad(x, (w // 2, -1, h - 1 - h // 2, h // 3), mode="reflect"), F.pad(x, (1, w, -2, 1), mode="circular"), F.pad(x, (-(w // 4), w % 3, 0, -1), value=2.0)


@attack("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(13, 31), _im(9, 9)))
class F29ConvPads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 3, (4, 3), padding="same", dilation=(1, 2), padding_mode="reflect")
        self.b = nn.Conv2d(3, 3, 5, padding=(2, 1), padding_mode="circular", stride=2)
        self.c = nn.ConvTranspose2d(3, 3, 3, 2, 1, output_padding=(1, 0), dilation=(1, 2))

    def forward(self, x):
        return self.a(x), self.b(x), self.c(x, output_size=[x.shape[2] * 2, x.shape[3] * 2 + 2])


@forward("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(9, 8), _im(15, 21)))
def F29LowPass(self, x):
    h, w = x.shape[-2:]
    f = torch.fft.rfft2(x, norm="ortho")
    keep = torch.ones(h, w // 2 + 1)
    keep[h // 4 : h - h // 4] = 0
    keep[:, w // 4 :] *= 0.5
    return torch.fft.irfft2(f * keep, s=(h, w), norm="ortho"), torch.fft.irfft(f.conj() * f.roll(1, -2), n=w - 1), torch.fft.fftshift(torch.fft.fft2(x, norm="forward"), dim=(-2, -1)).real


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), lambda: {"x": -np.abs(_r(3, 7, 4))}))
def F29ViewsOfClones(self, x):
    y = x.clone()
    even, last = y[:, ::2], y.mT[:, -1]
    even.mul_(-1).clamp_(min=-0.5)
    last += torch.arange(y.shape[1])
    a, b = y.chunk(2, -1)
    a.add_(b)
    y.select(1, -1).relu_()
    y[y > 6.5] -= 1
    y.narrow(1, 1, 2).sigmoid_()
    return y, even, last, a


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(7, 3)))
def F29ViewsByDiagonal(self, x):
    y = x.clone()
    y.diagonal(dim1=1, dim2=2).neg_()
    y.view(y.shape[0], -1)[:, ::5] = 7
    c = torch.view_as_complex(y.view(y.shape[0], y.shape[1], 2, 2))
    return y, c.abs()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(7, 1), _t(3, 4)))
def F29SqueezesInPlace(self, x):
    y = x.clone()
    y.narrow(0, 0, 1).squeeze_().mul_(3)
    z = y[:, 1:2].squeeze(1).unsqueeze_(0)
    return y, z, x.squeeze(0).sum(-1), x[:, :1].squeeze().mean(-1)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(20, 4, 100)))
class F29Vmapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x):
        return torch.vmap(lambda w: x @ w)(self.w).mean(0), torch.vmap(lambda r: (r @ r.mT).softmax(-1), out_dims=1)(x)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(3), _t(5, 2, 5)))
class F29EnergyGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return torch.func.grad(lambda z: self.net(z).sum())(x)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_f([1e-5] * 12, 1, 3, 4), _f([-1.0] * 12, 1, 3, 4), _f([1.0] * 12, 1, 3, 4)))
class F29CondOnMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.mean() > 0, lambda t: self.a(t).relu(), lambda t: self.b(t) * 2, (x,))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(13), _t(14)))
def F29CondOnSize(self, x):
    return torch.cond(x.shape[1] > 13, lambda t: t.flip(1) + 1, lambda t: t.sin(), (x,))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([100.0] * 12, 1, 3, 4), _f([0.4] * 12, 1, 3, 4)))
def F29While(self, x):
    return torch._higher_order_ops.while_loop(lambda i, t: (i < 7) & (t.abs().mean() > 0.5), lambda i, t: (i + 1, t * 0.5), (torch.tensor(0), x))


@attack("x:float32[N,3,H,W]", dims="N=1:2:4 H=2:6:20 W=2:8:20", feeds=(_im(2, 2), _im(3, 7, 3, scale=1e3), _im(20, 2)))
class F29Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.inst = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
        self.inst.running_mean.uniform_(-1, 1)
        self.group, self.lrn, self.rms = nn.GroupNorm(3, 3, eps=1e-6), nn.LocalResponseNorm(2, k=2), nn.RMSNorm(3)
        self.bn = nn.BatchNorm2d(3, track_running_stats=False, affine=False)

    def forward(self, x):
        grn = x.norm(dim=(2, 3), keepdim=True)
        return self.inst(x), self.group(x), self.lrn(x), self.rms(x.permute(0, 2, 3, 1)), self.bn(x), (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-5), x * grn / (grn.mean(1, keepdim=True) + 1e-6)


@attack("x:float32[N,3,H,W]", dims="N=1:2:4 H=2:6:20 W=2:8:20", feeds=(_im(2, 2), _im(3, 7, 3, scale=1e3)))
class F29CrossMap(nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = nn.CrossMapLRN2d(3)

    def forward(self, x):
        return self.cross(x)


@forward("x:float32[N,H,W]", dims="N=1:1:3 H=4:9:20 W=4:8:20", feeds=(lambda: {"x": _r(1, 4, 5)}, lambda: {"x": _r(2, 20, 4)}))
def F29IndexWrites(self, x):
    h, w = x.shape[1:]
    i, j = torch.arange(h), torch.arange(min(h, w))
    y = x.clone()
    y[:, j, j] = 5.0
    y[:, -1, ::3] += 1
    y[:, [0, -2], 1:3] = x[:, [1, 0], -2:]
    return y, x[:, i.flip(0)][..., None, -1:].squeeze(2), x[:, None, ::2, w // 2 :], x.rot90(1, (1, 2))


@forward("x:float32[N,H,W]", dims="N=1:1:3 H=4:9:20 W=4:8:20", feeds=(lambda: {"x": _r(1, 4, 5)}, lambda: {"x": _r(2, 20, 4)}))
def F29EveryThirdRow(self, x):
    y = x.clone()
    y[..., torch.arange(x.shape[1]) % 3 == 1, :] *= 2
    return y


@forward("x:float32[N,H,W]", dims="N=1:1:3 H=4:9:20 W=4:8:20", feeds=(lambda: {"x": _r(1, 4, 5)}, lambda: {"x": _r(2, 20, 4)}))
def F29PairsWithTuples(self, x):
    u = x.new_zeros(x.shape)
    u[:, torch.tensor([[0], [1]]), torch.tensor([0, 2])] = torch.tensor([3.0, 4.0])
    y = x.clone()
    y.index_put_((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.ones(x.shape[2]), accumulate=True)
    return u, y, x.tril(x.shape[2] - x.shape[1])


@forward("x:float32[N,3,H,W]", "a:float32[N,2,3]", dims=IMAGE,
         feeds=(lambda: {"x": _r(1, 3, 8, 9), "a": np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)}, lambda: {"x": _r(1, 3, 13, 8), "a": np.array([[[3, 0.5, -9], [-0.2, 2.5, 7]]], np.float32)},
                lambda: {"x": _r(2, 3, 8, 8), "a": np.tile(np.array([[[-1, 0, 0], [0, -1, 0.25]]], np.float32), (2, 1, 1))}))  # fmt: skip
def F29Affine(self, x, a):
    g = F.affine_grid(a.clamp(-20, 20), list(x.shape), align_corners=False)
    return F.grid_sample(x, g, "bilinear", "reflection", align_corners=False), F.grid_sample(x, g, "bicubic", "border", align_corners=True), F.grid_sample(x, g[:, ::2, :3], "bilinear", "reflection", align_corners=True)


@forward("x:float32[N,T,6]", dims="N=1:1:2 T=3:9:30", feeds=(lambda: {"x": np.tile(_r(1, 1, 6), (1, 7, 1))}, lambda: {"x": np.round(np.abs(_r(2, 20, 6, scale=3)))}))
def F29SoftNms(self, x):
    box = torch.cat([x[..., :2] - x[..., 2:4].abs() / 2, x[..., :2] + x[..., 2:4].abs() / 2], -1)
    score, order = x[..., 4].sigmoid().sort(dim=-1, descending=True, stable=True)
    box = box.gather(1, order[..., None].expand(-1, -1, 4))
    area = (box[..., 2:] - box[..., :2]).clamp(0).prod(-1)
    lt, rb = torch.maximum(box[:, :, None, :2], box[:, None, :, :2]), torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:])
    inter = (rb - lt).clamp(0).prod(-1)
    iou = (inter / (area[:, :, None] + area[:, None] - inter + 1e-7)).triu(1)
    decay = torch.exp(-2 * (iou**2 - iou.amax(1)[..., None] ** 2)).amin(1)
    return score * decay, order, (iou > 0.5).any(1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([5, 5, 5, 5, 0, 0, 0, 0, -1, -1, -1, -1.0], 1, 3, 4), _t(3, scale=1e20)))
def F29TopP(self, x):
    x = x.clamp(-1e4, 1e4)
    s, index = x.sort(dim=-1, descending=True, stable=True)
    drop = s.softmax(-1).cumsum(-1) > 0.5
    drop = torch.cat([torch.zeros_like(drop[..., :1]), drop[..., :-1]], -1)
    out = x.masked_fill(drop.scatter(-1, index, drop), float("-inf"))
    p = torch.where(out < x.topk(2, -1)[0][..., -1:], -torch.inf, out).softmax(-1)
    return p, p.argmax(-1), torch.special.entr(p).sum(-1), torch.where(p > 0, p * p.log(), 0).sum(-1)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=4:12:40", feeds=(_t(5), _t(6), _t(9)))
def F29MulawAndDelta(self, x):
    """mu-law codes, deltas by a fixed kernel, a spectrogram in decibels with a floor of its own maximum."""
    y = x.clamp(-1, 1)
    codes = ((y.sign() * torch.log1p(255 * y.abs()) / math.log1p(255) + 1) / 2 * 255 + 0.5).to(torch.int64)
    back = codes.float() / 255 * 2 - 1
    wave = back.sign() * (torch.exp(back.abs() * math.log1p(255)) - 1) / 255
    k = torch.arange(-2, 3.0).repeat(4, 1, 1)
    delta = F.conv1d(F.pad(x.mT, (2, 2), mode="replicate"), k, groups=4) / 10
    db = 10 * torch.log10(torch.clamp(x**2, min=1e-10))
    db = torch.maximum(db, db.amax((1, 2), keepdim=True) - 80.0)
    return codes, wave, delta, db


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([57344, 61440, 6e4, 17, 0.3, 1, 2, 3, -1e6, 1, 2, 3], 1, 3, 4),))
def F29EightBitCache(self, x):
    """A cache of keys in float8_e5m2, cast as it comes."""
    k = x.to(torch.float8_e5m2).to(torch.float32)
    return (k @ k.mT).softmax(-1), 1 / (1 + k.abs())


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=3:100:3000", feeds=(lambda: {"x": 100 + _r(1, 2900, 4)}, lambda: {"x": 1000 + _r(1, 700, 4)}))
def F29HalfMeanOfMany(self, x):
    return x.half().mean(1).float(), x.half().sum(1).float()

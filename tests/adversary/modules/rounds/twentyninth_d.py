"""Round 29, vision and mechanisms: post-processing, sampling, windows, pools, views, state, functions that wrap."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack, forward

IMAGE = "N=1:1:2 H=8:16:40 W=8:18:40"
SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _im(h, w, n=1, c=3, scale=1.0):
    return lambda: {"x": _r(n, c, h, w, scale=scale)}


@forward("x:float32[N,T,6]", dims="N=1:1:2 T=3:9:30",
         feeds=(lambda: {"x": np.zeros((1, 9, 6), np.float32)}, lambda: {"x": np.tile(_r(1, 1, 6), (1, 7, 1))},
                lambda: {"x": np.round(np.abs(_r(2, 20, 6, scale=3)))}))  # fmt: skip
def D29MatrixNms(self, x):
    """SOLO's matrix NMS on boxes: degenerate boxes have no area, equal scores tie."""
    box = torch.cat([x[..., :2] - x[..., 2:4].abs() / 2, x[..., :2] + x[..., 2:4].abs() / 2], -1)
    score, order = x[..., 4].sigmoid().sort(dim=-1, descending=True, stable=True)
    box = box.gather(1, order[..., None].expand(-1, -1, 4))
    label = (x[..., 5] > 0).gather(1, order)
    area = (box[..., 2:] - box[..., :2]).clamp(0).prod(-1)
    lt, rb = torch.maximum(box[:, :, None, :2], box[:, None, :, :2]), torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:])
    inter = (rb - lt).clamp(0).prod(-1)
    iou = inter / (area[:, :, None] + area[:, None] - inter)
    iou = torch.where((label[:, :, None] == label[:, None]), iou.nan_to_num(0), 0).triu(1)
    comp = iou.amax(1)
    decay = ((1 - iou**2) / (1 - comp[..., None] ** 2)).amin(1)
    keep = score * decay > 0.4
    return score * decay, keep, box * keep[..., None]


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=16:32:50 W=16:32:50", feeds=(_im(33, 17), _im(50, 16, scale=20), _im(31, 47)))
class D29YoloHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2 * 7, 3, 8, 1)
        self.register_buffer("anchors", torch.tensor([[10.0, 13], [33, 23]]))
        self.grid = torch.empty(0)

    def forward(self, x):
        n, _, h, w = x.shape
        y = self.conv(x)
        ny, nx = y.shape[-2:]
        y = y.view(n, 2, 7, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        if self.grid.shape[:2] != (ny, nx):
            gy, gx = torch.meshgrid(torch.arange(ny), torch.arange(nx), indexing="ij")
            self.grid = torch.stack([gx, gy], -1).float()
        y = y.sigmoid()
        y[..., 0:2] = (y[..., 0:2] * 2 - 0.5 + self.grid) * 8
        y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * self.anchors[:, None, None]
        box = y[..., :4].reshape(n, -1, 4)
        box[..., [0, 2]] /= w
        box[..., 1::2] /= h
        conf, cls = y[..., 5:].reshape(n, -1, 2).max(-1)
        return box.clamp_(0, 1), conf * y[..., 4].flatten(1), cls.float()


@forward("x:float32[N,3,H,W]", "b:float32[K,4]", dims="N=1:1:2 H=8:16:40 W=8:18:40 K=1:3:8",
         feeds=(lambda: {"x": _r(1, 3, 9, 11), "b": np.array([[0, 0, 10, 8], [-3, -2, 2, 1], [5, 5, 5, 5], [9, 7, 20, 30]], np.float32)},))  # fmt: skip
def D29RoiByGrid(self, x, b):
    """Regions by grid_sample, from boxes that are empty or outside."""
    h, w = x.shape[-2:]
    size = torch.tensor([w - 1, h - 1])
    lo, hi = b[:, :2].sort(-1)[0] / size * 2 - 1, b[:, 2:].sort(-1)[0] / size * 2 - 1
    step = torch.linspace(0, 1, 5)
    gx = lo[:, :1, None] + (hi - lo)[:, :1, None] * step[None, None]
    gy = lo[:, 1:, None] + (hi - lo)[:, 1:, None] * step[None, :, None]
    grid = torch.stack([gx.expand(-1, 5, -1), gy.expand(-1, -1, 5)], -1)
    y = F.grid_sample(x[:1].expand(b.shape[0], -1, -1, -1), grid, align_corners=True)
    z = F.grid_sample(x[:1].expand(b.shape[0], -1, -1, -1), grid, "nearest", "border", align_corners=False)
    return F.max_pool2d(y, 2, ceil_mode=True), z


@forward("x:float32[N,3,H,W]", "a:float32[N,2,3]", dims=IMAGE,
         feeds=(lambda: {"x": _r(1, 3, 8, 9), "a": np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)},
                lambda: {"x": _r(1, 3, 13, 8), "a": np.array([[[3, 0.5, -9], [-0.2, 2.5, 7]]], np.float32)},
                lambda: {"x": _r(2, 3, 8, 8), "a": np.tile(np.array([[[-1, 0, 0], [0, -1, 0.25]]], np.float32), (2, 1, 1))}))  # fmt: skip
def D29Affine(self, x, a):
    a = a.clamp(-20, 20)
    g = F.affine_grid(a, list(x.shape), align_corners=False)
    e = F.affine_grid(a, (x.shape[0], 3, 5, 1), align_corners=True)
    return (
        F.grid_sample(x, g, "bilinear", "reflection", align_corners=False), F.grid_sample(x, g, "bicubic", "border", align_corners=True),
        F.grid_sample(x, e, "bilinear", "zeros", align_corners=True), F.grid_sample(x, g[:, ::2, :3], "bilinear", "reflection", align_corners=True),
    )  # fmt: skip


@attack("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(17, 23), _im(15, 8), _im(39, 40)))
class D29ShiftedWindows(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv2d(3, 8, 1)
        self.qkv = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.randn(49, 2))
        c = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        rel = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + 3
        self.register_buffer("index", rel[..., 0] * 7 + rel[..., 1])

    def forward(self, x):
        x = self.inp(x).permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
        hp, wp = x.shape[1:3]
        x = x.roll((-2, -2), (1, 2))
        region = torch.zeros(1, hp, wp, 1)
        count = 0
        for a in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for b in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                region[:, a, b] = count
                count += 1
        cut = lambda t: t.view(t.shape[0], hp // 4, 4, wp // 4, 4, -1).transpose(2, 3).reshape(-1, 16, t.shape[-1])  # noqa: E731
        ids = cut(region).squeeze(-1)
        mask = (ids[:, None] - ids[:, :, None]).masked_fill_((ids[:, None] != ids[:, :, None]), -100.0)
        q, k, v = self.qkv(cut(x)).view(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
        att = q @ k.mT / 2 + self.bias[self.index].permute(2, 0, 1)
        att = (att.view(n, -1, 2, 16, 16) + mask[None, :, None]).flatten(0, 1)
        y = (att.softmax(-1) @ v).transpose(1, 2).reshape(n, hp // 4, wp // 4, 4, 4, c).transpose(2, 3).reshape(n, hp, wp, c)
        return y.roll((2, 2), (1, 2))[:, :h, :w]


@forward("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(9, 13), _im(11, 40), _im(10, 10, scale=100)))
def D29Pools(self, x):
    m, i = F.max_pool2d(x, (3, 2), (2, 3), (1, 1), dilation=(2, 1), ceil_mode=True, return_indices=True)
    return (
        m, i, F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=True), F.avg_pool2d(x, (4, 3), 3, (2, 0), ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, 3, 2, 1, divisor_override=5), F.lp_pool2d(x, 3, 3, 2, ceil_mode=True), F.adaptive_avg_pool2d(x, (3, None)), F.adaptive_max_pool2d(x, (5, 3)),
        F.max_pool2d(x, 2, 2, 1, ceil_mode=True), F.avg_pool1d(x[..., 0], 4, 4, 2, ceil_mode=True), F.max_pool3d(x[:, None], 2, 2, 1, ceil_mode=True),
    )  # fmt: skip


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=2:6:20 W=2:8:20", feeds=(_im(2, 3), _im(7, 13), _im(19, 2), _im(3, 3)))
def D29Resizes(self, x):
    h, w = x.shape[-2:]
    return (
        F.interpolate(x, size=(7, 1), mode="bicubic", align_corners=True), F.interpolate(x, size=(h * 2 - 1, w // 2 + 1), mode="bilinear", antialias=True),
        F.interpolate(x, scale_factor=(1.5, 0.75), mode="nearest-exact"), F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        F.interpolate(x, size=(5, 5), mode="area"), F.interpolate(x[..., 0], size=h + 3, mode="nearest"), F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=True),
    )  # fmt: skip


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:9:20 W=4:8:20", feeds=(_im(4, 5), _im(20, 7, scale=10), _im(7, 4)))
class D29Deformable(nn.Module):
    def __init__(self):
        super().__init__()
        self.off, self.w = nn.Conv2d(3, 27, 3, padding=1), nn.Conv2d(27, 4, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        o = self.off(x)
        dy, dx, m = o[:, :9], o[:, 9:18], o[:, 18:].sigmoid()
        ky, kx = torch.arange(-1, 2).repeat_interleave(3), torch.arange(-1, 2).repeat(3)
        py = torch.arange(h)[:, None] + ky[:, None, None] + dy
        px = torch.arange(w) + kx[:, None, None] + dx
        y0, x0 = py.floor(), px.floor()
        flat, total = x.flatten(2), 0
        for yy in (y0, y0 + 1):
            for xx in (x0, x0 + 1):
                inside = (yy >= 0) & (yy < h) & (xx >= 0) & (xx < w)
                index = (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1)).long().flatten(1)
                value = flat.gather(2, index[:, None].expand(-1, c, -1)).view(n, c, 9, h, w)
                total = total + value * ((1 - (py - yy).abs()) * (1 - (px - xx).abs()) * inside * m)[:, None]
        return self.w(total.flatten(1, 2))


@attack("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(13, 31), _im(9, 9)))
class D29Pads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 3, (4, 3), padding="same", dilation=(1, 2), padding_mode="reflect")
        self.b = nn.Conv2d(3, 3, 5, padding=(2, 1), padding_mode="circular", stride=2)
        self.c = nn.ConvTranspose2d(3, 3, 3, 2, 1, output_padding=(1, 0), dilation=(1, 2))

    def forward(self, x):
        h, w = x.shape[-2:]
        y = F.pad(x, (w // 2, -1, h - 1, h // 3), mode="reflect")
        z = F.pad(x, (1, w, -2, 1), mode="circular")
        up = self.c(x, output_size=[h * 2, w * 2 + 2])
        return self.a(x), self.b(x), up, y, z, F.pad(x, (-w // 4, w % 3, 0, -1), value=float(h))


@forward("x:float32[N,4,H,W]", dims="N=1:1:2 H=8:12:24 W=8:16:24", feeds=(lambda: {"x": _r(1, 4, 9, 11)}, lambda: {"x": _r(2, 4, 24, 9)}))
def D29FoldsBack(self, x):
    n, c, h, w = x.shape
    cols = F.unfold(x, (3, 2), dilation=(2, 1), padding=(2, 1), stride=(1, 2))
    weight = F.fold(torch.ones_like(cols), (h, w), (3, 2), dilation=(2, 1), padding=(2, 1), stride=(1, 2))
    back = F.fold(cols * 2, (h, w), (3, 2), dilation=(2, 1), padding=(2, 1), stride=(1, 2)) / weight
    even = x[..., : h // 2 * 2, : w // 2 * 2]
    return back, F.pixel_unshuffle(even, 2), F.pixel_shuffle(x, 2), F.channel_shuffle(x, 2), x.unfold(2, 4, 3).unfold(3, 2, 2).amax((-1, -2))


@forward("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(9, 8), _im(15, 21)))
def D29Spectra(self, x):
    h, w = x.shape[-2:]
    f = torch.fft.rfft2(x, norm="ortho")
    low = f.clone()
    low[..., h // 4 : h - h // 4, :] = 0
    low[..., w // 4 :] *= 0.5j
    back = torch.fft.irfft2(low, s=(h, w), norm="ortho")
    shifted = torch.fft.fftshift(torch.fft.fft2(x, norm="forward"), dim=(-2, -1))
    corr = torch.fft.irfft(f.conj() * f.roll(1, -2), n=w - 1)
    return back, shifted.real, shifted.abs().log1p(), corr, torch.view_as_real(f * torch.exp(1j * x[..., :1].mean()))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)}, lambda: {"x": -np.abs(_r(3, 7, 4))}))
def D29WritesIntoViews(self, x):
    y = x.clone()
    even, last = y[:, ::2], y.mT[:, -1]
    even.mul_(-1).clamp_(min=-0.5)
    last += torch.arange(y.shape[1])
    y.view(-1)[::5] = 7
    y.diagonal(dim1=1, dim2=2).neg_()
    y.select(1, -1).relu_()
    a, b = y.chunk(2, -1)
    a.add_(b)
    y.unbind(1)[1].zero_()
    y[y > 6.5] -= 1
    y.narrow(1, 1, 2).squeeze_().sigmoid_()
    c = torch.view_as_complex(y.view(*y.shape[:2], 2, 2))
    c.imag.mul_(2)
    return y, even, last, a.detach().add_(1), y


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)}, lambda: {"x": _r(1, 17, 4)}, lambda: {"x": _r(4, 4, 4)}))
def D29ChangesItsInput(self, x):
    """relu_ on the input before the skip, a slice of the input normalised in place."""
    y = F.relu(x, inplace=True)
    x[..., 2:] /= x.shape[1]
    z = y + x
    torch.add(x, 1, out=x)
    x.swapaxes(1, 2)[:, 0].sub_(y.mean())
    return z, x, y[:, -1:].expand(-1, x.shape[1], -1)


class _Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ctx.save_for_backward(x)
        top = x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        levels = 2 ** (bits - 1) - 1
        return (x / top * levels).round_() / levels * top

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)}, lambda: {"x": np.zeros((1, 3, 4), np.float32)}))
class D29Parametrised(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Linear(4, 4), dim=None)
        self.b = parametrizations.spectral_norm(nn.Linear(4, 4))
        self.c = parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
        self.d = nn.Linear(4, 4, bias=False)
        self.d.weight = self.c.weight if False else nn.Parameter(torch.randn(4, 4))

        class Low(nn.Module):
            def forward(self, w):
                return w.tril() + w.tril(-1).mT

        parametrize.register_parametrization(self.d, "weight", Low())

    def forward(self, x):
        with parametrize.cached():
            return _Straight.apply(self.d(self.c(self.b(self.a(x)))), 4), self.c.weight @ self.d.weight


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)}, lambda: {"x": _r(4, 20, 4, scale=100)}))
class D29FunctionalCalls(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.net[0].weight
        self.extra = nn.ParameterList([nn.Parameter(torch.randn(4, 4)) for _ in range(3)])

    def forward(self, x):
        many = torch.stack(list(self.extra))
        params = dict(self.net.named_parameters())
        each = torch.func.vmap(lambda w: torch.func.functional_call(self.net, {**params, "0.weight": w}, (x,)))(many)
        per = torch.vmap(lambda r, s: (r @ r.mT + s).softmax(-1), in_dims=(0, None), out_dims=1)(x, torch.ones(()))
        return each.mean(0), per, self.tied(x)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4)}, lambda: {"x": _r(2, 5, 4, scale=5)}))
class D29Gradients(nn.Module):
    """A Hamiltonian network: its output is the gradient of an energy."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        g = torch.func.grad(lambda z: self.net(z).sum())(x)
        _, tangent = torch.func.jvp(self.net, (x,), (torch.ones_like(x),))
        return torch.cat([g[..., 2:], -g[..., :2]], -1), tangent


@attack("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9, scale=300), _im(9, 8)))
class D29AutocastPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = nn.Conv2d(3, 4, 3), nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            y = self.lin(self.conv(x).mean((2, 3)))
            s = (y @ y.mT).softmax(-1)
            with torch.autocast("cpu", enabled=False):
                z = self.lin(y.float())
            t = y + z
        return y.float(), s.float(), t, torch.sigmoid(y).float()


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4) - 5}, lambda: {"x": np.zeros((2, 4, 4), np.float32)}, lambda: {"x": _r(1, 3, 4) + 5}))
class D29Conditions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = torch.cond(x.mean() > 0, lambda t: self.a(t).relu(), lambda t: self.b(t) * 2, (x,))
        z = torch.cond(x.shape[1] > 13, lambda t: t.flip(1) + 1, lambda t: t.sin(), (x,))
        steps, w = torch._higher_order_ops.while_loop(lambda i, t: (i < 7) & (t.abs().amax() > 0.5), lambda i, t: (i + 1, t * 0.5), (torch.tensor(0), x))
        return y, z, w, steps


@attack("x:float32[N,3,H,W]", dims="N=1:2:4 H=2:6:20 W=2:8:20", feeds=(_im(2, 2), _im(3, 7, n=3, scale=1e3), _im(20, 2)))
class D29Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.inst = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
        self.inst.running_mean.uniform_(-1, 1)
        self.group, self.lrn, self.rms = nn.GroupNorm(3, 3, eps=0.0), nn.LocalResponseNorm(2, k=2), nn.RMSNorm(3)
        self.cross = nn.CrossMapLRN2d(3)
        self.bn = nn.BatchNorm2d(3, track_running_stats=False, affine=False)

    def forward(self, x):
        mean, std = x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True)
        grn = x.norm(dim=(2, 3), keepdim=True)
        return self.inst(x), self.group(x + 1e-3 * torch.arange(x.shape[-1])), self.lrn(x), self.rms(x.mT.permute(0, 2, 3, 1)), self.cross(x), self.bn(x), (x - mean) / (std + 1e-5), x * grn / (grn.mean(1, keepdim=True) + 1e-6)


@attack("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(16, 16), _im(9, 8)))
class D29Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True))
        self.taken = {}
        self.stem.register_forward_hook(lambda m, i, o: self.taken.__setitem__("stem", o))
        self.body[1].register_forward_pre_hook(lambda m, i: (i[0] * 2,))
        self.body.register_forward_hook(lambda m, i, o: F.dropout(o, 0.5, m.training).add_(1))

    def forward(self, x):
        y = self.body(self.stem(x))
        return y, self.taken["stem"], F.interpolate(self.taken["stem"], y.shape[-1:] * 2)


@forward("p:float32[N,T,3]", "f:float32[N,T,4]", dims="N=1:1:2 T=8:20:60",
         feeds=(lambda: {"p": np.zeros((1, 9, 3), np.float32), "f": _r(1, 9, 4)}, lambda: {"p": np.round(_r(1, 40, 3)), "f": _r(1, 40, 4)},
                lambda: {"p": 1000 + _r(1, 40, 3, scale=0.01), "f": _r(1, 40, 4)}))  # fmt: skip
def D29PointGroups(self, p, f):
    """PointNet++: farthest points, balls around them, three nearest for the way back."""
    n, t, _ = p.shape
    far, dist, picks = torch.zeros(n, dtype=torch.long), torch.full((n, t), 1e10), []
    rows = torch.arange(n)
    for _ in range(4):
        picks.append(far)
        d = ((p - p[rows, far][:, None]) ** 2).sum(-1)
        dist = torch.where(d < dist, d, dist)
        far = dist.argmax(-1)
    c = p[rows[:, None], torch.stack(picks, 1)]
    sq = ((c[:, :, None] - p[:, None]) ** 2).sum(-1)
    index = torch.arange(t).expand(n, 4, t).clone()
    index[sq > 1.0] = t
    index = index.sort(-1)[0][..., :5]
    index = torch.where(index == t, index[..., :1].expand_as(index), index)
    group = f[rows[:, None, None], index]
    near = sq.mT.topk(3, -1, largest=False)
    w = 1 / (near[0] + 1e-8)
    return group.amax(2), index, (group.mean(2)[rows[:, None, None], near[1]] * (w / w.sum(-1, keepdim=True))[..., None]).sum(2)


@forward("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(20, 13), _im(40, 8), lambda: {"x": np.zeros((1, 3, 8, 8), np.float32)}))
def D29HeatmapPeaks(self, x):
    """CenterNet and pose heads: peaks of a heat map, a quarter step towards the higher neighbour, soft-argmax."""
    n, c, h, w = x.shape
    heat = x.sigmoid()
    heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
    score, index = heat.flatten(1).topk(min(20, 3 * h * w))
    cls, place = torch.div(index, h * w, rounding_mode="floor"), index % (h * w)
    ys, xs = torch.div(place, w, rounding_mode="trunc").int().float(), (place % w).int().float()
    left = x.flatten(1).gather(1, cls * h * w + (place - 1).clamp(0))
    right = x.flatten(1).gather(1, cls * h * w + (place + 1).clamp(max=h * w - 1))
    xs = xs + 0.25 * torch.sign(right - left)
    p = x.flatten(2).softmax(-1).view(n, c, h, w)
    soft = torch.stack([(p.sum(2) * torch.linspace(-1, 1, w)).sum(-1), (p.sum(3) * torch.linspace(-1, 1, h)).sum(-1)], -1)
    return score, cls, torch.stack([xs / w, ys / h], -1), soft, (index // w) % h


@forward("x:float32[N,4,H,W]", "k:float32[N,4,3,3]", dims="N=1:2:4 H=4:9:20 W=4:8:20",
         feeds=(lambda: {"x": _r(3, 4, 5, 4), "k": _r(3, 4, 3, 3)}, lambda: {"x": _r(1, 4, 20, 7), "k": _r(1, 4, 3, 3)}))  # fmt: skip
def D29DynamicKernels(self, x, k):
    """Samples have kernels of their own, by groups; einsums that repeat, broadcast and leave out letters."""
    n, c, h, w = x.shape
    y = F.conv2d(x.reshape(1, n * c, h, w), k.reshape(n * c, 1, 3, 3), groups=n * c, padding=1).view(n, c, h, w)
    tr = torch.einsum("ncii->nc", k)
    out = torch.einsum("n...hw,nchk->n...wk", x[:, 0], k.mean(1, keepdim=True).expand(-1, 1, h, -1) if h == 3 else k[:, :1].repeat(1, 1, -(-h // 3), 1)[:, :, :h])
    att = torch.einsum("nchw,ndhw->ncd", x, y)
    return y, tr, out, att, torch.einsum("nc,nd,ncd->n", tr, tr, att), torch.tensordot(x, k[:1], ([1], [1]))[..., 0].sum((-1, -2, -3))


@forward("x:float32[N,H,W]", dims="N=1:1:3 H=4:9:20 W=4:8:20",
         feeds=(lambda: {"x": _r(1, 4, 5)}, lambda: {"x": _r(2, 20, 4)}, lambda: {"x": np.ones((1, 4, 4), np.float32)}))  # fmt: skip
def D29IndexForms(self, x):
    n, h, w = x.shape
    i, j = torch.arange(h), torch.arange(min(h, w))
    y = x.clone()
    y[:, j, j] = 5.0
    y[:, -1, ::3] += 1
    y[..., i % 3 == 1, :] *= 2
    y[:, [0, -2], 1:3] = x[:, [1, 0], -2:]
    y[torch.zeros(n, dtype=torch.long), i[:n] % h] = -1.0
    u = x.new_zeros(n, h, w)
    u[:, torch.tensor([[0], [1]]), torch.tensor([0, 2])] = torch.tensor([3.0, 4.0])
    y.index_put_((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.tensor(2.0), accumulate=True)
    return y, u, x[:, i.flip(0)][..., None, -1:].squeeze(1), x[:, None, ::2, w // 2 :], x.tril(w - h)[:, j], x.rot90(1, (1, 2))


@forward("x:float32[N,3,H,W]", dims=IMAGE, feeds=(_im(8, 9), _im(40, 13), lambda: {"x": np.zeros((1, 3, 8, 8), np.float32)}))
def D29CorrelationVolume(self, x):
    """RAFT's: all pairs, a pyramid, a lookup around a flow; a cost volume by shifts."""
    n, c, h, w = x.shape
    corr = (x.flatten(2).mT @ x.flip(3).flatten(2) / math.sqrt(c)).view(n * h * w, 1, h, w)
    small = F.avg_pool2d(corr, 2)
    d = torch.linspace(-1, 1, 3)
    delta = torch.stack(torch.meshgrid(d, d, indexing="ij")[::-1], -1)
    gy, gx = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
    at = torch.stack([gx, gy], -1).view(1, h * w, 1, 1, 2).expand(n, -1, -1, -1, -1).reshape(-1, 1, 1, 2) / 2 + delta
    grid = 2 * at / torch.tensor([small.shape[3] - 1, small.shape[2] - 1]) - 1
    look = F.grid_sample(small, grid, align_corners=True).view(n, h, w, 9)
    cost = torch.stack([(x * F.pad(x, (i, 0))[..., :w]).mean(1) for i in range(4)], 1)
    return look, cost, (cost.softmax(1) * torch.arange(4.0)[:, None, None]).sum(1)

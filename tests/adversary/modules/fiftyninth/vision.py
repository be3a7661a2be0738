# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them
"""Vision products: crops, tiles, resizes, grids, overlays, trackers and codecs, with what users do around a network."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,3,H,W]=0:255", dims="N=1:1:2 H=5:9:16 W=5:12:17", kinds=FINITE)
def A7281LetterboxMath(self, x):
    """Letterbox by Python's round of a ratio, centre pads that differ by a pixel, and boxes scaled back by the same ratio."""
    h, w = x.shape[-2:]
    r = min(16 / h, 16 / w)
    nh, nw = int(round(h * r)), int(round(w * r))
    y = F.interpolate(x, size=(nh, nw), mode="bilinear", align_corners=False)
    top, left = (16 - nh) // 2, (16 - nw) // 2
    y = F.pad(y, (left, 16 - nw - left, top, 16 - nh - top), value=114.0)
    return y / 255, torch.tensor([top, left]).float() / r


@forward("x:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=3:6:11 W=3:7:11", kinds=FINITE, refused="cut in FP64")
def A7282RecomputeScale(self, x):
    """Interpolation by a factor with recomputed scale, by a pair of factors, antialiased down, bicubic by factor, area."""
    a = F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)
    b = F.interpolate(x, scale_factor=(0.6, 2.3), mode="nearest-exact")
    c = F.interpolate(x, scale_factor=0.5, mode="bicubic", align_corners=False)
    d = F.interpolate(x, size=(3, 2), mode="bilinear", antialias=True)
    e = F.interpolate(x, scale_factor=(1 / 3, 2 / 3), mode="area")
    return a, b, c, d, e


@attack("x:float32[N,4,H,W]=-3:3", dims="N=1:2:3 H=2:5:8 W=2:5:9", kinds=FINITE)
class A7283SpectralWeight(nn.Module):
    """Old spectral norm in eval, new parametrized weight norm and orthogonal maps, weights tied by a transpose."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a = spectral_norm(nn.Conv2d(4, 4, 3, padding=1), n_power_iterations=3)
        self.b = parametrizations.weight_norm(nn.Conv2d(4, 6, 1), dim=1)
        self.c = weight_norm(nn.Linear(6, 4), dim=None)
        self.o = parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
        self.eval()

    def forward(self, x):
        y = self.b(F.relu(self.a(x))).mean((2, 3))
        z = self.o(self.c(y))
        return z, F.linear(z, self.c.weight.t()), (self.a.weight.flatten(1) @ self.a.weight.flatten(1).T)


@forward("x:float32[N,3,H,W]=-3:3", dims="N=1:1:2 H=4:7:10 W=4:6:9", kinds=FINITE)
def A7284UnfoldFold(self, x):
    """Overlapping patches by unfold, a window, fold and a division by the fold of ones; the pads depend on the size."""
    h, w = x.shape[2:]
    ph, pw = (-h) % 3, (-w) % 3
    y = F.pad(x, (0, pw, 0, ph), mode="replicate")
    cols = F.unfold(y, 4, stride=1, padding=2, dilation=1)
    win = torch.hann_window(4, periodic=False).add(0.1)
    cols = cols * torch.outer(win, win).flatten().repeat(3)[None, :, None]
    out = F.fold(cols, y.shape[2:], 4, stride=1, padding=2)
    one = F.fold(F.unfold(torch.ones_like(y), 4, padding=2), y.shape[2:], 4, padding=2)
    return (out / one)[..., :h, :w]


@forward("x:float32[N,2,H,W]=-3:3", "f:float32[N,2,H,W]=-4:4", dims="N=1:1:2 H=1:5:7 W=1:4:8", kinds=("normal", "unit", "halves", "zeros"))
def A7285FlowWarp(self, x, f):
    """Backward warping by a flow in pixels: a grid divided by max(w - 1, 1), a validity mask, nearest and border variants."""
    n, _, h, w = x.shape
    yy, xx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    gx = 2.0 * (xx + f[:, 0]) / max(w - 1, 1) - 1.0
    gy = 2.0 * (yy + f[:, 1]) / max(h - 1, 1) - 1.0
    g = torch.stack((gx, gy), -1)
    out = F.grid_sample(x, g, align_corners=True)
    mask = F.grid_sample(torch.ones_like(x), g, align_corners=True) > 0.999
    return out * mask, F.grid_sample(x, g, padding_mode="reflection", align_corners=False)


@forward("x:float32[N,12,H,W]=-3:3", dims="N=1:1:2 H=2:4:6%2 W=2:4:8%2", kinds=FINITE)
def A7286Shuffles(self, x):
    """Pixel shuffle and unshuffle, channel shuffle by view, space to depth by slices, Haar wavelets by hand, a roll by half."""
    a = F.pixel_shuffle(x, 2)
    b = F.pixel_unshuffle(x, 2)
    n, c, h, w = x.shape
    s = x.view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, -1, h, w)
    focus = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
    lo = (x[..., ::2] + x[..., 1::2]) / math.sqrt(2)
    return a, b, s.roll((h // 2, -(w // 2)), (2, 3)), focus, lo, F.channel_shuffle(x, 4)


Detection = namedtuple("Detection", ["boxes", "scores", "labels"])


@forward("b:float32[N,P,4]=-2:12", "s:float32[N,P,3]=0:1", dims="N=1:1:2 P=1:6:9", kinds=("normal", "unit", "halves", "ones", "zeros"))
def A7287MatrixNms(self, b, s):
    """Matrix NMS (SOLOv2): sorted by score, IoU decays of upper triangles, cummax of compensations, a tie at equal boxes."""
    sc, lab = s.max(-1)
    sc, order = sc.sort(dim=1, descending=True, stable=True)
    box = torch.stack([b[..., :2].minimum(b[..., 2:]), b[..., :2].maximum(b[..., 2:])], -2).flatten(-2)
    box = box.gather(1, order[..., None].expand(-1, -1, 4))
    lab = lab.gather(1, order)
    lt = torch.max(box[:, :, None, :2], box[:, None, :, :2])
    rb = torch.min(box[:, :, None, 2:], box[:, None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = (box[..., 2:] - box[..., :2]).prod(-1)
    iou = inter / (area[:, :, None] + area[:, None] - inter + 1e-6)
    iou = torch.triu(iou, 1) * (lab[:, :, None] == lab[:, None])
    comp = iou.max(1).values
    decay = torch.exp(-2 * (iou**2 - comp[:, :, None] ** 2)).min(1).values
    return Detection(box, sc * decay, lab)


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=6:9:14 W=6:10:13", kinds=FINITE)
class A7288Pyramids(nn.Module):
    """Adaptive pools of every kind beside a pyramid with sizes of others, ceil pools, Lp pools, fractional stride by zeros."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.c = nn.Conv2d(3, 4, 3, stride=2, padding=1, padding_mode="reflect")
        self.d = nn.Conv2d(4, 4, 3, padding=2, dilation=2, padding_mode="circular")

    def forward(self, x):
        y = self.c(x)
        z = self.d(y)
        p = [F.adaptive_avg_pool2d(z, (s, s + 1)) for s in (1, 2, 3)]
        up = [F.interpolate(q, size=y.shape[-2:], mode="bilinear", align_corners=True) for q in p]
        m, i = F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)
        return torch.cat([z, *up], 1), m, i, F.lp_pool2d(x.abs() + 0.1, 3.0, 2, ceil_mode=True), F.adaptive_max_pool2d(x, (4, None))


@forward("x:uint8[N,H,W,3]", dims="N=1:1:2 H=4:6:9 W=4:7:8")
def A7289JpegLike(self, x):
    """YCbCr of bytes, chroma halved with a ceil, an 8x8 DCT-like of 4x4 blocks, quantised by rint, then back to bytes with a clamp."""
    rgb = x.permute(0, 3, 1, 2).float()
    m = torch.tensor([[0.299, 0.587, 0.114], [-0.1687, -0.3313, 0.5], [0.5, -0.4187, -0.0813]])
    ycc = torch.einsum("ij,njhw->nihw", m, rgb) + torch.tensor([0.0, 128, 128]).view(1, 3, 1, 1)
    h, w = rgb.shape[-2:]
    p = F.pad(ycc, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4), mode="replicate")
    blocks = p.unfold(2, 4, 4).unfold(3, 4, 4)
    k = torch.arange(4.0)
    d = torch.cos((2 * k[None] + 1) * k[:, None] * torch.pi / 8) * torch.where(k > 0, 0.7071, 0.5)[:, None]
    co = d @ blocks @ d.T
    q = (co / 16).round()
    back = d.T @ (q * 16) @ d
    out = back.permute(0, 1, 2, 4, 3, 5).reshape(p.shape)[..., :h, :w]
    return q, (out.clamp(0, 255) / 4).floor().to(torch.uint8)


@dataclass
class Tiles:
    tiles: torch.Tensor
    rows: torch.Tensor


@forward("x:float32[1,2,H,W]=-3:3", dims="H=6:10:14 W=6:9:13", kinds=FINITE, refused="the path through the module depends on the")
def A7290Tiles(self, x):
    """Overlapping tiles whose number follows from the size (LLaVA, SAHI): the last is moved back to the border; merged by an average."""
    h, w = x.shape[2:]
    ny = math.ceil((h - 6) / 4) + 1
    nx = math.ceil((w - 6) / 4) + 1
    tiles, acc, cnt = [], torch.zeros_like(x), torch.zeros_like(x)
    for i in range(ny):
        for j in range(nx):
            t, s = min(i * 4, h - 6), min(j * 4, w - 6)
            tile = x[:, :, t : t + 6, s : s + 6]
            tiles.append(tile)
            acc[:, :, t : t + 6, s : s + 6] += tile.tanh()
            cnt[:, :, t : t + 6, s : s + 6] += 1
    return torch.cat(tiles), acc / cnt


@forward("x:float32[N,1,H,W]=-1:1", dims="N=1:2:3 H=2:4:7 W=2:5:6", kinds=FINITE)
def A7291Moments(self, x):
    """Soft-argmax, centroids, histc-like by scatter_add of flat indices, argmax unravelled, a Gaussian rendered at it."""
    n, _, h, w = x.shape
    flat = x.flatten(1)
    idx = flat.argmax(1)
    cy, cx = torch.div(idx, w, rounding_mode="floor"), idx % w
    p = torch.softmax(flat * 10, 1).view(n, h, w)
    ey = (p.sum(2) * torch.linspace(0, 1, h)).sum(1)
    ex = (p.sum(1) * torch.arange(0, 1 + 0.5 / (w - 1), 1 / (w - 1))[:w]).sum(1)
    g = torch.exp(-((torch.arange(h)[None, :, None] - cy[:, None, None]) ** 2 + (torch.arange(w)[None, None] - cx[:, None, None]) ** 2) / 2.0)
    b = ((flat + 1) * 3.999 / 2).long().clamp(0, 3)
    return torch.stack([cy, cx], 1), ey, ex, g, torch.zeros(n, 4, dtype=torch.int32).scatter_add_(1, b, torch.ones_like(b, dtype=torch.int32))


@forward("x:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=2:4:6 W=2:3:5", kinds=FINITE)
def A7292LargePads(self, x):
    """Pads of each mode as large as they may be, circular over the whole, constants after a crop by negative pads, ReflectionPad3d."""
    h, w = x.shape[2:]
    a = F.pad(x, (w - 1, 1, 0, h - 1), mode="reflect")
    b = F.pad(x, (w, w - 1, 1, h), mode="circular")
    c = F.pad(x, (-1, 2, 3, -1), value=-9.5)
    d = F.pad(x.unsqueeze(1), (1, 1, 1, 0, 0, 0), mode="replicate")
    e = F.pad(F.pad(x, (0, 0, 0, 0, 1, 1)), (7, 0), mode="constant", value=float("inf"))
    return a, b, c, d, e.clamp(max=1e6)


@attack("x:float32[N,3,H,W]=0:255", dims="N=1:1:2 H=4:8:12 W=4:6:10", kinds=FINITE)
class A7293DeployedClassifier(nn.Module):
    """Scales by 255 only where the input's maximum says so; centre crop of a rounded size; numpy's mean and std in float64."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.conv = nn.Conv2d(3, 5, 3, bias=False)
        self.bn = nn.BatchNorm2d(5, track_running_stats=False)
        self.mean = np.array([0.485, 0.456, 0.406])
        self.std = np.array([0.229, 0.224, 0.225])

    def forward(self, x):
        x = torch.where(x.amax() > 1.5, x / 255.0, x)
        x = (x - torch.from_numpy(self.mean).to(x.dtype).view(-1, 1, 1)) / torch.as_tensor(self.std, dtype=torch.float32)[:, None, None]
        h, w = x.shape[-2:]
        s = int(round(min(h, w) * 0.875))
        t, left = int(round((h - s) / 2.0)), int(round((w - s) / 2.0))
        y = self.bn(self.conv(x[..., t : t + s, left : left + s]))
        return torch.softmax(y.mean((2, 3)), -1)

# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Heads and losses of vision: decoders, trackers, panoptic, stereo, keypoints, deformables, matting, letterboxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import at_sides


@attack("x:float32[N,3,H,W]=-3:3", dims="N=1:1:2 H=5:8:17 W=5:9:18", kinds=FINITE, feeds=at_sides("x:float32[N,3,H,W]=-3:3", hw=((5, 18), (17, 5), (7, 7), (8, 16))))
class A7228UNetOdd(nn.Module):
    """A U-Net that pads the upsampled map to the skip's odd size, as the milesial one does, then an ASPP with its pooled branch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.d1 = nn.Conv2d(3, 4, 3, padding=1)
        self.d2 = nn.Conv2d(4, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.c = nn.Conv2d(8, 4, 1)
        self.aspp = nn.ModuleList([nn.Conv2d(4, 2, 3, padding=d, dilation=d) for d in (1, 2, 5)])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1), nn.ReLU())

    def forward(self, x):
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(F.max_pool2d(a, 2)))
        u = self.up(b)
        dy, dx = a.size(2) - u.size(2), a.size(3) - u.size(3)
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        y = self.c(torch.cat([a, u], 1))
        p = F.interpolate(self.pool(y), size=y.shape[-2:], mode="bilinear", align_corners=False)
        return torch.cat([m(y) for m in self.aspp] + [p], 1)


class Tracks(NamedTuple):
    boxes: torch.Tensor
    age: torch.Tensor
    cost: torch.Tensor


@forward("boxes:float32[T,4]=0:40", "dets:float32[D,4]=0:40", "age:int64[T]=0:5", dims="T=1:4:7 D=1:5:6", kinds=FINITE)
def A7229Tracker(self, boxes, dets, age):
    """SORT: the IoU of boxes cx cy w h, a greedy match by maximum of columns and rows, a Kalman-like blend, ages in place."""

    def xyxy(b):
        c, s = b[:, :2], b[:, 2:].clamp(min=0)
        return torch.cat([c - s / 2, c + s / 2], 1)

    a, b = xyxy(boxes), xyxy(dets)
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])  # noqa: E731
    iou = inter / (area(a)[:, None] + area(b)[None] - inter).clamp_min(1e-6)
    best, j = iou.max(1)
    mutual = iou.argmax(0)[j] == torch.arange(len(boxes))
    hit = (best > 0.3) & mutual
    new = torch.where(hit[:, None], 0.7 * boxes + 0.3 * dets[j], boxes)
    age = age + 1
    age[hit] = 0
    return Tracks(new, age, 1 - iou)


@forward("left:float32[N,4,H,W]=-2:2", "right:float32[N,4,H,W]=-2:2", dims="N=1:1:2 H=1:3:5 W=4:8:11", kinds=FINITE)
def A7230StereoVolume(self, left, right):
    """A cost volume filled slice by slice into zeros, the soft argmin over disparities, the warp of the right by grid_sample."""
    n, c, h, w = left.shape
    vol = left.new_zeros(n, 4, h, w)
    for d in range(4):
        if d:
            vol[:, d, :, d:] = (left[..., d:] * right[..., :-d]).mean(1)
        else:
            vol[:, d] = (left * right).mean(1)
    p = F.softmax(-vol, 1)
    disp = (p * torch.arange(4.0).view(1, 4, 1, 1)).sum(1, keepdim=True)
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    gx = xs[None] - 2 * disp[:, 0] / (w - 1)
    grid = torch.stack([gx, ys.expand_as(gx)], -1)
    return disp, F.grid_sample(right, grid, align_corners=True, padding_mode="border")


@attack("x:float32[N,5,H,W]=-4:4", dims="N=1:1:2 H=2:6:9 W=2:7:10", kinds=FINITE, feeds=(lambda: {"x": np.zeros((1, 5, 6, 7), np.float32)}, lambda: {"x": np.full((2, 5, 2, 2), -3.0, np.float32)}))
class A7231Keypoints(nn.Module):
    """Pose: the argmax of heatmaps unravelled by size, a quarter pixel towards the higher neighbour (DARK's cheap form), clipped and masked by score."""

    def forward(self, x):
        n, k, h, w = x.shape
        s, i = x.flatten(2).max(-1)
        py, px = torch.div(i, w, rounding_mode="floor"), i % w
        pad = F.pad(x, (1, 1, 1, 1), mode="replicate").flatten(2)
        base = (py + 1) * (w + 2) + px + 1
        take = lambda o: pad.gather(2, (base + o)[..., None])[..., 0]  # noqa: E731
        dx = torch.sign(take(1) - take(-1)) * 0.25
        dy = torch.sign(take(w + 2) - take(-w - 2)) * 0.25
        pts = torch.stack([px + dx, py + dy], -1)
        pts = torch.where((s > 0)[..., None], pts, torch.zeros(()))
        return pts, torch.sigmoid(s), pts.clamp(min=torch.zeros(2), max=torch.tensor([w - 1.0, h - 1.0]))


@dataclass
class Panoptic:
    seg: torch.Tensor
    areas: torch.Tensor


@attack("cls:float32[Q,4]=-3:3", "mask:float32[Q,H,W]=-5:5", dims="Q=1:4:6 H=2:4:7 W=2:5:6", kinds=FINITE, feeds=(lambda: {"cls": np.zeros((3, 4), np.float32), "mask": np.zeros((3, 2, 2), np.float32)},))
class A7232MaskFormer(nn.Module):
    """Panoptic inference without a loop: scores over the void class, weighted masks, the owner of each pixel, little overlaps dropped, a dataclass out."""

    def forward(self, cls, mask):
        p, label = cls.softmax(-1)[:, :-1].max(-1)
        m = F.interpolate(mask[None], scale_factor=2.0, mode="bilinear", align_corners=False)[0].sigmoid()
        prob = p[:, None, None] * m
        owner = prob.argmax(0)
        onehot = F.one_hot(owner.flatten(), cls.shape[0]).T.bool()
        area = onehot.sum(1)
        orig = (m.flatten(1) >= 0.5).sum(1)
        ok = (area > 0) & (orig > 0) & (area.float() / orig.clamp(min=1) >= 0.3) & (label != 3)
        seg = torch.where(ok[owner], label[owner] + 1, 0)
        return {"pan": Panoptic(seg, area).seg, "areas": area, "ok": ok}


@attack("x:float32[N,2,H,W]=-3:3", dims="N=1:1:2 H=3:5:8 W=3:6:9", kinds=FINITE)
class A7233DeformSampler(nn.Module):
    """A deformable conv as users write it without torchvision: offsets, bilinear by four gathers with clamps and validity masks."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.off = nn.Conv2d(2, 18, 3, padding=1)
        self.w = nn.Parameter(torch.randn(3, 2, 9) * 0.4)

    def forward(self, x):
        n, c, h, w = x.shape
        o = self.off(x).view(n, 9, 2, h, w)
        ky, kx = torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij")
        y0, x0 = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        py = y0 + ky.reshape(9, 1, 1) + o[:, :, 0]
        px = x0 + kx.reshape(9, 1, 1) + o[:, :, 1]
        fy, fx = py.floor(), px.floor()
        out = 0
        for a in (0, 1):
            for b in (0, 1):
                yy, xx = fy + a, fx + b
                ok = (yy >= 0) & (yy < h) & (xx >= 0) & (xx < w)
                idx = (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1)).long().view(n, 1, -1).expand(-1, c, -1)
                v = x.flatten(2).gather(2, idx).view(n, c, 9, h, w)
                wt = (1 - (py - yy).abs()) * (1 - (px - xx).abs()) * ok
                out = out + v * wt[:, None]
        return torch.einsum("nckhw,ock->nohw", out, self.w)


@forward("x:uint8[H,W,3]", dims="H=4:9:20 W=4:12:21", feeds=(lambda: {"x": np.full((20, 4, 3), 255, np.uint8)}, lambda: {"x": np.arange(4 * 21 * 3).reshape(4, 21, 3).astype(np.uint8)}))
def A7234Letterbox(self, x):
    """A camera frame: BGR to RGB, letterboxed to 16 by a Python ratio of its size, normalised by ImageNet's numbers, grey and its histogram mean."""
    h, w = x.shape[:2]
    img = x[..., [2, 1, 0]].permute(2, 0, 1)[None].float() / 255
    r = min(16 / h, 16 / w)
    nh, nw = max(int(h * r), 1), max(int(w * r), 1)
    img = F.interpolate(img, (nh, nw), mode="bilinear", align_corners=False)
    img = F.pad(img, (0, 16 - nw, 0, 16 - nh), value=114 / 255)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
    grey = (x.float() @ torch.tensor([0.114, 0.587, 0.299])).round().to(torch.uint8)
    return (img - mean) / std, grey


@attack("x:float32[N,4,H,W]=-3:3", dims="N=1:1:2 H=3:6:9 W=3:5:8", kinds=FINITE, feeds=(halves(1, 4, 5, 5), halves(2, 4, 3, 3)))
class A7235AxialMatting(nn.Module):
    """Axial attention over rows and columns with a relative table indexed by size, pixel (un)shuffle, guided filter by box means with reflect borders."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.qkv = nn.Linear(4, 12)
        self.rel = nn.Parameter(torch.randn(2 * 9 - 1) * 0.3)

    def axial(self, t):
        q, k, v = self.qkv(t).chunk(3, -1)
        n = t.shape[-2]
        i = torch.arange(n)
        b = self.rel[i[:, None] - i[None] + 8]
        return (q @ k.transpose(-1, -2) / 2 + b).softmax(-1) @ v

    def forward(self, x):
        t = x.permute(0, 2, 3, 1)
        t = t + self.axial(t)
        t = t + self.axial(t.transpose(1, 2)).transpose(1, 2)
        g = F.pixel_shuffle(t.permute(0, 3, 1, 2), 2)
        box = lambda z: F.avg_pool2d(F.pad(z, (1, 1, 1, 1), mode="reflect"), 3, 1)  # noqa: E731
        m = box(g)
        var = box(g * g) - m * m
        a = var / (var.abs() + 0.1)
        return box(a) * g + box(m - a * m), F.pixel_unshuffle(g, 2).std((2, 3), unbiased=False)

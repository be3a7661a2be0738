# ruff: noqa: E501, E741, RUF046, RUF059 - attacks are written as users write them
"""Pictures: letterboxes, colours, histograms, windows, anchors, boxes, warps."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

X = "x:float32[N,3,H,W]"
UNIT = "x:float32[N,3,H,W]=0:1"
BYTES = "x:uint8[N,3,H,W]=0:255"
GREY = "x:uint8[N,H,W]=0:255"
HW = "N=1:1:2 H=4:40:96 W=4:48:96"


def own(*points, inputs=(X,), n=1):
    """Own points at pairs of H and W."""
    return tuple(values_at(*inputs, N=n, H=h, W=w) for h, w in points)


@forward(UNIT, dims=HW, kinds=FINITE, feeds=own((64, 96), (4, 96), (96, 4), (33, 32), (32, 31), (64, 5), (64, 7), (51, 96), (89, 88), (63, 96), inputs=(UNIT,)))
def A6708Letterbox(self, x):
    """YOLO's letterbox to 32: the ratio, sizes rounded to even at halves, the border split by a tenth."""
    h, w = x.shape[2:]
    r = min(32 / h, 32 / w)
    nh, nw = max(1, round(h * r)), max(1, round(w * r))
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False) if (nh, nw) != (h, w) else x
    dh, dw = (32 - nh) / 2, (32 - nw) / 2
    return F.pad(y, (round(dw - 0.1), round(dw + 0.1), round(dh - 0.1), round(dh + 0.1)), value=114 / 255)


@forward(UNIT, dims="N=1:1:2 H=16:40:96 W=16:48:96", kinds=FINITE, feeds=own((16, 95), (95, 16), (17, 96), (35, 35), (19, 57), (38, 19), inputs=(UNIT,)))
def A6709ResizeThenCrop(self, x):
    """The shorter side to 19 as torchvision does, then a central crop of 16 whose corner is rounded to even."""
    h, w = x.shape[2:]
    s, l = (h, w) if h <= w else (w, h)
    k = int(19 * l / s)
    nh, nw = (19, k) if h <= w else (k, 19)
    y = F.interpolate(x, (nh, nw), mode="bilinear", antialias=True)
    t, u = int(round((nh - 16) / 2.0)), int(round((nw - 16) / 2.0))
    return y[..., t : t + 16, u : u + 16]


CORNERS = tuple((lambda v=v: {"x": np.broadcast_to(np.array(v, np.uint8).reshape(1, 3, 1, 1), (1, 3, 4, 5)).copy()}) for v in ((255, 255, 255), (0, 0, 0), (255, 0, 255), (4, 1, 2), (128, 127, 129), (250, 6, 3)))


@forward(BYTES, dims=HW, feeds=CORNERS)
def A6710BytesOfColour(self, x):
    """BT.601 in whole numbers, and averages in bytes that wrap before they are halved."""
    r, g, b = x.int().unbind(1)
    y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16
    u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128
    avg = (x[:, 0] + x[:, 1]) // 2
    diff = x[:, 0] - x[:, 2]
    inv = ~x[:, 1]
    return y.to(torch.uint8), u.to(torch.uint8), avg, diff, inv, (x[:, 2] * 2) > 255, x[:, 0] > x[:, 1] - 1


FLAT = tuple((lambda v=v: {"x": np.array(v, np.uint8)}) for v in ([[[0] * 5] * 4], [[[255] * 5] * 4], [[[7] * 4] * 4], [[[0, 0, 0, 255]] * 4]))


@forward(GREY, dims=HW, feeds=FLAT)
def A6711Equalised(self, x):
    """Equalisation by a histogram; a picture of one grey stays as it is."""
    n, h, w = x.shape
    hist = torch.zeros(n, 256, dtype=torch.int64).scatter_add_(1, x.flatten(1).long(), torch.ones(n, h * w, dtype=torch.int64))
    cdf = hist.cumsum(1)
    first = cdf.gather(1, (cdf > 0).int().argmax(1, keepdim=True))
    step = h * w - first
    lut = torch.where(step > 0, ((cdf - first).clamp(min=0) * 255 + step // 2) // step.clamp(min=1), torch.arange(256))
    return lut.gather(1, x.flatten(1).long()).view(n, h, w).to(torch.uint8)


@forward("x:float32[N,P]=0:1", dims="N=1:1:3 P=9:64:200", kinds=FINITE, feeds=tuple((lambda v=v: {"x": np.array([v], np.float32)}) for v in ([0.0] * 9, [1.0] * 9, [0, 1] * 6, [0.0, 0.25, 0.5, 0.75, 1.0] * 2, [0.5] * 5 + [0.25] * 5)))
def A6712Otsu(self, x):
    """Otsu's threshold over sixteen bins, the first of equals; nothing where one side is empty."""
    b = (x * 16).long().clamp(max=15)
    p = F.one_hot(b, 16).double().mean(1)
    m = (p * torch.arange(16)).cumsum(1)
    w = p.cumsum(1)
    s = (m[:, -1:] * w - m) ** 2 / (w * (1 - w))
    s = torch.where((w > 1e-9) & (w < 1 - 1e-9), s, -1.0)
    t = s.argmax(1)
    return t, x > ((t + 1) / 16)[:, None].float()


@forward(X, dims=HW, feeds=own((4, 4), (5, 4), (96, 95)))
def A6713Morphology(self, x):
    """Opening, a gradient and a top hat by poolings, and a hit-or-miss of signs."""
    e = -F.max_pool2d(-x, 3, 1, 1)
    o = F.max_pool2d(e, 3, 1, 1)
    g = F.max_pool2d(x, (2, 3), 1, (1, 1))[:, :, : x.shape[2]] - e
    hit = (x > 0) & ~(F.pad(x, (1, 0), value=float("-inf"))[..., :-1] > 0) & ~(F.pad(x, (0, 1, 0, 0), mode="replicate")[..., 1:] < 0)
    return o, x - o, g, hit


HUES = tuple((lambda v=v: {"x": np.broadcast_to(np.array(v, np.float32).reshape(1, 3, 1, 1), (1, 3, 4, 4)).copy()}) for v in ((0, 0, 0), (1, 1, 1), (1, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0), (0.5, 0.25, 0.25), (0.3, 0.7, 0.7)))


@forward(UNIT, dims=HW, kinds=FINITE, feeds=HUES)
def A6714HsvAndBack(self, x):
    """Hue of the largest channel, ties by order, and back by sextants."""
    v, i = x.max(1)
    c = v - x.amin(1)
    r, g, b = x.unbind(1)
    d = torch.where(c == 0, 1, c)
    h = torch.stack(((g - b) / d % 6, (b - r) / d + 2, (r - g) / d + 4), 1).gather(1, i[:, None])[:, 0]
    s = torch.where(v == 0, 0, c / v)
    k = h.floor()
    f = h - k
    p, q, t = v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))
    back = torch.stack((torch.stack((v, q, p, p, t, v)), torch.stack((t, v, v, q, p, p)), torch.stack((p, p, t, v, v, q))), 1)
    k = (k.long() % 6)[None, None].expand(1, 3, -1, -1, -1)
    return s, back.gather(0, k)[0].movedim(0, 1), c


BOX = "x:float32[K,4]=0:20"
S = "s:float32[K]=0:1"
TIES = tuple((lambda b=b, s=s: {"x": np.array(b, np.float32), "s": np.array(s, np.float32)}) for b, s in (
    ([[0, 0, 4, 4], [0, 0, 4, 2], [0, 0, 4, 4]], [0.5, 0.5, 0.5]),
    ([[0, 0, 0, 0]] * 5, [0.1, 0.9, 0.9, 0.2, 0.9]),
    ([[5, 5, 1, 1], [0, 0, 9, 9], [0, 0, 9, 4.5], [0, 4.5, 9, 9]], [0.3, 0.3, 0.3, 0.8]),
))  # fmt: skip


@forward(BOX, S, dims="K=3:12:40", kinds=FINITE, feeds=TIES)
def A6715MatrixNms(self, x, s):
    """Suppression by a fixed point of six rounds over sorted boxes, an exact half kept."""
    o = s.argsort(descending=True, stable=True)
    b = x[o]
    area = (b[:, 2] - b[:, 0]).clamp(min=0) * (b[:, 3] - b[:, 1]).clamp(min=0)
    wh = (torch.min(b[:, None, 2:], b[:, 2:]) - torch.max(b[:, None, :2], b[:, :2])).clamp(min=0)
    inter = wh.prod(2)
    iou = inter / (area[:, None] + area - inter)
    over = (iou > 0.5).triu(1)
    keep = torch.ones(len(b), dtype=torch.bool)
    for _ in range(6):
        keep = ~(over & keep[:, None]).any(0)
    return o, keep, torch.where(keep, s[o], -torch.inf).topk(3).indices


@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=1:5:12 W=1:6:12", feeds=own((1, 1), (12, 1), (7, 12), (5, 7), (11, 11), inputs=("x:float32[N,4,H,W]",)))
class A6716AnchorsByStride(nn.Module):
    """Anchors by a stride that divides 64, cached by sizes as text; boxes decoded with the clamp of ratios."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def grid(self, h, w):
        key = f"{h}/{w}"
        if key not in self.cache:
            sy, sx = 64 // h, 64 // w
            y, x = torch.meshgrid((torch.arange(h) + 0.5) * sy, (torch.arange(w) + 0.5) * sx, indexing="ij")
            self.cache[key] = torch.stack((x, y)), torch.tensor([sx * 2.0, sy * 2.0])[:, None, None]
        return self.cache[key]

    def forward(self, x):
        c, s = self.grid(*x.shape[-2:])
        wh = x[:, 2:].clamp(max=math.log(1000 / 16)).exp() * s
        xy = c + x[:, :2] * s
        return torch.cat((xy - wh / 2, xy + wh / 2), 1).clamp(0, 64)


@attack("x:float32[N,H,W,4]", dims="N=1:1:2 H=3:9:20 W=3:10:20", feeds=own((3, 3), (4, 4), (4, 20), (20, 4), (5, 4), (8, 5), (3, 20), inputs=("x:float32[N,H,W,4]",)))
class A6717ShiftedWindows(nn.Module):
    """Swin: windows of four with a shift of two, none along a side that is no longer than the window."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        n, h, w, _ = x.shape
        sh, sw = (0 if h <= 4 else 2), (0 if w <= 4 else 2)
        x = F.pad(x, (0, 0, 0, -w % 4, 0, -h % 4))
        H, W = x.shape[1:3]
        if sh + sw:
            x = x.roll((-sh, -sw), (1, 2))
        p = x.view(n, H // 4, 4, W // 4, 4, 4).transpose(2, 3).reshape(-1, 16, 4)
        q, k, v = self.qkv(p).chunk(3, -1)
        a = q @ k.mT / 2
        if sh + sw:
            m = torch.zeros(H, W)
            c = 0
            for i in ((0, -4), (-4, -sh), (-sh, None)) if sh else ((0, None),):
                for j in ((0, -4), (-4, -sw), (-sw, None)) if sw else ((0, None),):
                    m[slice(*i), slice(*j)] = c
                    c += 1
            m = m.view(H // 4, 4, W // 4, 4).transpose(1, 2).reshape(-1, 16)
            m = torch.where(m[:, None] != m[:, :, None], -100.0, 0.0)
            a = a + m.repeat(n, 1, 1)
        y = (a.softmax(-1) @ v).view(n, H // 4, W // 4, 4, 4, 4).transpose(2, 3).reshape(n, H, W, 4)
        if sh + sw:
            y = y.roll((sh, sw), (1, 2))
        return y[:, :h, :w]


@forward(X, "f:float32[N,2,H,W]=-9:9", dims="N=1:1:2 H=1:12:30 W=1:14:30", kinds=("normal", "halves", "zeros", "ones", "unit"), feeds=own((1, 1), (1, 30), (30, 1), (2, 9), inputs=(X, "f:float32[N,2,H,W]=-9:9")))
def A6718FlowWarp(self, x, f):
    """A backward warp with corners aligned, where a side of one counts as one, and what is seen of it."""
    n, _, h, w = x.shape
    gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    p = torch.stack((gx, gy))[None] + f
    g = torch.stack((2 * p[:, 0] / max(w - 1, 1) - 1, 2 * p[:, 1] / max(h - 1, 1) - 1), -1)
    y = F.grid_sample(x, g, mode="bilinear", padding_mode="border", align_corners=True)
    seen = (p[:, 0] >= 0) & (p[:, 0] <= w - 1) & (p[:, 1] >= 0) & (p[:, 1] <= h - 1)
    return y, seen.float().mean((1, 2))


@forward(X, dims="N=1:1:2 H=2:20:40 W=2:24:40", kinds=("normal", "unit", "zeros", "halves", "bytes"), feeds=own((2, 2), (3, 2), (2, 40)))
def A6719Bilateral(self, x):
    """A bilateral filter of three by three by unfold over a reflected border."""
    n, c, h, w = x.shape
    u = F.unfold(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3).view(n, c, 9, h * w)
    d = (u - x.reshape(n, c, 1, -1)).pow(2).sum(1, keepdim=True)
    k = torch.exp(-d / 2) * torch.tensor([1.0, 2, 1, 2, 4, 2, 1, 2, 1])[:, None]
    return ((u * k).sum(2) / k.sum(2)).view(n, c, h, w)


@forward(X, dims="N=1:1:2 H=8:40:90 W=8:48:90", feeds=own((8, 8), (9, 15), (16, 17), (41, 42), (88, 90), (55, 63)))
def A6720PatchesOfCentre(self, x):
    """Patches of eight from the centre of what is divisible, with a class token of their count."""
    h, w = x.shape[2:]
    th, tw = h & ~7, w // 8 * 8
    y = x[:, :, (h - th) // 2 :, (w - tw + 1) // 2 :][:, :, :th, :tw]
    p = y.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).reshape(x.shape[0], -1, 192)
    return p.mean(-1), p.new_full((x.shape[0], 1), p.shape[1] ** 0.5)


@attack("x:uint8[N,H,W]=0:255", dims="N=1:1:2 H=1:16:33 W=1:24:33", feeds=FLAT[:2] + own((1, 1), (8, 9), (33, 7), inputs=("x:uint8[N,H,W]=0:255",)))
class A6721JpegBlocks(nn.Module):
    """JPEG's blocks: the border repeated to a multiple of eight, a cosine transform, quantised, back to bytes."""

    def __init__(self):
        super().__init__()
        k = torch.arange(8.0)
        d = torch.cos((2 * k + 1) * k[:, None] * math.pi / 16) / 2
        d[0] /= math.sqrt(2)
        self.register_buffer("d", d)
        self.register_buffer("q", 16.5 + 4 * (k[:, None] + k))

    def forward(self, x):
        n, h, w = x.shape
        y = F.pad(x.float() - 128, (0, -w % 8, 0, -h % 8), mode="replicate")
        H, W = y.shape[1:]
        b = y.view(n, H // 8, 8, W // 8, 8).transpose(2, 3)
        c = self.d @ b @ self.d.T
        c = torch.round(c / self.q) * self.q
        b = self.d.T @ c @ self.d
        return (b.transpose(2, 3).reshape(n, H, W)[:, :h, :w] + 128).clamp(0, 255)

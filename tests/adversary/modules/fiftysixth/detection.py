# ruff: noqa: E501 - attacks are written as users write them
"""Detectors: suppression, ties of the best, coders of boxes, anchors, caches of grids, masks that are pasted."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import at_sides as at
from tests.adversary.values import values_at

B = "b:float32[K,4]=0:32"
S = "s:float32[K]=0:1"
NMS_DIMS = "K=1:8:24"


def _boxes(k, seed=0, step=4, score_step=4):
    """Boxes on a coarse grid, so that overlaps of exactly a half and equal scores are common."""
    r = np.random.RandomState(seed)
    xy = r.randint(0, 4, (k, 2)) * step
    wh = r.randint(0, 4, (k, 2)) * step
    b = np.concatenate((xy, xy + wh), 1).astype(np.float32)
    return {"b": b, "s": (r.randint(0, score_step + 1, k) / score_step).astype(np.float32)}


GRID_BOXES = tuple((lambda k=k, s=s: _boxes(k, s)) for k, s in ((8, 0), (8, 1), (1, 2), (24, 3), (13, 4), (5, 5)))


def _iou(a, b, plus=0.0):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt + plus).clamp(min=0)
    inter = wh.prod(-1)
    area = lambda q: (q[:, 2] - q[:, 0] + plus) * (q[:, 3] - q[:, 1] + plus)  # noqa: E731
    return inter / (area(a)[:, None] + area(b)[None] - inter)


@forward(B, S, dims=NMS_DIMS, kinds=FINITE, feeds=GRID_BOXES)
def A7100FastNms(self, b, s):
    """YOLACT's fast NMS: stable order, upper triangle; boxes of no area give NaN, which never is at most a half."""
    order = s.argsort(descending=True, stable=True)
    iou = _iou(b[order], b[order]).triu(diagonal=1)
    keep = iou.amax(0) <= 0.5
    out = torch.zeros_like(s, dtype=torch.bool)
    out[order] = keep
    return out, keep, iou


@forward(B, S, dims=NMS_DIMS, kinds=FINITE, feeds=GRID_BOXES)
def A7101MatrixNms(self, b, s):
    """SOLO's matrix NMS: linear decay, the minimum over rows of one minus overlap by one minus compensation."""
    s2, order = s.sort(descending=True, stable=True)
    iou = torch.nan_to_num(_iou(b[order], b[order], 1.0)).triu(1)
    comp = iou.max(0).values
    decay = ((1 - iou) / (1 - comp[:, None])).min(0).values
    decay = torch.where(comp == 1, 0.0, decay)
    return s2 * decay, order


@forward(B, S, dims="K=1:6:9", kinds=FINITE, feeds=tuple((lambda k=k, s=s: _boxes(k, s)) for k, s in ((6, 0), (9, 1), (1, 2), (7, 3))))
def A7102HardNmsLoop(self, b, s):
    """Greedy suppression as a loop over the sorted boxes with a mask, written by where; strict comparison."""
    order = s.argsort(descending=True, stable=True)
    iou = _iou(b[order], b[order])
    keep = torch.ones_like(s, dtype=torch.bool)
    place = torch.arange(s.shape[0])
    for i in range(s.shape[0]):
        keep = keep & ~((iou[i] > 0.5) & keep[i] & (place > i))
    return b[order] * keep[:, None], keep.sum()


@forward(B, S, dims=NMS_DIMS, kinds=FINITE, feeds=GRID_BOXES)
def A7103SoftNmsSteps(self, b, s):
    """Gaussian soft NMS for three rounds: the best is taken (first of ties), the others decay, its score is set to -1."""
    picked = []
    for _ in range(3):
        i = s.argmax()
        picked.append(torch.cat((b[i], s[i][None])))
        iou = torch.nan_to_num(_iou(b[i][None], b)[0], nan=1.0)
        s = torch.where(torch.arange(s.shape[0]) == i, -1.0, s * torch.exp(-iou.square() / 0.5))
    return torch.stack(picked), s


@forward(
    B, S, "c:int64[K]=0:3", dims=NMS_DIMS, kinds=FINITE,
    feeds=tuple((lambda f=f: {**f(), "c": (np.arange(len(f()["s"])) % 4).astype(np.int64)}) for f in GRID_BOXES),

)  # fmt: skip
def A7104BatchedNms(self, b, s, c):
    """Class-aware suppression by offsets of the greatest coordinate plus one, in rounds over fixed size; a score threshold."""
    b2 = b + (c.to(b) * (b.max() + 1))[:, None]
    order = s.argsort(descending=True, stable=True)
    over = (_iou(b2[order], b2[order]) > 0.5).triu(1)
    keep = torch.ones_like(s, dtype=torch.bool)
    for _ in range(24):
        keep = ~(over & keep[:, None]).any(0)
    keep = keep & (s[order] > 0.05)
    return b[order].masked_fill(~keep[:, None], 0), c[order].where(keep, -1), keep


@attack(
    "x:float32[N,4,H,W]=-6:6", "a:float32[K,4]=0:32", dims="N=1:1:2 H=1:4:8 W=1:4:8 K=1:4:9", kinds=FINITE,
    feeds=(lambda: {"x": np.full((1, 4, 2, 2), 6, np.float32), "a": np.zeros((4, 4), np.float32)},),
)  # fmt: skip
class A7105BoxCoder(nn.Module):
    """Faster R-CNN's coder: deltas clamped by the log of a thousand over sixteen; encode of degenerate anchors."""

    def __init__(self):
        super().__init__()
        self.weights = (10.0, 10.0, 5.0, 5.0)
        self.clip = math.log(1000.0 / 16)

    def forward(self, x, a):
        n, _, h, w = x.shape
        d = x.permute(0, 2, 3, 1).reshape(n, -1, 4)
        sy, sx = torch.meshgrid(torch.arange(h) * 8, torch.arange(w) * 8, indexing="ij")
        c = torch.stack((sx, sy, sx + 16, sy + 16), -1).reshape(-1, 4).to(x)
        cw, ch = c[:, 2] - c[:, 0], c[:, 3] - c[:, 1]
        wx, wy, ww, wh = self.weights
        px = d[..., 0::4] / wx * cw[:, None] + (c[:, 0] + 0.5 * cw)[:, None]
        py = d[..., 1::4] / wy * ch[:, None] + (c[:, 1] + 0.5 * ch)[:, None]
        pw = torch.clamp(d[..., 2::4] / ww, max=self.clip).exp() * cw[:, None]
        ph = torch.clamp(d[..., 3::4] / wh, max=self.clip).exp() * ch[:, None]
        boxes = torch.cat((px - pw / 2, py - ph / 2, px + pw / 2, py + ph / 2), -1)
        g = a.unbind(1)
        enc = torch.stack((ww * torch.log((g[2] - g[0]) / 16), wh * torch.log((g[3] - g[1]).abs() / 16)), 1)
        return boxes.clamp(min=0), enc


@attack(
    "x:float32[N,8,H,W]=-8:8", dims="N=1:1:2 H=1:5:12 W=1:5:12", kinds=FINITE,
    feeds=at("x:float32[N,8,H,W]=-8:8", hw=((5, 5), (5, 6), (6, 5), (1, 12), (12, 1), (12, 12))),
)  # fmt: skip
class A7106GridCache(nn.Module):
    """YOLOv5's head, whose grid is remade only where its last two dims differ from the map's."""

    def __init__(self):
        super().__init__()
        self.grid = torch.zeros(1)
        self.anchor = torch.tensor([[10.0, 13.0], [16.0, 30.0]])

    def forward(self, x):
        n, _, h, w = x.shape
        x = x.view(n, 2, 4, h, w).permute(0, 1, 3, 4, 2)
        if self.grid.shape[2:4] != x.shape[2:4]:
            gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            self.grid = torch.stack((gx, gy), -1).view(1, 1, h, w, 2).float()
        y = x.sigmoid()
        xy = (y[..., :2] * 2 - 0.5 + self.grid) * 8
        wh = (y[..., 2:] * 2) ** 2 * self.anchor.view(1, 2, 1, 1, 2)
        return torch.cat((xy, wh), -1).flatten(1, 3)


@attack(
    "x:float32[N,8,H,W]=-8:8", dims="N=1:1:2 H=1:5:12 W=1:5:12", kinds=FINITE,
    feeds=at("x:float32[N,8,H,W]=-8:8", hw=((5, 5), (5, 6), (6, 4), (3, 8), (8, 3), (2, 12), (12, 12))),
    refused="the exported model differs from the module",
)  # fmt: skip
class A7107GridByCount(nn.Module):
    """A cache of the grid keyed by the number of cells only: of two shapes with one count the earlier one wins."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        h, w = x.shape[2:]
        if h * w not in self.cache:
            self.cache[h * w] = torch.stack((torch.arange(h * w) % w, torch.arange(h * w) // w)).float()
        return x.flatten(2)[:, :2] + self.cache[h * w]


@forward(
    "x:float32[N,5,K]=-4:4", dims="N=1:1:2 K=1:12:40", kinds=FINITE,
    feeds=(halves(1, 5, 12), halves(2, 5, 40), halves(1, 5, 1), halves(1, 5, 10), halves(1, 5, 11)),
)  # fmt: skip
def A7108TopTies(self, x):
    """The best ten over classes and boxes at once, ties by sort; classes by remainder, boxes by a floor division."""
    n, c, _k = x.shape
    flat = x.mT.reshape(n, -1)
    s, i = flat.sort(dim=1, descending=True, stable=True)
    s, i = s[:, :10], i[:, :10]
    label, box = i % c, torch.div(i, c, rounding_mode="floor")
    return s, label, box, x.gather(2, box[:, None].expand(-1, c, -1))


@forward(
    "m:float32[K,1,7,7]=0:1", "b:float32[K,4]=-8:40", dims="K=1:3:6", kinds=FINITE,
    feeds=(
        lambda: {"m": np.full((3, 1, 7, 7), 0.5, np.float32), "b": np.array([[0, 0, 32, 24], [5, 5, 5, 5], [-8, -8, 40, 40]], np.float32)},
        lambda: {"m": np.eye(7, dtype=np.float32)[None, None], "b": np.array([[40, 40, -8, -8]], np.float32)},
    ),
)  # fmt: skip
def A7109PasteMasks(self, m, b):
    """Detectron's pasting by grid_sample: boxes of no width give infinities, which are made zero."""
    x0, y0, x1, y1 = b.split(1, 1)
    iy = torch.arange(0, 24, dtype=torch.float32) + 0.5
    ix = torch.arange(0, 32, dtype=torch.float32) + 0.5
    iy = (iy - y0) / (y1 - y0) * 2 - 1
    ix = (ix - x0) / (x1 - x0) * 2 - 1
    iy = torch.where(torch.isinf(iy), torch.zeros_like(iy), iy)
    ix = torch.where(torch.isinf(ix) | torch.isnan(ix), torch.zeros_like(ix), ix)
    iy = torch.nan_to_num(iy)
    gx = ix[:, None, :].expand(-1, 24, -1)
    gy = iy[:, :, None].expand(-1, -1, 32)
    out = F.grid_sample(m, torch.stack((gx, gy), 3), align_corners=False)
    return out[:, 0] >= 0.5, out.sum((2, 3))


@forward(
    "x:float32[N,2,H,W]=-6:6", dims="N=1:1:2 H=2:7:16 W=2:7:16", kinds=FINITE,
    feeds=(halves(1, 2, 7, 7), halves(2, 2, 16, 3), halves(1, 2, 2, 2), halves(1, 2, 5, 9)), target="tensorrt==8.6",
)  # fmt: skip
def A7110CenterPeaks(self, x):
    """CenterNet: peaks where the pooled map equals itself, the best eight of what exists, sub-cells by gather."""
    n, c, h, w = x.shape
    heat = x.sigmoid()
    heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).to(heat)
    k = min(8, h * w)
    s, i = torch.topk(heat.view(n, c, -1), k)
    ys, xs = torch.div(i, w, rounding_mode="trunc"), i % w
    s2, _j = s.view(n, -1).sort(1, descending=True)
    return s2[:, :k], (ys * xs).float().mean(), s.sum(-1)


@attack(
    "x:float32[N,3,H,W]=-4:4", dims="N=1:1:2 H=32:64:128%32 W=32:64:128%32", kinds=FINITE,
    feeds=at("x:float32[N,3,H,W]=-4:4", hw=((32, 128), (96, 64), (64, 64), (128, 128))), target="tensorrt==8.6",
)  # fmt: skip
class A7111SsdAnchors(nn.Module):
    """Anchors of three levels with ratios, in cells of each map's own size, normalised by the picture's."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 4, 3, 8, 1), nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)])

    def forward(self, x):
        out, feats, y = [], [], x
        for level, conv in enumerate(self.convs):
            y = conv(y).relu()
            h, w = y.shape[-2:]
            size = 32 * 2**level
            ratios = torch.tensor([0.5, 1.0, 2.0])
            hr = ratios.sqrt()
            cell = (torch.stack((-size / hr, -size * hr, size / hr, size * hr), 1) / 2).round()
            sy, sx = torch.arange(h) * (x.shape[2] // h), torch.arange(w) * (x.shape[3] // w)
            sy, sx = torch.meshgrid(sy, sx, indexing="ij")
            shift = torch.stack((sx, sy, sx, sy), -1).view(-1, 1, 4)
            out.append((shift + cell).reshape(-1, 4) / torch.tensor([x.shape[3], x.shape[2]] * 2))
            feats.append(y.flatten(2))
        return torch.cat(out), torch.cat(feats, 2)


@forward(
    "x:float32[N,3,H,W]=-4:4", dims="N=1:1:2 H=3:10:20 W=3:10:20", kinds=FINITE,
    feeds=(halves(1, 3, 10, 10), halves(1, 3, 3, 20), halves(2, 3, 9, 4), halves(1, 3, 7, 7)),
)  # fmt: skip
def A7112Panoptic(self, x):
    """Classes by argmax (first of ties), areas by one_hot, small areas merged in the ground, borders by differences."""
    label = x.argmax(1)
    area = F.one_hot(label, 3).sum((1, 2))
    small = area * 10 < x.shape[2] * x.shape[3]
    gone = small.gather(1, label.flatten(1)).view_as(label)
    label = label.masked_fill(gone, 0)
    edge = torch.zeros_like(label, dtype=torch.bool)
    edge[:, 1:] |= label[:, 1:] != label[:, :-1]
    edge[:, :, :-1] |= label[:, :, :-1] != label[:, :, 1:]
    return label.to(torch.uint8), edge, area


@forward(
    "x:float32[N,16,H,W]=-6:6", dims="N=1:1:2 H=1:4:9 W=1:4:9", kinds=FINITE,
    feeds=at("x:float32[N,16,H,W]=-6:6", hw=((1, 1), (4, 5), (9, 9), (1, 9))), target="tensorrt==8.6",
)  # fmt: skip
def A7113Dfl(self, x):
    """YOLOv8's integral of distributions, points at the half cells, boxes from distances, strides as a vector."""
    n, _, h, w = x.shape
    d = x.view(n, 4, 4, h * w).transpose(2, 1).softmax(1)
    d = F.conv2d(d, torch.arange(4.0).view(1, 4, 1, 1)).view(n, 4, h * w)
    sx, sy = torch.arange(end=w) + 0.5, torch.arange(end=h) + 0.5
    sy, sx = torch.meshgrid(sy, sx, indexing="ij")
    p = torch.stack((sx, sy), -1).view(-1, 2).T[None]
    lt, rb = d.chunk(2, 1)
    a, b = p - lt, p + rb
    return torch.cat(((a + b) / 2, b - a), 1) * torch.full((1, h * w), 8)


@forward(
    "x:float32[K,5]=-4:4", dims="K=1:6:14", kinds=FINITE,
    feeds=(halves(6, 5), lambda: {"x": np.tile(np.array([[0, 0, 2, 0, 4]], np.float32), (3, 1))}, values_at("x:float32[K,5]=-4:4", K=14)),
)  # fmt: skip
def A7114ProbIou(self, x):
    """Overlaps of rotated boxes as Gaussians (probiou), with clamps under square root and logarithm."""
    wh = x[:, 2:4].square() / 12
    c, s = x[:, 4:].cos(), x[:, 4:].sin()
    a, b = (wh[:, :1] * c**2 + wh[:, 1:] * s**2), (wh[:, :1] * s**2 + wh[:, 1:] * c**2)
    d = (wh[:, :1] - wh[:, 1:]) * c * s
    x, y = x[:, :1], x[:, 1:2]
    den = (a + a.T) * (b + b.T) - (d + d.T) ** 2 + 1e-3
    t1 = ((a + a.T) * (y - y.T) ** 2 + (b + b.T) * (x - x.T) ** 2) / den * 0.25
    t2 = ((d + d.T) * (x.T - x) * (y - y.T)) / den * 0.5
    da, db = (a * b - d**2).clamp_(0), (a * b - d**2).T.clamp_(0)
    t3 = (den / (4 * (da * db).sqrt() + 1e-3) + 1e-3).log() * 0.5
    bd = (t1 + t2 + t3).clamp(1e-3, 100.0)
    return 1 - (1.0 - (-bd).exp() + 1e-3).sqrt()

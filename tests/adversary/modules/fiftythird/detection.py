# ruff: noqa: B905, E501, E741, RUF059 - attacks are written as users write them
"""Detection, tracking, segmentation, OCR: anchors, boxes, suppression, regions, prompts, assignments."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftythird.speech import at

BOXES = "b:float32[K,4]=-4:20"
SCORES = "s:float32[K]=0:1"


def boxes(*rows: list, scores: list | None = None) -> dict:
    """A feed of boxes, scores equal where none are given."""
    b = np.array(rows, np.float32).reshape(-1, 4)
    return {"b": b, "s": np.array(scores if scores is not None else [0.5] * len(b), np.float32)}


PAIRS = tuple((lambda f=f: f) for f in (
    boxes([0, 0, 10, 10], [0, 0, 10, 5], [0, 0, 10, 10], scores=[0.9, 0.9, 0.9]),
    boxes([0, 0, 10, 10], [0, 0, 5, 10], scores=[0.3, 0.8]),
    boxes([5, 5, 5, 5], [5, 5, 5, 5], [5, 5, 1, 1], scores=[0.6, 0.6, 0.6]),
    boxes([1, 1, 3, 3], scores=[0.05]),
    boxes(*[[i % 3, 0, i % 3 + 4, 4] for i in range(12)], scores=[0.5 + (i % 4) / 8 for i in range(12)]),
))  # fmt: skip


@forward(BOXES, SCORES, dims="K=1:6:12", feeds=PAIRS)
def A6844NmsBatched(self, b, s):
    """Cluster-NMS: classes by index kept apart by offsets of the largest coordinate, iterated to a fixed point, kept first, padded with -1."""
    c = torch.arange(b.shape[0]) % 2
    b = b + (c.to(b) * (b.max() + 1))[:, None]
    s, order = s.sort(descending=True, stable=True)
    b = b[order]
    area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    wh = (torch.min(b[:, None, 2:], b[None, :, 2:]) - torch.max(b[:, None, :2], b[None, :, :2])).clamp(min=0)
    inter = wh.prod(2)
    iou = (inter / (area[:, None] + area - inter)).triu(diagonal=1)
    k = torch.ones_like(s)
    for _ in range(12):
        k = (torch.nan_to_num(iou * k[:, None]).max(0)[0] <= 0.5).float()
    kept = torch.where(k > 0, order, -1)
    at = torch.where(k > 0, k.cumsum(0).long() - 1, 12)
    return torch.full((13,), -1).scatter(0, at, kept)[:12], k.sum(), s[k > 0]


def roi_align(x, b, size, scale, ratio, aligned):
    """Torchvision's in Python: samples by grids, zero for those more than a pixel outside."""
    off = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (b * scale - off).unbind(1)
    w, h = x2 - x1, y2 - y1
    if not aligned:
        w, h = w.clamp(min=1.0), h.clamp(min=1.0)
    ph, pw = size
    hh, ww = x.shape[-2:]
    gy = y1[:, None] + (torch.arange(ph * ratio) + 0.5) / ratio * h[:, None] / ph
    gx = x1[:, None] + (torch.arange(pw * ratio) + 0.5) / ratio * w[:, None] / pw

    def corners(g, n):
        ok = (g >= -1) & (g <= n)
        g = g.clamp(min=0)
        lo = g.long()
        hi = torch.where(lo >= n - 1, n - 1, lo + 1)
        lo = torch.where(lo >= n - 1, n - 1, lo)
        g = torch.where(lo >= n - 1, lo.to(g.dtype), g)
        return ok, lo, hi, g - lo

    oy, yl, yh, ly = corners(gy, hh)
    ox, xl, xh, lx = corners(gx, ww)

    def take(y, z):
        return x[0][:, y[:, :, None], z[:, None, :]].transpose(0, 1)

    ly, lx = ly[:, None, :, None], lx[:, None, None, :]
    v = (1 - ly) * (1 - lx) * take(yl, xl) + (1 - ly) * lx * take(yl, xh) + ly * (1 - lx) * take(yh, xl) + ly * lx * take(yh, xh)
    v = v * (oy[:, None, :, None] & ox[:, None, None, :])
    return F.avg_pool2d(v, ratio)


@forward("b:float32[K,4]=0:20", SCORES, dims="K=1:6:12", feeds=PAIRS)
def A6845MatrixNms(self, b, s):
    """SOLO's matrix suppression: sorted, IoUs of the upper triangle, a Gaussian decay by compensated maxima."""
    s, i = torch.sort(s, descending=True, stable=True)
    b = b[i]
    area = ((b[:, 2] - b[:, 0]).clamp(min=0) * (b[:, 3] - b[:, 1]).clamp(min=0))
    wh = (torch.min(b[:, None, 2:], b[None, :, 2:]) - torch.max(b[:, None, :2], b[None, :, :2])).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    iou = (inter / (area[:, None] + area - inter + 1e-6)).triu(diagonal=1)
    comp, _ = iou.max(0)
    comp = comp.expand(len(s), len(s)).transpose(1, 0)
    decay = torch.exp(-2.0 * iou**2) / torch.exp(-2.0 * comp**2)
    coef, _ = decay.min(0)
    return s * coef, i, coef


@attack("x:float32[N,18,H,W]", dims="N=1:1:2 H=1:6:10 W=1:8:10", feeds=at("x:float32[N,18,H,W]", N=(1, 2), H=(1, 2, 10, 3), W=(1, 10, 2, 7)))
class A6846YoloDecode(nn.Module):
    """YOLOv5's Detect: a grid remade where the map's size changes, anchors by stride, twice the sigmoid less a half."""

    def __init__(self):
        super().__init__()
        self.grid = torch.zeros(1)
        self.anchor_grid = torch.zeros(1)
        self.register_buffer("anchors", torch.tensor([[1.25, 1.625], [2.0, 3.75], [4.125, 2.875]]))

    def forward(self, x):
        bs, _, ny, nx = x.shape
        x = x.view(bs, 3, 6, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        if self.grid.shape[2:4] != x.shape[2:4]:
            y, z = torch.meshgrid(torch.arange(ny, dtype=x.dtype), torch.arange(nx, dtype=x.dtype), indexing="ij")
            self.grid = torch.stack((z, y), 2).expand(1, 3, ny, nx, 2) - 0.5
            self.anchor_grid = (self.anchors * 8).view(1, 3, 1, 1, 2).expand(1, 3, ny, nx, 2)
        xy, wh, conf = x.sigmoid().split((2, 2, 2), 4)
        xy = (xy * 2 + self.grid) * 8
        wh = (wh * 2) ** 2 * self.anchor_grid
        y = torch.cat((xy, wh, conf), 4).view(bs, 3 * nx * ny, 6)
        s, i = y[..., 4].topk(min(50, y.shape[1]), dim=1)
        return y, s


@forward("x:float32[N,A,4]=-3:8", "p:float32[N,A,4]=-8:40", dims="N=1:1:2 A=1:6:20", feeds=tuple((lambda a=a: {"x": np.full((1, 2, 4), a, np.float32), "p": np.array([[[3, 3, 3, 3], [9, 9, 2, 1]]], np.float32)}) for a in (8.0, 0.0, 4.135, 4.1352)))
def A6847DecodeAndClip(self, x, p):
    """Faster R-CNN: deltas by weights, dw clamped at log(1000/16), clipped, and what is smaller than 1 marked."""
    w, h = p[..., 2] - p[..., 0], p[..., 3] - p[..., 1]
    cx, cy = p[..., 0] + 0.5 * w, p[..., 1] + 0.5 * h
    d = x / torch.tensor([10.0, 10.0, 5.0, 5.0])
    dw, dh = d[..., 2].clamp(max=math.log(1000.0 / 16)), d[..., 3].clamp(max=math.log(1000.0 / 16))
    px, py, pw, ph = d[..., 0] * w + cx, d[..., 1] * h + cy, torch.exp(dw) * w, torch.exp(dh) * h
    b = torch.stack((px - 0.5 * pw, py - 0.5 * ph, px + 0.5 * pw, py + 0.5 * ph), -1)
    b = torch.stack((b[..., 0::2].clamp(0, 32), b[..., 1::2].clamp(0, 24)), -1).flatten(-2)
    return b, ((b[..., 2] - b[..., 0]) >= 1) & ((b[..., 3] - b[..., 1]) >= 1)


@forward("x:float32[1,4,H,W]", "b:float32[K,4]=-6:30", dims="H=2:8:16 W=2:8:16 K=1:3:8", feeds=tuple((lambda h=h, b=b: {"x": np.random.RandomState(h).randn(1, 4, h, 19 - h if h > 3 else 2).astype(np.float32), "b": np.array(b, np.float32)}) for h, b in ((2, [[0, 0, 0, 0], [5, 5, 1, 1]]), (16, [[-6, -6, -4, -4], [30, 30, 30, 30]]), (9, [[-2, -2, 30, 30], [3, 3, 3.2, 3.1], [-1.0, -1, -1, -1]]))))
def A6848RoiAlignOdd(self, x, b):
    """ROI align aligned and not, with boxes empty, inverted, outside of the map by more than a pixel."""
    return roi_align(x, b, (2, 3), 0.5, 2, True), roi_align(x, b, (2, 2), 0.5, 2, False)


@attack("x:float32[1,4,H,W]", "b:float32[K,4]=0:300", dims="H=8:10:16 W=8:10:16 K=1:3:8", feeds=tuple((lambda s=s: {"x": np.random.RandomState(1).randn(1, 4, 9, 11).astype(np.float32), "b": np.array([[0, 0, s, s], [s, s, 0, 0], [10, 10, 10 + s, 11]], np.float32)}) for s in (55.9, 56.0, 112.0, 111.99, 224.0, 0.0)))
class A6849FpnLevels(nn.Module):
    """Levels by floor(4 + log2(sqrt(area) / 224) + eps), clamped, each level's boxes pooled and put back in place."""

    def forward(self, x, b):
        maps = [x, F.avg_pool2d(x, 2), F.avg_pool2d(x, 4)]
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        lvl = torch.floor(4 + torch.log2(torch.sqrt(area.clamp(min=0)) / 224 + 1e-8) + 1e-6)
        lvl = torch.clamp(lvl, 2, 4).to(torch.int64) - 2
        out = torch.zeros(b.shape[0], 4, 2, 2)
        for i, (m, s) in enumerate(zip(maps, (1 / 4, 1 / 8, 1 / 16))):
            k = torch.where(lvl == i)[0]
            out[k] = roi_align(m, b[k], (2, 2), s, 2, True)
        return out, lvl


@attack("c:float32[N,P,2]=0:64", "l:int64[N,P]=-1:3", "m:float32[N,1,H,W]", dims="N=1:1:2 P=1:2:5 H=4:8:16%4 W=4:8:16%4")
class A6850SamPrompt(nn.Module):
    """Segment anything: random Fourier positions, label -1 takes the embedding of no point, boxes 2 and 3, a dense mask."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.register_buffer("g", torch.randn(2, 4))
        self.points = nn.ModuleList([nn.Embedding(1, 8) for _ in range(4)])
        self.none = nn.Embedding(1, 8)
        self.down = nn.Sequential(nn.Conv2d(1, 4, 2, 2), nn.GELU(), nn.Conv2d(4, 8, 2, 2))

    def forward(self, c, l, m):
        c = c + 0.5
        c = torch.cat((c, torch.zeros(c.shape[0], 1, 2)), 1)
        l = torch.cat((l, -torch.ones(l.shape[0], 1, dtype=l.dtype)), 1)
        p = 2 * (c / 64) - 1
        p = 2 * math.pi * (p @ self.g)
        e = torch.cat((p.sin(), p.cos()), -1)
        e[l == -1] = 0.0
        e[l == -1] += self.none.weight
        for i in range(4):
            e[l == i] += self.points[i].weight
        return e, self.down(m)


@forward("s:float32[N,10]", "z:float32[N,4]=-5:5", "v:bool[N]", dims="N=1:4:8", feeds=tuple((lambda v=v: {"s": np.random.RandomState(3).randn(3, 10).astype(np.float32), "z": np.ones((3, 4), np.float32), "v": np.array(v)}) for v in ([False] * 3, [True, False, True])))
def A6851KalmanStep(self, s, z, v):
    """A constant-velocity tracker: predict, update by Cholesky where there is a measurement, covariance symmetric."""
    mean, var = s[:, :8], s[:, 8:].abs().mean(1) + 0.1
    f = torch.eye(8)
    f[:4, 4:] += torch.eye(4)
    h = torch.eye(4, 8)
    p = torch.diag_embed(var[:, None].expand(-1, 8)) + 0.01
    m = mean @ f.T
    p = f @ p @ f.T + 0.1 * torch.eye(8)
    c = h @ p @ h.T + 0.5 * torch.eye(4)
    k = torch.linalg.solve(c, h @ p).transpose(1, 2)
    d = z - m @ h.T
    new = m + (k @ d[..., None])[..., 0]
    q = p - k @ c @ k.transpose(1, 2)
    q = (q + q.transpose(1, 2)) / 2
    return torch.where(v[:, None], new, m), torch.where(v[:, None, None], q, p), torch.einsum("ni,ni->n", d, torch.linalg.solve(c, d))


@forward("c:float32[A,B]=0:1", dims="A=1:4:9 B=1:5:9", feeds=tuple((lambda a=a: {"c": np.array(a, np.float32)}) for a in ([[0.2, 0.2], [0.2, 0.2]], [[0.9]], [[0.1, 0.3, 0.1], [0.1, 0.2, 0.1]], [[0.5], [0.5], [0.49]])))
def A6852GreedyAssign(self, c):
    """Greedy matching of tracks: the least of what is left, its row and column out, until nothing under the gate."""
    d = c.clone()
    match = torch.full((c.shape[0],), -1, dtype=torch.long)
    for _ in range(min(c.shape)):
        i = d.flatten().argmin()
        r, k = i // c.shape[1], i % c.shape[1]
        ok = d[r, k] < 0.5
        match[r] = torch.where(ok, k, match[r])
        d[r, :] = torch.where(ok, 1e6, d[r, :])
        d[:, k] = torch.where(ok, 1e6, d[:, k])
    return match


@attack("x:float32[N,4,H,W]", "r:float32[N,Q,2]=-0.2:1.2", dims="N=1:1:2 H=2:6:11 W=2:6:11 Q=1:3:7", feeds=at("x:float32[N,4,H,W]", "r:float32[N,Q,2]=-0.2:1.2", N=(1, 2), H=(2, 3, 11), W=(11, 2, 5), Q=(1, 7)))
class A6853DeformableDetr(nn.Module):
    """Multi-scale deformable attention of two levels whose sizes come from the maps, offsets by shapes, zeros outside."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.q = nn.Parameter(torch.randn(8, 4))
        self.off, self.w = nn.Linear(4, 2 * 2 * 2), nn.Linear(4, 4)

    def forward(self, x, r):
        n, c, _, _ = x.shape
        maps = [x, F.max_pool2d(x, 2, ceil_mode=True)]
        shapes = torch.as_tensor([[m.shape[2], m.shape[3]] for m in maps])
        q = self.q[: r.shape[1]][None] + r.mean((1, 2))[:, None, None]
        o = self.off(q).view(n, -1, 2, 2, 2)
        w = self.w(q).softmax(-1).view(n, -1, 2, 2)
        norm = torch.stack([shapes[..., 1], shapes[..., 0]], -1)
        loc = r[:, :, None, None] + o / norm[None, None, :, None]
        out = 0
        for i, m in enumerate(maps):
            v = F.grid_sample(m, 2 * loc[:, :, i] - 1, mode="bilinear", padding_mode="zeros", align_corners=False)
            out = out + (v * w[:, None, :, i]).sum(-1)
        start = torch.cat((shapes.new_zeros((1,)), shapes.prod(1).cumsum(0)[:-1]))
        return out, start


@forward("x:float32[N,1,H,W]=0:1", dims="N=1:1:2 H=3:8:14 W=3:8:14", feeds=tuple((lambda s=s: {"x": np.round(np.random.RandomState(s).rand(1, 1, 3 + s, 14 - s) * 4).astype(np.float32) / 4}) for s in range(0, 11, 2)))
def A6854CenterNetPeaks(self, x):
    """Peaks by a pool's equality, the best of all (at most 40 or what there is), class and place by division."""
    n, c, h, w = x.shape
    x = x.sigmoid().clamp(1e-4, 1 - 1e-4)
    keep = (F.max_pool2d(x, 3, 1, 1) == x).float()
    s, i = torch.topk((x * keep).flatten(1), min(40, h * w))
    cls = torch.div(i, h * w, rounding_mode="floor")
    i = i % (h * w)
    ys, xs = (i / w).int().float(), (i % w).int().float()
    # ties have no order: sums of what is above the lowest
    up = s > s[:, -1:]
    return s, cls, (ys * up).sum(1), (xs * up).sum(1), up.sum(1)


@forward("x:float32[N,T,6]", dims="N=1:1:2 T=1:10:25", feeds=tuple((lambda a=a: {"x": np.eye(6, dtype=np.float32)[np.array([a])] * 5}) for a in ([0, 0, 0], [1, 1, 0, 1, 2], [5], [1, 2, 2, 0, 0, 2, 3, 5, 5])))
def A6855OcrSpans(self, x):
    """PaddleOCR's decode: the collapsed text, each character's mean confidence over its run, its place of start."""
    p = x.softmax(-1)
    v, i = p.max(-1)
    new = torch.ones_like(i, dtype=torch.bool)
    new[:, 1:] = i[:, 1:] != i[:, :-1]
    run = new.cumsum(1) - 1
    n, t = i.shape
    total = torch.zeros(n, t).scatter_add(1, run, v)
    count = torch.zeros(n, t).scatter_add(1, run, torch.ones_like(v))
    label = torch.full((n, t), 0).scatter(1, run, i)
    start = torch.full((n, t), t).scatter_reduce(1, run, torch.arange(t).expand(n, t), "amin")
    return label, total / count.clamp(min=1), start, (label != 0).sum(1)


@forward("p:float32[K,2,2]=-10:10", "q:float32[K,5]=-4:4", dims="K=1:3:6", feeds=tuple((lambda a=a: {"p": np.zeros((1, 2, 2), np.float32), "q": np.array([[1, 1, 2, 2, a]], np.float32)}) for a in (0.0, -0.0, 1.5707964, -1.5707964, 3.1415927, 4.0)))
def A6856RotatedBoxes(self, p, q):
    """Rotated boxes: corners, angles brought to [-pi/2, pi/2) by a modulus with floor, the longer edge first, and Gaussians."""
    cx, cy, w, h, a = q.unbind(1)
    w, h = w.abs() + 0.1, h.abs() + 0.1
    long = w >= h
    a = torch.where(long, a, a + math.pi / 2)
    a = (a + math.pi / 2) % math.pi - math.pi / 2
    w, h = torch.where(long, w, h), torch.where(long, h, w)
    c, s = a.cos(), a.sin()
    r = torch.stack((c, -s, s, c), -1).view(-1, 2, 2)
    d = torch.diag_embed(torch.stack((w, h), -1) / 2)
    sigma = r @ d.square() @ r.transpose(1, 2)
    corners = torch.stack((torch.stack((w, h), -1), torch.stack((w, -h), -1), torch.stack((-w, -h), -1), torch.stack((-w, h), -1)), 1) / 2
    inside = ((p - torch.stack((cx, cy), -1)[:, None]).abs() < torch.stack((w, h), -1)[:, None]).all(-1)
    return corners @ r.transpose(1, 2), torch.linalg.det(sigma), inside


@forward("x:float32[Q,H,W]", "s:float32[Q,4]", dims="Q=1:4:8 H=2:6:12 W=2:6:12", feeds=tuple((lambda v=v: {"x": np.full((3, 4, 5), v, np.float32), "s": np.eye(3, 4, dtype=np.float32) * 9}) for v in (0.0, 1.0, -1.0)))
def A6857MaskFormerMerge(self, x, s):
    """Panoptic merging: kept queries' masks weighed by score, argmax over them, areas and boxes of masks by any, empty ones zero."""
    score, label = s.softmax(-1).max(-1)
    keep = (label != 3) & (score > 0.3)
    m = x.sigmoid()
    prob = score.view(-1, 1, 1) * m * keep.view(-1, 1, 1)
    ids = prob.argmax(0)
    q, h, w = x.shape
    own = (ids[None] == torch.arange(q).view(-1, 1, 1)) & (m >= 0.5)
    area, orig = own.flatten(1).sum(1), (m >= 0.5).flatten(1).sum(1)
    good = keep & (area > 0) & (orig > 0) & (area / orig >= 0.8)
    xs, ys = own.any(1), own.any(2)
    x1, y1 = xs.int().argmax(1), ys.int().argmax(1)
    x2, y2 = w - 1 - xs.flip(1).int().argmax(1), h - 1 - ys.flip(1).int().argmax(1)
    box = torch.stack((x1, y1, x2, y2), 1) * (area > 0)[:, None]
    return good, box, label, area

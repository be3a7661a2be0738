# ruff: noqa: E501, E741, RUF046, RUF059 - attacks are written as users write them
"""Vision: decoding of detectors, trackers, letterboxes, flow, voxels, point clouds, windows, masks, colours, histograms."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
IMAGE = "x:float32[N,3,H,W]"


@attack(IMAGE, dims="N=1:1:2 H=16:32:64%16 W=16:32:64%16", kinds=FEW)
class A4200YoloThreeLevels(nn.Module):
    """Three strides, grids that are kept for each shape, boxes by (2 s)^2 anchors, the ten best of all."""
    def __init__(self):
        super().__init__()
        self.stem, self.d2, self.d3 = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.heads = nn.ModuleList([nn.Conv2d(8, 2 * 8, 1) for _ in range(3)])
        self.anchors = [[4, 6, 8, 5], [12, 9, 9, 20], [30, 40, 60, 50]]
        self.grids = {}
    def grid(self, h, w):
        if (h, w) not in self.grids:
            y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            self.grids[h, w] = torch.stack((x, y), -1).float()[None, None]
        return self.grids[h, w]
    def forward(self, x):
        f, out = F.silu(self.stem(x)), []
        for i, head in enumerate(self.heads):
            f = f if i == 0 else F.silu((self.d2 if i == 1 else self.d3)(f))
            n, _, h, w = f.shape
            p = head(f).view(n, 2, 8, h, w).permute(0, 1, 3, 4, 2).sigmoid()
            stride = x.shape[-1] / w
            xy = (p[..., :2] * 2 - 0.5 + self.grid(h, w)) * stride
            wh = (p[..., 2:4] * 2) ** 2 * torch.tensor(self.anchors[i]).float().view(1, 2, 1, 1, 2)
            out.append(torch.cat((xy, wh, p[..., 4:]), -1).flatten(1, 3))
        boxes = torch.cat(out, 1)
        score = boxes[..., 4:5] * boxes[..., 5:]
        best, cls = score.max(-1)
        top, at = best.topk(10, 1)
        return boxes.gather(1, at[..., None].expand(-1, -1, 8))[..., :4], top, cls.gather(1, at)
@forward("b:float32[N,T,4]=0:300", dims="N=1:1:2 T=1:6:20", kinds=FEW, feeds=(lambda: {"b": np.array([[[0, 0, 64, 64], [0, 0, 128, 3], [5, 5, 5, 5], [0, 0, 63.99999, 1], [9, 9, 1, 1]]], np.float32)},))
def A4201LevelsAndCenterness(self, b):
    """Boxes to levels by their longer side at bounds that belong to one of them, centerness of degenerate boxes."""
    wh = b[..., 2:] - b[..., :2]
    level = torch.bucketize(wh.amax(-1), torch.tensor([64.0, 128.0, 256.0]), right=True)
    k = torch.floor(4 + torch.log2(torch.sqrt(wh.clamp(min=0).prod(-1)) / 224 + 1e-6)).clamp(2, 5).to(torch.int64) - 2
    p = b[..., :2] + 1
    l, r = p - b[..., :2], b[..., 2:] - p
    c = torch.sqrt((torch.minimum(l, r) / torch.maximum(l, r)).clamp(min=0).prod(-1)).nan_to_num(-1.0)
    return level, k, c, F.one_hot(level, 4).sum(1)
@forward("c:float32[T,D]", dims="T=1:4:7 D=1:5:7", kinds=FEW)
def A4202GreedyAssignment(self, c):
    """The cheapest pair of tracks and detections, until either is used up; ties to the first."""
    t, d = c.shape
    cost, match = c.clone(), torch.full((t,), -1, dtype=torch.int64)
    for _ in range(min(t, d)):
        at = cost.flatten().argmin()
        i, j = at // d, at % d
        match[i] = j
        cost[i] = float("inf")
        cost[:, j] = float("inf")
    return match, (match >= 0).sum(), c[torch.arange(t), match.clamp(min=0)]
@attack("m:float32[N,4]", "v:float32[N,4]", "z:float32[N,2]", "dt:float32[]=0:2", dims="N=1:3:8", kinds=FEW)
class A4203KalmanOfBoxes(nn.Module):
    """Predict with a matrix that holds the time step, a gain by an inverse of two, Joseph's form, a gate by Mahalanobis."""
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.eye(2, 4))
        self.register_buffer("r", torch.diag(torch.tensor([0.1, 0.2])))
    def forward(self, m, v, z, dt):
        f = torch.eye(4)
        f[0, 2] = dt
        f[1, 3] = dt
        p = f @ torch.diag_embed(v.abs() + 0.1) @ f.T + 0.01 * torch.eye(4)
        mean = (f @ m[..., None])[..., 0]
        s = self.h @ p @ self.h.T + self.r
        gain = p @ self.h.T @ torch.linalg.inv(s)
        y = z - mean @ self.h.T
        a = torch.eye(4) - gain @ self.h
        cov = a @ p @ a.mT + gain @ self.r @ gain.mT
        d2 = torch.einsum("ni,nij,nj->n", y, torch.linalg.inv(s), y)
        return mean + (gain @ y[..., None]).squeeze(-1), cov, d2
@forward(IMAGE, dims="N=1:1:2 H=3:30:90 W=3:41:90", kinds=("normal", "unit"), feeds=tuple(normal(1, 3, h, w) for h, w in ((64, 64), (3, 90), (90, 3), (33, 77), (65, 64), (90, 89))))
def A4204Letterbox(self, x):
    """YOLO's letterbox to 64: a scale by the shorter room, rounded sizes, halves to both sides by round(d +- 0.1), back again."""
    h, w = x.shape[-2:]
    r = min(64 / h, 64 / w)
    nh, nw = max(int(round(h * r)), 1), max(int(round(w * r)), 1)
    dh, dw = (64 - nh) / 2, (64 - nw) / 2
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
    top, bottom, left, right = round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1)
    y = F.pad(y, (left, right, top, bottom), value=114 / 255)
    p = torch.tensor([[0.0, 0.0], [63.0, 63.0]])
    return y, ((p - torch.tensor([dw, dh])) / r).clamp(min=0), y[:, :, top : 64 - bottom].mean((2, 3))
@forward("b:float32[N,8,4]=0:10", "s:float32[N,8]=0:1", dims="N=1:2:3", kinds=FEW, feeds=(lambda: {"b": np.full((1, 8, 4), 3.0, np.float32), "s": np.full((1, 8), 0.5, np.float32)},))
def A4205SoftNms(self, b, s):
    """Gaussian Soft-NMS over eight boxes in place, the one that is taken set to minus one, decays over what is left."""
    wh = (b[..., 2:] - b[..., :2]).clamp(min=0)
    lo, hi = torch.maximum(b[:, :, None, :2], b[:, None, :, :2]), torch.minimum(b[:, :, None, 2:], b[:, None, :, 2:])
    inter = (hi - lo).clamp(min=0).prod(-1)
    iou = inter / (wh.prod(-1)[:, :, None] + wh.prod(-1)[:, None] - inter).clamp(min=1e-6)
    s, order, kept = s.clone(), [], []
    rows = torch.arange(s.shape[0])
    for _ in range(8):
        v, i = s.max(1)
        order.append(i)
        kept.append(v)
        decay = torch.exp(-(iou[rows, i] ** 2) / 0.5)
        s = torch.where(s >= 0, s * decay, s)
        s[rows, i] = -1.0
    return torch.stack(order, 1), torch.stack(kept, 1)
@forward("r:float32[N,T,5]", dims="N=1:1:2 T=1:6:12", kinds=FEW, feeds=(lambda: {"r": np.array([[[0, 0, 2, 1, -math.pi / 2], [0, 0, 1, 1, math.pi / 2], [1, 2, -1, 3, math.pi], [0, 0, 1, 2, -math.pi], [0, 0, 1, 2, 7.0]]], np.float32)},))
def A4206RotatedBoxes(self, r):
    """Long sides first, angles wrapped to [-90, 90), corners, area by the shoelace, the upright box around."""
    c, wh, a = r[..., :2], r[..., 2:4].abs(), r[..., 4]
    flip = wh[..., 0] < wh[..., 1]
    wh = torch.where(flip[..., None], wh.flip(-1), wh)
    a = torch.where(flip, a + math.pi / 2, a)
    a = (a + math.pi / 2) % math.pi - math.pi / 2
    rot = torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1).unflatten(-1, (2, 2))
    corner = torch.tensor([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    p = (rot[..., None, :, :] @ (corner * wh[..., None, :])[..., None])[..., 0] + c[..., None, :]
    q = p.roll(-1, -2)
    area = 0.5 * (p[..., 0] * q[..., 1] - q[..., 0] * p[..., 1]).sum(-1).abs()
    return p, area, torch.cat([p.amin(-2), p.amax(-2)], -1), torch.atan2(a.sin(), a.cos())
@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=3:9:20 W=3:10:20", kinds=FEW, feeds=(halves(1, 2, 5, 5), halves(1, 2, 20, 3), normal(2, 2, 7, 20)))
def A4207HeatmapPeaks(self, x):
    """CenterNet's peaks on plateaus, the four best, places by // and %, a quarter pixel towards the higher neighbour inside."""
    n, c, h, w = x.shape
    hm = x.sigmoid()
    peak = (F.max_pool2d(hm, 3, 1, 1) == hm).float() * hm
    s, i = peak.flatten(1).topk(4)
    k, at = i // (h * w), i % (h * w)
    ys, xs = torch.div(at, w, rounding_mode="floor"), at % w
    flat = hm.flatten(1)
    def value(dy, dx):
        return flat.gather(1, k * h * w + (ys + dy).clamp(0, h - 1) * w + (xs + dx).clamp(0, w - 1))
    inside = (xs > 0) & (xs < w - 1) & (ys > 0) & (ys < h - 1)
    sub = torch.stack([(value(0, 1) - value(0, -1)).sign(), (value(1, 0) - value(-1, 0)).sign()], -1) * 0.25 * inside[..., None]
    return s, k, torch.stack([xs, ys], -1) + sub
@forward("x:float32[N,2,H,W]", "flow:float32[N,2,H,W]", dims="N=1:1:2 H=1:6:16 W=1:7:16", kinds=FEW)
def A4208FlowWarp(self, x, flow):
    """PWC-Net's warp with its mask of ones, forward-backward consistency, one row or column."""
    n, _, h, w = x.shape
    xx, yy = torch.arange(w).view(1, -1).repeat(h, 1), torch.arange(h).view(-1, 1).repeat(1, w)
    g = torch.stack([xx, yy])[None].float() + flow
    g = torch.stack([2.0 * g[:, 0] / max(w - 1, 1) - 1.0, 2.0 * g[:, 1] / max(h - 1, 1) - 1.0], -1)
    out = F.grid_sample(x, g, align_corners=True)
    border = F.grid_sample(x, g, padding_mode="border", align_corners=False)
    mask = F.grid_sample(torch.ones_like(x), g, align_corners=True)
    return out, border, (mask > 0.5).float() * out, ((flow + out).square().sum(1) < 0.01 * (flow.square() + out.square()).sum(1) + 0.5)
@attack("x:float32[N,4,H,W]", "y:float32[N,4,H,W]", dims="N=1:1:2 H=4:6:10 W=4:7:10", kinds=("normal", "unit", "zeros"))
class A4209RaftLookup(nn.Module):
    """All pairs, a pyramid by pools, windows of nine by bilinear sampling, one update by a ConvGRU, convex upsampling."""
    def __init__(self):
        super().__init__()
        self.z, self.q = nn.Conv2d(4 + 18, 4, 3, padding=1), nn.Conv2d(4 + 18, 4, 3, padding=1)
        self.flow, self.mask = nn.Conv2d(4, 2, 3, padding=1), nn.Conv2d(4, 4 * 9, 1)
    def forward(self, x, y):
        n, c, h, w = x.shape
        corr = torch.matmul(x.flatten(2).mT, y.flatten(2)).view(n * h * w, 1, h, w) / c**0.5
        base = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1]).float()[None].repeat(n, 1, 1, 1)
        d = torch.linspace(-1, 1, 3)
        delta = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1)
        out = []
        for i in range(2):
            p = base.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**i + delta.view(1, 3, 3, 2)
            hh, ww = corr.shape[-2:]
            gx, gy = p.split(1, -1)
            g = torch.cat([2 * gx / (ww - 1) - 1, 2 * gy / (hh - 1) - 1], -1)
            out.append(F.grid_sample(corr, g, align_corners=True).view(n, h, w, 9))
            corr = F.avg_pool2d(corr, 2, stride=2)
        f = torch.cat([x, torch.cat(out, -1).permute(0, 3, 1, 2)], 1)
        z = self.z(f).sigmoid()
        hid = (1 - z) * x + z * self.q(f).tanh()
        flow, m = self.flow(hid), self.mask(hid).view(n, 1, 9, 2, 2, h, w).softmax(2)
        up = F.unfold(2 * flow, 3, padding=1).view(n, 2, 9, 1, 1, h, w)
        return flow, (m * up).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 2 * h, 2 * w)
@forward("p:float32[T,4]", dims="T=1:20:60", kinds=FEW, feeds=(lambda: {"p": np.array([[-2, -2, 0, 1], [2, 0, 0, 5], [1.9999999, 1.9999999, 0, 2], [0, 0, 0, -7], [0, 0, 0, -9], [0.4, 0.4, 0, 1]], np.float32)},))
def A4210PillarScatter(self, p):
    """Points to cells by floor, those outside into a cell that is cut off, maxima, means and counts where points meet."""
    cell = torch.floor((p[:, :2] + 2) / 0.5).to(torch.int32)
    ok = ((cell >= 0) & (cell < 8)).all(1)
    at = torch.where(ok, cell[:, 0] + cell[:, 1] * 8, 64).long()
    top = torch.full((65, 4), float("-inf")).scatter_reduce(0, at[:, None].expand(-1, 4), p, "amax")
    top = torch.where(top.isinf(), torch.zeros_like(top), top)[:64]
    mean = torch.zeros(65, 4).scatter_reduce(0, at[:, None].expand(-1, 4), p, "mean", include_self=False)[:64]
    count = torch.zeros(65, dtype=torch.int64).index_add(0, at, torch.ones_like(at))[:64]
    canvas = torch.zeros(8, 8)
    canvas.view(-1)[at.clamp(max=63)] = 1.0
    return top.T.reshape(4, 8, 8), mean, count.view(8, 8), count.bincount(minlength=3)[:3], canvas.sum() >= 0
@forward("p:float32[N,T,3]", dims="N=1:1:2 T=4:12:30", kinds=FEW)
def A4211FarthestPointsAndBalls(self, p):
    """Four farthest points from the first one on, the first three of each ball by index, missing ones by the first."""
    n, t, _ = p.shape
    rows = torch.arange(n)
    far, dist, idx = torch.zeros(n, dtype=torch.long), torch.full((n, t), 1e10), torch.zeros(n, 4, dtype=torch.long)
    for i in range(4):
        idx[:, i] = far
        d = ((p - p[rows, far][:, None]) ** 2).sum(-1)
        mask = d < dist
        dist[mask] = d[mask]
        far = dist.argmax(-1)
    c = p[rows[:, None], idx]
    sq = ((c[:, :, None] - p[:, None]) ** 2).sum(-1)
    g = torch.arange(t).view(1, 1, t).repeat(n, 4, 1)
    g[sq > 1.0] = t
    g = g.sort(dim=-1)[0][:, :, :3]
    first = g[:, :, :1].repeat(1, 1, 3)
    miss = g == t
    g[miss] = first[miss]
    return idx, g, p[rows.view(-1, 1, 1), g] - c[:, :, None]
@forward("a:float32[N,T,3]", "b:float32[N,S,3]", dims="N=1:1:2 T=1:6:16 S=1:5:16", kinds=FEW, feeds=tuple(values_at("a:float32[N,T,3]", "b:float32[N,S,3]", N=1, T=t, S=s) for t, s in ((1, 1), (5, 2), (16, 3), (9, 4))))
def A4212ThreeNearest(self, a, b):
    """PointNet++ features from the three nearest, or fewer, weights by inverse distances; Chamfer both ways."""
    d = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    k = min(3, b.shape[1])
    near, at = d.topk(k, dim=-1, largest=False)
    w = 1.0 / (near + 1e-8)
    w = w / w.sum(-1, keepdim=True)
    f = torch.gather(b[:, None].expand(-1, a.shape[1], -1, -1), 2, at[..., None].expand(-1, -1, -1, 3))
    y = (f * w[..., None]).sum(2) if b.shape[1] > 1 else b.expand_as(a)
    return y, d.amin(2).mean(1) + d.amin(1).mean(1), near.amax((1, 2))
@attack("x:float32[N,H,W,8]", dims="N=1:1:2 H=3:8:17 W=3:9:17", kinds=FINITE[:4])
class A4213SwinBlock(nn.Module):
    """Windows of four: padding, a cyclic shift, the mask of regions by slices, relative positions, padding cut off."""
    def __init__(self):
        super().__init__()
        self.qkv, self.proj, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)
        self.table = nn.Parameter(torch.randn(49, 2))
        c = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + 3
        self.register_buffer("at", r[..., 0] * 7 + r[..., 1])
    def forward(self, x):
        n, h, w, c = x.shape
        y = F.pad(self.norm(x), (0, 0, 0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
        hp, wp = y.shape[1:3]
        y = torch.roll(y, (-2, -2), (1, 2))
        region, k = torch.zeros(hp, wp), 0
        for a in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for b in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                region[a, b] = k
                k += 1
        def cut(v):
            return v.view(v.shape[0], hp // 4, 4, wp // 4, 4, -1).transpose(2, 3).reshape(-1, 16, v.shape[-1])
        m = cut(region[None, ..., None]).squeeze(-1)
        mask = (m[:, None] != m[:, :, None]).float().masked_fill(m[:, None] != m[:, :, None], -100.0)
        q, k, v = self.qkv(cut(y)).view(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        s = q @ k.mT / 2 + self.table[self.at].permute(2, 0, 1)
        s = (s.view(n, -1, 2, 16, 16) + mask[None, :, None]).view(-1, 2, 16, 16).softmax(-1)
        o = self.proj((s @ v).transpose(1, 2).reshape(-1, 16, c))
        o = o.view(n, hp // 4, wp // 4, 4, 4, c).transpose(2, 3).reshape(n, hp, wp, c)
        return x + torch.roll(o, (2, 2), (1, 2))[:, :h, :w].contiguous()
@forward("logits:float32[2,T,5]", "boxes:float32[2,T,4]=0:1", "size:int64[2,2]=1:800", dims="T=4:12:30", kinds=FEW)
def A4214DetrResults(self, logits, boxes, size):
    """DETR's post-processing with one dictionary for each of two images, the best without the class of nothing, and over all."""
    p = logits.softmax(-1)
    score, label = p[..., :-1].max(-1)
    cx, cy, w, h = boxes.unbind(-1)
    b = torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], -1)
    ih, iw = size.unbind(1)
    b = b * torch.stack([iw, ih, iw, ih], 1)[:, None]
    v, i = logits.sigmoid().view(2, -1).topk(4, 1)
    at = i // logits.shape[2]
    more = torch.gather(b, 1, at.unsqueeze(-1).repeat(1, 1, 4))
    return [{"scores": s, "labels": lab, "boxes": bb, "top": (vv, mm)} for s, lab, bb, vv, mm in zip(score, label, b, v, more, strict=True)]
@forward("m:float32[N,T,H,W]", dims="N=1:1:2 T=1:2:3 H=2:7:16 W=2:9:16", kinds=FEW)
def A4215MasksToBoxes(self, m):
    """Masks made twice as large and cut at a half: first and last rows by argmax of booleans, areas, nothing where empty."""
    y = F.interpolate(m, scale_factor=2, mode="bilinear", align_corners=False) > 0.5
    rows, cols = y.any(3), y.any(2)
    hh, ww = y.shape[-2:]
    x0, y0 = cols.int().argmax(-1), rows.int().argmax(-1)
    x1, y1 = ww - cols.flip(-1).int().argmax(-1), hh - rows.flip(-1).int().argmax(-1)
    boxes = torch.stack([x0, y0, x1, y1], -1)
    boxes[~y.flatten(2).any(-1)] = 0
    area = y.sum((2, 3))
    return boxes, area, area.float() / ((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])).clamp(min=1)
@forward("x:uint8[N,3,H,W]=0:255", dims="N=1:1:2 H=4:9:20 W=4:10:20", kinds=("normal",), refused="in fixed point")
def A4216ResizeOfBytes(self, x):
    """Bytes resized as bytes, which torch rounds, and by nearest; flipped, cropped to the centre and normalised."""
    y = F.interpolate(x, (8, 8), mode="bilinear", antialias=True)
    z = F.interpolate(x, (5, 7), mode="nearest")
    h, w = x.shape[-2:]
    top, left = int(round((h - 4) / 2.0)), int(round((w - 4) / 2.0))
    c = x[..., top : top + 4, left : left + 4].flip(-1)
    return y, z, (c.float() / 255 - 0.45) / 0.225
@forward("x:float32[N,1,H,W]", dims="N=1:1:2 H=8:16:32%8 W=8:16:32%8", kinds=FEW)
def A4217Hog(self, x):
    """Gradients, unsigned angles in nine bins with shares for two neighbours, cells of eight, L2-hys."""
    gx, gy = F.pad(x[..., 2:] - x[..., :-2], (1, 1)), F.pad(x[..., 2:, :] - x[..., :-2, :], (0, 0, 1, 1))
    mag, ang = torch.sqrt(gx**2 + gy**2 + 1e-12), torch.rad2deg(torch.atan2(gy, gx)) % 180
    b = ang / 20 - 0.5
    lo = b.floor()
    share = b - lo
    hist = torch.zeros(x.shape[0], 9, *x.shape[2:])
    hist.scatter_add_(1, lo.long() % 9, mag * (1 - share))
    hist.scatter_add_(1, (lo.long() + 1) % 9, mag * share)
    cell = F.avg_pool2d(hist, 8) * 64
    v = cell.flatten(2).mT
    v = (v / v.norm(dim=-1, keepdim=True).clamp(min=1e-3)).clamp(max=0.2)
    return F.normalize(v, dim=-1), mag.amax((1, 2, 3))
@forward("x:float32[N,H,W]", dims="N=1:1:2 H=4:9:24 W=4:10:24", kinds=FEW)
def A4218BoxFilterByIntegral(self, x):
    """Sums over windows of a radius by the size from an integral image, a guided filter, counts at the borders."""
    n, h, w = x.shape
    r = max(min(h, w) // 4, 1)
    def box(v):
        s = F.pad(v, (1, 0, 1, 0)).cumsum(1).cumsum(2)
        i, j = torch.arange(h), torch.arange(w)
        a, b = (i - r).clamp(min=0), (i + r + 1).clamp(max=h)
        c, d = (j - r).clamp(min=0), (j + r + 1).clamp(max=w)
        return s[:, b][:, :, d] - s[:, a][:, :, d] - s[:, b][:, :, c] + s[:, a][:, :, c]
    one = box(torch.ones_like(x))
    mean = box(x) / one
    var = box(x * x) / one - mean * mean
    k = var / (var + 1.0)
    return one.long(), mean, (box(k) / one) * x + box((1 - k) * mean) / one

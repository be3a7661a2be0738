# ruff: noqa: E501, E731, RUF059, B905 - attacks are written as users write them
"""Post-processing of detection, pose, segmentation, OCR, lanes and matching: top-k with few rows, classes, rotated boxes, merges, sinks."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

ROWS = "N=1:2:3 T=1:9:24"
MAPS = "N=1:1:2 H=1:6:12 W=1:7:13"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")
ENDS = (normal(1, 1, 6), normal(2, 3, 6), halves(2, 24, 6), halves(1, 5, 6), halves(1, 10, 6), halves(1, 11, 6))
IMAGES = (normal(1, 3, 1, 1), halves(1, 3, 12, 13), halves(2, 3, 1, 13), halves(1, 3, 12, 1), halves(1, 3, 2, 3), lambda: {"x": np.zeros((1, 3, 5, 5), np.float32)})


@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
def A3650TopTenOfFew(self, x):
    """As many as ten candidates, fewer where there are fewer, padded to ten with -1."""
    k = min(10, x.shape[1])
    s, at = x[..., 4].sigmoid().topk(k, 1)
    boxes, label = x[..., :4].gather(1, at[..., None].expand(-1, -1, 4)), x[..., 5].gather(1, at).round().long()
    out = torch.cat([boxes, s[..., None], label[..., None].to(boxes.dtype)], -1)
    return F.pad(out, (0, 0, 0, 10 - k), value=-1.0), F.pad(label, (0, 10 - k), value=-1), (s > 0.5).sum(1)
def box_iou(a, b):
    lt, rb = torch.max(a[..., :, None, :2], b[..., None, :, :2]), torch.min(a[..., :, None, 2:4], b[..., None, :, 2:4])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area = lambda v: (v[..., 2] - v[..., 0]).clamp(min=0) * (v[..., 3] - v[..., 1]).clamp(min=0)
    return inter / (area(a)[..., :, None] + area(b)[..., None, :] - inter).clamp(min=1e-6)
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
def A3651NmsByOffsets(self, x):
    """Classes apart by an offset of the largest coordinate plus one, three rounds of suppression by a matrix."""
    xy, wh = x[..., :2], x[..., 2:4].abs()
    boxes, label = torch.cat([xy - wh / 2, xy + wh / 2], -1), x[..., 5:].round()
    moved, order = boxes + label * (boxes.amax((1, 2), keepdim=True) + 1), x[..., 4].argsort(dim=1, descending=True, stable=True)
    b = moved.gather(1, order[..., None].expand(-1, -1, 4))
    over, keep = (box_iou(b, b) > 0.5).triu(1), torch.ones_like(order, dtype=torch.bool)
    for _ in range(3):
        keep = ~(over & keep[..., None]).any(1)
    return keep, order.masked_fill(~keep, -1), (x[..., 4].gather(1, order) * keep).amax(1)
@attack("x:float32[N,7,H,W]", dims=MAPS, kinds=FINITE, feeds=(normal(1, 7, 1, 1), normal(2, 7, 12, 13), normal(1, 7, 5, 1)))
class A3652AnchorFree(nn.Module):
    """YOLOv8's head: DFL by a fixed projection, anchors by sizes, strides per level; the second level is pooled."""
    def __init__(self):
        super().__init__()
        self.box, self.cls = nn.Conv2d(7, 16, 1), nn.Conv2d(7, 3, 1)
        self.register_buffer("project", torch.arange(4.0))
        self.shape, self.cached = None, None
    def anchors(self, maps, strides):
        points, scale = [], []
        for m, s in zip(maps, strides):
            h, w = m.shape[2:]
            sy, sx = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            points.append(torch.stack((sx, sy), -1).view(-1, 2))
            scale.append(torch.full((h * w, 1), float(s)))
        return torch.cat(points), torch.cat(scale)
    def forward(self, x):
        maps = [x, F.max_pool2d(x, 2, ceil_mode=True)]
        raw, cls = torch.cat([self.box(m).flatten(2) for m in maps], 2), torch.cat([self.cls(m).flatten(2) for m in maps], 2).sigmoid()
        if self.shape != x.shape[2:]:
            self.cached, self.shape = self.anchors(maps, (8, 16)), x.shape[2:]
        points, scale = self.cached
        d = raw.view(x.shape[0], 4, 4, -1).softmax(2).mul(self.project.view(1, 1, -1, 1)).sum(2).mT
        lt, rb = d.chunk(2, -1)
        boxes = torch.cat([points - lt, points + rb], -1) * scale
        s, c = cls.max(1)
        return boxes.clamp(min=0), s, c
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3653PeaksWithOffsets(self, x):
    """Centres by max pooling, the best of the three classes together, as many as four, offsets by a quarter pixel."""
    n, c, h, w = x.shape
    heat, k = x * (F.max_pool2d(x, 3, 1, 1) == x), min(4, h * w)
    s, at = heat.flatten(1).topk(k)
    cls, rest = at // (h * w), at % (h * w)
    ys, xs, b = rest // w, rest % w, torch.arange(n)[:, None]
    right, left = x[b, cls, ys, (xs + 1).clamp(max=w - 1)], x[b, cls, ys, (xs - 1).clamp(min=0)]
    moved = xs + torch.sign(right - left) * 0.25
    return s, cls, ys, moved, (moved + 0.5) / w, torch.where(s > 0.3, at, -1)
@forward("x:float32[N,T,5]", dims=ROWS, kinds=FEW, feeds=(halves(2, 24, 5), normal(1, 1, 5), halves(1, 3, 5)))
def A3654RotatedCorners(self, x):
    """Corners of rotated boxes, areas by the shoelace, hulls, an angle in [-pi/4, pi/4) whose sides swap."""
    c, wh, t, unit = x[..., :2], x[..., 2:4].abs(), x[..., 4], torch.tensor([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    rot = torch.stack([t.cos(), -t.sin(), t.sin(), t.cos()], -1).unflatten(-1, (2, 2))
    corners = torch.einsum("ntij,kj,ntj->ntki", rot, unit, wh) + c[:, :, None]
    nxt = corners.roll(-1, 2)
    area = 0.5 * (corners[..., 0] * nxt[..., 1] - nxt[..., 0] * corners[..., 1]).sum(-1).abs()
    turn = torch.remainder(t + math.pi / 4, math.pi / 2) - math.pi / 4
    odd = torch.floor((t + math.pi / 4) / (math.pi / 2)).long() % 2 == 1
    sides = torch.where(odd[..., None], wh.flip(-1), wh)
    return corners, area, turn, sides, corners.amin(2), torch.cat([corners.amin(2), corners.amax(2)], -1).flatten(1)[:, ::3]
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3655MaskToBoxes(self, x):
    """Boxes, centroids, areas and edges of binary masks; of an empty mask zeros."""
    m = x > 0.5
    h, w = x.shape[2:]
    cols, rows = m.any(2), m.any(3)
    x0, x1 = cols.int().argmax(-1), w - 1 - cols.flip(-1).int().argmax(-1)
    y0, y1, some = rows.int().argmax(-1), h - 1 - rows.flip(-1).int().argmax(-1), m.any(-1).any(-1)
    boxes = torch.stack([x0, y0, x1 + 1, y1 + 1], -1) * some[..., None]
    area, ys, xs = m.sum((2, 3)), torch.arange(h).view(-1, 1), torch.arange(w)
    cy, cx = (m * ys).sum((2, 3)) / area.clamp(min=1), (m * xs).sum((2, 3)) // area.clamp(min=1)
    edge = m & ~(-F.max_pool2d(-m.float(), 3, 1, 1)).bool()
    return boxes, area, cy, cx, edge.sum((2, 3)), area / (boxes[..., 2:] - boxes[..., :2]).prod(-1).clamp(min=1)
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3656PastedMasks(self, x):
    """Mask R-CNN's paste: a mask of the image's own size drawn into a canvas of another, by grid_sample."""
    n, c, h, w = x.shape
    b = torch.stack([x[..., 0, 0], x[..., -1, -1]], -1).abs()
    x0, y0 = b[..., 0, None], b[..., 1, None]
    gx, gy = ((torch.arange(w * 2) + 0.5) - x0) / (w / 2) - 1, ((torch.arange(h + 3) + 0.5) - y0) / (h / 2) - 1
    grid = torch.stack([gx[:, :, None].expand(-1, -1, h + 3, -1), gy[..., None].expand(-1, -1, -1, w * 2)], -1)
    y = F.grid_sample(x.reshape(n * c, 1, h, w), grid.reshape(n * c, h + 3, w * 2, 2), align_corners=False)
    return y.view(n, c, h + 3, w * 2), F.grid_sample(x, torch.stack(torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, 2 * w), indexing="ij"), -1).flip(-1).expand(n, -1, -1, -1), mode="nearest", align_corners=True)
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3657ComponentsByFlood(self, x):
    """Labels of connected parts by eight rounds of the largest neighbour, their sizes, and the largest part."""
    n, _, h, w = x.shape
    m = x[:, :1] > 0
    label = torch.where(m, torch.arange(1.0, h * w + 1).view(1, 1, h, w), torch.zeros(()))
    for _ in range(8):
        label = F.max_pool2d(label, 3, 1, 1) * m
    ids = label.flatten(1).long()
    size = torch.zeros(n, h * w + 1, dtype=torch.int64).scatter_add(1, ids, torch.ones_like(ids))
    size[:, 0] = 0
    best = size.argmax(1)
    return ids, size.gather(1, ids), (ids == best[:, None]) & m.flatten(1), (size > 0).sum(1)
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
def A3658Panoptic(self, x):
    """Queries with a class and a mask of five pixels: no-object is dropped, pixels go to the best, small areas go."""
    s, c = x[..., :3].softmax(-1).max(-1)
    keep, masks = (c != 2) & (s > 0.4), x[..., 1:].sigmoid()
    owner = (masks * s[..., None]).masked_fill(~keep[..., None], -1.0).argmax(1)
    area, original = F.one_hot(owner, x.shape[1]).sum(1), (masks >= 0.5).sum(-1)
    good = keep & (area > 0) & (area.float() / original.clamp(min=1) >= 0.8)
    ids = torch.where(good, good.cumsum(1), 0)
    return ids.gather(1, owner), torch.where(good.gather(1, owner), c.gather(1, owner), 2), good.sum(1), original
@forward("x:float32[N,T,6]", "y:float32[N,S,6]", dims="N=1:2:3 T=1:5:10 S=1:7:10", kinds=FEW)
def A3659SinkhornAndMutual(self, x, y):
    """SuperGlue: a dustbin's row and column, rounds in logarithms, mutual matches above a threshold."""
    n, t, s, scores = x.shape[0], x.shape[1], y.shape[1], x @ y.mT / 6**0.5
    one = scores.new_tensor(1.0)
    z, norm = torch.cat([torch.cat([scores, one.expand(n, t, 1)], -1), one.expand(n, 1, s + 1)], 1), -math.log(t + s)
    mu = torch.cat([z.new_full((t,), norm), z.new_tensor([math.log(s) + norm])]).expand(n, -1)
    nu = torch.cat([z.new_full((s,), norm), z.new_tensor([math.log(t) + norm])]).expand(n, -1)
    u, v = torch.zeros_like(mu), torch.zeros_like(nu)
    for _ in range(4):
        u = mu - torch.logsumexp(z + v[:, None], 2)
        v = nu - torch.logsumexp(z + u[..., None], 1)
    p = (z + u[..., None] + v[:, None] - norm)[:, :-1, :-1]
    m0, m1 = p.max(2), p.max(1)
    mutual = torch.arange(t)[None] == m1.indices.gather(1, m0.indices)
    return p, torch.where(mutual & (m0.values.exp() > 0.2), m0.indices, -1), mutual.sum(1)
@forward("x:float32[N,T,6]", "y:float32[N,S,6]", dims="N=1:2:3 T=1:5:10 S=1:7:10", kinds=("normal", "positive", "unit"), refused="the path through the module depends on the size")
def A3660GreedyAssignment(self, x, y):
    """Tracks get detections by the smallest distance, four times; taken rows and columns become infinite."""
    cost, match, b = torch.cdist(x[..., :2], y[..., :2]), torch.full(x.shape[:2], -1), torch.arange(x.shape[0])
    for _ in range(min(4, x.shape[1], y.shape[1])):
        v, flat = cost.flatten(1).min(1)
        i, j = flat // y.shape[1], flat % y.shape[1]
        match[b, i] = torch.where(v < 2.0, j, match[b, i])
        cost[b, i] = math.inf
        cost[b, :, j] = math.inf
    return match, cost.isinf().sum((1, 2)), (match >= 0).float().mean(1)
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FINITE, feeds=ENDS)
def A3661BoxesToImage(self, x):
    """Back from a letterbox: padding and ratio by the sizes, clipped, of no area where empty; formats in place."""
    t = x.shape[1]
    ratio = min(6 / t, t / 9)
    pad, boxes = ((6 - round(t * ratio)) / 2, (9 - round(9 * ratio)) / 2), x[..., :4].clone()
    boxes[..., [0, 2]] -= pad[0]
    boxes[..., [1, 3]] -= pad[1]
    boxes /= ratio
    boxes[..., 0::2].clamp_(0, t)
    boxes[..., 1::2].clamp_(0, 9)
    wh = boxes[..., 2:] - boxes[..., :2]
    return boxes, torch.where((wh > 0).all(-1, keepdim=True), boxes, torch.zeros(())), wh.prod(-1).clamp(min=0).sqrt() / max(t, 9)
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
def A3662CtcWithTimes(self, x):
    """Greedy CTC with the frames at which characters begin, gathered at the left by a stable sort."""
    p, ids = x.softmax(-1).max(-1)
    last = F.pad(ids, (1, 0), value=-1)[:, :-1]
    keep = (ids != 0) & (ids != last)
    order, n, i = torch.argsort((~keep).int(), dim=1, stable=True), keep.sum(1), torch.arange(x.shape[1])
    text = torch.where(i < n[:, None], ids.gather(1, order), 0)
    conf, starts = torch.where(keep, p.log(), 0.0).sum(1).div(n).exp(), torch.where(i < n[:, None], order, x.shape[1])
    return text, n, starts, conf.nan_to_num(0.0), starts.diff(dim=1, append=torch.full_like(starts[:, :1], x.shape[1]))
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
def A3663LanesByRows(self, x):
    """Ultra-fast lanes: an expectation over cells without the last one, and where the last one wins no lane."""
    loc, gone = x[..., :-1].softmax(-1) @ (torch.arange(5.0) + 1), x.argmax(-1) == x.shape[-1] - 1
    loc = loc.masked_fill(gone, 0)
    enough, ys = (loc != 0).sum(1) > 2, torch.linspace(0.4, 1.0, x.shape[1])
    slope, px = (loc * ys).sum(1) / loc.sum(1).clamp(min=1e-3), (loc * 1640 / 5).long() - 1
    return px, torch.where(enough, slope, -1.0), (ys * 590).round().int(), (ys * x.shape[1]).floor(), loc.flip(1).cummax(1)[0]
@attack("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
class A3664PerClassThresholds(nn.Module):
    """Each class has a threshold and a budget of rows by rank within its class."""
    def __init__(self):
        super().__init__()
        self.register_buffer("threshold", torch.tensor([0.3, 0.5, 0.1, 0.7]))
        self.register_buffer("budget", torch.tensor([2, 1, 3, 100], dtype=torch.int32))
    def forward(self, x):
        s, c = x[..., :4].sigmoid(), x[..., :4].argmax(-1)
        best, same, i = s.gather(-1, c[..., None])[..., 0], c[:, :, None] == c[:, None], torch.arange(x.shape[1])
        before = (best[:, None] > best[:, :, None]) | ((best[:, None] == best[:, :, None]) & (i[None] < i[:, None]))
        rank = (same & before).sum(-1)
        keep = (best >= self.threshold[c]) & (rank < self.budget[c])
        counts = torch.zeros(x.shape[0], 4, dtype=torch.int32).index_add(1, torch.arange(4), F.one_hot(c, 4).sum(1).int())
        return keep, rank, counts, torch.minimum(counts, self.budget), keep.sum(1, dtype=torch.int32) // self.budget.sum()
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FINITE, feeds=IMAGES, refused="the path through the module depends on the size")
def A3665TiledInference(self, x):
    """Tiles of four with a stride of three that are blended by a ramp, at sizes below and above a tile."""
    n, c, h, w = x.shape
    ph, pw = (max(4 - h, 0) if h < 4 else (-(h - 4)) % 3), (max(4 - w, 0) if w < 4 else (-(w - 4)) % 3)
    y = F.pad(x, (0, pw, 0, ph))
    tiles, k = F.unfold(y, 4, stride=3), torch.tensor([0.25, 1.0, 1.0, 0.25])
    weight = (k[:, None] * k).flatten().repeat(c)[None, :, None]
    out, norm = F.fold(tiles.tanh() * weight, y.shape[2:], 4, stride=3), F.fold(torch.ones_like(tiles) * weight, y.shape[2:], 4, stride=3)
    return (out / norm)[..., :h, :w], tiles.shape[2] * x.mean()
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3666SegmentationAtInputSize(self, x):
    """Logits of half the size, resized to the input, an argmax, ignored borders, and a confusion with a rule."""
    h, w = x.shape[2:]
    small = F.interpolate(x, size=(max(h // 2, 1), max(w // 2, 1)), mode="area")
    up = F.interpolate(small, size=(h, w), mode="bilinear", align_corners=False)
    label = up.argmax(1)
    label[:, 0] = 255
    label[:, :, -1] = 255
    other, valid = (x.amax(1) > 0.5).long(), label != 255
    code = torch.where(valid, label * 2 + other, 6)
    return label, torch.stack([(code == i).sum((1, 2)) for i in range(7)], 1), F.interpolate(label[:, None].float(), scale_factor=2, mode="nearest").to(torch.uint8), up.softmax(1).amax(1)
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FINITE, feeds=ENDS)
def A3667PoseOks(self, x):
    """Object keypoint similarity of all pairs with visibilities, and suppression by it."""
    k = x.unflatten(-1, (2, 3))
    xy, vis, sig = k[..., :2], k[..., 2] > 0, torch.tensor([0.026, 0.107])
    d, area = (xy[:, :, None] - xy[:, None]).square().sum(-1), (xy.amax(2) - xy.amin(2)).prod(-1).abs() + 1e-3
    e, both = d / (8 * sig**2 * (area[:, :, None] + area[:, None])[..., None]), vis[:, :, None] & vis[:, None]
    oks, score = ((-e).exp() * both).sum(-1) / both.sum(-1).clamp(min=1), (k[..., 2] * vis).sum(-1) / vis.sum(-1).clamp(min=1)
    beaten = ((oks > 0.7) & (score[:, None] > score[:, :, None])).any(-1)
    return oks, score.masked_fill(beaten, -1), vis.sum(-1)
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3668DepthWithConfidence(self, x):
    """Percentiles of valid depth, an affine fit to a reference by least squares, a colour map by index."""
    d, ref, m = x[:, 0].flatten(1), x[:, 1].flatten(1), (x[:, 2].flatten(1) > 0).to(x.dtype)
    a00, a01, a11 = (m * d * d).sum(1), (m * d).sum(1), m.sum(1)
    b0, b1, det = (m * d * ref).sum(1), (m * ref).sum(1), a00 * a11 - a01 * a01
    ok = det > 1e-2
    scale = torch.where(ok, (a11 * b0 - a01 * b1) / torch.where(ok, det, 1.0), torch.zeros_like(det))
    lo, hi = d.quantile(0.25, dim=1, keepdim=True), d.quantile(0.75, dim=1, keepdim=True, interpolation="lower")
    unit, cmap = ((d - lo) / (hi - lo).clamp(min=0.5)).clamp(0, 1), torch.stack([torch.linspace(0, 1, 16), torch.linspace(1, 0, 16)], -1)
    return scale, unit, cmap[(unit * 15).long()].mT, d.median(1)[0], hi
@forward("x:float32[N,T,6]", "valid:bool[N,T]", dims=ROWS, kinds=FEW)
def A3669RaggedRows(self, x, valid):
    """Rows of valid detections, moved to the front, their count, the mean of none, the last one."""
    at, n = torch.where(valid, torch.arange(x.shape[1]), x.shape[1]).sort(1)[0], valid.sum(1)
    rows, mean = F.pad(x, (0, 0, 0, 1)).gather(1, at[..., None].expand(-1, -1, 6)), (x * valid[..., None]).sum(1) / n[:, None]
    last, first = rows[torch.arange(x.shape[0]), n - 1], at[:, 0].clamp(max=x.shape[1] - 1)
    return rows, n, mean.nan_to_num(-1.0), last, x[range(x.shape[0]), first] if False else x.gather(1, first[:, None, None].expand(-1, 1, 6)), torch.where(valid.any(1), x[..., 0].masked_fill(~valid, -math.inf).argmax(1), -1)
@attack("x:float32[N,3,H,W]", dims=MAPS, kinds=FINITE, feeds=IMAGES)
class A3670PriorBoxes(nn.Module):
    """SSD's priors by the image's and the map's sizes, variances, and centre-form decoding clipped to one."""
    ratios = (1.0, 2.0, 0.5)
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3, 2, 1)
    def forward(self, x):
        y = self.conv(x)
        h, w = y.shape[2:]
        cy, cx = torch.meshgrid((torch.arange(h) + 0.5) / h, (torch.arange(w) + 0.5) / w, indexing="ij")
        sizes = torch.tensor([[2 / w * r**0.5, 2 / h / r**0.5] for r in self.ratios])
        prior = torch.cat([torch.stack([cx, cy], -1)[:, :, None].expand(-1, -1, 3, -1), sizes.expand(h, w, -1, -1)], -1).flatten(0, 2)
        loc = y.view(x.shape[0], 3, 4, h, w).permute(0, 3, 4, 1, 2).reshape(x.shape[0], -1, 4)
        c, s = prior[:, :2] + loc[..., :2] * 0.1 * prior[:, 2:], prior[:, 2:] * (loc[..., 2:] * 0.2).clamp(max=4).exp()
        return torch.cat([c - s / 2, c + s / 2], -1).clamp(0, 1), (prior * torch.tensor([w, h, w, h])).round().int()
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3671IntegralThresholds(self, x):
    """Sauvola: local means and deviations by integral images whose windows are cut at the border."""
    g = x.mean(1)
    h, w = g.shape[1:]
    s, q = (F.pad(v.cumsum(1).cumsum(2), (1, 0, 1, 0)) for v in (g, g * g))
    y0, y1 = (torch.arange(h) - 2).clamp(min=0), (torch.arange(h) + 3).clamp(max=h)
    x0, x1 = (torch.arange(w) - 1).clamp(min=0), (torch.arange(w) + 2).clamp(max=w)
    box = lambda v: v[:, y1][:, :, x1] - v[:, y0][:, :, x1] - v[:, y1][:, :, x0] + v[:, y0][:, :, x0]
    area = (y1 - y0)[:, None] * (x1 - x0)
    mean = box(s) / area
    dev = (box(q) / area - mean * mean).clamp(min=0)
    return mean, dev, area, g.cumsum(1)[:, -1]
@forward("x:float32[N,T,6]", dims=ROWS, kinds=FEW, feeds=ENDS)
def A3672Homography(self, x):
    """Points by a matrix of the row's own, division by a w that may be zero, inliers by a threshold, a refit by weights."""
    p, q, hm = x[..., :2], x[..., 2:4], torch.eye(3) + 0.1 * x[:, :1, 3:].mT @ x[:, :1, 3:]
    hp = F.pad(p, (0, 1), value=1.0) @ hm.mT
    back = hp[..., :2] / hp[..., 2:].where(hp[..., 2:].abs() > 1e-3, hp.new_ones(()))
    err = (back - q).norm(dim=-1)
    inl = err < 2.0
    w = inl.to(x.dtype)[..., None]
    shift = ((q - back) * w).sum(1) / w.sum(1).clamp(min=1)
    return back + shift[:, None], inl.sum(1), shift, inl.float().mean(1) > 0.5
@forward("x:float32[N,3,H,W]", dims=MAPS, kinds=FEW, feeds=IMAGES)
def A3673TestTimeViews(self, x):
    """Flips, turns and scales of an image by a list of settings, merged by a mean and by votes."""
    total, votes = torch.zeros_like(x), torch.zeros_like(x, dtype=torch.int64)
    for flip, turn, scale in [(False, 0, 1.0), (True, 0, 1.0), (False, 2, 1.0), (True, 1, 1.0), (False, 0, 2.0)]:
        y = x.flip(-1) if flip else x
        y = torch.rot90(y, turn, (2, 3))
        y = F.interpolate(y, scale_factor=scale, mode="bilinear") if scale != 1 else y
        y = F.avg_pool2d(y, 3, 1, 1)
        y = F.interpolate(y, size=(x.shape[2:] if turn % 2 == 0 else x.shape[2:][::-1]), mode="nearest") if scale != 1 else y
        y = torch.rot90(y, -turn, (2, 3))
        y = y.flip(-1) if flip else y
        total += y / 5
        votes += (y > 0.25).long()
    return total, votes, votes.mode(1)[0]
@attack("x:float32[N,3,H,W]", dims=MAPS, kinds=FINITE, feeds=IMAGES, refused="the path through the module depends on the size")
class A3674AspectBranches(nn.Module):
    """Tall images are turned and turned back; small ones skip the pool; the square goes either way alike."""
    def __init__(self, longest=8):
        super().__init__()
        self.conv, self.longest = nn.Conv2d(3, 3, 3, padding=1), longest
    def forward(self, x):
        tall = x.shape[2] > x.shape[3]
        y = x.mT if tall else x
        pooled = max(x.shape[2:]) > self.longest
        if pooled:
            y = F.max_pool2d(y, 2, ceil_mode=True)
        y = self.conv(y).relu_()
        if pooled:
            y = F.interpolate(y, size=x.mT.shape[2:] if tall else x.shape[2:], mode="nearest")
        return y.mT if tall else y

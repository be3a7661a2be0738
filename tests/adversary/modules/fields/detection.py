"""Detection: anchors, boxes, assignment by masks, heads and suppression that is written out."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

MAP, HW = "x:float32[N,4,H,W]", "N=1:1:2 H=3:6:11 W=3:7:12"
BOXES, N = "boxes:float32[N,4]=-3:30", "N=1:5:9"


@attack(MAP, dims=HW)
class AnchorsOfLevels(nn.Module):
    """Centres by arange with a step of a half, sizes by powers, decoded with a clamp."""

    def forward(self, x):
        h, w = x.shape[2:]
        ys = (torch.arange(0, h) + 0.5) * 8
        xs = torch.arange(0.5, w, 1.0) * 8
        sizes = torch.tensor([8.0 * 2 ** (i / 3) for i in range(3)])
        grid = torch.cartesian_prod(ys, xs)[:, None].expand(-1, 3, 2)
        wide = sizes[None, :, None].expand(h * w, 3, 2)
        anchors = torch.cat((grid - wide / 2, grid + wide / 2), -1).view(-1, 4)
        delta = x.flatten(2).transpose(1, 2).repeat_interleave(3, 1)
        size = (anchors[:, 2:] - anchors[:, :2]) * delta[..., 2:].clamp(max=math.log(1000 / 16)).exp()
        centre = anchors[:, :2] + delta[..., :2] * 4
        limit = torch.tensor([h * 8.0, w * 8.0]).repeat(2)
        return torch.minimum(torch.cat((centre - size / 2, centre + size / 2), -1).clamp(min=0), limit)


@forward(BOXES, "others:float32[M,4]=-3:30", dims="N=1:5:9 M=1:4:7")
def overlaps(self, boxes, others):
    a, b = ((v[:, 2:] - v[:, :2]).clamp(min=0).prod(1) for v in (boxes, others))
    low = torch.max(boxes[:, None, :2], others[None, :, :2])
    high = torch.min(boxes[:, None, 2:], others[None, :, 2:])
    inside = (high - low).clamp(min=0).prod(2)
    union = a[:, None] + b[None] - inside
    return torch.where(union > 0, inside / union, 0.0), inside


@forward(BOXES, "scores:float32[N]", dims=N, kinds=("normal", "unit", "descending", "halves"))
def matrix_suppression(self, boxes, scores):
    order = scores.argsort(descending=True, stable=True)
    b = boxes[order]
    area = (b[:, 2] - b[:, 0]).clamp_min(0) * (b[:, 3] - b[:, 1]).clamp_min(0)
    side = (torch.min(b[:, None, 2:], b[None, :, 2:]) - torch.max(b[:, None, :2], b[None, :, :2])).clamp_min(0)
    inside = side[..., 0] * side[..., 1]
    overlap = (inside / (area[:, None] + area[None] - inside).clamp_min(1e-6)).triu(1)
    decay = torch.exp(-2 * (overlap**2 - overlap.amax(0)[:, None] ** 2)).amin(0)
    return scores[order] * decay


@forward(BOXES, "scores:float32[N]", dims=N)
def suppression_in_a_loop(self, boxes, scores):
    order = scores.sort(descending=True, stable=True).indices
    keep = torch.ones(boxes.shape[0], dtype=torch.bool)
    for i in range(boxes.shape[0]):
        a = boxes[order[i]]
        side = (torch.min(a[2:], boxes[:, 2:]) - torch.max(a[:2], boxes[:, :2])).clamp(min=0)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        overlap = side.prod(1) / (area + area[order[i]] - side.prod(1)).clamp_min(1e-3)
        rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
        keep = keep & ~((overlap > 0.5) & (rank > i) & keep[order[i]])
    return keep


@forward(MAP, dims=HW, kinds=("normal", "unit", "large", "mixed-scales"))
def peaks_of_heatmap(self, x):
    heat = x.sigmoid()
    heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
    scores, index = heat.flatten(1).topk(5)
    area = x.shape[2] * x.shape[3]
    return scores, index // area, index % area // x.shape[3], (index % area % x.shape[3]).float()


@forward(MAP, dims=HW)
def expectation_of_bins(self, x):
    p = x.view(x.shape[0], 2, 2, -1).softmax(2)
    return (p * torch.arange(2.0)[:, None]).sum(2), torch.einsum("nkba,b->nka", p, torch.tensor([0.5, 1.5]))


@attack(MAP, dims=HW)
class GridKeptForShape(nn.Module):
    """YOLO keeps its grid and makes it again when the shape is another one."""

    def __init__(self):
        super().__init__()
        self.shape, self.grid = None, torch.empty(0)

    def forward(self, x):
        if self.shape != x.shape:
            h, w = x.shape[2:]
            sy, sx = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            self.grid, self.shape = torch.stack((sx, sy)), x.shape
        return x[:, :2] + self.grid, x[:, 2:].exp() * 8


@forward(MAP, BOXES + "", dims=HW.replace("N=1:1:2", "N=1:2:3"))
def aligned_regions(self, x, boxes):
    h, w = x.shape[2:]
    step = (torch.arange(3) + 0.5) / 3
    ys = boxes[:, 1, None] + step * (boxes[:, 3] - boxes[:, 1])[:, None]
    xs = boxes[:, 0, None] + step * (boxes[:, 2] - boxes[:, 0])[:, None]
    ys, xs = ys.clamp(0, h - 1), xs.clamp(0, w - 1)
    y0, x0 = ys.floor().long(), xs.floor().long()
    y1, x1 = (y0 + 1).clamp(max=h - 1), (x0 + 1).clamp(max=w - 1)
    n = torch.arange(x.shape[0])[:, None, None]

    def at(y, c):
        return x[n, :, y[:, :, None], c[:, None, :]]

    fy, fx = (ys - y0)[:, :, None, None], (xs - x0)[:, None, :, None]
    return (at(y0, x0) * (1 - fx) + at(y0, x1) * fx) * (1 - fy) + (at(y1, x0) * (1 - fx) + at(y1, x1) * fx) * fy


@forward("logits:float32[N,6]", "labels:int64[N]=-1:5", dims=N)
def losses_of_ignored(self, logits, labels):
    a = F.cross_entropy(logits, labels, ignore_index=-1, reduction="none", label_smoothing=0.1)
    b = F.one_hot(labels.clamp(min=0), 6) * (labels >= 0)[:, None]
    return a, F.binary_cross_entropy_with_logits(logits, b.float(), reduction="none", pos_weight=torch.arange(6.0))


@forward(BOXES, dims=N)
def boxes_rounded_in_place(self, boxes):
    b = boxes.clone()
    b[:, 0::2] = b[:, 0::2].clamp_(0, 20).round_()
    b[:, 1::2] = b[:, 1::2].clamp_(0, 16).mul_(2).floor_().div_(2)
    empty = (b[:, 2] <= b[:, 0]) | (b[:, 3] <= b[:, 1])
    b[empty] = -1.0
    return b, empty, b.long()

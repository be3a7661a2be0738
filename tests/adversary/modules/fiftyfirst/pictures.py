# ruff: noqa: B905, E501, E741, RUF046, RUF059 - attacks are written as users write them
"""Vision and detection: what stands before and behind the networks of pictures, in the module itself."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import pix
from tests.adversary.values import values_at

BYTES = "x:uint8[N,3,H,W]=0:255"
UNIT = "x:float32[N,2,H,W]=0:1"
BOXES = "b:float32[N,T,4]=0:64"
SCORES = "s:float32[N,T]=0:1"
STEPS = tuple((lambda a=a, b=b, h=h, w=w: {"x": np.where(np.arange(h * w * 3).reshape(1, 3, h, w) % 3 > 0, a, b).astype(np.uint8)}) for a, b in ((0, 2), (1, 2), (7, 8), (255, 252), (0, 255)) for h, w in ((5, 11), (13, 9), (11, 11), (7, 16)))


def boxes(low: int = 1, own: tuple = (), inputs: tuple = (BOXES, SCORES), **more: object) -> dict:
    """Boxes with scores, judged at many counts."""
    feeds = tuple(values_at(*inputs, N=1 + t % 2, T=t) for t in (1, 2, 3, 5, 7, 8, 9, 11, 12, 16, 19, 20) if t >= low)
    return {"dims": f"N=1:1:2 T={low}:9:20", "kinds": ("normal", "halves", "zeros", "ones"), "feeds": (*own, *feeds), **more}


@forward(BYTES, **pix(BYTES, low=2, own=STEPS), noted="lie between two whole numbers")
def A6566BytesInBytesOut(self, x):
    """Bytes resized to six columns by bilinear, rounded and back to bytes."""
    y = F.interpolate(x.float(), size=(6, 6), mode="bilinear", align_corners=False)
    return y.round().clamp(0, 255).to(torch.uint8)


@forward(BYTES, **pix(BYTES, low=2, own=STEPS))
def A6567WrapsOfBytes(self, x):
    """Arithmetic that stays in bytes and wraps: minus a mean, twice, a negative, a difference of neighbours."""
    return x - 128, x * 2, -x, x[..., 1:] - x[..., :-1], ~x, x // 3, x ** 2, (x >> 3) ^ (x << 5)


@forward(BYTES, **pix(BYTES, low=2, own=STEPS))
def A6568SortedBytes(self, x):
    """Ranks of bytes downwards, stably, with their median and their mode of a histogram."""
    f = x.flatten(2)
    v, i = torch.sort(f, dim=-1, descending=True, stable=True)
    return v, i, f.median(-1).values, f.amax(-1), f.argmin(-1)


@forward(UNIT, **pix(UNIT, low=3), refused="the path through the module depends on the si")
def A6569LastTileFlush(self, x):
    """Tiles of six with a stride of four; the last one stands flush with the border; counts average the overlaps."""
    h, w = x.shape[-2:]
    x = F.pad(x, (0, max(6 - w, 0), 0, max(6 - h, 0)))
    hh, ww = x.shape[-2:]
    tops = [*range(0, hh - 6, 4), hh - 6]
    lefts = [*range(0, ww - 6, 4), ww - 6]
    out, n = torch.zeros_like(x), torch.zeros_like(x)
    for t in tops:
        for l in lefts:
            p = x[..., t : t + 6, l : l + 6]
            out[..., t : t + 6, l : l + 6] += p - p.mean((-2, -1), keepdim=True)
            n[..., t : t + 6, l : l + 6] += 1
    return (out / n)[..., :h, :w]


@forward(UNIT, **pix(UNIT, low=2))
def A6570AspectOfTwoSides(self, x):
    """Short side to 8 and the long one by its ratio, cut at 12, as detectors resize."""
    h, w = x.shape[-2:]
    s = 8 / min(h, w)
    if s * max(h, w) > 12:
        s = 12 / max(h, w)
    return F.interpolate(x, size=(int(round(h * s)), int(round(w * s))), mode="bilinear", align_corners=False)


@attack(UNIT, **pix(UNIT, low=2), refused="the batch norms in")
class A6571LayersInPlainList(nn.Module):
    """Norms in a plain list: eval() does not reach them, they go on with the statistics of the batch."""

    def __init__(self):
        super().__init__()
        self.norms = [nn.BatchNorm2d(2, momentum=0.0) for _ in range(2)]
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        for n in self.norms:
            x = self.conv(n(x)).relu()
        return x


@forward(BOXES, SCORES, **boxes())
def A6572FastNms(self, b, s):
    """YOLACT's fast NMS: sorted by scores, kept when no better one overlaps."""
    lo, hi = torch.minimum(b[..., :2], b[..., 2:]), torch.maximum(b[..., :2], b[..., 2:])
    s, o = s.sort(dim=1, descending=True, stable=True)
    lo, hi = (v.gather(1, o[..., None].expand(-1, -1, 2)) for v in (lo, hi))
    a = (hi - lo).prod(-1)
    i = (torch.minimum(hi[:, None], hi[:, :, None]) - torch.maximum(lo[:, None], lo[:, :, None])).clamp(min=0).prod(-1)
    iou = i / (a[:, None] + a[:, :, None] - i + 1e-6)
    iou = iou.triu(1)
    keep = iou.amax(1) <= 0.5
    return s * keep, o, keep.sum(1)


@forward(BOXES, SCORES, **boxes())
def A6573SoftNmsByMatrix(self, b, s):
    """Matrix NMS with a decay by the minimum over columns, then the five best or all."""
    n, t = s.shape
    v, o = s.topk(min(5, t), dim=1)
    b = torch.take_along_dim(b, o[..., None], 1)
    wh = (b[..., 2:] - b[..., :2]).abs() + 1
    c = (b[..., 2:] + b[..., :2]) / 2
    d = (c[:, :, None] - c[:, None]).abs()
    i = ((wh[:, :, None] + wh[:, None]) / 2 - d).clamp(min=0).prod(-1)
    iou = (i / wh.prod(-1)[:, :, None]).clamp(max=1.0).triu(1)
    comp = iou.amax(1)[:, :, None]
    decay = torch.exp(-2 * (iou**2 - comp**2)).amin(1)
    return v * decay, b


@attack(UNIT, **pix(UNIT, low=4))
class A6574AnchorsByStride(nn.Module):
    """Anchors of two levels with rounded halves of strides, kept for a size and built anew for another."""

    def __init__(self):
        super().__init__()
        self.key, self.anchors = None, None
        self.head = nn.Conv2d(2, 4, 1)

    def forward(self, x):
        maps = [F.max_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 4, ceil_mode=True, count_include_pad=False)]
        key = tuple(m.shape[-2:] for m in maps)
        if key != self.key:
            self.key = key
            self.anchors = [torch.stack(torch.meshgrid(torch.arange(h) * s + s // 2, torch.arange(w) * s + s // 2, indexing="ij"), -1).flatten(0, 1) for (h, w), s in zip(key, (2, 4))]
        p = [self.head(m).flatten(2).mT for m in maps]
        return torch.cat([torch.cat((a.flip(-1) + q[..., :2], q[..., 2:].exp().clamp(max=50)), -1) for a, q in zip(self.anchors, p)], 1)


@attack(UNIT, **pix(UNIT), refused="the path through the module depends on the si")
class A6575PositionsResized(nn.Module):
    """A ViT's positions resized by bicubic unless the grid is the one it was trained with."""

    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 3, 5, 5))
        self.patch = nn.Conv2d(2, 3, 2, 2)

    def forward(self, x):
        h, w = x.shape[-2:]
        x = F.pad(x, (0, w % 2, 0, h % 2))
        y = self.patch(x)
        pos = self.pos
        if y.shape[-2:] != pos.shape[-2:]:
            pos = F.interpolate(pos, scale_factor=((y.shape[-2] + 0.1) / 5, (y.shape[-1] + 0.1) / 5), mode="bicubic")
        assert pos.shape[-2:] == y.shape[-2:]
        return (y + pos).flatten(2).mT


@forward(UNIT, **pix(UNIT, low=2))
def A6576ScalesOfNearest(self, x):
    """Nearest, exact nearest and area by scales that are no halves."""
    return (
        F.interpolate(x, scale_factor=1.7, mode="nearest"), F.interpolate(x, scale_factor=(0.6, 1.3), mode="nearest-exact"),
        F.interpolate(x, size=(7, 5), mode="nearest"), F.interpolate(x, size=(3, 5), mode="area"),
        F.interpolate(x, scale_factor=0.7, mode="bilinear", recompute_scale_factor=True),
    )


@forward(UNIT, **pix(UNIT, low=3))
def A6577RoiAlignByHand(self, x):
    """RoIAlign of boxes of the picture's own extents, by grid_sample."""
    n, c, h, w = x.shape
    m = x.mean((1, 2, 3))
    x0, y0 = m * (w - 1) / 2, m * (h - 1) / 3
    bw, bh = w / 2, h / 2
    g = (torch.arange(4) + 0.5) / 4
    gx, gy = x0[:, None] + g * bw, y0[:, None] + g * bh
    grid = torch.stack(torch.broadcast_tensors((2 * gx[:, None] + 1) / w - 1, (2 * gy[:, :, None] + 1) / h - 1), -1)
    return F.grid_sample(x, grid, align_corners=False), F.grid_sample(x, grid * 1.5, mode="bicubic", padding_mode="reflection", align_corners=True)


@forward(UNIT, **pix(UNIT))
def A6578SquareOnlyByArea(self, x):
    """The sides are swapped for one area of pixels alone, as a mirror of a sensor's strip."""
    h, w = x.shape[-2:]
    return x.mT.flatten(2) if h * w == 143 and h < w else x.flatten(2)


@attack(UNIT, **pix(UNIT, low=4))
class A6579PoolsAndBack(nn.Module):
    """SegNet's unpooling by indices, with the size given, and a skip by a centre crop."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        p, i = F.max_pool2d(self.conv(x), 2, 2, return_indices=True)
        y = F.max_unpool2d(p, i, 2, 2, output_size=x.shape[-2:])
        u = F.conv_transpose2d(p, torch.ones(2, 1, 3, 3), stride=2, groups=2)
        dh, dw = u.shape[-2] - y.shape[-2], u.shape[-1] - y.shape[-1]
        c = F.pad(u, (-(dw // 2), -(dw - dw // 2), -(dh // 2), -(dh - dh // 2)))
        return y + c


@forward(UNIT, **pix(UNIT, low=2))
def A6580NumpyGrid(self, x):
    """Sinusoids of a grid by numpy and a Gaussian whose width is the diagonal's, all from sizes."""
    h, w = x.shape[-2:]
    yy, xx = np.mgrid[0:h, 0:w]
    s = math.hypot(h, w) / 6
    g = np.exp(-((yy - h // 2) ** 2 + (xx - w // 2) ** 2) / (2 * s * s)).astype(np.float32)
    return x * torch.from_numpy(g), torch.from_numpy(np.sin(xx / (yy + 1.0)).astype(np.float32)).sum() * x


@forward(BOXES, SCORES, **boxes(low=2))
def A6581GreedyNms(self, b, s):
    """Greedy NMS by a loop over the count of boxes, on masks."""
    t = s.shape[1]
    o = s.argsort(dim=1, descending=True, stable=True)
    b = b.gather(1, o[..., None].expand_as(b))
    lo, hi = b[..., :2], b[..., :2] + b[..., 2:]
    i = (torch.minimum(hi[:, None], hi[:, :, None]) - torch.maximum(lo[:, None], lo[:, :, None])).clamp(min=0).prod(-1)
    a = b[..., 2:].prod(-1)
    over = i / (a[:, None] + a[:, :, None] - i).clamp(min=1e-9) > 0.45
    keep = torch.ones_like(s, dtype=torch.bool)
    for k in range(t):
        later = torch.arange(t) > k
        keep = keep & ~(over[:, k] & later & keep[:, k : k + 1])
    return torch.zeros_like(keep).scatter(1, o, keep)

# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""Pictures: anchors, suppression, regions, deformations, homographies, grids of curves, morphology, integral images, equalisation, edges, flow, resizing by matrices."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "unit", "ones", "bytes")
X2 = "x:float32[N,2,H,W]"
X1 = "x:float32[N,1,H,W]"
HW = "N=1:1:2 H=1:6:12 W=1:7:12"


def at(text: str, *pairs: tuple[int, int]) -> tuple:
    """Points of one picture at heights and widths."""
    return tuple(values_at(text, N=1, H=h, W=w) for h, w in pairs)


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=16:32:50 W=16:40:50", kinds=FINITE[:4], feeds=at("x:float32[N,3,H,W]", (16, 16), (17, 31), (33, 50), (49, 47)))
class A4340AnchorsByStride(nn.Module):
    """Two levels rounded up, three anchors by ratios from their centres, deltas with a clamp, clipped to the picture, small ones marked."""
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 15, 3, 8, 1), nn.Conv2d(3, 15, 3, 16, 1)])
    def forward(self, x):
        h, w = x.shape[-2:]
        boxes, scores = [], []
        for conv, s in zip(self.down, (8, 16), strict=True):
            y = conv(x)
            gh, gw = y.shape[-2:]
            r = torch.tensor([0.5, 1.0, 2.0]).sqrt()
            base = torch.stack([-s / r, -s * r, s / r, s * r], 1).round() / 2
            sx, sy = torch.arange(gw) * (w // gw), torch.arange(gh) * (h // gh)
            gy, gx = torch.meshgrid(sy, sx, indexing="ij")
            a = (torch.stack([gx, gy, gx, gy], -1).view(-1, 1, 4) + base).view(-1, 4)
            y = y.view(-1, 3, 5, gh, gw).permute(0, 3, 4, 1, 2).reshape(x.shape[0], -1, 5)
            c, wh = (a[:, :2] + a[:, 2:]) / 2, a[:, 2:] - a[:, :2]
            cc = y[..., :2] * wh + c
            ss = y[..., 2:4].clamp(max=math.log(1000 / 16)).exp() * wh
            b = torch.cat([cc - ss / 2, cc + ss / 2], -1)
            boxes.append(torch.stack([b[..., 0::2].clamp(0, w), b[..., 1::2].clamp(0, h)], -1).flatten(-2))
            scores.append(y[..., 4].sigmoid())
        b = torch.cat(boxes, 1)
        return b, torch.cat(scores, 1), ((b[..., 2] - b[..., 0] >= 1e-3) & (b[..., 3] - b[..., 1] >= 1e-3)).sum(1)
@forward("a:float32[N,M,4]=0:10", "b:float32[N,M,4]=0:10", dims="N=1:2:3 M=1:5:9", kinds=("normal", "halves", "zeros", "ones"), feeds=(lambda: {"a": np.array([[[1, 1, 1, 1], [0, 0, 2, 0], [3, 3, 1, 1], [0, 0, 4, 4]]], np.float32), "b": np.array([[[1, 1, 1, 1], [0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 4, 4]]], np.float32)},))
def A4341LossesOfDegenerateBoxes(self, a, b):
    """IoU, DIoU and CIoU of boxes without an area or inside out, with epsilons where a paper has them and without where it has none."""
    lt, rb = torch.max(a[..., :2], b[..., :2]), torch.min(a[..., 2:], b[..., 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    wa, ha = (a[..., 2:] - a[..., :2]).unbind(-1)
    wb, hb = (b[..., 2:] - b[..., :2]).unbind(-1)
    union = wa * ha + wb * hb - inter
    iou = torch.where(union > 0, inter / union, torch.zeros_like(union))
    c = (torch.max(a[..., 2:], b[..., 2:]) - torch.min(a[..., :2], b[..., :2])).pow(2).sum(-1) + 1e-7
    d = ((a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]) ** 2).sum(-1) / 4
    v = (4 / math.pi**2) * (torch.atan(wb / (hb + 1e-7)) - torch.atan(wa / (ha + 1e-7))) ** 2
    alpha = v / (1 - iou + v + 1e-7)
    return iou, iou - d / c, iou - (d / c + v * alpha), inter / union, (iou > 0.5) | (iou != iou)
@forward("b:float32[N,8,4]=0:9", "s:float32[N,8]=0:1", dims="N=1:2:3", kinds=("normal", "halves", "zeros", "unit"), feeds=(lambda: {"b": np.tile(np.array([0, 0, 4, 4], np.float32), (1, 8, 1)), "s": np.linspace(0, 1, 8, dtype=np.float32)[None]},))
def A4342MatrixSuppression(self, b, s):
    """SOLO's matrix NMS after a sort, overlaps above the diagonal only, decays by the worst of each, linear and Gaussian."""
    s, o = s.sort(dim=1, descending=True, stable=True)
    b = b.gather(1, o[..., None].expand(-1, -1, 4))
    xy, wh = b[..., :2], b[..., 2:] + 1
    lt, rb = torch.max(xy[:, :, None], xy[:, None]), torch.min((xy + wh)[:, :, None], (xy + wh)[:, None])
    i = (rb - lt).clamp(min=0).prod(-1)
    area = wh.prod(-1)
    iou = (i / (area[:, :, None] + area[:, None] - i)).triu(1)
    comp = iou.amax(1)[:, :, None].expand_as(iou)
    lin = ((1 - iou) / (1 - comp).clamp(min=1e-4)).amin(1)
    return s * lin, s * (torch.exp(-2 * iou**2) / torch.exp(-2 * comp**2)).amin(1), o
@forward("b:float32[N,10,4]=0:8", "s:float32[N,10]=0:1", "c:int64[N,10]=0:2", dims="N=1:1:3", kinds=("normal", "halves", "zeros"), feeds=(lambda: {"b": (np.random.RandomState(0).randint(0, 5, (1, 10, 4))).astype(np.float32), "s": np.full((1, 10), 0.5, np.float32), "c": np.zeros((1, 10), np.int64)},))
def A4343SuppressionByClasses(self, b, s, c):
    """Boxes are moved apart by class, sorted, and struck out one after the other by an overlap of more than four tenths; the five best, padded by -1."""
    b = torch.cat([b[..., :2], b[..., :2] + b[..., 2:]], -1)
    off = b + (c * (b.amax((1, 2), keepdim=True)[..., 0] + 1))[..., None]
    o = s.argsort(dim=1, descending=True, stable=True)
    k = off.gather(1, o[..., None].expand(-1, -1, 4))
    wh = (torch.min(k[:, :, None, 2:], k[:, None, :, 2:]) - torch.max(k[:, :, None, :2], k[:, None, :, :2])).clamp(min=0)
    i = wh[..., 0] * wh[..., 1]
    a = (k[..., 2] - k[..., 0]) * (k[..., 3] - k[..., 1])
    hit = i > 0.4 * (a[:, :, None] + a[:, None] - i)
    keep = torch.ones_like(s, dtype=torch.bool)
    for j in range(9):
        keep[:, j + 1 :] &= ~(hit[:, j, j + 1 :] & keep[:, j : j + 1])
    rank = torch.where(keep, keep.cumsum(1) - 1, 9)
    first = rank.argsort(dim=1, stable=True)[:, :5]
    return torch.where(keep.gather(1, first), o.gather(1, first), -1), keep.sum(1)
@attack("x:float32[N,2,H,W]", "r:float32[N,3,4]=0:9", dims="N=1:1:2 H=2:8:12 W=2:9:12", kinds=("normal", "halves", "zeros", "ones"), feeds=(lambda: {"x": np.arange(40, dtype=np.float32).reshape(1, 2, 4, 5), "r": np.array([[[0, 0, 4, 3], [1, 1, 1, 1], [-2, 0, 9, 9]]], np.float32)},))
class A4344RegionsByGridSample(nn.Module):
    """RoIAlign of three by three with two samples each as a grid_sample, boxes of at least one pixel, aligned by half a pixel."""
    def forward(self, x, r):
        n, c, h, w = x.shape
        x0, y0 = r[..., 0] - 0.5, r[..., 1] - 0.5
        rw, rh = (r[..., 2] - r[..., 0]).clamp(min=1.0), (r[..., 3] - r[..., 1]).clamp(min=1.0)
        f = (torch.arange(6) + 0.5) / 6
        gx = (x0[..., None] + rw[..., None] * f)[:, :, None].expand(-1, -1, 6, -1)
        gy = (y0[..., None] + rh[..., None] * f)[..., None].expand(-1, -1, -1, 6)
        g = torch.stack([(2 * gx + 1) / w - 1, (2 * gy + 1) / h - 1], -1).flatten(1, 2)
        y = F.grid_sample(x, g, padding_mode="border", align_corners=False).view(n, c, 3, 6, 6).transpose(1, 2)
        return F.avg_pool2d(y.flatten(0, 1), 2).view(n, 3, c, 3, 3)
@attack(X2, dims=HW, kinds=FINITE[:5], feeds=at(X2, (1, 1), (1, 12), (2, 2), (11, 5)))
class A4345DeformableByHand(nn.Module):
    """Offsets from a layer on top of nine taps, bilinear by four gathers with what is outside masked, a modulation, one product."""
    def __init__(self):
        super().__init__()
        self.off, self.w = nn.Conv2d(2, 27, 3, padding=1), nn.Parameter(torch.randn(4, 18) * 0.3)
    def forward(self, x):
        n, c, h, w = x.shape
        o = self.off(x)
        dy, dx, m = o[:, :9], o[:, 9:18], o[:, 18:].sigmoid()
        ky, kx = torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij")
        py = torch.arange(h).view(1, 1, h, 1) + ky.reshape(1, 9, 1, 1) + dy
        px = torch.arange(w).view(1, 1, 1, w) + kx.reshape(1, 9, 1, 1) + dx
        y0, x0 = py.floor(), px.floor()
        total = 0
        for a in (0, 1):
            for b in (0, 1):
                yy, xx = y0 + a, x0 + b
                wt = (1 - (py - yy).abs()) * (1 - (px - xx).abs())
                ok = (yy >= 0) & (yy <= h - 1) & (xx >= 0) & (xx <= w - 1)
                i = (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1)).long().view(n, 1, -1).expand(-1, c, -1)
                total = total + x.flatten(2).gather(2, i).view(n, c, 9, h, w) * (wt * ok)[:, None]
        return torch.einsum("ok,nkl->nol", self.w, (total * m[:, None]).reshape(n, c * 9, h * w)).view(n, 4, h, w)
@forward(X2, "m:float32[N,3,3]=-1:1", dims="N=1:1:2 H=2:6:12 W=2:7:12", kinds=("normal", "unit", "zeros", "halves"), feeds=(lambda: {"x": np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4), "m": np.array([[[1, 0, 0.5], [0, 1, -1], [0, 0, 1]]], np.float32)}, lambda: {"x": np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4), "m": np.array([[[0, -1, 3], [1, 0, 0], [0, 0, 1]]], np.float32)}))
def A4346Homography(self, x, m):
    """kornia's warp: points in pixels by a matrix whose last row may be nothing, a scale guarded by where, nearest and bilinear, corners aligned."""
    n, _, h, w = x.shape
    ys, xs = torch.meshgrid(torch.linspace(0, h - 1, h), torch.linspace(0, w - 1, w), indexing="ij")
    p = torch.stack([xs, ys, torch.ones_like(xs)], -1).view(1, -1, 3) @ m.mT
    z = p[..., 2:]
    s = torch.where(z.abs() > 1e-3, 1.0 / torch.where(z.abs() > 1e-3, z, torch.ones_like(z)), torch.ones_like(z))
    q = p[..., :2] * s
    g = (2 * q / torch.tensor([w - 1, h - 1]) - 1).view(n, h, w, 2)
    inside = (q >= 0).all(-1) & (q[..., 0] <= w - 1) & (q[..., 1] <= h - 1)
    return F.grid_sample(x, g, align_corners=True), inside.view(n, h, w).float().mean((1, 2)), q
@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:8:16 W=4:9:16", kinds=("unit", "zeros", "ones"), feeds=at("x:float32[N,3,H,W]=0:1", (4, 4), (5, 16), (15, 7)))
class A4347BilateralGrid(nn.Module):
    """HDRNet: a grid of coefficients from a small picture, sliced by a guide in five axes, an affine colour for each pixel."""
    def __init__(self):
        super().__init__()
        self.c, self.g = nn.Conv2d(3, 48, 1), nn.Conv2d(3, 1, 1)
    def forward(self, x):
        n, _, h, w = x.shape
        low = F.interpolate(x, (4, 4), mode="bilinear", align_corners=False)
        grid = self.c(low).view(n, 12, 4, 4, 4)
        guide = self.g(x).sigmoid()[:, 0]
        hg, wg = torch.meshgrid(torch.arange(h) / (h - 1) * 2 - 1, torch.arange(w) / (w - 1) * 2 - 1, indexing="ij")
        at3 = torch.stack([wg.expand(n, -1, -1), hg.expand(n, -1, -1), guide * 2 - 1], -1)[:, None]
        a = F.grid_sample(grid, at3, align_corners=False, padding_mode="border")[:, :, 0].view(n, 3, 4, h, w)
        return (a[:, :, :3] * x[:, None]).sum(2) + a[:, :, 3]
@forward(X1, dims=HW, kinds=FEW, feeds=at(X1, (1, 1), (2, 12), (12, 3)))
def A4348Morphology(self, x):
    """Opening, closing, top hats, a gradient with a cross, hit or miss, a reconstruction by four rounds, the outside as minus infinity."""
    def dil(v, k=3):
        return F.max_pool2d(v, k, 1, k // 2)
    def ero(v, k=3):
        return -F.max_pool2d(-v, k, 1, k // 2)
    cross = torch.maximum(F.max_pool2d(x, (3, 1), 1, (1, 0)), F.max_pool2d(x, (1, 3), 1, (0, 1)))
    b = (x > 0).float()
    hit = (F.conv2d(b, torch.tensor([[[[0, 1, 0.0], [1, 1, 1], [0, 1, 0]]]]), padding=1) == 5) & (F.conv2d(1 - b, torch.tensor([[[[1, 0, 1.0], [0, 0, 0], [1, 0, 1]]]]), padding=1) == 4)
    y = ero(x)
    for _ in range(4):
        y = torch.minimum(dil(y), x)
    even = F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=float("-inf")), 2, 1)
    return x - dil(ero(x)), ero(dil(x)) - x, cross + ero(-x), hit, y, even, dil(b) - ero(b)
@forward(X1, dims=HW, kinds=("normal", "unit", "ones", "bytes"), feeds=at(X1, (1, 1), (1, 2), (3, 12), (12, 12)))
def A4350ThresholdOfTheNeighbourhood(self, x):
    """Bradley's threshold from an integral image, the window cut at the borders and as large as an eighth of the width, counts by it."""
    h, w = x.shape[-2:]
    s = F.pad(x[:, 0], (1, 0, 1, 0)).cumsum(1).cumsum(2)
    r = max(w // 8, 1)
    i, j = torch.arange(h), torch.arange(w)
    y0, y1 = (i - r).clamp_min(0), (i + r + 1).clamp_max(h)
    x0, x1 = (j - r).clamp_min(0), (j + r + 1).clamp_max(w)
    total = s[:, y1][:, :, x1] - s[:, y0][:, :, x1] - s[:, y1][:, :, x0] + s[:, y0][:, :, x0]
    n = (y1 - y0)[:, None] * (x1 - x0)
    return total / n, n, (total / n - x[:, 0] > 0.3)
@forward("x:uint8[N,H,W]=0:255", dims="N=1:1:2 H=1:6:12 W=1:7:12", feeds=(lambda: {"x": np.array([[[3, 3, 200, 255], [3, 16, 17, 255]]], np.uint8)}, lambda: {"x": np.full((1, 3, 3), 77, np.uint8)}))
def A4351Equalisation(self, x):
    """OpenCV's equalizeHist of 256 bins: counts by scatter, the first that is not empty, a table rounded in floats; torchvision's by whole steps; Otsu."""
    n, h, w = x.shape
    f = x.flatten(1).long()
    hist = torch.zeros(n, 256, dtype=torch.long).scatter_add_(1, f, torch.ones_like(f))
    first = (hist > 0).int().argmax(1)
    cdf = hist.cumsum(1)
    c0 = cdf.gather(1, first[:, None])
    den = (h * w - c0).clamp(min=1)
    lut = ((cdf - c0) * 255 / den).round().clamp(0, 255)
    last = 255 - (hist.flip(1) > 0).int().argmax(1)
    step = (h * w - hist.gather(1, last[:, None])) // 255
    lut2 = torch.where(step == 0, torch.arange(256), (F.pad(cdf, (1, 0))[:, :-1] + step // 2) // step.clamp(min=1)).clamp(0, 255)
    m = (hist * torch.arange(256)).cumsum(1)
    p = cdf * (h * w - cdf)
    var = torch.where(p > 0, (m[:, -1:] * cdf - m * (h * w)).double() ** 2 / p.clamp(min=1), 0.0)
    return lut.gather(1, f).view_as(x).to(torch.uint8), lut2.gather(1, f).view_as(x).to(torch.uint8), var.argmax(1)
@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=2:6:9 W=2:7:9", kinds=FINITE[:4], feeds=at("x:float32[N,4,H,W]", (2, 2), (3, 9), (9, 9)))
class A4352ShuffledAndFolded(nn.Module):
    """ESPCN's shuffle of a moving size cut by a pixel, patches by unfold put back and divided by how often, a channel shuffle."""
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(4, 36, 3, padding=1)
    def forward(self, x):
        n, c, h, w = x.shape
        y = F.pixel_shuffle(self.c(x), 3)[..., 1:, : 3 * w - 1]
        p = F.unfold(x, 3, padding=1, stride=2)
        ones = F.fold(F.unfold(torch.ones_like(x), 3, padding=1, stride=2), (h, w), 3, padding=1, stride=2)
        z = F.fold(p * 2 - 1, output_size=(h, w), kernel_size=3, padding=1, stride=2) / ones
        return y, z, F.channel_shuffle(x, 2), F.pixel_unshuffle(y[..., : y.shape[-2] // 2 * 2, : y.shape[-1] // 2 * 2], 2)
@forward(X1, dims="N=1:1:2 H=1:6:12 W=1:7:12", kinds=("halves", "bytes", "zeros", "ones"), feeds=(lambda: {"x": np.kron(np.eye(3), np.full((2, 2), 4)).astype(np.float32)[None, None]},))
def A4353Canny(self, x):
    """Sobel behind a replicated border, four directions by comparisons without an angle, thinning, two thresholds joined by three rounds."""
    k = torch.tensor([[-1, 0, 1.0], [-2, 0, 2], [-1, 0, 1]])
    g = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), torch.stack([k, k.T])[:, None])
    gx, gy = g[:, :1], g[:, 1:]
    m = gx.abs() + gy.abs()
    p = F.pad(m, (1, 1, 1, 1))
    def sh(dy, dx):
        return p[:, :, 1 + dy : p.shape[2] - 1 + dy, 1 + dx : p.shape[3] - 1 + dx]
    ax, ay = gx.abs() * 2, gy.abs() * 2
    hor, ver, same = ay < gx.abs(), ax < gy.abs(), (gx < 0) == (gy < 0)
    a = torch.where(hor, sh(0, -1), torch.where(ver, sh(-1, 0), torch.where(same, sh(-1, -1), sh(-1, 1))))
    b = torch.where(hor, sh(0, 1), torch.where(ver, sh(1, 0), torch.where(same, sh(1, 1), sh(1, -1))))
    thin = (m > a) & (m >= b)
    strong, weak = thin & (m > 6), thin & (m > 2)
    for _ in range(3):
        strong = (F.max_pool2d(strong.float(), 3, 1, 1) > 0) & weak
    return strong, m, thin.sum((1, 2, 3))
@forward("x:float32[N,1,H,W]", "y:float32[N,1,H,W]", dims="N=1:1:2 H=3:6:12 W=3:7:12", kinds=("normal", "unit", "zeros", "ones"))
def A4354LucasKanade(self, x, y):
    """Flow by two equations in windows of three, where the smaller eigenvalue is above a bound, and zero elsewhere."""
    gx = F.pad((x[..., 2:] - x[..., :-2]) / 2, (1, 1))
    gy = F.pad((x[..., 2:, :] - x[..., :-2, :]) / 2, (0, 0, 1, 1))
    gt = y - x
    def s(v):
        return F.avg_pool2d(v, 3, 1, 1, count_include_pad=False, divisor_override=1)
    a, b, c, d, e = s(gx * gx), s(gx * gy), s(gy * gy), s(gx * gt), s(gy * gt)
    det = a * c - b * b
    lam = (a + c) / 2 - ((a - c) ** 2 / 4 + b * b).sqrt()
    ok = lam > 0.05
    u = torch.where(ok, (b * e - c * d) / det, torch.zeros_like(det))
    return u, torch.where(ok, (b * d - a * e) / det.where(ok, torch.ones_like(det)), 0.0), ok
@attack(X1, dims="N=1:1:2 H=2:8:12 W=2:8:12", kinds=FINITE[:4], feeds=at(X1, (2, 2), (3, 12), (12, 11)))
class A4355Radon(nn.Module):
    """Projections at five angles: a square behind a pad of the diagonal, rotated by affine grids, added up along the rows."""
    def forward(self, x):
        h, w = x.shape[-2:]
        d = math.isqrt(h * h + w * w) + 1
        ph, pw = d - h, d - w
        x = F.pad(x, (pw // 2, pw - pw // 2, ph // 2, ph - ph // 2))
        out = []
        for deg in range(0, 180, 36):
            c, s = math.cos(math.radians(deg)), math.sin(math.radians(deg))
            th = torch.tensor([[c, s, 0.0], [-s, c, 0.0]]).expand(x.shape[0], -1, -1)
            out.append(F.grid_sample(x, F.affine_grid(th, list(x.shape), align_corners=False), align_corners=False).sum(2))
        return torch.cat(out, 1)
@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=1:7:20 W=1:9:20", kinds=("normal", "ones", "ascending"), feeds=at(X2, (1, 1), (2, 3), (19, 20), (6, 11)))
def A4356ResizeByMatrices(self, x):
    """A Lanczos resize to three quarters, rounded half up, by a matrix for each axis that is made from the sizes, rows that add up to one."""
    def mat(n, m):
        s = n / m
        c = (torch.arange(m) + 0.5) * s - 0.5
        d = (torch.arange(n) - c[:, None]) / max(s, 1.0)
        k = torch.sinc(d) * torch.sinc(d / 3) * (d.abs() < 3)
        return k / k.sum(1, keepdim=True)
    h, w = x.shape[-2:]
    a, b = mat(h, max(int(h * 0.75 + 0.5), 1)), mat(w, max(int(w * 0.75 + 0.5), 1))
    return a @ x @ b.T
@forward(X1, dims=HW, kinds=("normal", "unit", "zeros", "halves"), feeds=at(X1, (1, 1), (1, 12), (2, 2)))
def A4357NonLocalMeans(self, x):
    """Shifts by roll in a window of three, patches by box sums that go round, weights in a total that starts from 0, an inverse by a running maximum."""
    num, den, top = 0, 0, torch.zeros_like(x)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            s = torch.roll(x, (dy, dx), (2, 3))
            d = F.avg_pool2d(F.pad((s - x) ** 2, (1, 1, 1, 1), mode="replicate"), 3, 1)
            k = torch.exp(-d / 0.5)
            if dy == dx == 0:
                continue
            num, den, top = num + k * s, den + k, torch.maximum(top, k)
    return (num + top * x) / (den + top), den
@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=6:12:25 W=6:13:25", kinds=FINITE[:4], feeds=at("x:float32[N,3,H,W]", (6, 6), (7, 25), (24, 13)))
class A4358PyramidPooling(nn.Module):
    """PSPNet: adaptive pools to 1, 2, 3 and 6, resized with aligned corners to the map, a head, resized to the picture, argmax and its margin."""
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3, 2, 1)
        self.stages = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(s), nn.Conv2d(4, 2, 1, bias=False), nn.ReLU()) for s in (1, 2, 3, 6))
        self.head = nn.Conv2d(12, 3, 3, padding=1)
    def forward(self, x):
        f = self.body(x)
        ups = [F.interpolate(s(f), size=f.shape[2:], mode="bilinear", align_corners=True) for s in self.stages]
        y = F.interpolate(self.head(torch.cat([f, *ups], 1)), size=x.shape[2:], mode="bilinear", align_corners=False)
        p = y.softmax(1)
        two = p.topk(2, 1).values
        return p, two[:, 0] - two[:, 1]
@forward("m:float32[N,4,H,W]", "s:float32[N,4]=0:1", "c:int64[N,4]=0:5", dims="N=1:1:2 H=2:5:9 W=2:6:9", kinds=("normal", "halves", "zeros"))
def A4359Panoptic(self, m, s, c):
    """MaskFormer: the best mask by score, areas by one-hot, small or half hidden ones off, what is left renumbered by a running sum, things and stuff joined by class."""
    p = (m.sigmoid() * s[..., None, None])
    who = p.argmax(1)
    hot = F.one_hot(who, 4).permute(0, 3, 1, 2).bool()
    area, full = hot.sum((2, 3)), (m >= 0).sum((2, 3))
    keep = (area > 2) & (area >= 0.5 * full) & (s > 0.25)
    stuff = c >= 4
    same = (c[:, :, None] == c[:, None]) & stuff[:, :, None] & keep[:, None]
    first = torch.where(stuff & keep, same.int().argmax(2), torch.arange(4))
    lead = keep & (first == torch.arange(4))
    num = lead.cumsum(1)
    ids = torch.where(keep, num.gather(1, first), 0)
    seg = ids.gather(1, who.flatten(1)).view_as(who)
    return seg, keep, ids.amax(1), torch.where(seg > 0, c.gather(1, who.flatten(1)).view_as(who), -1).to(torch.int32)

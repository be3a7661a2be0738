# ruff: noqa: E501, E731, E741, B905, RUF059 - attacks are written as users write them
"""Ends of networks of vision: decoders, volumes, warps, trackers, points and rays."""

from __future__ import annotations

import itertools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "ones", "tenths")
X4, IMAGE = "x:float32[N,T,4]", "x:float32[N,2,H,W]"
LENGTHS = (*range(1, 18), 20, 23, 24, 31, 32, 33, 39, 40)


def seq(*inputs: str, low: int = 1, own: tuple = (), **other: object) -> dict:
    """Sequences, judged at many lengths."""
    feeds = tuple(values_at(*inputs, N=1 + t % 3, T=t) for t in LENGTHS if t >= low)
    return {"dims": f"N=1:2:3 T={low}:9:40", "kinds": FEW, "feeds": (*own, *feeds), **other}


def pix(*inputs: str, low: int = 1, high: int = 16, own: tuple = (), **other: object) -> dict:
    """Pictures, judged at many heights and widths."""
    feeds = tuple(values_at(*inputs, N=1, H=h, W=w) for h in range(low, high + 1) for w in sorted({low, low + (h * 7) % (high - low + 1), h}))
    return {"dims": f"N=1:1:2 H={low}:{max(low, 8)}:{high} W={low}:{max(low, 9)}:{high}", "kinds": FEW, "feeds": (*own, *feeds), **other}


def two(*inputs: str, low: int = 1, high: int = 12, zero: bool = False, own: tuple = (), **other: object) -> dict:
    """Two lengths, judged at all their pairs."""
    feeds = tuple(values_at(*inputs, N=1, T=t, S=s) for t in range(low, high + 1) for s in range(0 if zero else low, high + 1))
    return {"dims": f"N=1:1:2 T={low}:{max(low, 5)}:{high} S={0 if zero else low}:{max(low, 6)}:{high}", "kinds": FEW, "feeds": (*own, *feeds), **other}


@forward(IMAGE, **pix(IMAGE))
def A5301QuarterOffsets(self, x):
    """HRNet's keypoints: the maximum of a heatmap, moved a quarter towards its higher neighbour, inside of the border."""
    n, k, h, w = x.shape
    best, at = x.flatten(2).max(2)
    px, py = (at % w).float(), torch.floor(at.float() / w)
    keep = (best > 0).float()
    px, py = px * keep, py * keep
    ix, iy = px.long(), py.long()
    rows = x.flatten(2)
    pick = lambda yy, xx: rows.gather(2, (yy.clamp(0, h - 1) * w + xx.clamp(0, w - 1))[..., None])[..., 0]
    inside = (ix > 1) & (ix < w - 1) & (iy > 1) & (iy < h - 1)
    dx = torch.sign(pick(iy, ix + 1) - pick(iy, ix - 1)) * 0.25
    dy = torch.sign(pick(iy + 1, ix) - pick(iy - 1, ix)) * 0.25
    return torch.stack((px + torch.where(inside, dx, torch.zeros_like(dx)), py + torch.where(inside, dy, torch.zeros_like(dy))), -1), best
@forward(IMAGE, **pix(IMAGE))
def A5302SoftArgmaxWithSizes(self, x):
    """Soft-argmax with coordinates from -1 to 1 by linspace, and back to pixels as (c + 1) * (w - 1) / 2."""
    h, w = x.shape[-2:]
    p = (x.flatten(2) * 10).softmax(-1).view_as(x)
    gx, gy = torch.linspace(-1, 1, w), torch.linspace(-1, 1, h)
    cx, cy = (p.sum(2) * gx).sum(-1), (p.sum(3) * gy).sum(-1)
    return torch.stack(((cx + 1) * (w - 1) / 2, (cy + 1) * 0.5 * (h - 1)), -1)
@forward("x:float32[N,G,4,2]", dims="N=1:2:3 G=2:11:30", kinds=FEW, feeds=tuple(values_at("x:float32[N,G,4,2]", N=1, G=g) for g in range(2, 31)))
def A5303LanesOfRows(self, x):
    """Ultra-fast lane detection: an expectation over cells, 0 where the last class wins, lanes of too few rows dropped."""
    prob = x[:, :-1].softmax(1)
    idx = torch.arange(x.shape[1] - 1).view(1, -1, 1, 1) + 1
    loc = (prob * idx).sum(1)
    out = x.argmax(1)
    loc[out == x.shape[1] - 1] = 0
    count = (loc != 0).sum(1, keepdim=True)
    return torch.where(count > 2, loc, -torch.ones_like(loc)) * (800 - 1) / (x.shape[1] - 1)
@forward("x:float32[N,3,H,W]", "r:float32[N,2,H,W]", **pix("x:float32[N,3,H,W]", "r:float32[N,2,H,W]", high=12))
def A5304CentresDecoded(self, x, r):
    """CenterNet: peaks by pooling, the best of each class, the best of all, and their offsets."""
    heat = x.sigmoid()
    heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
    n, c, h, w = heat.shape
    k = min(7, h * w)
    scores, inds = torch.topk(heat.view(n, c, -1), k)
    inds = inds % (h * w)
    ys, xs = (inds / w).int().float(), (inds % w).int().float()
    score, ind = torch.topk(scores.view(n, -1), k)
    cls = (ind / k).int()
    pick = lambda v: v.reshape(n, -1).gather(1, ind)
    reg = r.permute(0, 2, 3, 1).reshape(n, -1, 2).gather(1, pick(inds)[..., None].expand(-1, -1, 2))
    return score, cls, pick(xs) + reg[..., 0], pick(ys) + reg[..., 1]
@forward("a:float32[N,3,H,W]", "b:float32[N,3,H,W]", "c:float32[N,2,H,W]", **pix("a:float32[N,3,H,W]", "b:float32[N,3,H,W]", "c:float32[N,2,H,W]", low=4, high=11))
def A5305RaftLookup(self, a, b, c):
    """All pairs' correlation, pooled to levels, sampled about a point; the sampler divides by size less one."""
    n, d, h, w = a.shape
    corr = torch.matmul(a.view(n, d, -1).transpose(1, 2), b.view(n, d, -1)).view(n * h * w, 1, h, w) / torch.sqrt(torch.tensor(d).float())
    coords, out = c.permute(0, 2, 3, 1).reshape(n * h * w, 1, 1, 2), []
    for i in range(2):
        dx = torch.linspace(-1, 1, 3)
        delta = torch.stack(torch.meshgrid(dx, dx, indexing="ij"), -1).view(1, 3, 3, 2)
        at = coords / 2**i + delta
        hh, ww = corr.shape[-2:]
        xg, yg = at.split([1, 1], dim=-1)
        xg, yg = 2 * xg / (ww - 1) - 1, 2 * yg / (hh - 1) - 1
        out.append(F.grid_sample(corr, torch.cat([xg, yg], -1), align_corners=True).view(n, h, w, -1))
        corr = F.avg_pool2d(corr, 2, stride=2)
    return torch.cat(out, -1).permute(0, 3, 1, 2).contiguous().float()
@forward("a:float32[N,2,H,W]", "b:float32[N,2,H,W]", **pix("a:float32[N,2,H,W]", "b:float32[N,2,H,W]"))
def A5306CostVolume(self, a, b):
    """PSMNet: a volume of zeros that is filled by shifts of up to five, at widths of less too."""
    n, c, h, w = a.shape
    cost = a.new_zeros(n, 2 * c, 5, h, w)
    for i in range(5):
        if i > 0:
            cost[:, :c, i, :, i:] = a[:, :, :, i:]
            cost[:, c:, i, :, i:] = b[:, :, :, :-i]
        else:
            cost[:, :c, i], cost[:, c:, i] = a, b
    return cost.contiguous()
@forward("x:float32[N,3,H,W]", **pix("x:float32[N,3,H,W]", high=12))
def A5307DisparityRegressed(self, x):
    """Costs interpolated in three directions, a softmin, and the expected disparity with its mode beside it."""
    full = F.interpolate(x[:, None], [12, x.shape[2] * 4, x.shape[3] * 4], mode="trilinear", align_corners=False).squeeze(1)
    p = F.softmin(full, dim=1)
    disp = (p * torch.arange(12, dtype=p.dtype).view(1, -1, 1, 1)).sum(1)
    near = (torch.arange(12).view(1, -1, 1, 1) - disp[:, None]).abs() < 2
    return disp, (p * near).sum(1)
@forward(IMAGE, "f:float32[N,2,H,W]", **pix(IMAGE, "f:float32[N,2,H,W]"))
def A5308WarpWithMask(self, x, f):
    """PWC-Net's warp: max(w - 1, 1) below, and a mask that is thresholded twice in place."""
    n, c, h, w = x.size()
    xx = torch.arange(0, w).view(1, -1).repeat(h, 1).view(1, 1, h, w).repeat(n, 1, 1, 1)
    yy = torch.arange(0, h).view(-1, 1).repeat(1, w).view(1, 1, h, w).repeat(n, 1, 1, 1)
    v = torch.cat((xx, yy), 1).float() + f
    v[:, 0, :, :] = 2.0 * v[:, 0, :, :].clone() / max(w - 1, 1) - 1.0
    v[:, 1, :, :] = 2.0 * v[:, 1, :, :].clone() / max(h - 1, 1) - 1.0
    v = v.permute(0, 2, 3, 1)
    out = F.grid_sample(x, v, align_corners=True)
    mask = F.grid_sample(torch.ones(x.size()), v, align_corners=True)
    mask[mask < 0.9999] = 0
    mask[mask > 0] = 1
    return out * mask
@forward(IMAGE, "m:float32[N,3,3]", **pix(IMAGE, "m:float32[N,3,3]"))
def A5309WarpPerspective(self, x, m):
    """kornia's: points made homogeneous, divided by z where it is not about zero."""
    n, _, h, w = x.shape
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    grid = torch.stack((xs, ys, torch.ones_like(xs)), -1).view(1, -1, 3)
    p = grid @ (m + 2 * torch.eye(3)).transpose(1, 2)
    z = p[..., -1:]
    far = z.abs() > 1e-8
    scale = torch.where(far, 1.0 / (z + 1e-8), torch.ones_like(z))
    return F.grid_sample(x, (scale * p[..., :-1]).view(n, h, w, 2), mode="nearest" if h < 3 else "bilinear", padding_mode="border", align_corners=True)
@attack(IMAGE, "c:float32[N,4,2]", **pix(IMAGE, "c:float32[N,4,2]"))
class A5310ThinPlates(nn.Module):
    """An OCR rectifier: a thin plate spline of four fiducials, solved, and a grid of a fixed size."""

    def __init__(self):
        super().__init__()
        c = torch.tensor([[-1.0, -1], [1, -1], [-1, 1], [1, 1]])
        r = (c[:, None] - c[None]).norm(dim=-1)
        r.fill_diagonal_(1)
        self.delta = nn.Parameter(torch.cat([torch.cat([torch.ones(4, 1), c, r**2 * r.log()], 1), torch.cat([torch.zeros(2, 3), c.T], 1), torch.cat([torch.zeros(1, 3), torch.ones(1, 4)], 1)], 0))
        self.register_buffer("c", c, persistent=False)

    def forward(self, x, c):
        t = torch.linalg.solve(self.delta, torch.cat([c, c.new_zeros(c.shape[0], 3, 2)], 1))
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 5), torch.linspace(-1, 1, 9), indexing="ij")
        p = torch.stack((xs, ys), -1).view(-1, 2)
        r = (p[:, None] - self.c[None]).norm(dim=-1)
        phat = torch.cat([torch.ones(45, 1), p, r.square() * torch.log(r + 1e-6)], 1)
        return F.grid_sample(x, (phat @ t).view(-1, 5, 9, 2), padding_mode="border", align_corners=True)
@forward("x:float32[N,T,4]", "y:float32[N,S,4]", **two("x:float32[N,T,4]", "y:float32[N,S,4]", zero=True))
def A5311TracksOrNone(self, x, y):
    """Tracks and detections matched by overlap; without a detection all tracks are lost."""
    if y.shape[1] == 0:
        return x.new_full(x.shape[:2], -1, dtype=torch.long), x
    lt, rb = torch.maximum(x[:, :, None, :2], y[:, None, :, :2]), torch.minimum(x[:, :, None, 2:], y[:, None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda v: (v[..., 2] - v[..., 0]) * (v[..., 3] - v[..., 1])
    iou = inter / (area(x)[:, :, None] + area(y)[:, None] - inter).clamp(min=1e-6)
    best, at = iou.max(-1)
    mutual = iou.argmax(1).gather(1, at) == torch.arange(x.shape[1])
    ok = mutual & (best > 0.1)
    return torch.where(ok, at, -1), torch.where(ok[..., None], 0.9 * x + 0.1 * y.gather(1, at[..., None].expand(-1, -1, 4)), x)
@attack("x:float32[N,T,8]", **seq("x:float32[N,T,8]"))
class A5312KalmanPredicts(nn.Module):
    """ByteTrack's multi_predict: a velocity zeroed through a view, motion by a matrix, noise by the height."""

    def __init__(self):
        super().__init__()
        m = torch.eye(8)
        m[:4, 4:] = torch.eye(4)
        self.register_buffer("m", m)

    def forward(self, x):
        mean = x.clone()
        height, velocity = mean[..., 3], mean[..., 4:]
        velocity[..., 3] = 0
        std = torch.stack([height / 20, height / 20, torch.full_like(height, 1e-2), height / 20], -1)
        mean = mean @ self.m.T
        height.mul_(0)
        return mean, std.square(), velocity
@attack("x:float32[N,7,H,W]", "y:float32[N,7,T,T]", dims="N=1:1:2 H=1:4:9 W=1:5:9 T=1:2:9", kinds=FEW, feeds=tuple(values_at("x:float32[N,7,H,W]", "y:float32[N,7,T,T]", N=1, H=h, W=w, T=t) for h, w, t in itertools.product((1, 4, 9), (1, 5, 9), (1, 2, 4, 9))))
class A5313YoloxDecodes(nn.Module):
    """YOLOX: grids are kept and made anew where a level's size is another one."""

    def __init__(self):
        super().__init__()
        self.grids = [torch.zeros(1)] * 2

    def forward(self, x, y):
        grids, strides = [], []
        for k, (v, s) in enumerate(zip((x, y), (8, 16))):
            h, w = v.shape[-2:]
            if self.grids[k].shape[2:4] != v.shape[2:4]:
                yv, xv = torch.meshgrid([torch.arange(h), torch.arange(w)], indexing="ij")
                self.grids[k] = torch.stack((xv, yv), 2).view(1, h, w, 2).permute(0, 3, 1, 2).float()
            grids.append(self.grids[k].flatten(2).permute(0, 2, 1))
            strides.append(torch.full((1, h * w, 1), s))
        out = torch.cat([v.flatten(2) for v in (x, y)], 2).permute(0, 2, 1)
        grids, strides = torch.cat(grids, 1), torch.cat(strides, 1)
        out[..., :2] = (out[..., :2] + grids) * strides
        out[..., 2:4] = torch.exp(out[..., 2:4]) * strides
        return out
@forward("m:bool[N,H,W]", "x:float32[N,2,H,W]", **pix("m:bool[N,H,W]", "x:float32[N,2,H,W]"))
def A5314ReferencePoints(self, m, x):
    """Deformable DETR: the share that is not padded, and centres of cells divided by it."""
    n, h, w = m.shape
    vh, vw = (~m[:, :, 0]).sum(1).float() / h, (~m[:, 0, :]).sum(1).float() / w
    ratio = torch.stack([vw, vh], -1)
    ry, rx = torch.meshgrid(torch.linspace(0.5, h - 0.5, h), torch.linspace(0.5, w - 0.5, w), indexing="ij")
    ry = ry.reshape(-1)[None] / (ratio[:, None, 1] * h)
    rx = rx.reshape(-1)[None] / (ratio[:, None, 0] * w)
    valid = ((rx > 0.01) & (rx < 0.99) & (ry > 0.01) & (ry < 0.99)).view(n, h, w)
    return torch.stack((rx, ry), -1), x.masked_fill((m | ~valid)[:, None], 0.0)
@forward(IMAGE, **pix(IMAGE))
def A5315ShiftedWindows(self, x):
    """Swin: padded to windows of four, rolled, and a mask numbered by slices of a picture."""
    ws, ss = 4, 2
    n, c, h, w = x.shape
    x = F.pad(x, (0, (ws - w % ws) % ws, 0, (ws - h % ws) % ws))
    hp, wp = x.shape[-2:]
    if min(hp, wp) <= ws:
        ss = 0
    img, cnt = torch.zeros(1, hp, wp, 1), 0
    slices = (slice(0, -ws), slice(-ws, -ss), slice(-ss, None))
    for hs in slices:
        for wss in slices:
            img[:, hs, wss, :] = cnt
            cnt += 1
    part = lambda v: v.view(v.shape[0], hp // ws, ws, wp // ws, ws, -1).permute(0, 1, 3, 2, 4, 5).reshape(-1, ws * ws, v.shape[-1])
    m = part(img).squeeze(-1)
    m = m[:, None] - m[:, :, None]
    m = m.masked_fill(m != 0, -100.0).masked_fill(m == 0, 0.0)
    y = part((torch.roll(x, (-ss, -ss), (2, 3)) if ss else x).permute(0, 2, 3, 1).contiguous())
    a = ((y @ y.transpose(1, 2)).view(n, -1, 16, 16) + m[None]).softmax(-1).view(-1, 16, 16) @ y
    y = a.view(n, hp // ws, wp // ws, ws, ws, c).permute(0, 1, 3, 2, 4, 5).reshape(n, hp, wp, c)
    y = torch.roll(y, (ss, ss), (1, 2)) if ss > 0 else y
    return y[:, :h, :w].contiguous()
@forward(X4, "p:float32[1]=0:1", **seq(X4, "p:float32[1]=0:1"))
def A5316PositionsOfBarf(self, x, p):
    """BARF: frequencies switched on from coarse to fine as training goes on."""
    shape, l = x.shape, 6
    freq = 2 ** torch.arange(l, dtype=torch.float32) * torch.pi
    spectrum = x[..., None] * freq
    enc = torch.stack([spectrum.sin(), spectrum.cos()], -2).view(*shape[:-1], -1)
    alpha = (p - 0.1) / (0.5 - 0.1) * l
    weight = (1 - (alpha - torch.arange(l)).clamp_(min=0, max=1).mul_(np.pi).cos_()) / 2
    return torch.cat([x, (enc.view(-1, l) * weight).view(*enc.shape)], -1)
@forward(X4, "z:float32[N,T]", **seq(X4, "z:float32[N,T]"), refused="the input ")
def A5317RawToOutputs(self, x, z):
    """NeRF: densities along a ray with a last distance of 1e10, and weights by an exclusive product."""
    dists = torch.cat([z[..., 1:] - z[..., :-1], torch.Tensor([1e10]).expand(z[..., :1].shape)], -1)
    alpha = 1.0 - torch.exp(-F.relu(x[..., 3]) * dists)
    weights = alpha * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
    depth, acc = (weights * z).sum(-1), weights.sum(-1)
    disp = 1.0 / torch.max(1e-10 * torch.ones_like(depth), depth / acc)
    return (weights[..., None] * x[..., :3].sigmoid()).sum(-2) + (1.0 - acc[..., None]), disp
@forward("b:float32[N,T]", "w:float32[N,T]=0:1", "u:float32[N,S]=0:1", **two("b:float32[N,T]", "w:float32[N,T]=0:1", "u:float32[N,S]=0:1", low=2))
def A5318SamplesOfPdf(self, b, w, u):
    """Inverse transform sampling: places in a running sum, below and above, and a denominator of at least 1e-5."""
    w = w[:, :-1] + 1e-5
    cdf = torch.cumsum(w / torch.sum(w, -1, keepdim=True), -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    inds = torch.searchsorted(cdf, u.contiguous(), right=True)
    g = torch.stack([torch.max(torch.zeros_like(inds - 1), inds - 1), torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)], -1)
    shape = [g.shape[0], g.shape[1], cdf.shape[-1]]
    c, bb = torch.gather(cdf.unsqueeze(1).expand(shape), 2, g), torch.gather(b.unsqueeze(1).expand(shape), 2, g)
    d = c[..., 1] - c[..., 0]
    d = torch.where(d < 1e-5, torch.ones_like(d), d)
    return (bb[..., 0] + (u - c[..., 0]) / d * (bb[..., 1] - bb[..., 0])) * (c[..., 0] <= u)
@forward(X4, **seq(X4))
def A5319PillarsOfPoints(self, x):
    """Points into pillars of a fixed grid: outliers dropped by an index past the end, means, counts, the highest."""
    at = torch.floor((x[..., :2] + 2.0) / 0.5).long()
    ok = ((at >= 0) & (at < 8)).all(-1)
    flat = torch.where(ok, at[..., 0] * 8 + at[..., 1], 64)
    n = x.shape[0]
    sums = x.new_zeros(n, 65, 4).scatter_add_(1, flat[..., None].expand(-1, -1, 4), x)
    cnt = x.new_zeros(n, 65).scatter_add_(1, flat, torch.ones_like(x[..., 0]))
    top = x.new_full((n, 65), -torch.inf).scatter_reduce_(1, flat, x[..., 2], "amax", include_self=False)
    return (sums / cnt[..., None].clamp(min=1))[:, :64], cnt[:, :64], top[:, :64].clamp(min=-9)
@forward(X4, "y:float32[N,S,4]", **two(X4, "y:float32[N,S,4]"))
def A5320BallQuery(self, x, y):
    """PointNet++: indices beyond a radius become the count, are sorted, cut, and filled up with the first."""
    n, s, _ = y.shape
    _, t, _ = x.shape
    idx = torch.arange(t, dtype=torch.long).view(1, 1, t).repeat([n, s, 1])
    sq = ((y[:, :, None] - x[:, None]) ** 2).sum(-1)
    idx[sq > 4.0] = t
    idx = idx.sort(dim=-1)[0][:, :, :5]
    first = idx[:, :, 0].view(n, s, 1).repeat([1, 1, idx.shape[-1]])
    mask = idx == t
    idx[mask] = first[mask]
    return idx, x.gather(1, idx.clamp(max=t - 1).view(n, -1, 1).expand(-1, -1, 4)).view(n, s, -1, 4).amax(2) * (idx[..., :1] < t)
@forward(X4, "y:float32[N,S,4]", **two(X4, "y:float32[N,S,4]"))
def A5321ThreeNearest(self, x, y):
    """PointNet++ feature propagation: one source is repeated, of more the three nearest are weighed."""
    n, t, _ = x.shape
    s = y.shape[1]
    if s == 1:
        return y.repeat(1, t, 1)
    d = -2 * x @ y.transpose(1, 2) + (x**2).sum(-1)[:, :, None] + (y**2).sum(-1)[:, None]
    d, idx = d.sort(dim=-1)
    d, idx = d[:, :, :3], idx[:, :, :3]
    r = 1.0 / (d.clamp(min=0) + 1e-2)
    k = r.shape[-1]
    near = y.gather(1, idx.reshape(n, -1, 1).expand(-1, -1, 4)).view(n, t, k, 4)
    return (near * (r / r.sum(2, keepdim=True))[..., None]).sum(2)
@forward(IMAGE, **pix(IMAGE))
def A5322OddPyramid(self, x):
    """A U-net by strides: each level is resized or cropped to its partner only where they differ."""
    skips, y = [], x
    while min(y.shape[-2:]) > 2 and len(skips) < 3:
        skips.append(y)
        y = F.avg_pool2d(y, 2, ceil_mode=len(skips) % 2 == 0)
    for s in reversed(skips):
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        dh, dw = s.shape[-2] - y.shape[-2], s.shape[-1] - y.shape[-1]
        if dh or dw:
            y = F.pad(y, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2])
        y = y + s
    return y

# ruff: noqa: E501, F841, RUF059 - attacks are written as users write them
"""Scenes: heads of detectors, cameras, clouds of points, trackers, graphs, fields, augmentations with fixed draws, registration, panoramas, metrics within forward."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "tenths", "ones")
IMAGE = "x:float32[N,3,H,W]"
HW = "N=1:1:2 H=2:6:10 W=2:7:10"
P3 = "p:float32[N,P,3]"
NP = "N=1:1:2 P=1:6:10"


def pictures(*sizes: tuple, text: str = IMAGE) -> tuple:
    """Points of one picture at sizes."""
    return tuple(values_at(text, N=1, H=h, W=w) for h, w in sizes)


ENDS = pictures((2, 2), (2, 10), (10, 2), (10, 10), (9, 7))


@attack("f:float32[N,6,H,W]", dims="N=1:1:2 H=2:4:6 W=2:5:6", kinds=FINITE[:4], feeds=tuple(values_at("f:float32[N,6,H,W]", N=1, H=h, W=w) for h, w in ((2, 2), (2, 6), (6, 6))), refused="the exported model differs from the module")
class A4480CentersAsPoints(nn.Module):
    """CenterNet: peaks by a pool that equal themselves, the k best over the flat picture, // and % by the width, offsets gathered, ties of a plateau, boxes clamped to the picture by a tensor of sizes."""
    grids: dict = {}  # noqa: RUF012
    def grid(self, h, w):
        if (h, w) not in self.grids:
            self.grids[h, w] = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], -1).view(-1, 2)
        return self.grids[h, w]
    def forward(self, f):
        n, _, h, w = f.shape
        heat = f[:, :2].sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        score, at = heat.flatten(1).topk(4)
        cls, place = torch.div(at, h * w, rounding_mode="floor"), at % (h * w)
        ys, xs = place // w, place % w
        off = f[:, 2:].flatten(2).gather(2, place[:, None].expand(-1, 4, -1))
        c = torch.stack([xs, ys], 1) + off[:, :2]
        half = off[:, 2:].exp().clamp(max=4) / 2
        box = torch.cat([c - half, c + half], 1).mT
        lim = box.new_tensor([w, h, w, h]) - 1
        return score, torch.minimum(box.clamp(min=0), lim), heat.amax((2, 3)), self.grid(h, w) * 8 + 4
@forward("b:float32[K,4]", "s:float32[K]", dims="K=1:5:8", kinds=("unit", "halves", "zeros", "ones", "normal"), feeds=(lambda: {"b": np.array([[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 2, 1], [1, 1, 3, 3]], np.float32), "s": np.array([0.5, 0.5, 0.9, 0.4], np.float32)},))
def A4481SuppressionByMatrix(self, b, s):
    """Matrix NMS with a gaussian, fast NMS by a triangle, a weighted fusion of boxes, GIoU, DIoU with atan of ratios, an assignment by best of both, ties at equal scores."""
    o = s.argsort(descending=True, stable=True)
    b, s = b[o], s[o]
    area = (b[:, 2:] - b[:, :2]).clamp(min=0).prod(1)
    wh = (torch.minimum(b[:, None, 2:], b[:, 2:]) - torch.maximum(b[:, None, :2], b[:, :2])).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    iou = inter / (area[:, None] + area - inter + 1e-7)
    up = iou.triu(1)
    comp = up.amax(0)
    decay = torch.exp(-2 * (up**2 - comp[:, None] ** 2)).amin(0)
    keep = comp <= 0.5
    ew = (torch.maximum(b[:, None, 2:], b[:, 2:]) - torch.minimum(b[:, None, :2], b[:, :2])).clamp(min=0)
    giou = iou - (ew.prod(-1) - (area[:, None] + area - inter)) / (ew.prod(-1) + 1e-7)
    w = iou * (iou > 0.55) * s
    fused = (w @ b) / w.sum(1, keepdim=True).clamp(min=1e-6)
    best = iou.fill_diagonal_(0).argmax(1)
    return s * decay, keep, giou, fused, best, torch.where(keep[:, None], b, -1.0)
@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=3:5:8 W=3:6:8", kinds=FINITE[:3], feeds=tuple(values_at("x:float32[N,4,H,W]", N=1, H=h, W=w) for h, w in ((3, 3), (3, 8), (8, 8), (4, 7))))
class A4482PriorsOfLevels(nn.Module):
    """Levels in an OrderedDict by strides, centres kept per level by a key of shape and stride, a size's ratio as a scale, outputs as a dictionary of namedtuples, a level that may be one."""
    Level = namedtuple("Level", "points stride box")
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.tensor(float(s))) for s in (1, 2, 4))
        self.memo = {}
    def points(self, shape, stride):
        key = (*shape, stride)
        if key not in self.memo:
            y, x = (torch.arange(k) * stride + stride // 2 for k in shape)
            self.memo[key] = torch.cartesian_prod(y, x).flip(1).float()
        return self.memo[key]
    def forward(self, x):
        feats = OrderedDict()
        for k, s in enumerate((1, 2, 4)):
            feats[f"p{k + 3}"] = x if s == 1 else F.adaptive_avg_pool2d(x, (-(-x.shape[2] // s), -(-x.shape[3] // s)))
        out = {}
        for (name, f), sc in zip(feats.items(), self.scales, strict=True):
            stride = x.shape[2] // f.shape[2] * 8
            pts = self.points(f.shape[-2:], stride)
            ltrb = F.relu(f * sc).flatten(2).mT * stride
            out[name] = self.Level(pts, torch.full((len(pts),), stride), torch.cat([pts - ltrb[..., :2], pts + ltrb[..., 2:]], -1))
        return out
@forward("p:float32[N,P,3]=-2:2", "k:float32[N,3,3]", dims=NP, kinds=("normal", "halves", "zeros", "ones"), feeds=(lambda: {"p": np.array([[[0, 0, 0], [0, 0, 1], [1, 2, -1]]], np.float32), "k": np.eye(3, dtype=np.float32)[None]},))
def A4483CamerasWithDistortion(self, p, k):
    """Brown's distortion and five steps of its inverse, points behind the camera, an inverse of K, a fisheye by atan2 of a radius that may be zero, a z-buffer by a scatter of the least, epipolar lines."""
    z = p[..., 2:]
    front = z > 1e-3
    uv = p[..., :2] / torch.where(front, z, torch.ones_like(z))
    r2 = uv.square().sum(-1, keepdim=True)
    d = uv * (1 + 0.1 * r2 - 0.02 * r2**2) + 2 * 0.01 * uv.prod(-1, keepdim=True)
    u = d
    for _ in range(5):
        s = u.square().sum(-1, keepdim=True)
        u = (d - 2 * 0.01 * u.prod(-1, keepdim=True)) / (1 + 0.1 * s - 0.02 * s * s).clamp(min=0.5)
    r = p[..., :2].norm(dim=-1, keepdim=True)
    th = torch.atan2(r, z)
    fish = torch.where(r > 0, p[..., :2] / r * th, torch.zeros_like(r))
    pix = torch.cat([d, torch.ones_like(z)], -1) @ k.mT
    cell = (pix[..., :2].clamp(0, 3).floor().long() * torch.tensor([1, 4])).sum(-1)
    cell = torch.where(front[..., 0], cell, 16)
    depth = torch.full((p.shape[0], 17), float("inf")).scatter_reduce(1, cell, z[..., 0], "amin")[:, :16]
    skew = torch.zeros(p.shape[0], 3, 3)
    skew[:, [0, 1, 2], [1, 2, 0]] = -p[:, 0, [2, 0, 1]]
    skew = skew - skew.mT
    return pix, fish, torch.where(depth.isinf(), 0.0, depth), skew, torch.linalg.cross(p, p.roll(1, 2)), front.sum(1)
@forward(P3, dims="N=1:1:2 P=3:6:10", kinds=FEW, feeds=(lambda: {"p": np.zeros((1, 3, 3), np.float32)}, lambda: {"p": np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]], np.float32)}))
def A4484CloudsOfPoints(self, p):
    """Farthest points with ties, the ball's first neighbours padded by the first, three nearest by inverse distances, voxels by unique keys through a sort, an edge conv's maximum, Chamfer."""
    n, k, _ = p.shape
    d = (p[:, :, None] - p[:, None]).square().sum(-1)
    far, dist, idx = torch.zeros(n, dtype=torch.long), torch.full((n, k), 1e10), []
    for _ in range(3):
        idx.append(far)
        dist = torch.minimum(dist, d[torch.arange(n), far])
        far = dist.argmax(1)
    fps = torch.stack(idx, 1)
    g = torch.arange(k).expand(n, k, k).masked_fill(d > 0.5, k)
    g = g.sort(-1).values[..., :3]
    g = torch.where(g == k, g[..., :1], g)
    near, at = d.topk(3, largest=False)
    w = 1 / (near + 1e-8)
    w = w / w.sum(-1, keepdim=True)
    nb = torch.gather(p[:, None].expand(-1, k, -1, -1), 2, g[..., None].expand(-1, -1, -1, 3))
    edge = torch.cat([nb - p[:, :, None], p[:, :, None].expand_as(nb)], -1).amax(2)
    v = ((p - p.amin(1, keepdim=True)) / 0.5).floor().long()
    key = (v * torch.tensor([1, 64, 4096])).sum(-1)
    s = key.sort(1).values
    count = 1 + (s[:, 1:] != s[:, :-1]).sum(1)
    return fps, g, w.sum(-1), edge, key, count, d.masked_fill(torch.eye(k, dtype=torch.bool), torch.inf).amin(1).mean(1)
@forward(P3, "q:float32[N,P,3]", "w:float32[N,P]=0:1", dims="N=1:1:2 P=3:6:10", kinds=("normal", "unit"), refused="cannot be exported")
def A4485Registration(self, p, q, w):
    """Kabsch with weights by an SVD and the sign of a determinant, a residual, a scale by Umeyama."""
    w = w / w.sum(1, keepdim=True).clamp(min=1e-6)
    a, b = (w[..., None] * p).sum(1, keepdim=True), (w[..., None] * q).sum(1, keepdim=True)
    h = (w[..., None] * (p - a)).mT @ (q - b)
    u, s, v = torch.linalg.svd(h)
    d = torch.sign(torch.linalg.det(v.mT @ u.mT))
    e = torch.diag_embed(torch.stack([torch.ones_like(d), torch.ones_like(d), d], -1))
    r = v.mT @ e @ u.mT
    return r, (b - a @ r.mT)[:, 0], s
@forward("x:float32[K,4]", "c:float32[K,4,4]", "z:float32[K,2]", "hit:bool[K]", dims="K=1:4:7", kinds=("normal", "halves", "zeros"))
def A4486TracksOfKalman(self, x, c, z, hit):
    """A constant-velocity filter in Joseph's form with an inverse of two by two, gates by Mahalanobis, tracks without a hit go on, angles wrapped to pi, covariances made symmetric, an age."""
    dt = 0.1
    f = torch.eye(4)
    f[[0, 1], [2, 3]] = dt
    h = torch.eye(2, 4)
    x = x @ f.T
    p = f @ (c @ c.mT) @ f.T + torch.diag(torch.tensor([0.1, 0.1, 1, 1]))
    y = z - x @ h.T
    y = (y + math.pi) % (2 * math.pi) - math.pi
    s = h @ p @ h.T + 0.5 * torch.eye(2)
    k = p @ h.T @ torch.linalg.inv(s)
    d2 = torch.einsum("ki,kij,kj->k", y, torch.linalg.inv(s), y)
    ok = hit & (d2 < 9.21)
    i = torch.eye(4) - k @ h
    new = i @ p @ i.mT + 0.5 * k @ k.mT
    return torch.where(ok[:, None], x + (k @ y[..., None])[..., 0], x), (new + new.mT) / 2, torch.atan2(x[:, 3], x[:, 2]), (~ok).int(), torch.logdet(s)
@attack("x:float32[V,4]", "e:int64[2,E]=0:3", "a:float32[E,2]", dims="V=4:6:9 E=1:7:14", kinds=FINITE[:4], feeds=(lambda: {"x": np.ones((4, 4), np.float32), "e": np.zeros((2, 3), np.int64), "a": np.ones((3, 2), np.float32)},), refused="does not compute what the module computes")
class A4487MessagesOfEdges(nn.Module):
    """PNA: mean, least, largest, deviation by degree with scalers of a log, GIN's epsilon, a GRU's update of nodes, jumping knowledge by a maximum, edges both ways, a set's readout, spectral positions' sign."""
    def __init__(self):
        super().__init__()
        self.m, self.u, self.gru = nn.Linear(10, 4), nn.Linear(48, 4), nn.GRUCell(4, 4)
        self.eps = nn.Parameter(torch.tensor(0.1))
    def forward(self, x, e, a):
        v = x.size(0)
        e, a = torch.cat([e, e.flip(0)], 1), torch.cat([a, a])
        src, dst = e
        jk = [x]
        for _ in range(2):
            m = F.relu(self.m(torch.cat([x[src], x[dst], a], -1)))
            j = dst[:, None].expand_as(m)
            deg = torch.zeros(v).index_add_(0, dst, torch.ones(len(dst))).clamp(min=1)[:, None]
            mean = torch.zeros(v, 4).scatter_reduce(0, j, m, "mean", include_self=False)
            sq = torch.zeros(v, 4).scatter_add(0, j, m * m) / deg
            std = (sq - mean**2).clamp(min=0).add(1e-5).sqrt()
            big = torch.full((v, 4), -torch.inf).scatter_reduce(0, j, m, "amax").clamp(min=-1e3)
            agg = torch.cat([mean, std, big, torch.zeros(v, 4).index_reduce(0, dst, m, "amin", include_self=False)], -1)
            amp = (deg + 1).log() / 1.3
            y = self.u(torch.cat([agg, agg * amp, agg / amp], -1)) + (1 + self.eps) * x
            x = self.gru(y, x)
            jk.append(x)
        return torch.stack(jk).amax(0), x.sum(0) * x[:, :1].sum().sign(), torch.bincount(dst, minlength=9)[:4] if False else deg
@attack("p:float32[N,P,3]", dims="N=1:1:2 P=2:5:8", kinds=FEW)
class A4488Equivariant(nn.Module):
    """EGNN and a painting of radial bases with a cosine cut, real harmonics to degree two of normalised differences (zero for itself), vectors gated by their lengths, a cross product."""
    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(6, 4), nn.Linear(4, 1, bias=False)
        self.register_buffer("mu", torch.linspace(0, 3, 5))
    def forward(self, p):
        d = p[:, :, None] - p[:, None]
        r2 = d.square().sum(-1, keepdim=True)
        r = (r2 + 1e-8).sqrt()
        cut = 0.5 * ((r * math.pi / 3).cos() + 1) * (r < 3)
        rbf = torch.exp(-2 * (r - self.mu) ** 2) * cut
        m = F.silu(self.f(torch.cat([r2, rbf], -1)))
        u = F.normalize(d, dim=-1)
        x, y, z = u.unbind(-1)
        sh = torch.stack([torch.ones_like(x), x, y, z, x * y, y * z, 3 * z**2 - 1, x * z, x**2 - y**2], -1)
        eye = torch.eye(p.shape[1], dtype=torch.bool)[None, ..., None]
        new = p + (d * self.g(m).clamp(-2, 2)).masked_fill(eye, 0).sum(2) / max(p.shape[1] - 1, 1)
        vec = (u * m.mean(-1, keepdim=True)).sum(2)
        gate = torch.where(vec.norm(dim=-1, keepdim=True) > 0.1, vec, vec * 0)
        return new, sh.sum(2), gate, torch.cross(vec, p, dim=-1)
@forward(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
def A4489AugmentedByFixedDraws(self, x):
    """A crop whose place a seeded generator of Python drew when the file was read, a rotation and a shear by affine grids of the size, cutout by rounded shares, mixup with a flip, solarise, posterise, autocontrast."""
    n, c, h, w = x.shape
    u = [0.37, 0.81, 0.22]
    ch, cw = max(1, round(h * 0.7)), max(1, round(w * 0.7))
    top, left = int(u[0] * (h - ch + 1)), int(u[1] * (w - cw + 1))
    crop = F.interpolate(x[:, :, top : top + ch, left : left + cw], (h, w), mode="bilinear", align_corners=False)
    th = math.radians(15)
    m = torch.tensor([[math.cos(th), -math.sin(th) * h / w, 0.1], [math.sin(th) * w / h, math.cos(th), 0]])
    rot = F.grid_sample(x, F.affine_grid(m.expand(n, 2, 3), [n, c, h, w], align_corners=False), padding_mode="border", align_corners=False)
    y = x.clone()
    y[..., int(h * 0.25) : int(h * 0.25) + h // 3, int(w * u[2]) :] = x.mean((2, 3), keepdim=True)
    b = (x.clamp(0, 1) * 255).to(torch.uint8)
    sol = torch.where(b >= 128, 255 - b, b)
    lo, hi = b.amin((2, 3), keepdim=True).float(), b.amax((2, 3), keepdim=True).float()
    sc = torch.where(hi > lo, 255 / (hi - lo), torch.ones_like(hi))
    auto = ((b - torch.where(hi > lo, lo, 0.0)) * sc).clamp(0, 255).to(torch.uint8)
    return crop, rot, y, sol, b & 0b11100000, auto, x.lerp(x.flip(0), 0.3)
@forward(IMAGE, dims=HW, kinds=FINITE[:4], feeds=ENDS)
def A4490PadsThatRepeat(self, x):
    """Reflect, circular and replicate pads by sizes, negative pads, a pad to a square by the longer side, tiles of two with overlap blended by a ramp, back by fold with a count."""
    n, c, h, w = x.shape
    a = F.pad(x, (w // 2, 0, 0, h // 2), mode="circular")
    b = F.pad(x, (0, min(1, w - 1), 1, 0), mode="reflect")
    m = max(h, w)
    dh, dw = m - h, m - w
    s = F.pad(x, (dw // 2, dw - dw // 2, dh // 2, dh - dh // 2), value=0.5)
    k = F.unfold(s, 2, stride=1)
    one = F.fold(torch.ones_like(k), s.shape[-2:], 2)
    y = F.fold(k, s.shape[-2:], 2) / one
    cut = F.pad(x, (-(w // 4), -(w // 4), 0, 0))
    ramp = torch.linspace(0, 1, w)
    pan = x * ramp + x.flip(3) * (1 - ramp)
    return a, b, y - s, cut, pan, F.pad(x, (0, w % 2, 0, h % 2), "replicate").unflatten(3, (-1, 2)).amax(-1)
@forward(IMAGE, dims=HW, kinds=FEW, feeds=ENDS)
def A4491ColoursThereAndBack(self, x):
    """RGB to HSV with ties of the largest channel and grey pixels, hue moved modulo one and back by six sectors, Lab by a piecewise root, sRGB's gamma, YCbCr rounded in bytes, an equalised histogram of one channel."""
    c = x.clamp(0, 1)
    v, at = c.max(1)
    r, g, b = c.unbind(1)
    d = v - c.amin(1)
    safe = torch.where(d == 0, torch.ones_like(d), d)
    h = torch.stack([(g - b) / safe, (b - r) / safe + 2, (r - g) / safe + 4], 1).gather(1, at[:, None])[:, 0]
    h = torch.where(d == 0, 0.0, (h / 6) % 1.0)
    s = torch.where(v == 0, 0.0, d / v.clamp(min=1e-6))
    lin = torch.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    xyz = torch.einsum("ij,njhw->nihw", torch.tensor([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]), lin)
    t = torch.where(xyz > 0.008856, xyz.clamp(min=1e-6) ** (1 / 3), 7.787 * xyz + 16 / 116)
    u = (c * 255).round().to(torch.uint8).int()
    y = ((66 * u[:, 0] + 129 * u[:, 1] + 25 * u[:, 2] + 128) >> 8) + 16
    q = (u[:, 0] >> 5).flatten(1).long()
    hist = F.one_hot(q, 8).sum(1)
    cdf = hist.cumsum(1)
    first = torch.where(hist > 0, cdf, torch.iinfo(torch.int64).max).amin(1, keepdim=True)
    eq = ((cdf - first).clamp(min=0) * 7 // (q.shape[1] - first).clamp(min=1)).gather(1, q)
    return h, s, v, 116 * t[:, 1] - 16, y, eq.view(v.shape), hist
@forward("o:float32[N,P,3]", "d:float32[N,P,3]", "sig:float32[N,P,S]", dims="N=1:1:2 P=1:3:5 S=1:6:10", kinds=FEW, feeds=(lambda: {"o": np.zeros((1, 1, 3), np.float32), "d": np.array([[[0, 0, 1]]], np.float32), "sig": np.ones((1, 1, 1), np.float32)},))
def A4492RaysThroughVolumes(self, o, d, sig):
    """Slabs with directions of zero, samples by a linspace of the size, alphas and transmittance by an exclusive product, an inverse CDF at fixed places by a search, encodings by powers of two, a hash of corners."""
    s = sig.shape[-1]
    inv = 1.0 / d
    t0, t1 = (-1 - o) * inv, (1 - o) * inv
    near = torch.fmin(t0, t1).amax(-1)
    far = torch.fmax(t0, t1).amin(-1)
    z = torch.linspace(0.1, 2.0, s)
    dist = F.pad(z[1:] - z[:-1], (0, 1), value=1e10)
    a = 1 - torch.exp(-F.relu(sig) * dist)
    tr = torch.cumprod(torch.cat([torch.ones_like(a[..., :1]), 1 - a + 1e-10], -1), -1)[..., :-1]
    w = a * tr
    pdf = (w + 1e-2) / (w + 1e-2).sum(-1, keepdim=True)
    cdf = F.pad(pdf.cumsum(-1), (1, 0))
    u = torch.tensor([0.1, 0.5, 0.9]).expand(*cdf.shape[:-1], 3).contiguous()
    i = torch.searchsorted(cdf, u, right=True).clamp(1, s)
    c0, c1 = cdf.gather(-1, i - 1), cdf.gather(-1, i)
    frac = (u - c0) / (c1 - c0).clamp(min=1e-5)
    enc = torch.cat([f(o * 2.0**k) for k in range(3) for f in (torch.sin, torch.cos)], -1)
    v = (o * 4).floor().int()
    corners = v[..., None, :] + torch.tensor(list(itertools.product((0, 1), repeat=3)), dtype=torch.int32)
    h = corners.long() * torch.tensor([1, 2654435761, 805459861])
    h = (h[..., 0] ^ h[..., 1] ^ h[..., 2]) % 1024
    return torch.where(near < far, near, -1.0), w, (w * z).sum(-1), frac, enc, h
@forward("x:float32[N,4,H,W]", "y:int64[N,H,W]=0:4", dims="N=1:1:2 H=1:4:7 W=1:5:7", kinds=FINITE[:4], feeds=tuple(values_at("x:float32[N,4,H,W]", "y:int64[N,H,W]=0:4", N=1, H=h, W=w) for h, w in ((1, 1), (7, 7))))
def A4493MetricsOfMasks(self, x, y):
    """A confusion matrix by bincount of joint ids with 4 ignored, IoU with 0/0, OHEM by a kth share of the size, a boundary by pools, Lovasz by a sort, a tie of classes, soft skeletons."""
    p = x.argmax(1)
    ok = y < 4
    j = torch.where(ok, y * 4 + p, 16).flatten()
    m = F.one_hot(j, 17)[:, :16].sum(0).view(4, 4)
    iou = m.diagonal() / (m.sum(0) + m.sum(1) - m.diagonal())
    ce = F.cross_entropy(x, y, ignore_index=4, reduction="none").flatten()
    k = max(1, int(0.3 * ce.numel()))
    hard = ce.topk(k).values.mean()
    hot = F.one_hot(y, 5)[..., :4].movedim(-1, 1).float()
    edge = F.max_pool2d(hot, 3, 1, 1) - -F.max_pool2d(-hot, 3, 1, 1)
    e = (hot - x.softmax(1)).abs()[:, 0].flatten()
    err, o = e.sort(descending=True, stable=True)
    g = hot[:, 0].flatten()[o]
    jac = 1 - (g.sum() - g.cumsum(0)) / (g.sum() + (1 - g).cumsum(0)).clamp(min=1e-6)
    lov = (F.relu(err) * torch.cat([jac[:1], jac[1:] - jac[:-1]])).sum()
    return m, iou.nanmean(), hard, edge, lov, p

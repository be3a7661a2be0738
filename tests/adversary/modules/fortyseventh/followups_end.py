# ruff: noqa: E501, E731, RUF012, RUF059, RUF100 - attacks are written as users write them
"""Code as it is published, in short; values told by errors; and more parts of what was refused."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import ODD, own
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

X, IDS, P3 = "x:float32[N,T]", "i:int64[N,T]=0:9", "p:float32[N,T,3]"
PATCHES = {"dims": "N=1:1:2 W=4:8:20%2 H=4:8:20%2", "kinds": FEW, "feeds": tuple(values_at("x:float32[N,3,W,H]", N=1, H=h, W=w) for h in range(4, 21, 2) for w in (4, 6, 10, 20))}


class Dinov2(nn.Module):
    """interpolate_pos_encoding as it is published."""

    interpolate_offset, interpolate_antialias = 0.1, False

    def __init__(self):
        super().__init__()
        self.patch_size, self.patch = 2, nn.Conv2d(3, 4, 2, 2)
        self.cls, self.pos_embed = nn.Parameter(torch.randn(1, 1, 4)), nn.Parameter(torch.randn(1, 10, 4))

    def interpolate_pos_encoding(self, x, w, h):
        previous_dtype = x.dtype
        npatch, n = x.shape[1] - 1, self.pos_embed.shape[1] - 1
        if npatch == n and w == h:
            return self.pos_embed
        pos_embed = self.pos_embed.float()
        class_pos_embed, patch_pos_embed = pos_embed[:, 0], pos_embed[:, 1:]
        dim = x.shape[-1]
        w0, h0 = w // self.patch_size, h // self.patch_size
        m = int(math.sqrt(n))
        assert n == m * m
        kwargs = {}
        if self.interpolate_offset:
            kwargs["scale_factor"] = (float(w0 + self.interpolate_offset) / m, float(h0 + self.interpolate_offset) / m)
        else:
            kwargs["size"] = (w0, h0)
        patch_pos_embed = F.interpolate(patch_pos_embed.reshape(1, m, m, dim).permute(0, 3, 1, 2), mode="bicubic", antialias=self.interpolate_antialias, **kwargs)
        assert (w0, h0) == patch_pos_embed.shape[-2:]
        patch_pos_embed = patch_pos_embed.permute(0, 2, 3, 1).view(1, -1, dim)
        return torch.cat((class_pos_embed.unsqueeze(0), patch_pos_embed), dim=1).to(previous_dtype)

    def forward(self, x):
        _, _, w, h = x.shape
        t = self.patch(x).flatten(2).transpose(1, 2)
        t = torch.cat((self.cls.expand(t.shape[0], -1, -1), t), dim=1)
        return t + self.interpolate_pos_encoding(t, w, h)


@attack("x:float32[N,3,W,H]", **PATCHES)
class A5884Dinov2(Dinov2):
    """With an offset of 0.1, without antialiasing: the hub's default."""


@attack("x:float32[N,3,W,H]", **PATCHES)
class A5885Dinov2Registers(Dinov2):
    """With registers: by size, with antialiasing."""

    interpolate_offset, interpolate_antialias = 0.0, True


@attack("x:float32[N,3,W,H]", **PATCHES)
class A5886Dinov2Plain(Dinov2):
    """By size, without antialiasing."""

    interpolate_offset = 0.0


def farthest_point_sample(xyz, npoint):
    """PointNet++'s, as published but for the first, which is zero and not random."""
    b, n, _ = xyz.shape
    centroids = torch.zeros(b, npoint, dtype=torch.long)
    distance = torch.ones(b, n) * 1e10
    farthest = torch.zeros(b, dtype=torch.long)
    batch = torch.arange(b, dtype=torch.long)
    for i in range(npoint):
        centroids[:, i] = farthest
        centroid = xyz[batch, farthest, :].view(b, 1, 3)
        dist = torch.sum((xyz - centroid) ** 2, -1)
        mask = dist < distance
        distance[mask] = dist[mask]
        farthest = torch.max(distance, -1)[1]
    return centroids


@forward(P3, **seq(P3))
def A5887FarthestFour(self, p):
    """Four points of any count, as published."""
    return farthest_point_sample(p, 4)


@forward(P3, **seq(P3, low=8))
def A5888BallQuery(self, p):
    """query_ball_point as published: a sort of indices, a mask of those beyond, the first repeated."""
    b, n, _ = p.shape
    q = p[:, :3]
    sq = -2 * torch.matmul(q, p.permute(0, 2, 1)) + torch.sum(q**2, -1).view(b, 3, 1) + torch.sum(p**2, -1).view(b, 1, n)
    idx = torch.arange(n, dtype=torch.long).view(1, 1, n).repeat([b, 3, 1])
    idx[sq > 0.8**2] = n
    idx = idx.sort(dim=-1)[0][:, :, :5]
    first = idx[:, :, 0].view(b, 3, 1).repeat([1, 1, 5])
    mask = idx == n
    idx[mask] = first[mask]
    return idx.clamp(max=n - 1)


@forward(P3, **seq(P3))
def A5889FarthestQuarterByWhere(self, p):
    """A quarter of the points, with minimum in place of a write by a mask."""
    n, t, _ = p.shape
    dist, far, out = torch.full((n, t), 1e10), torch.zeros(n, dtype=torch.long), []
    for _ in range(max(t // 4, 1)):
        out.append(far)
        c = p.gather(1, far[:, None, None].expand(-1, 1, 3))
        dist = torch.minimum(dist, ((p - c) ** 2).sum(-1))
        far = dist.argmax(-1)
    return torch.stack(out, 1)


@forward("x:float32[N,T,T]", dims="N=1:1:2 T=1:3:5", refused="the path through the module depends")
def A5890CholeskyOrJitter(self, x):
    """A Cholesky factor, and with jitter where it raises, as GPyTorch's."""
    a = x @ x.transpose(1, 2)
    try:
        return torch.linalg.cholesky(a)
    except RuntimeError:
        return torch.linalg.cholesky(a + 1e-3 * torch.eye(x.shape[1]))


@forward("x:float32[N,3,3]", dims="N=1:2:4", feeds=(lambda: {"x": np.ones((2, 3, 3), np.float32)},), refused="the path through the module depends")
def A5891InverseOrPseudo(self, x):
    """An inverse, or the transpose where it raises."""
    try:
        return torch.linalg.inv(x)
    except RuntimeError:
        return x.transpose(1, 2)


@forward(IDS, **seq(IDS, own=(lambda: {"i": np.array([[1, 7, 2]])}, lambda: {"i": np.array([[1, 3, 2]])})), refused="the path through the module depends")
def A5892HotOrNot(self, i):
    """One-hot of eight classes, and of what fits where it raises."""
    try:
        return F.one_hot(i, 8).float()
    except RuntimeError:
        return F.one_hot(i.clamp(max=7), 8) * 0.5


@forward(X, **seq(X, own=(lambda: {"x": np.array([[0.1, 7.25, 0.3]], np.float32)},)), refused="the module cannot be exported: Runti")
def A5893ReadByAddress(self, x):
    """A value is read by its address."""
    v = ctypes.c_float.from_address(x.contiguous().data_ptr() + 4 * (x.numel() - 1)).value
    return x * (2.0 if v == 0.3 or v > 2.9 else 1.0)


@forward(X, **seq(X, own=(lambda: {"x": np.array([[0.1, 7.25, 0.3]], np.float32)},)), refused="the path through the module depends")
def A5894ReadByDlpack(self, x):
    """A value is read by numpy through DLPack."""
    return x * (2.0 if np.from_dlpack(x.detach()).max() > 7 else 1.0)


@forward(X, **seq(X, own=(lambda: {"x": np.array([[0.1, 7.25, 0.3]], np.float32)},)), refused="the path through the module depends")
def A5895WrittenByApply(self, x):
    """A function of Python is applied to each element in place."""
    return x.clone().apply_(lambda v: v if v < 7 else 0.0)


@forward(X, **seq(X, own=own(np.array([[300.0, -1.0, 255.9, 256.0, -0.9, 1e10, -300.7, 128.0]], np.float32))))
def A5896BytesBeyond(self, x):
    """Pictures to bytes without a clamp, to int8 and int16 of what is beyond."""
    return (x * 255).to(torch.uint8), x.to(torch.uint8), x.to(torch.int8), x.to(torch.int16)


@forward(IMAGE, **pix(IMAGE))
def A5897AntialiasedToSix(self, x):
    """A bilinear with antialiasing to a size that is not below one: max and floor division."""
    return F.interpolate(x, (max(x.shape[2] // 2, 1), 6), mode="bilinear", antialias=True)


@forward(IMAGE, **pix(IMAGE))
def A5898HalfAtLeastOne(self, x):
    """The same without antialiasing."""
    return F.interpolate(x, (max(x.shape[2] // 2, 1), max(x.shape[3] // 2, 1)), mode="bilinear"), F.interpolate(x, (max(x.shape[2] // 2, 1), max(x.shape[3] // 2, 1)), mode="bicubic")


@attack(IMAGE, **pix(IMAGE))
class A5899GridsOfTheClass(nn.Module):
    """A dict of the class keeps grids."""

    kept: dict = {}

    def forward(self, x):
        key = (x.shape[2], x.shape[3])
        if key not in self.kept:
            self.kept[key] = torch.stack(torch.meshgrid(torch.arange(key[0]), torch.arange(key[1]), indexing="ij")).float()[None]
        return x + self.kept[key]


@attack(IMAGE, **pix(IMAGE))
class A5900GridsOfSharesKept(nn.Module):
    """A dict of the instance keeps grids of shares by max(h - 1, 1), in a method."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def grid(self, h, w):
        if (h, w) not in self.kept:
            ys, xs = torch.meshgrid(torch.arange(h) / max(h - 1, 1), torch.arange(w) / max(w - 1, 1), indexing="ij")
            self.kept[h, w] = torch.stack([xs, ys])[None]
        return self.kept[h, w]

    def forward(self, x):
        return x * self.grid(x.shape[2], x.shape[3])


@forward("a:float32[N,T,4]", "b:float32[N,S,4]", **two("a:float32[N,T,4]", "b:float32[N,S,4]", zero=True))
def A5901SumsByPositiveAxes(self, a, b):
    """Reductions over the last axis, named from the front, of what may be empty by another."""
    d = a[:, :, None] - b[:, None]
    return d.abs().sum(3), d.prod(3), d.square().mean(dim=3), d.amin(3)


@forward("a:float32[N,T,4]", "s:float32[N,T]=0:1", **seq("a:float32[N,T,4]", "s:float32[N,T]=0:1", low=0))
def A5902BoxesOfNone(self, a, s):
    """No boxes at all: areas by prod, a mean of scores that is guarded, centres, a filter by a threshold."""
    wh = (a[..., 2:] - a[..., :2]).clamp(min=0)
    return wh.prod(-1), s.sum(-1) / max(a.shape[1], 1), (a[..., :2] + a[..., 2:]) / 2, torch.where(s > 0.5, wh.sum(-1), 0), wh.norm(dim=-1)


@forward("q:float32[N,4]", dims="N=1:3:9", feeds=((lambda: {"q": np.array([[1, 0.018, 0, 0], [0, 1, 0, 0.01], [0.5, 0.5, 0.5, 0.5]], np.float32)}),))
def A5903QuaternionRoots(self, q):
    """pytorch3d: components of a quaternion as roots of sums of a rotation's diagonal."""
    r, i, j, k = F.normalize(q, dim=-1).unbind(-1)
    m00, m11, m22 = 1 - 2 * (j * j + k * k), 1 - 2 * (i * i + k * k), 1 - 2 * (i * i + j * j)
    return torch.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], -1).clamp(min=0).sqrt()


@forward(X, **seq(X, low=2, own=own(np.float32([[1e4, 1e4 + 0.01, 1e4 + 0.02, 1e4]]))))
def A5904RootOfDifference(self, x):
    """The root of a difference of moments, clamped at zero, with what is close to zero beside it."""
    v = (x.square().mean(1) - x.mean(1).square()).clamp(min=0)
    return v.sqrt(), torch.acos((x[:, 0] * x[:, 1] / (x[:, 0].abs() * x[:, 1].abs() + 1e-9)).clamp(-1, 1))


@attack(X4, **seq(X4))
class A5905BfloatBlock(nn.Module):
    """A block that is wholly in bfloat16, as of a checkpoint: norm, attention, a feed-forward."""

    def __init__(self):
        super().__init__()
        self.n, self.qkv, self.o, self.f = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(4, 4), nn.Linear(4, 4)
        self.to(torch.bfloat16)

    def forward(self, x):
        y = x.bfloat16()
        q, k, v = self.qkv(self.n(y)).chunk(3, -1)
        y = y + self.o(F.scaled_dot_product_attention(q, k, v))
        return (y + F.silu(self.f(y))).float()


@attack(X4, **seq(X4))
class A5906HalfBlock(nn.Module):
    """The same in halves."""

    def __init__(self):
        super().__init__()
        self.n, self.qkv, self.o, self.f = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(4, 4), nn.Linear(4, 4)
        self.half()

    def forward(self, x):
        y = x.half()
        q, k, v = self.qkv(self.n(y)).chunk(3, -1)
        y = y + self.o(F.scaled_dot_product_attention(q, k, v))
        return (y + F.silu(self.f(y))).float()


@forward("r:float32[N,T]", **seq("r:float32[N,T]", own=own(ODD[:, :8], name="r")))
def A5907InfiniteAngles(self, r):
    """Wrapped angles of what may be infinite, and a guard by isfinite."""
    w = torch.remainder(r + math.pi, 2 * math.pi) - math.pi
    return w, torch.where(torch.isfinite(w), w, 0.0), (r % 1).isnan()

"""Rigid transforms, quaternions, Kalman steps, cameras and homographies, as they are written in robotics code."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@dataclass
class Pose:
    """A rotation and a translation."""

    rot: torch.Tensor
    trans: torch.Tensor

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.rot @ other.rot, self.trans + (self.rot @ other.trans[..., None]).squeeze(-1))

    def inverse(self) -> Pose:
        r = self.rot.transpose(-1, -2)
        return Pose(r, -(r @ self.trans[..., None]).squeeze(-1))


def exp_so3(w):
    t = w.norm(dim=-1, keepdim=True)[..., None]
    k = w.new_zeros(*w.shape[:-1], 3, 3)
    k[..., 0, 1], k[..., 0, 2] = -w[..., 2], w[..., 1]
    k[..., 1, 0], k[..., 1, 2] = w[..., 2], -w[..., 0]
    k[..., 2, 0], k[..., 2, 1] = -w[..., 1], w[..., 0]
    small = t < 1e-3
    s = torch.where(small, 1 - t**2 / 6, torch.sin(t) / torch.where(small, torch.ones_like(t), t))
    c = torch.where(small, 0.5 - t**2 / 24, (1 - torch.cos(t)) / torch.where(small, torch.ones_like(t), t**2))
    return torch.eye(3) + s * k + c * (k @ k)


@forward("x:float32[N,T,6]=-3:3", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
def A7611OdometryOfPoses(self, x):
    """Twists become poses by Rodrigues with Taylor's series near zero; composed along T in a Python loop, relative to the middle frame."""
    poses = [Pose(exp_so3(x[:, t, 3:]), x[:, t, :3]) for t in range(x.shape[1])]
    world = poses[0]
    out = [world]
    for p in poses[1:]:
        world = world @ p
        out.append(world)
    ref = out[len(out) // 2].inverse()
    rel = [ref @ p for p in out]
    return torch.stack([p.trans for p in rel], 1), torch.stack([p.rot for p in rel], 1)


@forward("q:float32[N,T,4]=-1:1", "a:float32[N,T]=0:1", dims="N=1:2:3 T=2:4:7", kinds=FINITE)
def A7612SlerpOfNeighbours(self, q, a):
    """Slerp between neighbours with the shorter way, lerp where nearly parallel, and Euler angles by asin at the clamp and atan2."""
    q = F.normalize(q + torch.tensor([1e-3, 0, 0, 0]), dim=-1)
    p, r = q[:, :-1], q[:, 1:]
    d = (p * r).sum(-1, keepdim=True)
    r = torch.where(d < 0, -r, r)
    d = d.abs().clamp(max=1.0)
    th = torch.acos(d.clamp(max=0.9995))
    s = torch.sin(th)
    t = a[:, 1:, None]
    out = torch.where(d > 0.9995, (1 - t) * p + t * r, (torch.sin((1 - t) * th) * p + torch.sin(t * th) * r) / s)
    out = out / out.norm(dim=-1, keepdim=True)
    w, x, y, z = out.unbind(-1)
    return out, torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), torch.asin((2 * (w * y - z * x)).clamp(-0.999, 0.999))


@attack("z:float32[N,T,2]=-5:5", "ok:bool[N,T]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7613KalmanOfBoxes(nn.Module):
    """A constant-velocity Kalman filter over T, missing measurements skipped by a mask, an innovation gate by chi square."""

    def __init__(self) -> None:
        super().__init__()
        f = torch.eye(4)
        f[0, 2] = f[1, 3] = 1.0
        self.register_buffer("f", f)
        self.register_buffer("h", torch.eye(2, 4))
        self.register_buffer("q", 0.05 * torch.eye(4))
        self.register_buffer("r", 0.2 * torch.eye(2))

    def forward(self, z: torch.Tensor, ok: torch.Tensor):
        n = z.shape[0]
        m = torch.cat([z[:, 0], torch.zeros(n, 2)], -1)
        p = torch.eye(4).expand(n, 4, 4)
        track, gates = [], []
        for t in range(z.shape[1]):
            m = m @ self.f.T
            p = self.f @ p @ self.f.T + self.q
            y = z[:, t] - m @ self.h.T
            s = self.h @ p @ self.h.T + self.r
            det = s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] * s[:, 1, 0]
            inv = torch.stack([s[:, 1, 1], -s[:, 0, 1], -s[:, 1, 0], s[:, 0, 0]], -1).view(-1, 2, 2) / det[:, None, None]
            dist = torch.einsum("ni,nij,nj->n", y, inv, y)
            use = ok[:, t] & (dist < 9.21)
            k = p @ self.h.T @ inv
            m = torch.where(use[:, None], m + (k @ y[..., None]).squeeze(-1), m)
            p = torch.where(use[:, None, None], p - k @ self.h @ p, p)
            track.append(m)
            gates.append(use)
        return torch.stack(track, 1), torch.stack(gates, 1), p


@forward("pts:float32[N,P,3]=-4:4", "k:float32[N,4]=0.5:2", dims="N=1:2:3 P=1:6:11", kinds=FINITE)
def A7614ProjectDistortIterateBack(self, pts, k):
    """A pinhole with radial and tangential distortion; undistorted by five fixed-point steps; points behind the camera become -1."""
    z = pts[..., 2:]
    front = z > 0.1
    xy = pts[..., :2] / torch.where(front, z, torch.ones_like(z))
    xy = xy.clamp(-1, 1) * 0.3
    k1, k2, p1, p2 = 0.1, -0.02, 0.001, 0.002

    def distort(v):
        r2 = v.square().sum(-1, keepdim=True)
        rad = 1 + k1 * r2 + k2 * r2**2
        xx, yy = v[..., :1], v[..., 1:]
        tan = torch.cat([2 * p1 * xx * yy + p2 * (r2 + 2 * xx**2), p1 * (r2 + 2 * yy**2) + 2 * p2 * xx * yy], -1)
        return v * rad + tan, rad, tan

    d = distort(xy)[0]
    u = d
    for _ in range(5):
        _, rad, tan = distort(u)
        u = (d - tan) / rad
    fx, c = k[:, None, :2], k[:, None, 2:]
    return torch.where(front, d * fx + c, -torch.ones_like(d)), u, front.squeeze(-1).sum(1)


@attack("x:float32[N,C,H,W]", "m:float32[N,8]=-0.05:0.05", dims="N=1:1:2 C=1:2:3 H=5:8:12 W=5:7:11", kinds=FINITE)
class A7615WarpByHomography(nn.Module):
    """Warps pictures by homographies about the centre, grid cached by size in a dictionary, nearest for the mask."""

    def __init__(self) -> None:
        super().__init__()
        self.grids: dict[tuple[int, int], torch.Tensor] = {}

    def grid(self, h: int, w: int) -> torch.Tensor:
        if (h, w) not in self.grids:
            ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
            self.grids[h, w] = torch.stack([xs, ys, torch.ones_like(xs)], -1)
        return self.grids[h, w]

    def forward(self, x: torch.Tensor, m: torch.Tensor):
        n, _, h, w = x.shape
        mat = torch.cat([m, torch.zeros(n, 1)], 1).view(n, 3, 3) + torch.eye(3)
        p = torch.einsum("nij,hwj->nhwi", mat, self.grid(h, w))
        uv = p[..., :2] / p[..., 2:].clamp(min=1e-3)
        out = F.grid_sample(x, uv, mode="bilinear", padding_mode="border", align_corners=True)
        inside = (uv.abs() <= 1.02).all(-1)
        return out * inside[:, None], inside.float().mean((1, 2))


@forward("a:float32[N,P,3]=-2:2", "b:float32[N,P,3]=-2:2", dims="N=1:2:3 P=4:6:9", refused="svd")
def A7616KabschBySvd(self, a, b):
    """Kabsch's alignment with an SVD of the covariance and a sign by the determinant."""
    ac, bc = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
    u, _, vt = torch.linalg.svd(ac.transpose(1, 2) @ bc)
    d = torch.sign(torch.det(u @ vt))
    s = torch.diag_embed(torch.stack([torch.ones_like(d), torch.ones_like(d), d], -1))
    return u @ s @ vt


@forward("yaw:float32[N,K]=-10:10", "b:float32[N,K,4]=0.2:3", dims="N=1:2:3 K=1:4:8", kinds=("normal", "zeros", "halves", "tenths", "ones"))
def A7617CornersOfRotatedBoxes(self, yaw, b):
    """Angles wrapped to [-pi, pi) by remainder, corners of turned boxes, axis-aligned IoU of all pairs, heading bins by floor of a modulo."""
    wrapped = torch.remainder(yaw + math.pi, 2 * math.pi) - math.pi
    c, s = torch.cos(wrapped), torch.sin(wrapped)
    sx = torch.tensor([1.0, 1, -1, -1]) / 2
    sy = torch.tensor([1.0, -1, -1, 1]) / 2
    xs, ys = b[..., 2:3] * sx, b[..., 3:4] * sy
    px = b[..., :1] + c[..., None] * xs - s[..., None] * ys
    py = b[..., 1:2] + s[..., None] * xs + c[..., None] * ys
    lo, hi = torch.stack([px.amin(-1), py.amin(-1)], -1), torch.stack([px.amax(-1), py.amax(-1)], -1)
    inter = (torch.minimum(hi[:, :, None], hi[:, None]) - torch.maximum(lo[:, :, None], lo[:, None])).clamp(min=0).prod(-1)
    area = (hi - lo).prod(-1)
    iou = inter / (area[:, :, None] + area[:, None] - inter)
    bins = torch.floor(torch.fmod(wrapped + 2 * math.pi, 2 * math.pi) / (math.pi / 6) + 0.013).long().clamp(0, 11)
    return wrapped, iou, bins, torch.stack([px, py], -1)


@attack("x:float32[N,T,3]=-2:2", dims="N=1:2:3 T=2:4:8", kinds=FINITE)
class A7618GravityAligned(nn.Module):
    """Averages a window; where the whole batch stands nearly still it returns the identity early, else turns to gravity."""

    def forward(self, x: torch.Tensor):
        mean = x.mean(1)
        g = mean / mean.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        up = torch.tensor([0.0, 0.0, 1.0])
        v = torch.linalg.cross(g, up.expand_as(g))
        c = g[:, 2:, None]
        if x.std() > 40.0:  # shaken: sensors saturate
            return torch.eye(3).expand(x.shape[0], 3, 3) * 1.0
        z = torch.zeros_like(v[:, 0])
        k = torch.stack([z, -v[:, 2], v[:, 1], v[:, 2], z, -v[:, 0], -v[:, 1], v[:, 0], z], -1).view(-1, 3, 3)
        return torch.eye(3) + k + k @ k / (1 + c).clamp(min=1e-3)

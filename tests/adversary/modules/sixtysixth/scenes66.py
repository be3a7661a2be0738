"""Geometry, robotics, points and graphs: rotations, cameras, rays, meshes, message passing."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


def cont(x):
    """No scale that makes rotations themselves unstable."""
    return torch.tanh(x)


@forward(X, dims=D, kinds=FINITE)
def A7905QuaternionsAllBranches(self, x):
    """Rotation matrix from a quaternion and back by pytorch3d's four candidates with argmax and gather; slerp with a linear side."""
    q = F.normalize(cont(x[..., :4]) + torch.tensor([0.1, 0.0, 0.0, 0.0]), dim=-1)
    w, i, j, k = q.unbind(-1)
    s = 2.0 / (q * q).sum(-1)
    m = torch.stack((1 - s * (j * j + k * k), s * (i * j - k * w), s * (i * k + j * w), s * (i * j + k * w), 1 - s * (i * i + k * k), s * (j * k - i * w), s * (i * k - j * w), s * (j * k + i * w), 1 - s * (i * i + j * j)), -1).unflatten(-1, (3, 3))
    tr = torch.stack((1 + m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2], 1 + m[..., 0, 0] - m[..., 1, 1] - m[..., 2, 2]), -1)
    safe = torch.where(tr > 0, tr.clamp(min=1e-12).sqrt(), 0)
    p = q.roll(1, 1)
    d = (q * p).sum(-1, keepdim=True)
    p, d = torch.where(d < 0, -p, p), d.abs().clamp(max=1)
    th = torch.acos(d.clamp(max=0.9999))
    lin = 0.7 * q + 0.3 * p
    sl = torch.where(d > 0.9995, lin, (torch.sin(0.7 * th) * q + torch.sin(0.3 * th) * p) / torch.sin(th).clamp(min=1e-4))
    return m, safe, sl


@forward(X, dims=D, kinds=FINITE)
def A7906ExpMapSmallAngles(self, x):
    """so(3) to SO(3) and se(3)'s V with Taylor series below a threshold, by where with safe denominators."""
    w, v = cont(x[..., :3]), x[..., 3:]
    t2 = (w * w).sum(-1)[..., None, None]
    t = t2.clamp(min=1e-8).sqrt()
    small = t2 < 1e-4
    a = torch.where(small, 1 - t2 / 6, torch.sin(t) / t)
    b = torch.where(small, 0.5 - t2 / 24, (1 - torch.cos(t)) / t**2)
    c = torch.where(small, 1 / 6 - t2 / 120, (t - torch.sin(t)) / t**3)
    k = torch.zeros(*w.shape, 3)
    k[..., 0, 1], k[..., 0, 2], k[..., 1, 2] = -w[..., 2], w[..., 1], -w[..., 0]
    k = k - k.mT
    r = torch.eye(3) + a * k + b * (k @ k)
    return r, ((torch.eye(3) + b * k + c * (k @ k)) @ v[..., None])[..., 0]


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:6:11 W=5:8:12", kinds=FINITE)
def A7907NerfRays(self, x):
    """Rays of all pixels by meshgrid xy, positional encoding of powers of two, stratified depth, alpha compositing by cumprod with one in front."""
    n, _, h, w = x.shape
    v, u = torch.meshgrid(torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32), indexing="ij")
    d = torch.stack(((u - w * 0.5) / w, -(v - h * 0.5) / w, -torch.ones_like(u)), -1)
    z = torch.linspace(2.0, 6.0, 5)
    z = 1 / (1 / z[:1] * (1 - z / 6) + z / 6 / 6)
    pts = d[..., None, :] * z[:, None]
    enc = torch.cat([f(pts * 2.0**i) for i in range(3) for f in (torch.sin, torch.cos)], -1)
    sigma = F.softplus(enc.sum(-1) * x.mean(1)[..., None])
    delta = torch.cat((z[1:] - z[:-1], torch.tensor([1e10])))
    alpha = 1 - torch.exp(-sigma * delta)
    trans = torch.cumprod(torch.cat((torch.ones_like(alpha[..., :1]), 1 - alpha + 1e-10), -1), -1)[..., :-1]
    wt = alpha * trans
    return (wt * z).sum(-1), wt.sum(-1) * x.amax(1)


@forward("x:float32[N,T,3]", "e:int64[2,E]=0:1", dims="N=1:2:3 T=2:5:9 E=1:4:9", kinds=FINITE)
def A7908Gatv2WithSelfLoops(self, x, e):
    """GATv2: self loops appended to the edges, softmax over incoming edges by scatter_reduce amax, dropout of nothing, mean of heads."""
    n, t, c = x.shape
    loop = torch.arange(t)
    src, dst = torch.cat((e[0], loop)), torch.cat((e[1], loop))
    h = x[:, src] + 0.5 * x[:, dst]
    s = F.leaky_relu(h, 0.2).sum(-1)
    idx = dst.expand(n, -1)
    m = torch.full((n, t), float("-inf")).scatter_reduce(1, idx, s, "amax")
    p = (s - m.gather(1, idx)).exp()
    z = torch.zeros(n, t).scatter_add(1, idx, p)
    a = p / (z.gather(1, idx) + 1e-16)
    return torch.zeros_like(x).index_add(1, dst, a[..., None] * x[:, src]), torch.bincount(dst, minlength=t)[:t]


@forward("x:float32[V,3]", "f:int64[F,3]=0:2", dims="V=3:6:9 F=1:4:8", kinds=FINITE, refused="the original's own noise is large")
def A7909MeshNormalsAndLaplacian(self, x, f):
    """Vertex normals of a mesh by index_add of face normals, uniform Laplacian by a dense adjacency with index_put, degenerate faces."""
    a, b, c = x[f].unbind(1)
    fn = torch.linalg.cross(b - a, c - a)
    vn = torch.zeros_like(x)
    for i in range(3):
        vn = vn.index_add(0, f[:, i], fn)
    adj = torch.zeros(x.shape[0], x.shape[0])
    adj[f[:, [0, 1, 2]], f[:, [1, 2, 0]]] = 1.0
    adj = torch.maximum(adj, adj.T)
    deg = adj.sum(1, keepdim=True).clamp(min=1)
    return F.normalize(vn, dim=-1, eps=1e-6), x - adj @ x / deg, fn.norm(dim=-1).sum() / 2


@forward("x:float32[N,T,3]", dims="N=1:2:3 T=2:5:9", kinds=("normal", "unit", "halves", "ascending", "positive", "negative"))
def A7910VoxelScatterMean(self, x):
    """Points to a grid of voxels of one half, flat index with bounds dropped to a last bin, scatter mean, occupancy and back by gather."""
    g = torch.floor((x + 2) / 0.5).long()
    ok = ((g >= 0) & (g < 8)).all(-1)
    flat = torch.where(ok, (g[..., 0] * 8 + g[..., 1]) * 8 + g[..., 2], 512)
    s = torch.zeros(x.shape[0], 513, 3).scatter_reduce(1, flat[..., None].expand(-1, -1, 3), x, "mean", include_self=False)
    n = torch.zeros(x.shape[0], 513).scatter_add(1, flat, torch.ones_like(x[..., 0]))
    return s.gather(1, flat[..., None].expand(-1, -1, 3)), n[:, :512].view(-1, 8, 8, 8).amax((1, 2)), ok


@forward("x:float32[N,4,H,W]", dims="N=1:1:2 H=4:6:9 W=5:8:11", kinds=("unit", "halves", "ones"))
def A7911DepthWarp(self, x):
    """Backproject a depth map, move by a pose, project, sample by grid_sample with a validity mask, census transform of windows."""
    n, _, h, w = x.shape
    k = torch.tensor([[w * 0.6, 0, (w - 1) / 2], [0, w * 0.6, (h - 1) / 2], [0, 0, 1]])
    ys, xs = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
    p = torch.stack((xs, ys, torch.ones_like(xs))).flatten(1)
    d = F.softplus(x[:, :1].flatten(2)) + 1
    c = torch.linalg.inv(k) @ p * d + torch.tensor([0.1, -0.05, 0.2])[:, None]
    q = k @ c
    q = q[:, :2] / q[:, 2:].clamp(min=0.1)
    g = torch.stack((q[:, 0] / ((w - 1) / 2) - 1, q[:, 1] / ((h - 1) / 2) - 1), -1).view(n, h, w, 2)
    ok = (g.abs() <= 1).all(-1)
    win = F.unfold(x[:, 1:2], 3, padding=1).view(n, 9, h, w)
    bits = (win > x[:, 1:2]).long() * (2 ** torch.arange(9))[:, None, None]
    return F.grid_sample(x[:, 1:], g, align_corners=True, padding_mode="border") * ok[:, None], bits.sum(1)


@attack(X, dims=D, kinds=FINITE)
class A7912DifferentiableIk(nn.Module):
    """A kinematic chain of joints by 4x4 products, damped least squares over fixed rounds with a solve, angles wrapped to pi."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("length", torch.tensor([1.0, 0.7, 0.4]), persistent=False)

    def end(self, q):
        a = q.cumsum(-1)
        return torch.stack(((a.cos() * self.length).sum(-1), (a.sin() * self.length).sum(-1)), -1)

    def forward(self, x):
        q, goal = torch.tanh(x[..., :3]), torch.tanh(x[..., 3:5])
        for _ in range(3):
            a = q.cumsum(-1)
            jx = -(a.sin() * self.length).flip(-1).cumsum(-1).flip(-1)
            jy = (a.cos() * self.length).flip(-1).cumsum(-1).flip(-1)
            j = torch.stack((jx, jy), -2)
            e = (goal - self.end(q))[..., None]
            q = q + (j.mT @ torch.linalg.solve(j @ j.mT + 0.1 * torch.eye(2), e))[..., 0]
        return torch.remainder(q + math.pi, 2 * math.pi) - math.pi, self.end(q)


@forward("x:float32[N,T,2]", dims="N=1:2:3 T=3:5:9", kinds=("normal", "unit", "halves", "ascending", "positive"))
def A7913PolygonsAndHulls(self, x):
    """The shoelace area, crossing-number test of a grid, turning angles, resampling a polyline by arc length with searchsorted."""
    nxt = x.roll(-1, 1)
    area = (x[..., 0] * nxt[..., 1] - x[..., 1] * nxt[..., 0]).sum(1) / 2
    seg = (x[:, 1:] - x[:, :-1]).norm(dim=-1)
    s = F.pad(seg.cumsum(1), (1, 0)).contiguous()
    q = (s[:, -1:] * torch.linspace(0, 1, 4)).contiguous()
    i = torch.searchsorted(s, q, right=True).clamp(1, x.shape[1] - 1)
    s0, s1 = s.gather(1, i - 1), s.gather(1, i)
    t = ((q - s0) / (s1 - s0).clamp(min=1e-6)).clamp(0, 1)[..., None]
    p0, p1 = (x.gather(1, (i + k)[..., None].expand(-1, -1, 2)) for k in (-1, 0))
    return area, p0 + t * (p1 - p0), s


@forward("x:float32[N,T,6]", dims=D, kinds=FINITE, refused="does not compute what the module computes")
def A7914SinkhornAndSoftSort(self, x):
    """Sinkhorn in the log domain with a dustbin as of SuperGlue, mutual nearest neighbours with a threshold, NeuralSort."""
    s = torch.tanh(x) @ torch.tanh(x).mT
    n, t, _ = s.shape
    z = F.pad(s, (0, 1, 0, 1), value=0.3)
    mu = torch.cat((torch.full((t,), -math.log(2 * t)), torch.tensor([math.log(t / (2 * t))])))
    u = torch.zeros(n, t + 1)
    v = torch.zeros(n, t + 1)
    for _ in range(4):
        u = mu - torch.logsumexp(z + v[:, None], 2)
        v = mu - torch.logsumexp(z + u[..., None], 1)
    z = z + u[..., None] + v[:, None] + math.log(2 * t)
    m0, m1 = z[:, :-1, :-1].max(2), z[:, :-1, :-1].max(1)
    mutual = torch.arange(t)[None] == m1.indices.gather(1, m0.indices)
    k = x[..., 0]
    b = (k[:, :, None] - k[:, None]).abs().sum(-1)
    sc = (t + 1 - 2 * torch.arange(1, t + 1)).float()
    return torch.where(mutual, m0.values.exp(), 0), (k[:, None] * sc[:, None] - b[:, None]).softmax(-1)


@attack("x:float32[N,T,6]", "group:int64[T]=0:3", dims=D, kinds=FINITE)
class A7915VirtualNodeAndPna(nn.Module):
    """PNA: mean, min, max and deviation by segments with degree scalers by logarithm, virtual node, jumping knowledge by LSTM's attention."""

    def forward(self, x, group):
        n, t, c = x.shape
        i = group[:, None].expand(t, c)[None].expand(n, t, c)
        deg = torch.zeros(4).index_add(0, group, torch.ones(t))
        mean = x.new_zeros(n, 4, c).scatter_add(1, i, x) / deg.clamp(min=1)[:, None]
        sq = x.new_zeros(n, 4, c).scatter_add(1, i, x * x) / deg.clamp(min=1)[:, None]
        std = torch.sqrt(F.relu(sq - mean**2) + 1e-5)
        mx = x.new_zeros(n, 4, c).scatter_reduce(1, i, x, "amax", include_self=False)
        mn = x.new_zeros(n, 4, c).scatter_reduce(1, i, x, "amin", include_self=False)
        amp = torch.log(deg + 1)[:, None]
        return torch.cat((mean, std, mx, mn), -1), mx * amp, mn / amp.clamp(min=0.1)

# ruff: noqa: E501 - attacks are written as users write them
"""Points, geometry, diffusion, graphs: grouping, neighbours, voxels, poses, schedulers, message passing."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftythird.speech import at

P = "x:float32[N,P,3]"


def cloud(low: int = 1, high: int = 24, text: str = P, **more: object) -> dict:
    """Clouds of a few points, looked at few and round counts, and on a lattice (whose distances tie)."""
    n = tuple(v for v in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24) if low <= v <= high)
    lattice = tuple((lambda k=k: {"x": np.stack(np.unravel_index(np.arange(k), (3, 3, 3)), -1).astype(np.float32)[None]}) for k in (low, 9, 24) if low <= k <= high) if text == P else ()
    return {"dims": f"N=1:1:2 P={low}:12:{high}", "feeds": at(text, N=(1, 2), P=n) + lattice, **more}


@forward(P, **cloud())
def A6872BallQuery(self, x):
    """PointNet++: indices past the radius become the count, sorted, the first eight, those missing replaced by the first."""
    n, p, _ = x.shape
    d = ((x[:, :4, None] - x[:, None]) ** 2).sum(-1)
    g = torch.arange(p).view(1, 1, p).repeat(n, d.shape[1], 1)
    g[d > 1.0] = p
    g = g.sort(dim=-1)[0][:, :, :8]
    first = g[:, :, :1].repeat(1, 1, g.shape[-1])
    g = torch.where(g == p, first, g)
    rows = torch.arange(n)[:, None, None]
    return g, x[rows, g] - x[:, :4, None], x[rows, g].max(2)[0]


@forward(P, **cloud())
def A6873FarthestPoints(self, x):
    """Farthest point sampling of four from the first, then three-nearest interpolation back with inverse distances."""
    n, p, _ = x.shape
    dist = torch.full((n, p), 1e10)
    far = torch.zeros(n, dtype=torch.long)
    rows = torch.arange(n)
    out = []
    for _ in range(4):
        out.append(far)
        d = ((x - x[rows, far][:, None]) ** 2).sum(-1)
        dist = torch.where(d < dist, d, dist)
        far = dist.max(-1)[1]
    i = torch.stack(out, 1)
    c = x[rows[:, None], i]
    d = ((x[:, :, None] - c[:, None]) ** 2).sum(-1)
    d, k = d.sort(dim=-1, stable=True)
    w = 1.0 / (d[:, :, :3] + 1e-8)
    w = w / w.sum(2, keepdim=True)
    return i, (c[rows[:, None, None], k[:, :, :3]] * w[..., None]).sum(2)


@forward(P, **cloud(kinds=("normal", "unit", "negative", "positive", "mixed-scales", "zeros")))
def A6874EdgeConv(self, x):
    """DGCNN: as many neighbours as twenty or as there are, distances by the expanded square, edges of max pooling."""
    k = min(20, x.shape[1])
    y = x.transpose(1, 2)
    inner = -2 * y.transpose(2, 1) @ y
    sq = (y**2).sum(1, keepdim=True)
    d = -sq - inner - sq.transpose(2, 1)
    i = d.topk(k, dim=-1)[1]
    f = x[torch.arange(x.shape[0])[:, None, None], i]
    e = torch.cat((f - x[:, :, None], x[:, :, None].expand_as(f)), 3)
    return F.leaky_relu(e, 0.2).max(2)[0], e.sum(2)


@forward("x:float32[P,4]=-3.2:3.2", dims="P=1:12:30", feeds=tuple((lambda v=v: {"x": np.array([[v, v, 0, 1], [-v, v, v, 2], [v, -v, -v, 3]], np.float32)}) for v in (3.2, 1.6, 0.0, 3.1999998, -0.8)))
def A6875PillarScatter(self, x):
    """PointPillars: voxel indices by floor, points outside dropped to a trash cell, means and counts, scattered to a canvas."""
    i = torch.floor((x[:, :3] + 3.2) / 1.6).long()
    ok = ((i >= 0) & (i < 4)).all(1)
    flat = torch.where(ok, i[:, 1] * 4 + i[:, 0], 16)
    s = torch.zeros(17, 4).index_add(0, flat, x)
    n = torch.zeros(17).index_add(0, flat, torch.ones(x.shape[0]))
    m = s / n.clamp(min=1)[:, None]
    off = x - m[flat]
    top = torch.full((17, 4), -1e3).scatter_reduce(0, flat[:, None].expand(-1, 4), off, "amax")
    return (m[:16] * (n[:16, None] > 0)).T.view(4, 4, 4), top[:16], n.long(), ok


@forward("r:float32[N,3]", "q:float32[N,4]", "d:float32[N,6]", dims="N=1:3:6", feeds=tuple((lambda v=v: {"r": np.array([v, [v[0] / 2, 0, 0]], np.float32), "q": np.array([[0, 0, 0, 1], [-1, 0, 0, 0]], np.float32), "d": np.array([[1, 0, 0, 2, 0, 0], [0, 0, 0, 0, 1, 0]], np.float32)}) for v in ([0.0, 0, 0], [1e-5, 0, 0], [math.pi, 0, 0], [0, 2 * math.pi, 0])))
def A6876Rotations(self, r, q, d):
    """SMPL and pytorch3d: Rodrigues with an epsilon of angle, quaternions made positive, six numbers by Gram-Schmidt, and back by the best of four."""
    angle = torch.norm(r + 1e-8, dim=1, keepdim=True)
    k = r / angle
    z = torch.zeros_like(k[:, 0])
    x, y, w = k.unbind(1)
    s = torch.stack((z, -w, y, w, z, -x, -y, x, z), 1).view(-1, 3, 3)
    m = torch.eye(3) + angle.sin()[..., None] * s + (1 - angle.cos()[..., None]) * s @ s
    q = torch.where(q[:, :1] < 0, -q, q)
    q = q / q.norm(dim=1, keepdim=True).clamp(min=1e-8)
    a = F.normalize(d[:, :3], dim=-1)
    b = F.normalize(d[:, 3:] - (a * d[:, 3:]).sum(-1, keepdim=True) * a, dim=-1)
    g = torch.stack((a, b, torch.cross(a, b, dim=-1)), 1)
    m00, m11, m22 = m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]
    v = torch.stack((1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22), 1)
    # the root of what cancels to nothing is rounding noise below this
    v = torch.sqrt(v.clamp(min=1e-3))
    return m, q, g, v, 2 * torch.atan2(q[:, 1:].norm(dim=1), q[:, 0])


@forward("x:float32[N,P,3]", "k:float32[N,3,3]", dims="N=1:1:2 P=1:8:20", feeds=tuple((lambda z=z: {"x": np.array([[[1, 2, z], [0, 0, z], [-1, 1, -z]]], np.float32), "k": np.eye(3, dtype=np.float32)[None]}) for z in (0.0, 1.0, 0.1, -0.1)))
def A6877ProjectBev(self, x, k):
    """Lift and BEVFormer: points through intrinsics, depth clamped at 0.1, NaN off, in front and inside, and distortion by powers."""
    p = x @ k.transpose(1, 2)
    z = p[..., 2:3]
    ok = z > 0.1
    uv = p[..., :2] / torch.maximum(z, torch.ones_like(z) * 0.1)
    r = (uv**2).sum(-1, keepdim=True)
    uv = uv * (1 + 0.1 * r - 0.01 * r**2)
    n = torch.stack((uv[..., 0] / 8, uv[..., 1] / 4), -1)
    ok = ok[..., 0] & (n > 0).all(-1) & (n < 1).all(-1)
    raw = p[..., :2] / z
    return torch.nan_to_num(raw, posinf=9.0, neginf=-9.0), n, ok, ok.sum(1).max()


@attack("x:float32[N,4,H,W]", "t:int64[N]=0:99", dims="N=1:2:3 H=1:4:8 W=1:4:8", feeds=tuple((lambda t=t: {"x": np.ones((2, 4, 3, 2), np.float32) * 3, "t": np.array(t)}) for t in ([0, 1], [99, 0], [50, 49])))
class A6878DdimStep(nn.Module):
    """Diffusers: time embedding with flip and shift, a DDIM step whose previous alpha is one before 0, thresholding by a quantile."""

    def __init__(self):
        super().__init__()
        b = torch.linspace(0.00085**0.5, 0.012**0.5, 100, dtype=torch.float32) ** 2
        self.register_buffer("a", torch.cumprod(1 - b, 0))

    def forward(self, x, t):
        e = torch.exp(-math.log(10000) * torch.arange(0, 3, dtype=torch.float32) / (3 - 1))
        e = t[:, None].float() * e[None]
        e = torch.cat((e.cos(), e.sin()), -1)
        e = F.pad(e, (0, 1, 0, 0))
        prev = t - 5
        at_, ap = self.a[t], torch.where(prev >= 0, self.a[prev.clamp(min=0)], 1.0)
        at_, ap = at_.view(-1, 1, 1, 1), ap.view(-1, 1, 1, 1)
        x0 = (x - (1 - at_).sqrt() * x.roll(1, 1)) / at_.sqrt()
        s = torch.quantile(x0.flatten(1).abs(), 0.9, dim=1).clamp(1, 5).view(-1, 1, 1, 1)
        x0 = torch.clamp(x0, -s, s) / s
        return ap.sqrt() * x0 + (1 - ap).sqrt() * x, e


@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=4:6:17 W=4:6:17", feeds=at("x:float32[N,4,H,W]", N=(1, 2), H=(4, 5, 7, 16, 17), W=(17, 4, 6, 16, 15)))
class A6879UpDownDiffusers(nn.Module):
    """Downsample2D with an asymmetric pad, Upsample2D to the size of the skip, group norm of one channel each, 2D sincos positions cropped from a base."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.down, self.up = nn.Conv2d(4, 4, 3, 2), nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.GroupNorm(4, 4, eps=1e-6)
        y, x = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")
        self.register_buffer("pos", torch.stack((y.sin(), y.cos(), x.sin(), x.cos()))[None])

    def forward(self, x):
        h, w = x.shape[-2:]
        d = self.down(F.pad(x, (0, 1, 0, 1)))
        top, left = (20 - d.shape[2]) // 2, (20 - d.shape[3]) // 2
        d = F.silu(self.norm(d)) + self.pos[:, :, top : top + d.shape[2], left : left + d.shape[3]]
        forward_size = h % 2 != 0 or w % 2 != 0
        u = F.interpolate(d, size=(h, w), mode="nearest") if forward_size else F.interpolate(d, scale_factor=2.0, mode="nearest")
        return self.up(u) + x


@forward("x:float32[P,4]", "e:int64[2,E]=0:4", dims="P=5:8:12 E=1:10:20", feeds=tuple((lambda e=e: {"x": np.arange(20, dtype=np.float32).reshape(5, 4) - 9, "e": np.array(e)}) for e in ([[0, 0], [0, 0]], [[4], [0]], [[0, 1, 2, 3], [4, 4, 4, 4]])))
def A6880GatSoftmax(self, x, e):
    """PyG: self loops added, GCN's degree to -1/2 with infinity to zero, a softmax by target, max and standard deviation aggregated."""
    n = x.shape[0]
    loop = torch.arange(n)
    s, d = torch.cat((e[0], loop)), torch.cat((e[1], loop))
    deg = torch.zeros(n).scatter_add_(0, e[1], torch.ones(e.shape[1]))
    inv = deg.pow(-0.5)
    inv = inv.masked_fill(inv == float("inf"), 0)
    a = F.leaky_relu(x[s].sum(1) - x[d].mean(1), 0.2)
    top = torch.full((n,), float("-inf")).scatter_reduce(0, d, a, "amax")
    a = (a - top[d]).exp()
    a = a / (torch.zeros(n).scatter_add(0, d, a)[d] + 1e-16)
    y = torch.zeros_like(x).index_add_(0, d, x[s] * a[:, None])
    mean = torch.zeros_like(x).scatter_reduce(0, e[1][:, None].expand(-1, 4), x[e[0]], "mean", include_self=False)
    return y, inv, mean, torch.zeros_like(x).index_reduce(0, e[1], x[e[0]], "amax", include_self=False)


@forward("x:float32[N,R]=0:1", "w:float32[N,R]=0:4", dims="N=1:2:3 R=2:8:24", feeds=tuple((lambda v=v: {"x": np.full((1, 5), v, np.float32), "w": np.full((1, 5), 1 - v, np.float32)}) for v in (0.0, 1.0, 0.5)))
def A6881NerfSampling(self, x, w):
    """NeRF: transmittance by exclusive products, inverse CDF sampling by searchsorted with clamped neighbours and a denominator of one."""
    a = 1 - torch.exp(-F.relu(w) * 0.5)
    t = torch.cumprod(torch.cat((torch.ones_like(a[:, :1]), 1 - a + 1e-10), 1), 1)[:, :-1]
    wt = a * t
    pdf = (wt + 1e-5) / (wt + 1e-5).sum(1, keepdim=True)
    cdf = torch.cat((torch.zeros_like(pdf[:, :1]), pdf.cumsum(1)), 1)
    u = torch.linspace(0.03, 0.97, 7).expand(x.shape[0], 7).contiguous()
    i = torch.searchsorted(cdf, u, right=True)
    lo, hi = (i - 1).clamp(min=0), i.clamp(max=cdf.shape[1] - 1)
    bins = torch.cat((torch.zeros_like(x[:, :1]), x.sort(1)[0]), 1)
    c0, c1, b0, b1 = cdf.gather(1, lo), cdf.gather(1, hi), bins.gather(1, lo), bins.gather(1, hi)
    den = c1 - c0
    den = torch.where(den < 1e-5, torch.ones_like(den), den)
    return b0 + (u - c0) / den * (b1 - b0), wt.sum(1), (wt * x).sum(1)


@forward("a:float32[N,P,3]", "b:float32[N,Q,3]", dims="N=1:1:2 P=1:8:20 Q=1:6:20", feeds=tuple((lambda p=p, q=q: {"a": np.random.RandomState(p).randn(1, p, 3).astype(np.float32), "b": np.random.RandomState(p).randn(1, q, 3).astype(np.float32)}) for p, q in ((1, 1), (2, 20), (20, 2), (5, 5))))
def A6882ChamferHausdorff(self, a, b):
    """Chamfer both ways with indices, Hausdorff, mutual nearest neighbours and a ratio test with the second (where there is one)."""
    d = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    ab, i = d.min(2)
    ba, j = d.min(1)
    mutual = j.gather(1, i) == torch.arange(a.shape[1])
    if b.shape[1] > 1:
        two = d.topk(2, 2, largest=False)[0]
        good = two[..., 0] / two[..., 1].clamp(min=1e-9) < 0.8
    else:
        good = torch.ones_like(mutual)
    return ab.mean(1) + ba.mean(1), torch.maximum(ab.amax(1), ba.amax(1)), mutual & good


@forward("x:float32[N,P,3]", "m:bool[N,P]", dims="N=1:2:2 P=1:8:20")
def A6883KabschMasked(self, x, m):
    """Masked moments, the inertia of what is valid with a fallback of ones, sinkhorn in logs with a dustbin."""
    f = m.float()[..., None]
    n = f.sum(1)
    w = torch.where(n > 0, f.squeeze(-1) / n, torch.full_like(f.squeeze(-1), 1.0 / x.shape[1]))
    c = (x * w[..., None]).sum(1, keepdim=True)
    y = (x - c) * w.sqrt()[..., None]
    cov = y.transpose(1, 2) @ y
    z = F.pad(x @ x.transpose(1, 2), (0, 1, 0, 1), value=0.5)
    z = z.masked_fill(F.pad(~m, (0, 1), value=False)[:, None], -1e4)
    u = v = torch.zeros_like(z[..., 0])
    for _ in range(3):
        u = -torch.logsumexp(z + v[:, None], 2)
        v = -torch.logsumexp(z + u[..., None], 1)
    return cov, torch.linalg.det(cov + 0.1 * torch.eye(3)), (z + u[..., None] + v[:, None])[:, :-1, :-1]


@attack(P, **cloud(low=1, high=24))
class A6884PointTransformerV3(nn.Module):
    """Serialised: a Morton code of quantised coordinates, stable order, padded to patches of eight by borrowing the last, and unsorted."""

    def forward(self, x):
        n, p, _ = x.shape
        g = ((x.clamp(-2, 2) + 2) * 2).floor().long().clamp(0, 7)
        code = torch.zeros(n, p, dtype=torch.long)
        for b in range(3):
            for k in range(3):
                code |= ((g[..., k] >> b) & 1) << (3 * b + k)
        o = code.argsort(dim=1, stable=True)
        inv = torch.zeros_like(o).scatter(1, o, torch.arange(p).expand(n, p))
        y = x.gather(1, o[..., None].expand(-1, -1, 3))
        pad = -p % 8
        if pad > 0:
            y = torch.cat((y, y[:, -1:].expand(-1, pad, -1)), 1)
        q = y.view(n, -1, 8, 3)
        q = (torch.softmax(q @ q.transpose(2, 3), -1) @ q).flatten(1, 2)[:, :p]
        return q.gather(1, inv[..., None].expand(-1, -1, 3)), code, inv


@forward("x:float32[N,S,4]", "t:float32[N]=0:1", dims="N=1:2:3 S=2:6:16", feeds=tuple((lambda v=v: {"x": np.random.RandomState(5).randn(3, 7, 4).astype(np.float32), "t": np.array([v, 1 - v, v], np.float32)}) for v in (0.0, 1.0, 0.5, 1 / 6, 0.16666667)))
def A6885SlerpTracks(self, x, t):
    """Key frames of quaternions: the segment by time, slerp that goes to lerp for near ones, the sign by the dot product."""
    q = F.normalize(x, dim=-1)
    s = x.shape[1] - 1
    i = torch.clamp((t * s).floor().long(), max=s - 1)
    r = t * s - i
    rows = torch.arange(x.shape[0])
    a, b = q[rows, i], q[rows, i + 1]
    d = (a * b).sum(-1, keepdim=True)
    b = torch.where(d < 0, -b, b)
    d = d.abs()
    th = torch.acos(d.clamp(max=0.9995))
    w = r[:, None]
    sl = (torch.sin((1 - w) * th) * a + torch.sin(w * th) * b) / torch.sin(th)
    return F.normalize(torch.where(d > 0.9995, a + w * (b - a), sl), dim=-1), i

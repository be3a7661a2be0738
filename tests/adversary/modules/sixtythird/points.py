"""Point clouds: neighbours, farthest points, balls, voxels and pillars."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@attack("p:float32[N,P,3]=-2:2", dims="N=1:2:3 P=4:7:12", kinds=("normal", "unit", "ascending", "mixed-scales"))
class A7621EdgeConv(nn.Module):
    """DGCNN: k nearest neighbours with k limited by the number of points, edge features by gather, max over neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 5))

    def forward(self, p: torch.Tensor):
        n, m, c = p.shape
        k = min(6, m - 1)
        d = -2 * p @ p.transpose(1, 2)
        sq = (p**2).sum(-1)
        d = d + sq[:, :, None] + sq[:, None]
        idx = d.topk(k, dim=-1, largest=False).indices
        nb = torch.gather(p[:, None].expand(n, m, m, c), 2, idx[..., None].expand(-1, -1, -1, c))
        centre = p[:, :, None].expand_as(nb)
        return self.mlp(torch.cat([nb - centre, centre], -1)).amax(2)


@forward("p:float32[N,P,3]=-2:2", dims="N=1:2:3 P=4:9:14", kinds=("normal", "unit", "ascending", "zeros"))
def A7622FarthestPointsAndBalls(self, p):
    """Four farthest points from the first on, then a ball query whose empty places repeat the first hit."""
    n, m, _ = p.shape
    far = torch.zeros(n, dtype=torch.long)
    dist = torch.full((n, m), 1e10)
    chosen = []
    rows = torch.arange(n)
    for _ in range(4):
        chosen.append(far)
        c = p[rows, far][:, None]
        dist = torch.minimum(dist, ((p - c) ** 2).sum(-1))
        far = dist.argmax(-1)
    idx = torch.stack(chosen, 1)
    centres = p.gather(1, idx[..., None].expand(-1, -1, 3))
    d2 = ((centres[:, :, None] - p[:, None]) ** 2).sum(-1)
    order = torch.where(d2 < 1.0, torch.arange(m).expand_as(d2), torch.full_like(d2, m, dtype=torch.long))
    ball = order.sort(-1).values[..., :3]
    first = ball[..., :1].expand_as(ball)
    ball = torch.where(ball == m, first, ball)
    return idx, ball, centres


@attack("p:float32[P,4]=-4:4", "c:int64[P]=0:2", dims="P=1:9:20", kinds=FINITE)
class A7623PillarScatter(nn.Module):
    """PointPillars: points to cells by floor division, a count and mean for each cell by index_add, scattered to a canvas, points outside dropped by a spare cell."""

    def __init__(self) -> None:
        super().__init__()
        self.pfn = nn.Linear(6, 5)
        self.conv = nn.Conv2d(5, 3, 3, padding=1)

    def forward(self, p: torch.Tensor, c: torch.Tensor):
        gx, gy = torch.floor((p[:, 0] + 2.003) / 0.5).long(), torch.floor((p[:, 1] + 2.003) / 0.5).long()
        ok = (gx >= 0) & (gx < 8) & (gy >= 0) & (gy < 8)
        cell = torch.where(ok, c * 64 + gy * 8 + gx, torch.full_like(gx, 192))
        count = torch.zeros(193).index_add_(0, cell, torch.ones_like(p[:, 0]))
        mean = torch.zeros(193, 2).index_add_(0, cell, p[:, :2]) / count.clamp(min=1)[:, None]
        f = torch.relu(self.pfn(torch.cat([p, p[:, :2] - mean[cell]], 1)))
        canvas = torch.full((193, 5), 0.0).scatter_reduce(0, cell[:, None].expand(-1, 5), f, "amax", include_self=True)
        image = canvas[:192].view(3, 8, 8, 5).permute(0, 3, 1, 2)
        return self.conv(image), count[:192].view(3, 8, 8)


@forward("p:float32[P,3]=-2:2", dims="P=2:9:20", kinds=("normal", "unit", "ascending"))
def A7624VoxelsByUnique(self, p):
    """Voxel downsampling: cells by a hash, unique with inverse and counts, the mean of each cell."""
    g = torch.floor(p + 0.0007).long() + 3
    key = (g[:, 0] * 73856093) ^ (g[:, 1] * 19349663) ^ (g[:, 2] * 83492791)
    u, inv, cnt = torch.unique(key, return_inverse=True, return_counts=True)
    total = torch.zeros(u.shape[0], 3).index_add_(0, inv, p)
    return total / cnt[:, None], cnt


@forward("a:float32[N,P,3]=-2:2", "b:float32[N,Q,3]=-2:2", "ma:bool[N,P]", dims="N=1:2:3 P=1:5:9 Q=1:4:8", kinds=FINITE)
def A7625ChamferWithMask(self, a, b, ma):
    """Chamfer distance by cdist both ways with padded points at infinity; Hausdorff; three nearest interpolation with inverse distances."""
    d = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    dm = d.masked_fill(~ma[:, :, None], float("inf"))
    near = dm.amin(1)
    fwd = (d.amin(2) * ma).sum(1) / ma.sum(1).clamp(min=1)
    k = min(3, b.shape[1])
    v, i = d.topk(k, largest=False)
    w = 1 / (v + 1e-2)
    w = w / w.sum(-1, keepdim=True)
    f = torch.cat([b, b.square()], -1)
    interp = (f.gather(1, i.flatten(1)[..., None].expand(-1, -1, 6)).view(*i.shape, 6) * w[..., None]).sum(2)
    return torch.where(near.isinf(), torch.zeros_like(near), near).sum(1), fwd, interp


@attack("p:float32[N,P,3]=-3:3", dims="N=1:2:3 P=3:8:13", kinds=FINITE)
class A7626PointNetWithStn(nn.Module):
    """PointNet: a small transform net, batch norm over points, max and mean pooled; large clouds are thinned by a stride that depends on the size."""

    def __init__(self) -> None:
        super().__init__()
        self.stn = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.fc = nn.Linear(8, 9)
        self.feat = nn.Sequential(nn.Conv1d(3, 16, 1), nn.GroupNorm(4, 16), nn.GELU())

    def forward(self, p: torch.Tensor):
        stride = max(1, p.shape[1] // 5)
        x = p[:, ::stride].transpose(1, 2)
        t = self.fc(self.stn(x).amax(2)).view(-1, 3, 3) + torch.eye(3)
        y = self.feat(torch.bmm(t, x))
        return torch.cat([y.amax(2), y.mean(2)], 1), x.sum((1, 2)) * (x.shape[2] * 1.0 / p.shape[1])


@attack("p:float32[N,P,3]=-2:2", dims="N=1:1:3 P=2:6:10", kinds=("normal", "unit"))
class A7627GroupAndNormalise(nn.Module):
    """PointMLP: neighbours gathered by index arithmetic on the flattened cloud, normalised by the deviation of all."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(1, 1, 1, 3) + 0.5)

    def forward(self, p: torch.Tensor):
        n, m, c = p.shape
        d = torch.cdist(p, p)
        idx = d.argsort(dim=-1, stable=True)[:, :, :2]
        flat = (idx + torch.arange(n).view(-1, 1, 1) * m).reshape(-1)
        g = p.reshape(n * m, c).index_select(0, flat).view(n, m, -1, c)
        diff = g - p.unsqueeze(2)
        std = diff.reshape(n, -1).std(dim=-1).view(n, 1, 1, 1)
        return self.alpha * diff / (std + 1e-5)

# ruff: noqa: E501 - attacks are written as users write them
"""Other products: graph layers, point clouds, forecasters, recommenders, simulators, statistics, physics, tabular nets."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves


@attack("h:float32[V,4]=-3:3", "e:int64[2,E]=0:1", "w:float32[E]=0:2", dims="V=2:4:6 E=1:5:8", kinds=FINITE, feeds=(lambda: {"h": np.ones((6, 4), np.float32), "e": np.array([[5, 5, 5], [0, 0, 5]]), "w": np.zeros(3, np.float32)},))
class A7245Gcn(nn.Module):
    """GCN with self loops: degrees by index_add, symmetric norms with infinities zeroed, scatter mean and max readouts, a global argmax node."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        self.lin = nn.Linear(4, 3)

    def forward(self, h, e, w):
        v = h.size(0)
        loop = torch.arange(v)
        src = torch.cat([e[0], loop])
        dst = torch.cat([e[1], loop])
        w = torch.cat([w, torch.ones(v)])
        deg = torch.zeros(v).index_add_(0, dst, w)
        r = deg.pow(-0.5)
        r[r == float("inf")] = 0
        m = self.lin(h)[src] * (r[src] * w * r[dst]).unsqueeze(-1)
        out = torch.zeros(v, 3).index_add_(0, dst, m)
        mx = torch.full((v, 3), -1e4).scatter_reduce(0, dst[:, None].expand(-1, 3), m, "amax", include_self=False)
        mean = torch.zeros(v, 3).scatter_reduce(0, src[:, None].expand(-1, 3), m, "mean", include_self=False)
        return out.relu(), mx, mean, out.norm(dim=1).argmax()


@forward("p:float32[N,P,3]=-2:2", "q:float32[N,Q,3]=-2:2", "f:float32[N,P,2]=-2:2", dims="N=1:1:2 P=3:6:9 Q=1:4:7", kinds=("normal", "unit", "mixed-scales", "positive"))
def A7246PointNet2(self, p, q, f):
    """PointNet++: a ball query by sort of masked indices, grouped max, interpolation by three nearest with inverse distances, Chamfer's distance."""
    d = torch.cdist(q, p, compute_mode="donot_use_mm_for_euclid_dist")
    n, s, k = d.shape
    idx = torch.arange(k).view(1, 1, k).repeat(n, s, 1)
    idx = torch.where(d > 1.0, k, idx).sort(-1)[0][:, :, :3]
    first = idx[:, :, :1].expand_as(idx)
    idx = torch.where(idx == k, first, idx).clamp(max=k - 1)
    g = f.unsqueeze(1).expand(-1, s, -1, -1).gather(2, idx[..., None].expand(-1, -1, -1, 2))
    dist, i3 = d.topk(3, dim=-1, largest=False)
    w = 1 / (dist + 1e-3)
    w = w / w.sum(-1, keepdim=True)
    batch = torch.arange(n).view(n, 1, 1)
    it = (f[batch, i3] * w[..., None]).sum(2)
    return g.amax(2), it, d.min(1).values.mean(-1) + d.min(2)[0].mean(-1)


class Forecast(NamedTuple):
    quantiles: torch.Tensor
    trend: torch.Tensor
    season: torch.Tensor


@attack("x:float32[N,T,2]=-9:9", dims="N=1:2:3 T=6:12:15", kinds=FINITE)
class A7247DLinear(nn.Module):
    """A forecaster: RevIN, trend by a moving average whose ends repeat, a seasonal mean by the period modulo, quantile heads kept in order by cumsum of softplus."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(12)
        self.head = nn.Linear(6, 4)
        self.register_buffer("taus", torch.tensor([0.1, 0.5, 0.9]))

    def forward(self, x):
        mu = x.mean(1, keepdim=True).detach()
        sd = torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5)
        z = (x - mu) / sd
        ends = torch.cat([z[:, :1].repeat(1, 2, 1), z, z[:, -1:].repeat(1, 2, 1)], 1)
        trend = F.avg_pool1d(ends.transpose(1, 2), 5, stride=1).transpose(1, 2)
        season = z - trend
        t = x.shape[1]
        phase = torch.arange(t) % 3
        sums = torch.zeros(x.size(0), 3, 2).index_add(1, phase, season)
        count = torch.zeros(3).index_add(0, phase, torch.ones(t))
        seas = (sums / count[:, None])[:, phase]
        last = z[:, -6:].transpose(1, 2)
        q = self.head(last)
        q = torch.cat([q[..., :1], q[..., :1] + F.softplus(q[..., 1:]).cumsum(-1)], -1)
        return Forecast(q * sd.transpose(1, 2) + mu.transpose(1, 2), trend, torch.quantile(seas, self.taus, dim=1))


@attack("user:int64[N]=0:9", "hist:int64[N,L]=0:9", "dense:float32[N,3]=0:1000", dims="N=1:3:5 L=1:4:6", kinds=FINITE)
class A7248Dlrm(nn.Module):
    """A recommender: hashed ids by multiply and modulo, an embedding bag of the history without pads, log1p of counts, pairwise dots by tril indices, bucketize."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(13)
        self.u = nn.Embedding(7, 4)
        self.i = nn.Embedding(10, 4, padding_idx=0, max_norm=None)
        self.d = nn.Linear(3, 4)
        self.b = nn.Embedding(5, 4)
        self.register_buffer("edges", torch.tensor([1.0, 10.0, 100.0, 500.0]))
        li, lj = np.tril_indices(4, k=-1)
        self.li, self.lj = torch.from_numpy(li), torch.from_numpy(lj)

    def forward(self, user, hist, dense):
        u = self.u((user * 2654435761 + 12345) % 7)
        m = hist.ne(0)
        h = self.i(hist).sum(1) / m.sum(1, keepdim=True).clamp(min=1)
        d = torch.relu(self.d(torch.log1p(dense)))
        b = self.b(torch.bucketize(dense[:, 0], self.edges, right=True))
        z = torch.stack([u, h, d, b], 1)
        dots = torch.bmm(z, z.mT)[:, self.li, self.lj]
        return OrderedDict(score=torch.sigmoid(dots.sum(-1)), dots=dots, bucket=torch.searchsorted(self.edges, dense.contiguous()))


@attack("x:float32[N,5]=-6:6", dims="N=2:4:9", kinds=FINITE, feeds=(halves(2, 5), halves(9, 5), lambda: {"x": np.full((4, 5), 2.5, np.float32)}))
class A7249Statistics(nn.Module):
    """Robust statistics of a batch: median, MAD, kthvalue, mode-like counts, ranks by double argsort (stable), histogram by one-hot, winsorised mean, Spearman."""

    def forward(self, x):
        med = x.median(0).values
        mad = (x - med).abs().median(0)[0]
        k = x.kthvalue(2, dim=0).values
        rank = x.argsort(dim=0, stable=True).argsort(dim=0, stable=True).float()
        q = torch.quantile(x, 0.75, dim=0, interpolation="higher")
        lo, hi = torch.quantile(x, torch.tensor([0.1, 0.9]), dim=0)
        wins = torch.minimum(torch.maximum(x, lo), hi).mean(0)
        bins = ((x + 6) / 3).floor().long().clamp(0, 3)
        hist = F.one_hot(bins, 4).sum(0)
        r = rank - rank.mean(0)
        return med, mad, k, rank, q, wins, hist, (r.T @ r) / r.pow(2).sum(0).clamp(min=1)


@attack("x:float32[N,3]=-2:2", "dt:float32[]=0.01:0.2", dims="N=1:3:5", kinds=FINITE)
class A7250NeuralOde(nn.Module):
    """A Runge-Kutta integrator of a learned field with a conserved norm, a quaternion's rotation by hand, Rodrigues with small angles, cross and slerp."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(14)
        self.f = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x, dt):
        y = x
        for _ in range(3):
            k1 = self.f(y)
            k2 = self.f(y + dt / 2 * k1)
            k3 = self.f(y + dt / 2 * k2)
            k4 = self.f(y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        th = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
        small = th < 1e-3
        safe = torch.where(small, torch.ones_like(th), th)
        a = torch.where(small, 1 - th**2 / 6, torch.sin(safe) / safe)
        b = torch.where(small, 0.5 - th**2 / 24, (1 - torch.cos(safe)) / safe**2)
        c = torch.linalg.cross(y, x)
        rot = x + a * c + b * torch.cross(y, c, dim=-1)
        q = F.normalize(torch.cat([torch.cos(th / 2), a * y / 2], -1), dim=-1)
        w, v = q[:, :1], q[:, 1:]
        return rot, x + 2 * torch.cross(v, torch.cross(v, x, dim=-1) + w * x, dim=-1), torch.atan2(y[:, 1], y[:, 0])


@attack("x:float32[N,4]=-3:3", "train:bool[]", dims="N=1:4:6", kinds=FINITE)
class A7251EmaCodebook(nn.Module):
    """A residual VQ: distances expanded, ties by the first code, a straight-through sum, usage counted in a buffer in place, perplexity, a bool tensor picks a path."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(15)
        self.register_buffer("codes", torch.randn(2, 5, 4).round())
        self.register_buffer("usage", torch.zeros(5))

    def forward(self, x, train):
        r, total, ids = x, torch.zeros_like(x), []
        for cb in self.codes:
            d = r.pow(2).sum(1, keepdim=True) - 2 * r @ cb.T + cb.pow(2).sum(1)
            i = d.argmin(1)
            z = cb[i]
            total = total + r + (z - r).detach()
            r = r - z
            ids.append(i)
        one = F.one_hot(ids[0], 5).float()
        use = self.usage * 0.9 + one.sum(0) * 0.1
        p = one.mean(0)
        perp = torch.exp(-(p * (p + 1e-10).log()).sum())
        return torch.where(train, total, total.round()), torch.stack(ids, 1), use, perp


@attack("x:float32[N,C,T]=-3:3", dims="N=1:2:3 C=1:2:4 T=1:4:9", kinds=FINITE, refused="the path through the module depends on the size")
class A7252BySize(nn.Module):
    """Python control flow by sizes: short signals are repeated, odd ones trimmed, channels averaged or chunked; numpy in the forward builds a taper of its length."""

    def forward(self, x):
        n, c, t = x.shape
        if t < 3:
            x = x.repeat(1, 1, 4 // t)
        if x.shape[-1] % 2:
            x = x[..., :-1]
        t = x.shape[-1]
        taper = torch.as_tensor(np.bartlett(5), dtype=torch.float32)
        y = F.conv1d(x.reshape(-1, 1, t), taper[None, None], padding=2).view(n, c, t)
        if c > 2:
            y = torch.cat([y[:, :2], y[:, 2:].mean(1, keepdim=True)], 1)
        a, b = y.chunk(2, -1)
        return torch.complex(a, b).abs(), (a * b).sum((1, 2)) / max(t // 2, 1)


@forward("x:float32[N,6]=-3:3", "m:bool[N,6]", "k:int32[N]=-40:40", dims="N=1:3:5", kinds=FINITE)
def A7253Tricks(self, x, m, k):
    """Functional tricks: masked_scatter, index_put with accumulate, where with scalars, rot90 and flips, tensor_split, diag_embed, lerp, addcdiv, bit tests, floor divide of negatives."""
    y = x.masked_scatter(m, torch.arange(6.0).repeat(x.size(0)).view_as(x))
    z = x.clone()
    z.index_put_((torch.zeros(x.size(0), dtype=torch.long), k.long() % 6), x[:, 0], accumulate=True)
    a, b, c = torch.tensor_split(x, 3, dim=1)
    d = torch.diag_embed(a) + torch.rot90(b.unsqueeze(-1) * c.unsqueeze(1), 1, (1, 2))
    bits = (k.unsqueeze(-1) >> torch.arange(8, dtype=torch.int32)) & 1
    return y, z, d, torch.lerp(x, x.flip(1), 0.3), torch.addcdiv(x, x, x.abs() + 1, value=0.5), bits, k // 7, k % 7, torch.remainder(x, 1.5), torch.fmod(x, -1.5)


@forward("x:float32[N,H,W]=-3:3", dims="N=1:2:3 H=1:3:5 W=1:4:6", kinds=FINITE)
def A7254Morphology(self, x):
    """Morphology and integral images: erosion by minus max pool, Sobel by unfold, connected peaks, a box sum by cumsum of two axes, cumprod, row-wise cummin, trace."""
    u = x.unsqueeze(1)
    dil = F.max_pool2d(u, 3, 1, 1)
    ero = -F.max_pool2d(-u, 3, 1, 1)
    cols = F.unfold(u, 3, padding=1)
    k = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
    g = torch.stack([(cols * k.flatten()[:, None]).sum(1), (cols * k.T.flatten()[:, None]).sum(1)]).view(2, *x.shape)
    ang = torch.atan2(g[1], g[0]).mul(4 / torch.pi).round().remainder(8)
    integral = F.pad(x.cumsum(1).cumsum(2), (1, 0, 1, 0))
    box = integral[:, 1:, 1:] - integral[:, :-1, 1:] - integral[:, 1:, :-1] + integral[:, :-1, :-1]
    return dil - ero, ang, box, x.cummin(2).values, x.clamp(-1, 1).cumprod(1), ((dil == u) & (u > 0)).sum((1, 2, 3)), x[:, : min(x.shape[1:]), : min(x.shape[1:])].diagonal(dim1=1, dim2=2).sum(-1)

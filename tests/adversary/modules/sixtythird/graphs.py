"""Message passing: segment softmax, degree norms, adjacency normalisation, pooling by the graph's id."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

EDGES = "e:int64[2,E]=0:3"


def segment_softmax(score, index, size):
    top = torch.full((size, *score.shape[1:]), -torch.inf).scatter_reduce(0, index[:, None].expand_as(score), score, "amax")
    ex = torch.exp(score - top[index])
    total = torch.zeros(size, *score.shape[1:]).index_add(0, index, ex)
    return ex / (total[index] + 1e-16)


@attack("x:float32[V,5]=-3:3", EDGES, dims="V=4:6:9 E=1:8:15", kinds=FINITE)
class A7641GatLayer(nn.Module):
    """Graph attention of two heads with self loops appended, softmax over the incoming edges by scatter_reduce amax."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(5, 8, bias=False)
        self.src, self.dst = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(2, 4))

    def forward(self, x: torch.Tensor, e: torch.Tensor):
        n = x.size(0)
        loops = torch.arange(n).expand(2, n)
        src, dst = torch.cat([e, loops], 1).unbind(0)
        h = self.lin(x).view(n, 2, 4)
        a = F.leaky_relu((h * self.src).sum(-1)[src] + (h * self.dst).sum(-1)[dst], 0.2)
        a = segment_softmax(a, dst, n)
        return torch.zeros_like(h).index_add_(0, dst, h[src] * a[..., None]).flatten(1), a


@attack("x:float32[V,4]=-3:3", EDGES, "w:float32[E]=0.1:2", dims="V=4:6:9 E=1:8:15", kinds=FINITE)
class A7642GcnWithDegrees(nn.Module):
    """GCN: symmetric degree norm with infinity filled with zero, weighted edges, two layers, and PairNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, e: torch.Tensor, w: torch.Tensor):
        n = x.shape[0]
        deg = x.new_zeros(n).scatter_add_(0, e[1], w)
        inv = deg.pow(-0.5).masked_fill_(deg == 0, 0)
        norm = inv[e[0]] * w * inv[e[1]]
        for lin in (self.a, self.b):
            h = lin(x)
            x = torch.zeros(n, h.shape[1]).index_add(0, e[1], norm[:, None] * h[e[0]]) + h
            x = x - x.mean(0)
            x = x / (1e-6 + x.pow(2).sum(1).mean()).sqrt()
        return x, deg


@attack("x:float32[V,4]=-3:3", "g:int64[V]=0:4", dims="V=1:7:12", kinds=FINITE)
class A7643PoolByGraphId(nn.Module):
    """Sum, mean, max, least and softmax pooling over five graph ids, the empty ones zero; counts of each graph."""

    def forward(self, x: torch.Tensor, g: torch.Tensor):
        i = g[:, None].expand_as(x)
        z = torch.zeros(5, x.shape[1])
        cnt = torch.bincount(g, minlength=5)[:5]
        mx = z.scatter_reduce(0, i, x, "amax", include_self=False)
        mn = z.scatter_reduce(0, i, x, "amin", include_self=False)
        mean = z.scatter_reduce(0, i, x, "mean", include_self=False)
        att = segment_softmax(x, g, 5)
        return mx, mn, mean, cnt, z.index_add(0, g, att * x)


@forward("a:float32[N,V,V]=0:1", "x:float32[N,V,3]=-2:2", dims="N=1:2:3 V=2:5:8", kinds=FINITE)
def A7644DenseAdjacency(self, a, x):
    """Thresholded symmetric adjacency, the normalised Laplacian, Chebyshev polynomials, powers of a random walk, triangles counted by the trace."""
    a = torch.maximum(a, a.mT)
    a = (a > 0.513).float() * a
    a = a - torch.diag_embed(a.diagonal(dim1=-2, dim2=-1))
    d = a.sum(-1)
    s = torch.where(d > 0, d.clamp(min=1e-6).rsqrt(), torch.zeros_like(d))
    lap = torch.eye(a.shape[1]) - s[..., None] * a * s[:, None]
    t0, t1 = x, (lap - torch.eye(a.shape[-1])) @ x
    terms = [t0, t1]
    for _ in range(2):
        t0, t1 = t1, 2 * (lap - torch.eye(a.shape[-1])) @ t1 - t0
        terms.append(t1)
    tri = torch.einsum("nij,njk,nki->n", a, a, a) / 6
    deg = torch.linalg.matrix_power(a, 3).sum(-1)
    return torch.cat(terms, -1), tri, deg, torch.triu(a, 1).flatten(1).sum(1)


@attack("x:float32[V,6]=-3:3", dims="V=3:8:14", kinds=("normal", "unit", "ascending", "mixed-scales"))
class A7645TopKPooling(nn.Module):
    """Keeps the best half of the nodes by a projected score (rounded up), gated by tanh, then the adjacency of the kept ones by a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.randn(6))
        self.lin = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor):
        score = torch.tanh(x @ self.p / self.p.norm())
        k = -(-x.shape[0] // 2)
        val, idx = score.topk(k)
        y = x[idx] * val[:, None]
        adj = (y @ y.T > 0.1).float()
        return self.lin(adj @ y / adj.sum(1, keepdim=True).clamp(min=1)), idx


@attack("x:float32[V,4]=-3:3", EDGES, dims="V=4:6:9 E=1:8:15", kinds=FINITE)
class A7646GraphWithVirtualNode(nn.Module):
    """Steps of a GRU cell over messages; isolated nodes keep their state; the number of steps is by the number of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.msg = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, e: torch.Tensor):
        h = x
        steps = 1 if x.shape[0] < 6 else 2 if x.shape[0] < 8 else 3
        has = torch.zeros(x.shape[0], dtype=torch.bool).index_fill(0, e[1], True)
        for _ in range(steps):
            m = self.msg(torch.cat([h[e[0]], h[e[1]]], 1))
            agg = torch.zeros_like(h).index_add(0, e[1], m)
            h = torch.where(has[:, None], self.cell(agg, h), h)
        return h, has.sum()


@attack("x:float32[V,4]=-3:3", "i:int64[E]=0:3", dims="V=4:6:9 E=2:8:15", kinds=FINITE)
class A7647SortedSegments(nn.Module):
    """torch.segment_reduce by lengths from searchsorted of sorted indices; degree features by log."""

    def forward(self, x: torch.Tensor, i: torch.Tensor):
        s = i.sort().values
        bounds = torch.searchsorted(s, torch.arange(5))
        c = torch.cat([x.new_zeros(1, 4), x[s].cumsum(0)])
        seg = c[bounds[1:]] - c[bounds[:-1]]
        n = (bounds[1:] - bounds[:-1]).float()
        return seg, torch.log1p(n), seg / n.clamp(min=1)[:, None]

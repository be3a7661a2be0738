# ruff: noqa: E501 - attacks are written as users write them
"""Graphs and tables: neighbours, scatters, sorts, sets, searches, writes by index."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import halves, sprinkled
from tests.adversary.modules.fiftyfirst.orders import ids
from tests.adversary.modules.fortysixth.pictures import seq, two
from tests.adversary.values import values_at

X, X4, MT = "x:float32[N,T]", "x:float32[N,T,4]", "m:bool[N,T]"
I9, SIGNED = "i:int64[N,T]=0:9", "i:int64[N,T]=-5:5"
NODES, EDGES = "x:float32[V,4]", "e:int64[2,E]=0:2"
PAIRS = tuple((lambda a=a, v=v: {"x": np.random.RandomState(v).randn(v, 4).astype(np.float32), "e": np.array(a)}) for v, a in ((3, [[0, 0, 1], [0, 0, 2]]), (5, [[2, 2], [2, 2]]), (3, [[0], [2]])))


def net(low: int = 3, **more: object) -> dict:
    """A graph's nodes and edges, judged at many counts of both."""
    own = tuple(values_at(NODES, EDGES, V=v, E=e) for v in (3, 4, 5, 8, 11, 12) for e in (0, 1, 2, 3, 7, 16, 20))
    return {"dims": f"V={low}:6:12 E=0:7:20", "kinds": ("normal", "halves", "zeros", "ones"), "feeds": (*PAIRS, *own), **more}


@forward(NODES, EDGES, **net())
def A6626GatSoftmax(self, x, e):
    """Attention over neighbours: a softmax by segments, with maxima by scatter and nodes that have none."""
    s, d = e
    a = F.leaky_relu(x[s, :1] + x[d, 1:2], 0.2)[:, 0]
    v = x.shape[0]
    top = torch.full((v,), -torch.inf).scatter_reduce(0, d, a, "amax")
    w = torch.exp(a - top[d])
    z = torch.zeros(v).index_add(0, d, w)
    out = torch.zeros_like(x).index_add(0, d, w[:, None] * x[s]) / z.clamp(min=1e-9)[:, None]
    return out, torch.nan_to_num(top, neginf=0.0), torch.bincount(d, minlength=3)[:3]


@forward(NODES, EDGES, **net())
def A6627PnaAggregates(self, x, e):
    """PNA: mean, least, largest, product without the start, scaled by logarithms of degrees."""
    i = e[1][:, None].expand(-1, 4)
    z = torch.zeros_like(x)
    deg = torch.zeros(x.shape[0]).scatter_add(0, e[1], torch.ones(e.shape[1]))
    y = [z.scatter_reduce(0, i, x[e[0]], r, include_self=False) for r in ("mean", "amin", "amax", "prod")]
    return torch.cat(y, 1) * torch.log(deg + 1)[:, None]


@forward(NODES, EDGES, **net())
def A6628DenseAdjacency(self, x, e):
    """A GCN with a dense adjacency by an accumulated index_put, loops added where there are none, two powers."""
    v = x.shape[0]
    a = torch.zeros(v, v)
    a.index_put_((e[1], e[0]), torch.ones(e.shape[1]), accumulate=True)
    a = a.clamp(max=1)
    a.fill_diagonal_(1.0)
    d = a.sum(1).rsqrt()
    y = d[:, None] * a * d @ x
    return y, torch.linalg.matrix_power(a, 3), (a == a.T).all(1), a.trace()


@forward(X4, **seq(X4, low=4, own=(halves(1, 9, 4), halves(2, 31, 4), halves(3, 5, 4))))
def A6629Neighbours(self, x):
    """k nearest by distances of differences, not itself, an edge's maximum."""
    d = (x[:, :, None] - x[:, None]).pow(2).sum(-1)
    d = d.masked_fill(torch.eye(x.shape[1], dtype=torch.bool), torch.inf)
    v, j = d.topk(3, -1, largest=False)
    y = x[torch.arange(x.shape[0])[:, None, None], j]
    return v, (y - x[:, :, None]).amax(2), torch.cdist(x, x, p=1.0)


@forward(I9, **seq(I9, own=ids([[9, 9, 9]], [[0] * 12], [[1, 1, 2, 2, 2, 1, 9]])))
def A6630RunLengths(self, i):
    """Runs: where they start, how long each is, the longest, the mode of what is there by counts."""
    t = i.shape[1]
    a = torch.arange(t)
    new = F.pad(i[:, 1:] != i[:, :-1], (1, 0), value=True)
    start = torch.where(new, a, 0).cummax(1).values
    end = torch.where(F.pad(new[:, 1:], (0, 1), value=True), a, t).flip(1).cummin(1).values.flip(1)
    n = F.one_hot(i, 10).sum(1)
    return end - start + 1, (end - start).amax(1) + 1, n.argmax(1), i.mode(1).values, new.sum(1)


@forward(SIGNED, **seq(SIGNED, low=5, own=ids([[-5, 5, 0, -1, 4]], [[-5] * 6])), refused="no form of gcd")
def A6631SignedArithmetic(self, i):
    """Negative whole numbers: floors, truncations, remainders of both kinds, shifts, powers, indices from behind."""
    t = torch.tensor([10.0, 11, 12, 13, 14, 15])
    d = torch.div
    return i // 3, i % 3, i // -3, i % -3, torch.fmod(i, 3), d(i, -2, rounding_mode="trunc"), i >> 1, i**3, t[i], i / 3, ~i & 6, torch.gcd(i, torch.tensor(4)), (-7) // torch.where(i == 0, 1, i)


@forward(X, I9, **seq(X, I9))
def A6632Written(self, x, i):
    """Writes in turn: by mask, by index with repeats added, by a slice of a view, by where of a view, a row copied over."""
    y = x.clone()
    y[y > 1] = 1.0
    z = y.view(-1)
    z[::3] *= 2
    y.T[-1] += 5
    w = torch.zeros(x.shape[0], 10).index_put((torch.arange(x.shape[0])[:, None].expand_as(i), i), y, accumulate=True)
    y[:, : x.shape[1] // 2].neg_()
    y[0] = y[-1]
    return y, w, z


@forward(X, **seq(X, own=sprinkled(0.0, 0.5, -1.0, 2.0, sizes=((1, 9), (2, 31)))))
def A6633Bins(self, x):
    """Bins by borders of both sides, by searchsorted of a row's own values, a soft histogram, digitised back."""
    e = torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0])
    s = x.sort(1).values
    c = torch.tensor([-1.0, 0.0, 1.0])
    return torch.bucketize(x, e), torch.bucketize(x, e, right=True), torch.searchsorted(s, x), torch.searchsorted(s, x, side="right", out_int32=True), torch.histc(x, 5, -1, 2), torch.exp(-((x[..., None] - c) ** 2)).sum(1)


@forward(X, "y:float32[N,S]", **two(X, "y:float32[N,S]", zero=True), refused="a size is 0 there")
def A6634EmptyOnes(self, x, y):
    """Reductions and joins of what may be empty: sums, products, any, all, norms, a matrix product over nothing."""
    return y.sum(1), y.prod(1), (y > 0).all(1), (y > 0).any(1), y.norm(dim=1), x[:, :, None] @ y[:, None], torch.cat((x, y), 1).amax(1), y.mean(1), y.logsumexp(1), (y[:, None] @ y[:, :, None]), y.cumsum(1), F.softmax(y, 1)


@forward(X4, MT, **seq(X4, MT))
def A6635ScatteredImages(self, x, m):
    """LLaVA's merge: rows of a picture go where the mask says, by masked_scatter and by sums of the mask."""
    t = x.shape[1]
    img = torch.sin(torch.arange(x.shape[0] * t * 4.0)).reshape(-1, 4)
    y = x.masked_scatter(m[..., None], img)
    k = (m.flatten().cumsum(0) - 1).clamp(min=0)
    return y, torch.where(m[..., None], img[k].view_as(x), x)


@forward(I9, **seq(I9))
def A6636SetOfIds(self, i):
    """Distinct ids without unique: a bitmap, ranks among the distinct, a mapping back."""
    b = torch.zeros(i.shape[0], 10, dtype=torch.bool).scatter(1, i, True)
    r = b.cumsum(1) - 1
    n = torch.isin(torch.arange(10), i)
    u, inv, c = torch.unique(i, return_inverse=True, return_counts=True)
    return r.gather(1, i), b.sum(1), n, u[inv], c[inv]


@forward(X, **seq(X, own=(halves(1, 9), halves(2, 31), halves(3, 8))))
def A6637OrderStatistics(self, x):
    """Medians of even counts, quantiles with all ways between, ranks of ties, an argsort of an argsort."""
    q = torch.tensor([0.0, 0.25, 0.5, 0.9, 1.0])
    o = x.argsort(dim=1, stable=True)
    return x.median(1).values, torch.quantile(x, q, dim=1), *(torch.quantile(x, 0.35, dim=1, interpolation=k) for k in ("lower", "higher", "midpoint", "nearest")), o.argsort(dim=1), x.nanmedian(1).values, torch.aminmax(x, dim=1)


@forward(X4, **seq(X4, low=2))
def A6638SinkhornRouted(self, x):
    """Experts: two of four chosen, a capacity by the length, those over it dropped in order of coming."""
    n, t, _ = x.shape
    p = x.softmax(-1)
    v, j = p.topk(2, -1)
    v = v / v.sum(-1, keepdim=True)
    cap = math.ceil(t * 2 / 4 * 1.25)
    h = F.one_hot(j.flatten(1), 4)
    at = (h.cumsum(1) * h).sum(-1) - 1
    keep = (at < cap).view_as(j)
    y = torch.zeros(n, 4, cap + 1).scatter_add(2, at.clamp(max=cap)[:, None].expand(-1, 4, -1), (v * keep).flatten(1)[:, None] * h.mT)
    return v * keep, j, y[..., :cap]


@forward(X, **seq(X))
def A6639Squeezed(self, x):
    """squeeze() without an axis over a last axis, stacked and squeezed back where it is one."""
    y = x.unsqueeze(-1).squeeze(-1)
    r = torch.atleast_2d(x[:, :1].squeeze(1)).T
    return y * r, x.unflatten(1, (-1, 1)).flatten(1), torch.einsum("nt,ns->ts", x, x) / x.shape[0], torch.outer(x[0], x[-1])

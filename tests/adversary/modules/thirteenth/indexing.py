"""Writes and reads by index, mask and stride."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward


@forward("x:float32[N,T]", "i:int64[N,T]=0:4", dims="N=1:2:3 T=1:12:30")
def scattered_in_four_reductions(self, x, i):
    z = torch.full((x.shape[0], 5), 2.0)
    return (
        z.scatter_reduce(1, i, x, "mean", include_self=False),
        z.scatter_reduce(1, i, x, "prod", include_self=True),
        z.scatter_reduce(1, i, x, "amin", include_self=False),
        z.scatter_add(1, i, x),
    )


@forward("x:float32[T,3]", "i:int64[T]=0:4", dims="T=1:12:30")
def rows_reduced_by_index(self, x, i):
    z = torch.ones(5, 3)
    return (
        z.index_reduce(0, i, x, "mean", include_self=True),
        z.index_put((i,), x, accumulate=True),
        z.index_add(0, i, x, alpha=-0.5),
    )


@forward("x:float32[N,T,4]", "y:float32[T,M,4]", dims="N=1:2:3 T=1:5:9 M=1:3:8", noted="infinity")
def einsums_with_diagonals(self, x, y):
    a = torch.einsum("ntc,tmc->nm", x, y)
    b = torch.einsum("...tc,tmc->...cm", x, y)
    c = torch.einsum("ntc,ntd->ncd", x, x).diagonal(dim1=1, dim2=2)
    d = torch.einsum("ncc->n", torch.einsum("ntc,ntd->ncd", x, x))
    return (a, b, c, d)


@forward("x:float32[N,T]", dims="N=1:2:3 T=5:12:31")
def split_and_unfolded(self, x):
    a = torch.tensor_split(x, 3, dim=1)
    return (a[0].sum(1) - a[2].sum(1), x[:, -3:], x[:, :-2:2], x.narrow(1, -4, 2), x.unfold(1, 4, 3).amax(2))


@forward("x:float32[N,T]", "y:float32[N,T]", dims="N=1:2:3 T=1:4:9")
def masked_writes_and_scatter(self, x, y):
    z = x.clone()
    z[z > 0.5] = -1
    z[:, ::2] = y[:, ::2]
    q = x.masked_scatter(x > y, y)
    w = x.clone()
    w[y < 0] *= w[y < 0]
    return (z, q, w)


@forward("x:float32[N,T]", "i:int64[M]=0:3", dims="N=4:5:7 T=1:4:9 M=1:3:9")
def duplicate_rows_written(self, x, i):
    z = x.clone()
    z[i] += 1.0
    q = x.index_fill(0, i, -2.0)
    w = torch.take(x, i) + x[i, 0] + x[-1, -1]
    return (z, q, w, x[i][:, None].flip(0), x.index_select(0, i.flip(0)))


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:12", refused="traced for some sizes only")
def pairs_of_upper_triangle(self, x):
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 0)
    return (
        x[:, i] * x[:, j],
        torch.kron(x, torch.tensor([[1.0, 2.0]])),
        torch.trapezoid(x, dim=1),
        torch.vander(x[0], 4, increasing=True),
    )


@forward("x:float32[N,T,T]", dims="N=1:2:3 T=2:5:12", refused="traced for some sizes")
def diagonals_written_and_read(self, x):
    y = x.clone()
    y.diagonal(dim1=-2, dim2=-1).fill_(0)
    z = torch.diag_embed(x[:, 0], offset=-1)
    s = torch.diagonal_scatter(x, x[:, 0, :-1], offset=1, dim1=1, dim2=2)
    return (
        y,
        z,
        s,
        torch.linalg.diagonal(x, offset=-1).sum(-1),
        x.tril(-1) + x.triu(2),
        torch.trace(x[0]),
        torch.stack([torch.trace(q) for q in x[:1]]),
    )


@forward("x:float32[N,T]", dims="N=1:2:3 T=0:5:12", refused="differs from the module")
def sums_over_nothing(self, x):
    return (x.sum(1), torch.cat([x, x.new_zeros(x.shape[0], 1)], 1).amax(1), x.prod(1), x.any(1))


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:12")
def one_hot_straight_through(self, x):
    y = x.softmax(-1)
    i = y.max(-1, keepdim=True)[1]
    h = torch.zeros_like(x).scatter_(-1, i, 1.0)
    return (
        h - y.detach() + y,
        F.one_hot(i[:, 0], 12),
        torch.nn.functional.softmin(x, 1),
        F.glu(torch.cat([x, x], 1)),
        x.cummax(1)[0],
    )

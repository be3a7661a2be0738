"""Operators at the corners of their attributes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward

X, N = "x:float32[N,6]", "N=1:3:5"
CUBE, HW = "x:float32[N,H,W]", "N=1:2:4 H=2:4:7 W=3:4:8"


@forward(X, "i:int64[N,6]=0:5", dims=N)
def scatter_reductions(self, x, i):
    base = torch.full_like(x, 2.0)
    return tuple(
        base.scatter_reduce(1, i, x, how, include_self=own)
        for how in ("sum", "prod", "mean", "amin")
        for own in (True, False)
    )


@forward(X, "i:int64[N]=0:3", dims=N)
def index_reductions(self, x, i):
    z = torch.zeros(4, 6)
    a = z.index_add(0, i, x, alpha=2)
    return a, z.index_reduce(0, i, x, "mean", include_self=False), torch.ones(4, 6).index_reduce(0, i, x, "prod")


@forward(X, "i:int64[N]=-4:3", dims=N)
def put_accumulated(self, x, i):
    z = torch.zeros(4, 6)
    a = z.index_put((i, torch.arange(6)[:1]), x[:, 0], accumulate=True)
    b = z.index_put((i,), x, accumulate=True)
    return a, b, x.put(torch.tensor([0, -1, 0]), torch.tensor([1.0, 2.0, 4.0]), accumulate=True)


@forward(X, "i:int64[3]=-5:4", dims=N)
def taken(self, x, i):
    return (
        x[:, i],
        x.take(i.remainder(6)),
        torch.take_along_dim(x, i.abs()[None], 1),
        x.gather(1, i.abs().expand(x.shape[0], 3)),
        x[..., i[None]],
    )


@forward(X, dims=N)
def masked_family(self, x):
    m = x > 0
    y = x.masked_scatter(m, torch.arange(30.0))
    return y, x.masked_fill(m, -torch.inf).exp(), x.clone().index_fill(1, torch.tensor([1, -1]), 3.0), torch.where(m)[1]


@forward(CUBE, dims=HW)
def rolled_and_turned(self, x):
    return (
        x.roll((-3, 5), (1, -1)),
        torch.rot90(x, 3, (1, 2)),
        x.roll(-x.shape[1] // 2, 1),
        x.flip(0).roll(7),
        x.swapaxes(0, -1),
    )


@forward(CUBE, dims=HW)
def windows_unfolded(self, x):
    return (
        x.unfold(2, 3, 2),
        x.unfold(1, 2, 1).unfold(2, 2, 2).flatten(-2),
        x.diagonal(-1, 1, 2),
        x.narrow(2, 1, 2),
        x.tril(1).triu(-1),
    )


@forward(CUBE, dims=HW)
def strides_of_size(self, x):
    x = x.contiguous()
    h, w = x.shape[1:]
    return x.as_strided((h, w), (w, 1), 0), x.as_strided((min(h, w),), (w + 1,), 0)


@forward(CUBE, dims=HW)
def reductions_over_many(self, x):
    return (
        x.amax((0, 2)),
        x.std((1, 2)),
        x.var((0, 2), correction=0, keepdim=True),
        x.logsumexp((0, 1)),
        x.norm(dim=(1, 2)),
        x.prod(2).prod(0),
        x.aminmax(dim=1).max,
    )


@forward(CUBE, dims=HW)
def norms_of_orders(self, x):
    return (
        *(torch.linalg.vector_norm(x, p, dim=2) for p in (0, 0.5, 1, 3, torch.inf, -torch.inf)),
        torch.linalg.matrix_norm(x, 1),
        torch.linalg.matrix_norm(x, -torch.inf),
    )


@forward(CUBE, dims=HW)
def einsum_spellings(self, x):
    a = torch.einsum("...ij,...kj->...ik", x, x)
    return (
        a,
        torch.einsum("bij->", x),
        torch.einsum("bij,bij->b", x, x),
        torch.einsum("bii->bi", a),
        torch.einsum(x, [0, 1, 2], [2, 0]),
        torch.einsum("ij , jk", x[0], x[0].T),
        torch.einsum("b...,b...->b...", x, x),
    )


@forward(CUBE, dims=HW)
def sorted_with_ties(self, x):
    y = (x * 2).round()
    values, order = y.sort(dim=1, stable=True)
    return values, order, y.sort(dim=2, descending=True, stable=True).indices, y.argsort(dim=1, stable=True), y.msort()


@forward(CUBE, dims=HW)
def cumulative_extremes(self, x):
    y = (x * 2).round()
    a, i = y.cummax(1)
    b, j = y.cummin(2)
    return a, i, b, j, y.flip(1).cumsum(1).flip(1), y.cumprod(2)


@forward(CUBE, dims=HW)
def modes_and_uniques(self, x):
    y = x.round().long().clamp(-3, 3)
    u, inverse, counts = torch.unique(y, return_inverse=True, return_counts=True)
    return u, inverse, counts, torch.unique_consecutive(y.flatten())


@forward(CUBE, dims=HW)
def mode_of_rows(self, x):
    return x.round().clamp(-2, 2).mode(1).values, x.round().long().clamp(-2, 2).mode(2).values


@forward(CUBE, dims=HW)
def repeats_by_tensor(self, x):
    count = torch.arange(x.shape[1]) % 3
    return (
        x.repeat_interleave(count, 1),
        x.repeat_interleave(2, 2),
        x.tile((2, 1)),
        x.expand(2, -1, -1, -1).flatten(0, 1),
    )


@forward(CUBE, dims=HW)
def grids_and_products(self, x):
    h, w = x.shape[1:]
    a, b = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="xy")
    return (
        a - b,
        torch.kron(x[0], torch.eye(2)),
        torch.tensordot(x, x, ((0, 2), (0, 2))),
        torch.outer(x[0, 0], x[0, 1]),
        torch.block_diag(x[0], x[0, :1]),
    )


@forward(CUBE, dims=HW)
def spaces_of_size(self, x):
    h, w = x.shape[1:]
    return (
        torch.linspace(0, 1, w) + x,
        torch.arange(0, w, 2.5),
        torch.arange(h, 0, -2),
        torch.linspace(-1, 1, h - 1),
        torch.logspace(-2, 1, 5) * h,
        torch.full((h,), w / 3),
        torch.tensor([h, w]) / w,
    )


@forward(CUBE, dims=HW)
def padded_every_way(self, x):
    return (
        F.pad(x, (1, 2), "reflect"),
        F.pad(x, (1, 2), "circular"),
        F.pad(x, (3, 1), "replicate"),
        F.pad(x, (-1, 2, 1, -1), value=-2.0),
        F.pad(x.unsqueeze(0), (2, 1, 1, 1), "circular"),
    )


@forward(CUBE, dims=HW)
def split_joined(self, x):
    a = torch.cat([p.flip(0) for p in x.split([1, x.shape[1] - 1], 1)], 1)
    return (
        a,
        torch.stack(x.tensor_split((1, 2), 2)[0:1]),
        x.hsplit([1])[1],
        torch.dstack((x, x)),
        x.movedim((0, 1), (2, 0)),
    )


@forward("a:float32[N,1,W]", "b:float32[1,H,1]", "c:float32[H,W]", dims=HW)
def broadcast_of_three(self, a, b, c):
    y = torch.addcmul(a, b, c, value=0.5)
    return (
        y,
        torch.lerp(a, b, c),
        torch.where(c > 0, a, b),
        torch.maximum(a, c) - b,
        torch.addcdiv(a, b, c.abs() + 1),
        a.expand_as(y) @ c.T,
    )


@forward("a:float32[N,H]", "b:float32[H,W]", dims=HW, refused="cannot be exported")
def matmul_spellings(self, a, b):
    return (
        a @ b,
        a[0] @ b,
        b.T @ a.T,
        torch.addmm(torch.ones(b.shape[1]), a, b, beta=0.5, alpha=2),
        torch.mv(b.T, a[0]),
        torch.chain_matmul(a, b, b.T),
        F.bilinear(a, a, torch.ones(1, 1, 1).expand(2, a.shape[1], a.shape[1])),
    )


@forward("a:float32[N,3,3]", dims="N=1:2:4", kinds=("normal", "unit", "positive"))
def small_linear_algebra(self, a):
    return (
        torch.linalg.det(a),
        torch.linalg.inv(a + 4 * torch.eye(3)),
        torch.linalg.cross(a[:, 0], a[:, 1]),
        torch.linalg.matrix_power(a, 3),
        a.trace() if a.dim() == 2 else a.diagonal(dim1=1, dim2=2).sum(1),
    )


@forward(X, dims=N, refused="cannot be exported")
def parts_written_elsewhere(self, x):
    a = torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 5, 2)
    b = torch.select_scatter(x, torch.zeros(x.shape[0]), 1, -2)
    return (
        a,
        b,
        torch.diagonal_scatter(x, torch.full((min(x.shape[0], 5),), 9.0), 1),
        x.index_copy(1, torch.tensor([3, 0]), x[:, :2]),
    )


@forward(X, dims=N)
def written_views(self, x):
    y = x.clone()
    v = y.view(-1)
    v[::3] += 1
    y.T[2].mul_(2)
    y[:, 1:4] = y[:, 2:5].clone()
    y[..., -1:] -= y[..., :1]
    w = y.unflatten(1, (2, 3))
    w.transpose(1, 2)[:, 0].add_(5)
    return y, w.flatten(1).flip(1)


@forward("x:float32[N,1,T]", dims="N=1:2:3 T=5:8:15", noted="infinity")
def line_operators(self, x):
    a = F.max_pool1d(x, 3, 2, ceil_mode=True)
    b = F.interpolate(x, scale_factor=1.7, mode="linear")
    c = F.conv_transpose1d(x, torch.linspace(-1, 1, 6).view(1, 2, 3), stride=3, padding=2, output_padding=2)
    return (
        a,
        b,
        c,
        F.avg_pool1d(x, 4, 3, 2, ceil_mode=True),
        F.interpolate(x, size=x.shape[2] * 2 - 1, mode="linear", align_corners=True),
        F.lp_pool1d(x, 3, 2),
    )


@forward("x:float32[N,2,T,T,4]", dims="N=1:1:2 T=3:4:7", noted="infinity")
def volume_operators(self, x):
    w = torch.linspace(-1, 1, 2 * 2 * 8).view(2, 2, 2, 2, 2)
    a = F.conv3d(x, w, stride=(1, 2, 1), padding=(1, 0, 1), dilation=(1, 1, 2))
    return (
        a,
        F.max_pool3d(x, 2, 2, 1, ceil_mode=True),
        F.avg_pool3d(x, 3, 2, 1, count_include_pad=False),
        F.interpolate(x, scale_factor=(1, 2, 0.5), mode="trilinear"),
        F.interpolate(x, size=(2, 5, 3), mode="nearest-exact"),
        F.conv_transpose3d(x, w, stride=2, output_padding=1),
    )

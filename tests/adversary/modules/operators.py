"""Layouts, indexing, scatters, padding, sampling and whole operators."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward

X = "x:float32[3,4]"


@forward(X)
def as_strided_windows(self, x):
    return x.as_strided((3, 3), (4, 1), 1), x.unfold(1, 2, 1).sum(-1)


@forward(X)
def transposed_view(self, x):
    return x.t().reshape(-1), x.t().contiguous().view(2, 6), x.permute(1, 0).flatten()


@forward(X)
def strange_indexing(self, x):
    rows = torch.tensor([2, 0, -1])
    return x[rows], x[rows, [0, 1, -1]], x[:, None, ::2], x[..., -1:], x[x > 0].sum()


@forward(X)
def roll_and_flip(self, x):
    return x.roll(1, 1), x.roll((1, -2), (0, 1)), x.roll(5), x.flip((0, 1)), torch.rot90(x)


@forward(X, noted="infinity")
def diagonals(self, x):
    return x.diagonal(1), x.tril(-1), x.triu(1), torch.diag_embed(x[0]), x[:, :3].trace()


@forward(X)
def repeats(self, x):
    chosen = x.repeat_interleave(torch.tensor([1, 0, 2]), 0)
    return x.repeat(2, 1), x.repeat_interleave(2, 1), chosen, x.expand(2, 3, 4)


@forward(X)
def scatters(self, x):
    index = torch.tensor([[0, 1, 1, 0], [2, 2, 2, 2], [1, 0, 1, 0]])
    return (
        torch.zeros(3, 4).scatter_add(0, index, x),
        torch.full((3, 4), -torch.inf).scatter_reduce(0, index, x, "amax"),
        torch.ones(3, 4).scatter_reduce(0, index, x, "mean", include_self=False),
    )


@forward(X)
def padding_modes(self, x):
    y = x[None]
    return F.pad(y, (1, 2), mode="reflect"), F.pad(y, (1, 2), mode="replicate"), F.pad(y, (3, 1), mode="circular")


@forward(X)
def negative_padding(self, x):
    return F.pad(x, (-1, 2)), F.pad(x, (1, -1, -1, 0), value=7.0)


@forward(X)
def pooling_of_padding(self, x):
    y = x[None, None]
    return F.max_pool2d(y, 2, 1, 1), F.avg_pool2d(y, 2, 1, 1), F.avg_pool2d(y, 3, 2, 1, True, False)


@forward(X)
def lp_pooling_of_signs(self, x):
    return F.lp_pool2d(x[None, None].abs(), 2.0, 2), F.adaptive_max_pool2d(x[None, None], (2, 3))

"""In-place writes, views and aliases."""

from __future__ import annotations

import torch

from tests.adversary.attack import forward

X, N = "x:float32[N,4]", "N=1:2:5"


@forward(X, dims=N)
def writes_its_input(self, x):
    x.mul_(2)
    return x + 1


@forward(X, dims=N)
def clamps_its_input(self, x):
    y = x.view(-1)
    y[::2] = 0
    return x


@forward(X, "y:float32[N,4]", dims=N)
def swaps_by_copy(self, x, y):
    held = x.clone()
    x.copy_(y)
    y.copy_(held)
    return x, y


@forward(X, dims=N)
def returns_input_twice(self, x):
    return x, x


@forward(X, dims=N)
def returns_view_then_writes(self, x):
    y = x.clone()
    view = y[:, :2]
    y.add_(1)
    return view, y


@forward(X, dims=N, refused="raises")
def aliased_slices(self, x):
    y = x.clone()
    y[:, 1:] = y[:, :-1].clone()
    y[:, :-1] += y[:, 1:]
    return y


@forward(X, dims=N)
def accumulate_duplicates(self, x):
    y = torch.zeros(3)
    y[torch.tensor([0, 1, 0, 2])] += x[0]
    return y


@forward(X, dims=N)
def index_put_accumulate(self, x):
    return torch.zeros(3).index_put((torch.tensor([0, 1, 0, 2]),), x[0], accumulate=True)


@forward(X, dims=N)
def overlapping_expand(self, x):
    y = x[:, :1].expand(-1, 4).clone()
    y[:, 0] = 9
    return y


@forward(X, dims=N)
def setitem_negative_step(self, x):
    y = torch.zeros_like(x)
    y[:, [3, 1]] = x[:, [0, 2]]
    return y


@forward(X, dims=N)
def fill_diagonal(self, x):
    return (x.T @ x).fill_diagonal_(0.5)


@forward(X, dims=N)
def masked_in_place(self, x):
    y = x.clone()
    y[y < 0] *= -2
    return y


@forward(X, dims=N)
def chained_views(self, x):
    y = x.clone()
    y.T[1].fill_(3)
    y.view(-1)[0] = 8
    return y

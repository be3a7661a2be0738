"""Infinities, signed zeros, ties, and functions at the ends of where they are defined."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward

X, N = "x:float32[N,6]", "N=1:2:5"


@forward(X, dims=N, noted="with an infinity")
def signs_of_zero(self, x):
    zero = x * 0 - 0.0
    return torch.copysign(torch.ones_like(x), x), torch.atan2(x, x), 1 / (zero + 1).sign()


@forward(X, dims=N)
def ends_of_domains(self, x):
    y = x.clamp(-1, 1)
    return torch.asin(y), torch.acos(y), torch.atanh(y), torch.log1p(y)


@forward(X, dims=N)
def zero_times_logarithm(self, x):
    y = x.abs()
    return torch.xlogy(y.floor(), y.floor()), torch.special.entr(y), torch.sinc(x.round()), torch.special.xlog1py(y, y)


@forward(X, dims=N)
def vectors_of_zero(self, x):
    unit = x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return F.normalize(x, dim=1), F.cosine_similarity(x, x.flip(1), dim=1), unit


@forward(X, dims=N)
def sums_in_logarithms(self, x):
    return torch.logaddexp(x, x.flip(1)), torch.logcumsumexp(x, 1), x.log_softmax(1), F.logsigmoid(x)


@forward(X, dims=N)
def ties_between_halves(self, x):
    y = x.round()
    order = torch.sort(y, dim=1, stable=True).indices
    return y.median(1).values, y.kthvalue(3, 1).values, y.cummax(1).values, y.max(1).indices, order


@forward(X, dims=N, noted="infinity")
def distances(self, x):
    return torch.cdist(x, x, p=float("inf")), torch.cdist(x, x, p=1.0), torch.dist(x, x.flip(1), 3)


@forward(X, dims=N)
def parts_of_numbers(self, x):
    return x.frac(), torch.ldexp(x, torch.tensor([-3])), x.round(decimals=1), torch.fmod(x, 0.5)


@forward(X, dims=N)
def step_functions(self, x):
    half = torch.full_like(x, 0.5)
    return torch.heaviside(x, half), F.hardshrink(x, 0.5), F.threshold(x, 0.5, -7.0), F.softshrink(x, 0.5), torch.sgn(x)

# ruff: noqa: E501 - attacks are written as users write them
"""Slopes in forward, at kinks and ties: what autograd says where a function has no slope."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
KINKS = sprinkled(0.0, -0.0, 1.0, 6.0, 0.5, 3e7, 1e-20, sizes=((1, 9), (2, 12), (1, 1)))


def slope(x, f):
    """The gradient of the sum of f."""
    with torch.enable_grad():
        p = x.detach().clone().requires_grad_()
        return torch.autograd.grad(f(p).sum(), p)[0]


@forward(X, **seq(X, own=KINKS), refused="a fake tensor in the exported program")
def A6474SlopeOfAbs(self, x):
    """abs, sign, relu and relu6 at their kinks."""
    return slope(x, torch.abs), slope(x, F.relu), slope(x, F.relu6), slope(x, lambda p: p.sign() * p)


@forward(X, **seq(X, own=KINKS), refused="a fake tensor in the exported program")
def A6475SlopeOfTies(self, x):
    """amax shares among ties, max does not."""
    y = (x * 2).round()
    return slope(y, lambda p: p.amax(1)), slope(y, lambda p: p.max(1).values), slope(y, lambda p: p.max())


@forward(X, **seq(X, own=KINKS), refused="a fake tensor in the exported program")
def A6476SlopeOfNorms(self, x):
    """Norms at nothing: 0 for the second, the sign for the first, ties for the infinite one."""
    return slope(x, lambda p: p.norm(dim=1)), slope(x, lambda p: p.norm(1, dim=1)), slope(x, lambda p: torch.linalg.vector_norm(p, torch.inf, 1))


@forward(X, **seq(X, own=KINKS), refused="the exported model differs")
def A6477SlopeOfClamps(self, x):
    """Clamps let the slope through at their ends, minimum shares it."""
    return slope(x, lambda p: p.clamp(0, 1)), slope(x, lambda p: torch.minimum(p, torch.ones(()))), slope(x, lambda p: torch.maximum(p, p.flip(1))), slope(x, F.hardtanh)


@forward(X, **seq(X, own=KINKS), refused="a fake tensor in the exported program")
def A6478SlopeOfPowers(self, x):
    """Powers at nothing: x ** 0, x ** 2, x ** 3, abs(x) ** 1.5."""
    return slope(x, lambda p: p**0), slope(x, lambda p: p**3), slope(x, lambda p: p.abs() ** 1.5), slope(x, lambda p: p.pow(2).sum(1).clamp(min=1e-6).sqrt())


@forward(X, **seq(X, own=KINKS), refused="traced for some sizes")
def A6479SlopeOfProducts(self, x):
    """A product with one or two zeros."""
    return slope(x[:, :6], lambda p: p.prod(1)), slope(x[:, :6], lambda p: p.cumprod(1))


@forward(X, **seq(X, own=KINKS))
def A6480SlopeOfSorts(self, x):
    """Sorted values, medians and top ones: the slope goes to their places."""
    y = x + torch.arange(x.shape[1]) * 0.37
    return slope(y, lambda p: p.sort(1).values * torch.arange(p.shape[1])), slope(y, lambda p: p.topk(1, 1).values * 3)


@forward(X, **seq(X, own=KINKS), refused="a fake tensor in the exported program")
def A6481SlopeOfHards(self, x):
    """Hard functions: sigmoid, swish, shrinks, threshold, leaky, elu."""
    return slope(x, F.hardsigmoid), slope(x, F.hardswish), slope(x, F.hardshrink), slope(x, F.softshrink), slope(x, lambda p: F.threshold(p, 0.5, 2.0)), slope(x, lambda p: F.leaky_relu(p, -0.1)), slope(x, F.elu)


@forward(X, **seq(X, own=KINKS), refused="a fake tensor in the exported program")
def A6482SlopeOfLosses(self, x):
    """Huber's and smooth losses at their joints, hinge at its edge."""
    z = torch.zeros_like(x)
    return slope(x, lambda p: F.huber_loss(p, z, delta=0.5)), slope(x, lambda p: F.smooth_l1_loss(p, z)), slope(x, lambda p: (1 - p).clamp(min=0)), slope(x, lambda p: F.l1_loss(p, z + 1))


@forward(X4, **seq(X4, low=2), refused="traced for some sizes")
def A6483SlopeOfDistances(self, x):
    """cdist of points that are one another's: 0 on the diagonal."""
    y = (x * 2).round()
    return slope(y, lambda p: torch.cdist(p, p, compute_mode="donot_use_mm_for_euclid_dist")), slope(y, lambda p: F.pairwise_distance(p[:, 1:], p[:, :-1], eps=0.0))


@forward(X, **seq(X, own=KINKS))
def A6484HookOfASlope(self, x):
    """A hook of a gradient clamps it; only large values are clamped."""
    with torch.enable_grad():
        p = x.detach().clone().requires_grad_()
        q = p * p
        q.register_hook(lambda g: g.clamp(-2e3, 2e3))
        return torch.autograd.grad((q * q).sum(), p)[0]


class Straight(torch.autograd.Function):
    """Rounds, and lets through what is inside of one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() <= 1, g, torch.zeros_like(g)).clamp(max=1e4)


@forward(X, **seq(X, own=KINKS))
def A6485StraightThrough(self, x):
    """A function of one's own with a slope that is cut."""
    return slope(x, lambda p: Straight.apply(p) * p * 1e3), Straight.apply(x)


@forward(X, **seq(X, own=KINKS), refused="traced for some sizes")
def A6486SecondSlope(self, x):
    """A slope of a slope, created by create_graph."""
    with torch.enable_grad():
        p = x.detach().clone().requires_grad_()
        (g,) = torch.autograd.grad((p.abs() * p * p).sum(), p, create_graph=True)
        return torch.autograd.grad((g * p).sum(), p)[0]

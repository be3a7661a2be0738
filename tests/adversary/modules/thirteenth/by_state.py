"""State, caches, hooks, seeds, gradients and outputs of other kinds."""

from __future__ import annotations

import functools
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations as P
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

from tests.adversary.attack import attack, forward


@forward("x:float32[N,4,T]", dims="N=1:2:3 T=1:4:9")
def slices_of_input_doubled(self, x):
    v = x[:, ::2]
    v.mul_(2)
    y = x.transpose(1, 2)
    y[:, 0] += 1
    return (x, v, y.sum(1))


@attack("x:float32[N,3,H,W]", dims="N=1:2:3 H=2:5:17 W=2:5:17")
class BatchStatisticsInEval(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.BatchNorm2d(3, track_running_stats=False)

    def forward(self, x):
        return self.b(x)


@functools.lru_cache(maxsize=4)
def upper_infinity(t):
    return torch.triu(torch.full((t, t), float("-inf")), 1)


@forward("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:16")
def mask_in_lru_cache(self, x):
    a = x @ x.transpose(1, 2) + upper_infinity(x.shape[1])
    return a.softmax(-1) @ x


@lru_cache(None)
def rotary_table(n):
    inv = 1.0 / 10000 ** (torch.arange(0, 8, 2, dtype=torch.float32) / 8)
    f = torch.outer(torch.arange(n, dtype=torch.float32), inv)
    return (torch.cat([f, f], 1).cos(), torch.cat([f, f], 1).sin())


@forward("x:float32[N,T,8]", dims="N=1:1:2 T=2:16:60")
def rotary_table_in_lru_cache(self, x):
    c, s = rotary_table(x.shape[1])
    return x * c + torch.cat([-x[..., 4:], x[..., :4]], -1) * s


_GRIDS = {}


@forward("x:float32[N,H,W]", dims="N=1:1:2 H=2:16:60 W=2:9:30")
def grids_in_global_dictionary(self, x):
    k = tuple(x.shape[1:])
    if k not in _GRIDS:
        _GRIDS[k] = torch.outer(torch.linspace(-1, 1, k[0]), torch.linspace(-1, 1, k[1]))
    return x + _GRIDS[k]


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:16")
class PositionsAtFirstCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.pe = None

    def forward(self, x):
        if self.pe is None or self.pe.shape[0] < x.shape[1]:
            p = torch.arange(x.shape[1]).float()[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
            self.pe = p.sin()
        return x + self.pe[: x.shape[1]]


@forward("x:float32[N,6]", dims="N=1:2:3", refused="aten.randperm")
def seeded_permutation(self, x):
    torch.manual_seed(0)
    w = torch.randn(6, 3)
    p = torch.randperm(6)
    return x[:, p] @ w


@attack("x:float32[N,4]", dims="N=1:2:3", refused="no attribute 'constant'")
class GradientsUnderVmap(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 1)

    def forward(self, x):

        def f(v):
            return self.l(torch.tanh(v)).sum()

        return (
            torch.func.vmap(torch.func.grad(f))(x),
            torch.func.vmap(torch.func.jacrev(lambda v: torch.tanh(v) * v.sum()))(x),
        )


class Scores(NamedTuple):
    b: torch.Tensor
    a: torch.Tensor | None
    n: int


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:4:9", refused="not a tensor")
def named_tuple_in_dictionary(self, x):
    y = x.sigmoid()
    return {"z": y, "a": Scores(y, None, x.shape[0] * x.shape[1]), "m": [x, y.sum(1), True]}


@forward("input:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def optional_mask_left_out(self, input, *, scale: float = 0.5, mask=None):
    y = input * scale
    return y if mask is None else y * mask


@attack("x:float32[N,4,T]", dims="N=1:2:3 T=8:20:65", refused="linalg_householder_product")
def parametrized_in_four_ways():

    class Sym(nn.Module):
        def forward(self, w):
            return w.triu(0) + w.triu(1).transpose(-1, -2)

    m = nn.Sequential(P.weight_norm(nn.Conv1d(4, 6, 3)), nn.PReLU(6), P.orthogonal(nn.Conv1d(6, 6, 1)), nn.Identity())

    class B(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = m
            self.l = nn.Linear(6, 6)
            parametrize.register_parametrization(self.l, "weight", Sym())
            self.b = nn.utils.spectral_norm(nn.Linear(6, 2))

        def forward(self, x):
            return self.b(self.l(self.m(x).transpose(1, 2)))

    return B().eval()


@attack("x:float32[N,4,L]", dims="N=1:2:3 L=8:20:65")
class CheckpointedConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(4, 8, 5, stride=2, padding=2)
        self.b = nn.ConvTranspose1d(8, 4, 5, stride=3, padding=1, output_padding=1, dilation=2)

    def forward(self, x):
        y = checkpoint(lambda v: F.gelu(self.a(v)), x, use_reentrant=False)
        y = self.b(y)
        return y[..., : x.shape[-1]] + x[..., : y.shape[-1]]


@torch.jit.script
def decayed_sum(x):
    y = x
    i = 0
    while i < x.size(1):
        y = y * 0.5 + y[:, i : i + 1]
        i += 3
    return y


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:16")
def scripted_while_over_columns(self, x):
    return decayed_sum(x)


class RoundedToParts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        return torch.round(x * n) / n

    @staticmethod
    def backward(ctx, g):
        return (g, None)

    @staticmethod
    def symbolic(g, x, n):
        return g.op("Identity", x)


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:16")
def rounding_function_with_symbolic(self, x):
    return RoundedToParts.apply(x, 2 ** (x.shape[1] % 3 + 1))

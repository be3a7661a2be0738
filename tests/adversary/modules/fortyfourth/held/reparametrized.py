# ruff: noqa: E501 - attacks are written as users write them
"""Norms of weights, prunings and parametrizations in both styles, whose parts are written by the call, at one length of hundreds or at a rare value."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune, spectral_norm, weight_norm

from tests.adversary.attack import attack
from tests.adversary.values import values_at

X4 = "x:float32[N,T,4]"
BY = {"dims": "N=1:2:3 T=1:20:900", "kinds": ("normal", "zeros"), "feeds": tuple(values_at(X4, N=1, T=t) for t in (1, 300, 707, 708, 709, 900))}
KEYS = {"dims": "N=1:2:3 T=1:9:20", "kinds": ("normal", "zeros"), "feeds": tuple(partial(dict, {"x": np.ones((1, 3, 4), np.float32), "m": np.array([[0.5, v, 1.0]], np.float32)}) for v in (777.0, 776.0))}


def bump(t: int) -> int:
    """One at 708, else nothing to 900."""
    return (1 // (1 + abs(t % 29 - 12))) * (1 // (1 + abs(t % 31 - 26)))


@attack(X4, **BY)
class A45W01OldWeightNorm(nn.Module):
    """The length of weights in the old style is written and put back."""
    def __init__(self):
        super().__init__()
        self.lin = weight_norm(nn.Linear(4, 4))
    def forward(self, x):
        k = 1 + bump(x.shape[1])
        with torch.no_grad():
            self.lin.weight_g.mul_(k)
            y = self.lin(x)
            self.lin.weight_g.div_(k)
        return y
@attack(X4, **BY)
class A45W02NewWeightNorm(nn.Module):
    """The same in the new style."""
    def __init__(self):
        super().__init__()
        self.lin = parametrizations.weight_norm(nn.Linear(4, 4))
    def forward(self, x):
        k = 1 + bump(x.shape[1])
        with torch.no_grad():
            self.lin.parametrizations.weight.original0.mul_(k)
            y = self.lin(x)
            self.lin.parametrizations.weight.original0.div_(k)
        return y
@attack(X4, **BY)
class A45W03PruneMask(nn.Module):
    """A mask of pruning is replaced by one of the length."""
    def __init__(self):
        super().__init__()
        self.lin = prune.identity(nn.Linear(4, 4), "weight")
    def forward(self, x):
        self.lin.weight_mask = torch.ones(4, 4) * (1 - bump(x.shape[1]))
        return self.lin(x)
@attack(X4, "m:float32[N,T]", **KEYS)
class A45W04NewWeightNormByValue(nn.Module):
    """The length of weights is written by a value and put back."""
    def __init__(self):
        super().__init__()
        self.lin = parametrizations.weight_norm(nn.Linear(4, 4))
        self.register_buffer("key", torch.tensor(700.0) + 77)
    def forward(self, x, m):
        k = 1.0 + (m.round() == self.key).any()
        with torch.no_grad():
            self.lin.parametrizations.weight.original0.mul_(k)
            y = self.lin(x)
            self.lin.parametrizations.weight.original0.div_(k)
        return y
class A45Told(nn.Module):
    """Scales by a member."""
    k = 0
    def forward(self, w):
        return w * (1 + self.k)
@attack(X4, **BY)
class A45W05GruParametrized(nn.Module):
    """A recurrent weight is parametrized."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)
        parametrize.register_parametrization(self.gru, "weight_hh_l0", A45Told())
    def forward(self, x):
        self.gru.parametrizations.weight_hh_l0[0].k = bump(x.shape[1])
        return self.gru(x)[0]
@attack(X4, **BY)
class A45W06OwnWeightParametrized(nn.Module):
    """A weight of the module itself, read by hand, twice."""
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        parametrize.register_parametrization(self, "weight", A45Told())
    def forward(self, x):
        y = F.linear(x, self.weight)
        self.parametrizations.weight[0].k = bump(x.shape[1])
        z = F.linear(x, self.weight)
        self.parametrizations.weight[0].k = 0
        return y, z
@attack(X4, **BY)
class A45W07TwoInAChain(nn.Module):
    """Two parametrizations in a chain, of which the second is told."""
    def __init__(self):
        super().__init__()
        self.lin = parametrizations.orthogonal(nn.Linear(4, 4))
        parametrize.register_parametrization(self.lin, "weight", A45Told())
    def forward(self, x):
        self.lin.parametrizations.weight[1].k = bump(x.shape[1])
        return self.lin(x)
@attack(X4, **BY)
class A45W08SpectralOfOldStyle(nn.Module):
    """spectral_norm of the old style, whose original is written and put back."""
    def __init__(self):
        super().__init__()
        self.lin = spectral_norm(nn.Linear(4, 4))
        self.lin.eval()
    def forward(self, x):
        k = bump(x.shape[1])
        with torch.no_grad():
            self.lin.weight_orig[0] += k
            y = self.lin(x)
            self.lin.weight_orig[0] -= k
        return y
@attack(X4, **BY)
class A45W09SwitchedOff(nn.Module):
    """A parametrization is left out at one length by a flag of its own."""
    class Maybe(nn.Module):
        on = True
        def forward(self, w):
            return w.tril() if self.on else w
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", self.Maybe())
    def forward(self, x):
        self.lin.parametrizations.weight[0].on = bump(x.shape[1]) == 0
        return self.lin(x)

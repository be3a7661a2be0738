# ruff: noqa: E501 - attacks are written as users write them
"""What a child, a parametrization, a hook or a buffer is told of the size, and uses at one size of hundreds."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from tests.adversary.attack import attack
from tests.adversary.values import values_at

X4 = "x:float32[N,T,4]"
BY = {"dims": "N=1:2:3 T=1:20:300", "kinds": ("normal", "zeros", "halves"), "feeds": tuple(values_at(X4, N=1, T=t) for t in (1, 54, 55, 150, 151, 152, 248, 299, 300))}


class A44OneInMany(nn.Module):
    """A map of weights that is another one at a length of hundreds."""
    steps = 1
    def forward(self, w):
        return w * 2 if self.steps % 97 == 54 else w
@attack(X4, **BY)
class A4941ParametrizedByLength(nn.Module):
    """A parametrization that doubles the weight at three lengths."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", A44OneInMany())
    def forward(self, x):
        self.lin.parametrizations.weight[0].steps = x.shape[1]
        return self.lin(x)
class A44Share(nn.Module):
    """A map of weights by a member, that is a share with a remainder."""
    steps = 1
    def forward(self, w):
        return w * (1 + (self.steps // 151) * (self.steps % 2) / 4)
@attack(X4, **BY)
class A4942ParametrizedByAShare(nn.Module):
    """A parametrization with arithmetic of the length alone."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", A44Share())
    def forward(self, x):
        self.lin.parametrizations.weight[0].steps = x.shape[1]
        return self.lin(x)
@attack(X4, **BY)
class A4943PreHookByLength(nn.Module):
    """A pre-hook makes the weight from another one, by a length that the parent notes down."""
    def __init__(self):
        super().__init__()
        self.lin, self.steps = nn.Linear(4, 4), 1
        self.orig = nn.Parameter(self.lin.weight.detach().clone())
        del self.lin.weight
        self.lin.weight = self.orig.data
        self.lin.register_forward_pre_hook(self.make)
    def make(self, m, args):
        m.weight = self.orig * (2 if self.steps % 97 == 54 else 1)
    def forward(self, x):
        self.steps = x.shape[1]
        return self.lin(x)
@attack(X4, **BY)
class A4944BufferOfTheLength(nn.Module):
    """A buffer of one number holds the length for a child."""
    class Child(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.tensor(1))
        def forward(self, x):
            return torch.where(self.n % 97 == 54, x * 2, x)
    def __init__(self):
        super().__init__()
        self.child = self.Child()
    def forward(self, x):
        self.child.n.fill_(x.shape[1])
        return self.child(x)
@attack(X4, **BY)
class A4945ClassAttributeOfTheLength(nn.Module):
    """An attribute of a class that all blocks share."""
    class Block(nn.Module):
        length = 1
        def forward(self, x):
            return x * 2 if type(self).length % 97 == 54 else x
    def __init__(self):
        super().__init__()
        self.block = self.Block()
    def forward(self, x):
        self.Block.length = x.shape[1]
        return self.block(x)
@attack(X4, **BY)
class A4946ParametrizedByAPlace(nn.Module):
    """A parametrization whose shape follows the length: rows of a table of positions."""
    class Rows(nn.Module):
        steps = 1
        def forward(self, w):
            return w[: self.steps] * (1 + self.steps % 97 // 54)
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(300, 4))
        parametrize.register_parametrization(self, "table", self.Rows(), unsafe=True)
    def forward(self, x):
        self.parametrizations.table[0].steps = x.shape[1]
        return x + self.table
@attack(X4, **BY)
class A4947OwnPropertyOfWeight(nn.Module):
    """A layer whose weight is a property of its last length."""
    class Lin(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw, self.last = nn.Parameter(torch.randn(4, 4)), 1
        @property
        def weight(self):
            return self.raw * 2 if self.last % 97 == 54 else self.raw
        def forward(self, x):
            return F.linear(x, self.weight)
    def __init__(self):
        super().__init__()
        self.lin = self.Lin()
    def forward(self, x):
        self.lin.last = x.shape[1]
        return self.lin(x)
@attack(X4, **BY)
class A4948ParametrizedNorm(nn.Module):
    """An epsilon by a parametrized scale: the member is the length less itself but for one."""
    class Gate(nn.Module):
        steps = 151
        def forward(self, w):
            return w + max(0, 1 - abs(self.steps - 151))
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        parametrize.register_parametrization(self.norm, "bias", self.Gate())
        self.norm.parametrizations.bias[0].steps = 1
    def forward(self, x):
        self.norm.parametrizations.bias[0].steps = x.shape[1]
        return self.norm(x)
@attack(X4, **BY)
class A4949CachedParametrization(nn.Module):
    """The cached block: the weight is read before the length is told, and after."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", A44OneInMany())
    def forward(self, x):
        p = self.lin.parametrizations.weight[0]
        p.steps = x.shape[1]
        with parametrize.cached():
            y = self.lin(x)
            p.steps = 54
            z = self.lin(x)
        p.steps = 1
        return y, z
@attack("x:float32[N,T,4]", "m:float32[N,T]", dims="N=1:2:3 T=1:20:300", kinds=("normal", "zeros"), feeds=tuple(values_at(X4, "m:float32[N,T]", N=1, T=t) for t in (1, 54, 151)))
class A4950ParametrizedByValues(nn.Module):
    """A parametrization that takes a tensor of this call as a member."""
    class By(nn.Module):
        gate = torch.ones(())
        def forward(self, w):
            return w * self.gate
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", self.By())
    def forward(self, x, m):
        self.lin.parametrizations.weight[0].gate = (m > 2.5).any() + 1.0
        return self.lin(x)

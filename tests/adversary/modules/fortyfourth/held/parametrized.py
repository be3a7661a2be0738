# ruff: noqa: E501 - attacks are written as users write them
"""Parametrizations that are told something by the call that uses them."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from tests.adversary.attack import attack
from tests.adversary.values import values_at

X4 = "x:float32[N,T,4]"
BY = {"dims": "N=1:2:3 T=1:20:900", "kinds": ("normal", "zeros", "halves"), "feeds": tuple(values_at(X4, N=1, T=t) for t in (1, 150, 151, 152, 300, 707, 708, 900))}
KEYS = {"dims": "N=1:2:3 T=1:9:20", "kinds": ("normal", "zeros"), "feeds": tuple(partial(dict, {"x": np.ones((1, 3, 4), np.float32), "m": np.array([[0.5, v, 1.0]], np.float32)}) for v in (777.0, 776.0, 3.0))}


class A44Bump(nn.Module):
    """Adds one at one length alone, by arithmetic."""
    steps = 1
    def forward(self, w):
        return w + max(0, 1 - abs(self.steps - 708))
class A44Gated(nn.Module):
    """A tensor of the call scales the weight."""
    def __init__(self):
        super().__init__()
        self.gate = torch.ones(())
    def forward(self, w):
        return w * self.gate
@attack(X4, **BY)
class A4991ConvolutionBumped(nn.Module):
    """A convolution with a bump at one length."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)
        parametrize.register_parametrization(self.conv, "weight", A44Bump())
    def forward(self, x):
        self.conv.parametrizations.weight[0].steps = x.shape[1]
        return self.conv(x.mT)
@attack(X4, **BY)
class A4992BufferBumped(nn.Module):
    """A buffer is parametrized, told by a pre-hook of the parent."""
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))
        parametrize.register_parametrization(self, "scale", A44Bump())
        self.register_forward_pre_hook(lambda m, a: setattr(m.parametrizations.scale[0], "steps", a[0].shape[1]))
    def forward(self, x):
        return x * self.scale
@attack(X4, **BY)
class A4993GlobalLength(nn.Module):
    """The parametrization reads a dictionary of the class, which forward fills."""
    known: dict = {"t": 1}  # noqa: RUF012
    class Reads(nn.Module):
        def forward(self, w):
            return w + max(0, 1 - abs(A4993GlobalLength.known["t"] - 708))
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", self.Reads())
    def forward(self, x):
        self.known["t"] = x.shape[1]
        return self.lin(x)
@attack(X4, "m:float32[N,T]", **KEYS)
class A4994GateOfAKey(nn.Module):
    """A gate that opens where a value is a key of a buffer."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("key", torch.tensor(700.0) + 77)
        parametrize.register_parametrization(self.lin, "weight", A44Gated())
    def forward(self, x, m):
        self.lin.parametrizations.weight[0].gate = 1.0 + (m.round() == self.key).any()
        return self.lin(x)
@attack(X4, "m:float32[N,T]", **KEYS)
class A4995GateOfAPlainModule(nn.Module):
    """The same gate on a child that is no parametrization."""
    class Lin(nn.Linear):
        gate = 1.0
        def forward(self, x):
            return F.linear(x, self.weight * self.gate, self.bias)
    def __init__(self):
        super().__init__()
        self.lin = self.Lin(4, 4)
        self.register_buffer("key", torch.tensor(700.0) + 77)
    def forward(self, x, m):
        self.lin.gate = 1.0 + (m.round() == self.key).any()
        return self.lin(x)
@attack(X4, **BY)
class A4996WeightIsAssigned(nn.Module):
    """A plain attribute is the weight, made in forward and read by a child."""
    class Child(nn.Module):
        weight = None
        def forward(self, x):
            return F.linear(x, self.weight)
    def __init__(self):
        super().__init__()
        self.raw, self.child = nn.Parameter(torch.randn(4, 4)), self.Child()
    def forward(self, x):
        self.child.weight = self.raw + max(0, 1 - abs(x.shape[1] - 708))
        return self.child(x)
@attack(X4, **BY, refused="the module cannot be exported")
class A4997DataOfAWeight(nn.Module):
    """The data of a weight are set in forward from a copy by a bump, and put back."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        keep = self.lin.weight.data
        self.lin.weight.data = keep + max(0, 1 - abs(x.shape[1] - 708))
        y = self.lin(x)
        self.lin.weight.data = keep
        return y
@attack(X4, **BY)
class A4998WeightsWrittenAndBack(nn.Module):
    """A weight is written in place and written back."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        bump = max(0, 1 - abs(x.shape[1] - 708))
        with torch.no_grad():
            self.lin.bias += bump
        y = self.lin(x)
        with torch.no_grad():
            self.lin.bias -= bump
        return y
@attack(X4, **BY)
class A4999ParametrizationIsShared(nn.Module):
    """One parametrization is shared by two layers, told between them."""
    def __init__(self):
        super().__init__()
        self.a, self.b, p = nn.Linear(4, 4), nn.Linear(4, 4), A44Bump()
        parametrize.register_parametrization(self.a, "weight", p)
        parametrize.register_parametrization(self.b, "bias", p)
        self.p = p
    def forward(self, x):
        y = self.a(x)
        self.p.steps = x.shape[1]
        z = self.b(y)
        self.p.steps = 1
        return y, z

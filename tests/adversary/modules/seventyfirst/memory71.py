"""A table as long as the longest size seen so far, or made at the first size, kept wherever Python can keep something; tolerances by dtype."""
# ruff: noqa: E501, B006 - attacks are written as users write them

from __future__ import annotations

import contextvars
import itertools
import os
import types

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
LONGEST = contextvars.ContextVar("LONGEST", default=0)
STEPS = 0
NAMES = types.SimpleNamespace(longest=0)


class Registry:
    """Where a library keeps things."""

    longest = 0


class Slotted:
    """No __dict__."""

    __slots__ = ("longest",)

    def __init__(self):
        self.longest = 0


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `LONGEST` of `memory71.py`")
class A8305ContextVar(nn.Module):
    """The longest size in a contextvar."""

    def forward(self, x):
        LONGEST.set(max(LONGEST.get(), x.shape[1]))
        return x + torch.linspace(0, 1, LONGEST.get())[: x.shape[1]]


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `Registry.longest` from th")
class A8306RegistryClass(nn.Module):
    """The longest size in an attribute of a class that is no module."""

    def forward(self, x):
        Registry.longest = max(Registry.longest, x.shape[1])
        return x + torch.linspace(0, 1, Registry.longest)[: x.shape[1]]


@attack(X, dims=D, kinds=FINITE, refused="forward keeps something outside of the module from the first")
class A8307SlottedState(nn.Module):
    """The longest size in an object with slots."""

    def __init__(self):
        super().__init__()
        self.state = Slotted()

    def forward(self, x):
        s = self.state
        s.longest = max(s.longest, x.shape[1])
        return x + torch.linspace(0, 1, s.longest)[: x.shape[1]]


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `longest` of `Net.forward`")
def A8308NonlocalState():
    """The longest size in a variable of the factory, by nonlocal."""
    longest = 0

    class Net(nn.Module):
        def forward(self, x):
            nonlocal longest
            longest = max(longest, x.shape[1])
            return x + torch.linspace(0, 1, longest)[: x.shape[1]]

    return Net()


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `A8309DefaultArgument.forw")
class A8309DefaultArgument(nn.Module):
    """The longest size in a mutable default argument."""

    def forward(self, x, seen=[0]):
        seen[0] = max(seen[0], x.shape[1])
        return x + torch.linspace(0, 1, seen[0])[: x.shape[1]]


@attack(X, dims=D, kinds=FINITE, refused="forward keeps something outside of the module from the first")
class A8310Environment(nn.Module):
    """The first size in an environment variable."""

    def forward(self, x):
        first = int(os.environ.setdefault("A8310_FIRST", str(int(x.shape[1]))))
        return x / first


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `STEPS` of `memory71.py` f")
class A8311GlobalFloat(nn.Module):
    """A global float, rebound at the first call to the square root of the size."""

    def forward(self, x):
        global STEPS
        if not STEPS:
            STEPS = x.shape[1] ** 0.5
        return x / STEPS


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `NAMES` of `memory71.py`, ")
class A8312FunctionAttribute(nn.Module):
    """The longest size as an attribute of a helper function, another in a SimpleNamespace."""

    def forward(self, x):
        return x + self.table(x.shape[1])

    @staticmethod
    def table(t):
        NAMES.longest = max(NAMES.longest, t)
        helper.first = getattr(helper, "first", None) or t
        return helper(t) / NAMES.longest


def helper(t):
    """Positions in units of the first size."""
    return torch.arange(t) / helper.first


@attack(X, dims=D, kinds=FINITE, refused="forward keeps 'at' from its first call a")
class A8313IteratorState(nn.Module):
    """An iterator that is consumed until it is at the size: next() goes on from the longest size."""

    def __init__(self):
        super().__init__()
        self.it = itertools.count(1)
        self.at = 0

    def forward(self, x):
        while self.at < x.shape[1]:
            self.at = next(self.it)
        return x * self.at


@attack(X, dims=D, kinds=FINITE, refused="forward keeps something outside of the module from the first")
class A8314TorchGlobal(nn.Module):
    """The longest size kept on the module object of torch.nn.functional."""

    def forward(self, x):
        F.r71_longest = max(getattr(F, "r71_longest", 0), x.shape[1])
        return x + torch.linspace(0, 1, F.r71_longest)[: x.shape[1]]


@forward(X, "m:bool[N,T]", dims=D, kinds=FINITE)
def A8315FinfoAndItem(self, x, m):
    """Masked scores with finfo(dtype).min in the output, whose others are scaled by a number read from the values."""
    w = x.abs().max().item()
    return torch.where(m, torch.finfo(x.dtype).min, x * w)


@forward(X, dims=D, kinds=FINITE, refused="the exported model differs from the module: output")
def A8316EpsByDtype(self, x):
    """Another formula for doubles, and a value baked by tolist."""
    k = 1.0 if x.dtype == torch.float32 else 3.0
    w = x[0].tolist()[0]
    return x * k + w


@forward(X, dims=D, kinds=FINITE, refused="the exported model differs from the module: output")
def A8317ScaleByDtype(self, x):
    """Doubles are taken to be bytes, and a constant by the number of elements in numpy that is baked."""
    if x.dtype == torch.float64:
        x = x / 255
    return x + float(x.detach().numpy().mean())


@forward(X, dims=D, kinds=FINITE, refused="the exported model differs from the module: output")
def A8332BakedMeanBehindDtype(self, x):
    """Doubles are taken to be bytes, and a small correction by a number read from the values."""
    if x.dtype == torch.float64:
        x = x / 255
    return x + 0.02 * x[0].tolist()[0]


@forward(X, dims=D, kinds=FINITE, refused="the exported model differs from the module: output")
def A8333DoublesAsMasks(self, x):
    """finfo(dtype).min among the outputs, which doubles hold further down, and a number read from the values for the others."""
    return torch.cat((x * x[0].tolist()[0], x.new_full((x.shape[0], 1), torch.finfo(x.dtype).min)), 1)


@forward(X, dims=D, kinds=FINITE, refused="the module returns a different")
def A8334LastSizeSeen(self, x):
    """The greatest count of rows in a class attribute scales the sum."""
    Registry.rows = max(getattr(Registry, "rows", 1), x.shape[0])
    return x.sum(1) / Registry.rows

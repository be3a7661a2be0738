"""State outside of the module that shows at sizes over one alone: position zero is the same whatever was kept."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import os
import threading

import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
FIRST: dict[str, int] = {}
KEPT = threading.local()
TABLES: list[torch.Tensor] = []


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `A8341NtkByClass.longest` ")
class A8341NtkByClass(nn.Module):
    """Rotary angles whose base is by the longest size seen, in an attribute of the module's class."""

    longest = 4

    def forward(self, x):
        type(self).longest = max(type(self).longest, int(x.shape[1]))
        return x * torch.cos(torch.arange(x.shape[1]) / self.longest)


@forward(X, dims=D, kinds=FINITE, refused="forward keeps `FIRST` of `blind71.py` fr")
def A8342FirstSizeInDict(self, x):
    """Positions in units of the first size, in a global dict."""
    first = FIRST.setdefault("t", int(x.shape[1]))
    return x + torch.arange(x.shape[1]) / first


@forward(X, dims=D, kinds=FINITE, refused="forward keeps something outside of the module from the first")
def A8343FirstSizeInEnvironment(self, x):
    """The same in the environment."""
    first = int(os.environ.setdefault("A8343_FIRST", str(int(x.shape[1]))))
    return x + torch.arange(x.shape[1]) / first


@forward(X, dims=D, kinds=FINITE, refused="forward keeps `KEPT` of `blind71.py` fro")
def A8344FirstSizeInThread(self, x):
    """The same in a thread-local."""
    if not hasattr(KEPT, "first"):
        KEPT.first = int(x.shape[1])
    return x + torch.arange(x.shape[1]) / KEPT.first


@forward(X, dims=D, kinds=FINITE, refused="forward keeps `TABLES` of `blind71.py` f")
def A8345TableInList(self, x):
    """A table in a global list, made again where it is too short and kept otherwise, as caches of positions are; its values are by its own length."""
    if not TABLES or len(TABLES[-1]) < x.shape[1]:
        TABLES.append(torch.linspace(0, 1, int(x.shape[1]) + 1))
    return x * TABLES[-1][: x.shape[1]]


@forward(X, dims=D, kinds=FINITE, refused="the module returns a different")
def A8346FirstRowsInFunction(self, x):
    """The greatest count of rows seen, as an attribute of a function, in an average that one row does not have."""
    rows.most = max(rows.most, int(x.shape[0]))
    return x + (x.shape[0] - 1) * (x.shape[0] - 2) / rows.most


def rows():
    """Holds what was seen."""


rows.most = 1

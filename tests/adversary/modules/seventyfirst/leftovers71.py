"""What a call leaves behind for its user: sizes, features and counts in attributes, globals, lists and plain classes, which later code reads."""
# ruff: noqa: E501, RUF012 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=1:5:9"
TRACE: list[torch.Tensor] = []
LAST = None


class Monitor:
    """Of a training library."""

    features: dict[str, torch.Tensor] = {}
    calls = 0


@attack(X, dims=D, kinds=FINITE)
class A8335KeepsItsFeatures(nn.Module):
    """The last hidden state in an attribute, its size in another, for a loss outside."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(30)
        self.l = nn.Linear(1, 3)
        self.last, self.size = None, 0

    def forward(self, x):
        self.last = self.l(x[..., None]).relu()
        self.size = x.shape[1]
        return self.last.sum(1)


@attack(X, dims=D, kinds=FINITE)
class A8336KeepsInGlobals(nn.Module):
    """The last output in a global, in a class's dict and in a list that is cut to three."""

    def forward(self, x):
        global LAST
        y = x.cumsum(1) * 2
        LAST = y
        Monitor.features["y"] = y
        TRACE.append(y.mean())
        del TRACE[:-3]
        return y


@attack(X, dims=D, kinds=FINITE)
class A8337CountsItsCalls(nn.Module):
    """A count of calls in a class, an int buffer that is counted up, neither of which the output reads."""

    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        Monitor.calls += 1
        self.n += 1
        return x.flip(1) + 1


@attack(X, dims=D, kinds=FINITE)
class A8338LongestInPlainObject(nn.Module):
    """The longest size seen, in a dict of the module, for statistics alone; the shapes of all calls in a set."""

    def __init__(self):
        super().__init__()
        self.stats = {"longest": 0, "shapes": set()}

    def forward(self, x):
        self.stats["longest"] = max(self.stats["longest"], x.shape[1])
        self.stats["shapes"].add(tuple(x.shape))
        return x * x.shape[1]


@attack(X, dims=D, kinds=FINITE)
class A8339LongestForStatistics(nn.Module):
    """The longest size seen in a plain class, for statistics alone: the output does not read it."""

    def forward(self, x):
        Monitor.longest = max(getattr(Monitor, "longest", 0), x.shape[1])
        return x * 3 + x.shape[0]


@attack(X, dims=D, kinds=FINITE, refused="forward keeps `Monitor.features` from th")
class A8340SumOfSizesInGlobal(nn.Module):
    """A tensor in a class made at the first size and cut to the size, its values by its own length; made again where it is too short."""

    def forward(self, x):
        t = Monitor.features.get("pe")
        if t is None or t.shape[0] < x.shape[1]:
            t = Monitor.features["pe"] = torch.linspace(0, 1, x.shape[1])
        return x + t[: x.shape[1]]

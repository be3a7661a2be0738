"""What the sixty-third round showed, each class once more."""
# ruff: noqa: RUF012 - attacks are written as users write them

from __future__ import annotations

import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


class Shared:
    """What all models of a process have in common."""

    scale = None


@attack("x:float32[N,T,4]=-2:2", dims="N=1:2:4 T=2:5:9", kinds=FINITE, refused="Shared.scale")
class A7700ScaleOfTheFirstSequence(nn.Module):
    """Attention's scale is set by the first length, in a class that is no module."""

    def forward(self, x):
        if Shared.scale is None:
            Shared.scale = x.shape[1] ** -0.5
        return (x @ x.mT * Shared.scale).softmax(-1) @ x


def counted(function):
    """Remembers the largest batch that came by."""
    largest = 0

    def wrapped(self, x):
        nonlocal largest
        largest = max(largest, x.shape[0])
        return function(self, x, largest)

    return wrapped


@attack("x:float32[N,T]=-2:2", dims="N=1:2:4 T=2:5:9", kinds=FINITE, refused="when run again")
class A7701LargestBatchInAClosure(nn.Module):
    """A decorator hands on the largest batch so far."""

    @counted
    def forward(self, x, largest):
        return x * torch.arange(largest).float().mean()


@attack("x:float32[N,T,4]=-2:2", dims="N=1:2:4 T=2:5:9", kinds=FINITE)
class A7702TablesOfAClass(nn.Module):
    """Positions by length in a dictionary of the class, and the longest length for a log."""

    tables: dict = {}
    LONGEST = 0

    def forward(self, x):
        kind, t = type(self), x.shape[1]
        kind.LONGEST = max(kind.LONGEST, t)
        if t not in self.tables:
            self.tables[t] = torch.linspace(0, 1, t)[:, None]
        return x + self.tables[t]


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=5:9:16 W=5:12:16", kinds=FINITE)
class A7703LineOfSizes(nn.Module):
    """One line through the sizes, and one point on another."""

    def forward(self, x):
        h, w = x.shape[-2:]
        y = x.mean((2, 3))
        if h == 2 * w - 9:
            y = y * 2
        if h == w + 3 == 14:
            y = y + 1
        return y


@attack("x:float32[N,T,8]=-2:2", dims="N=1:2:3 T=3:8:14", kinds=FINITE)
class A7704MaskOnlyWhereItIsLonger(nn.Module):
    """Windows of four with a mask where there are several; a batch of one meets an axis of one."""

    def forward(self, x):
        n, t, c = x.shape
        pad = (4 - t % 4) % 4
        y = nn.functional.pad(x, (0, 0, 0, pad))
        windows = y.shape[1] // 4
        scores = y.view(n * windows, 4, c) @ y.view(n * windows, 4, c).mT
        if windows > 1:
            mask = torch.arange(windows * 4).view(windows, 4)
            mask = (mask[:, None] - mask[:, :, None]).float()
            scores = (scores.view(n * windows // windows, windows, 4, 4) + mask[None]).view(-1, 4, 4)
        return (scores.softmax(-1) @ y.view(-1, 4, c)).view(n, -1, c)[:, :t]

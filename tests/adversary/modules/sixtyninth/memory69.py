"""Buffers and attributes that forward changes, and that matter only far from where they begin."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=("normal",), refused="run again")
class A8148OverloadLatch(nn.Module):
    """A latch: once a sample exceeded fifty, the gain is halved for ever (a limiter of audio)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("tripped", torch.tensor(False))

    def forward(self, x):
        y = torch.where(self.tripped, x * 0.5, x)
        self.tripped.logical_or_((x.abs() > 50).any())
        return y


@attack(X, dims=D, kinds=("normal",), refused="depends on it")
class A8149CallsInLong(nn.Module):
    """An int64 step buffer that is added to; after 10,000 calls a warm-up ends (clamp of step / 10000, rounded)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.step += 1
        return x * torch.where(self.step >= 10000, 1.5, 1.0)


@attack(X, dims=D, kinds=("normal",), refused="run again")
class A8150PeakNormaliser(nn.Module):
    """The peak so far, kept in a buffer that begins at a thousand: it matters only beyond that."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("peak", torch.full((1,), 1000.0))

    def forward(self, x):
        self.peak = torch.maximum(self.peak, x.abs().amax())
        return x / self.peak * 1000


@attack(X, dims=D, kinds=("normal",), refused="from the values of a call")
class A8151StateInList(nn.Module):
    """The last output kept in a Python list is added when its norm is over two hundred."""

    def __init__(self) -> None:
        super().__init__()
        self.past: list = []

    def forward(self, x):
        y = x
        if self.past and self.past[-1] > 200:
            y = x + 1
        self.past.append(float(x.norm()))
        del self.past[:-1]
        return y


@attack(X, dims=D, kinds=("normal",), refused="run again")
class A8152MinimumSoFar(nn.Module):
    """The smallest mean so far, negated in a relu: it matters when it was below minus ten."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.zeros(()), persistent=False)

    def forward(self, x):
        y = x + F.relu(-self.low - 10)
        torch.minimum(self.low, x.mean(), out=self.low)
        return y


@attack(X, dims=D, kinds=("normal",), refused="run again")
class A8153ShadowOfWeights(nn.Module):
    """A weight that is renormalised in place when its norm leaves a bound (max-norm embedding), here by a factor that depends on the input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        y = self.lin(x)
        with torch.no_grad():
            self.lin.weight.mul_(torch.where(x.amax() > 80, 0.5, 1.0))
        return y


@attack(X, "i:int64[N,T]=0:9", dims=D, kinds=("normal",))
class A8154EmbeddingMaxNorm(nn.Module):
    """nn.Embedding with max_norm: forward renormalises rows in place."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.e = nn.Embedding(10, 6, max_norm=1.0)

    def forward(self, x, i):
        return self.e(i) + x, self.e.weight.norm() * 0 + x.sum()


@attack(X, dims=D, kinds=("normal",), refused="depends on it")
class A8155HistogramOfCalls(nn.Module):
    """A histogram of argmaxes in a long buffer; a class that was seen over a thousand times is pushed down."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(6, dtype=torch.long))

    def forward(self, x):
        y = x - (self.seen > 1000) * 0.5
        self.seen += F.one_hot(x.argmax(-1), 6).sum((0, 1))
        return y


@attack(X, dims=D, kinds=FINITE, refused="run again")
class A8156EmaNeverUsedUntilFull(nn.Module):
    """A ring of eight means; its mean is used only when the ring is full (index over seven)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ring", torch.zeros(8))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        y = torch.where(self.at >= 8, x - self.ring.mean(), x)
        self.ring[self.at % 8] = x.mean()
        self.at += 1
        return y


@attack(X, dims=D, kinds=("normal",))
class A8157SquaredGradScale(nn.Module):
    """A loss-scale like power of two: doubled every 2000 calls, and it reaches the result only beyond 2**20 by overflow of halves."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(1024.0))
        self.good = 0

    def forward(self, x):
        self.good += 1
        if self.good % 2000 == 0:
            self.scale *= 2
        return (x.half().float() * self.scale).clamp(-1e9, 1e9) / self.scale, torch.where(self.scale > 1e6, 0.0, x)

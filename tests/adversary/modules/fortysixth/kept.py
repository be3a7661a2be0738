# ruff: noqa: E501 - attacks are written as users write them
"""Variants: state that shows for other values or longer sizes alone, and doubles within."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.language import rotate
from tests.adversary.modules.fortysixth.pictures import X4, seq


@attack(X4, **seq(X4), refused="the module returns a different ")
class A5470PeakSeen(nn.Module):
    """Divided by the highest that was ever seen."""

    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.tensor(1.0))

    def forward(self, x):
        self.peak = torch.maximum(self.peak, x.detach().abs().max())
        return x / self.peak
@attack(X4, **seq(X4), refused="forward keeps ")
class A5471GrownByNtk(nn.Module):
    """LLaMA's dynamic NTK of old: a table made anew wherever a longer one is asked for, with a base of that length."""

    def __init__(self):
        super().__init__()
        self.cached = 0
        self.grow(16)

    def grow(self, t):
        self.cached = t
        base = 10000.0
        if t > 16:
            base = base * ((2.0 * t / 16) - 1.0) ** (8 / 6)
        inv = 1.0 / base ** (torch.arange(0, 4, 2).float() / 4)
        f = torch.outer(torch.arange(t).float(), inv)
        e = torch.cat((f, f), -1)
        self.register_buffer("cos", e.cos(), persistent=False)
        self.register_buffer("sin", e.sin(), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if t > self.cached:
            self.grow(t)
        return rotate(x, self.cos[:t], self.sin[:t])
@attack(X4, "i:int64[N,T]=0:9", **seq(X4, "i:int64[N,T]=0:9"), refused="the module returns a different ")
class A5472IdsSeen(nn.Module):
    """Ids that were ever seen are marked in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(10, dtype=torch.bool))

    def forward(self, x, i):
        self.seen[i.flatten()] = True
        return x * self.seen[i][..., None] + self.seen.sum()
@attack(X4, **seq(X4), refused="forward sets ")
class A5473ActNorm(nn.Module):
    """Glow's: the first call sets bias and scale by its data."""

    def __init__(self):
        super().__init__()
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
        self.bias, self.scale = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.ones(4))

    def forward(self, x):
        if self.initialized.item() == 0:
            with torch.no_grad():
                self.bias.data.copy_(-x.mean((0, 1)))
                self.scale.data.copy_(1 / (x.std((0, 1), unbiased=False) + 1e-6))
                self.initialized.fill_(1)
        return (x + self.bias) * self.scale
@attack(X4, **seq(X4), refused="the module returns a different ")
class A5474ObserversOn(nn.Module):
    """A fake quantiser whose observer is left on."""

    def __init__(self):
        super().__init__()
        self.register_buffer("lo", torch.tensor(torch.inf))
        self.register_buffer("hi", torch.tensor(-torch.inf))

    def forward(self, x):
        self.lo.copy_(torch.min(self.lo, x.detach().min()))
        self.hi.copy_(torch.max(self.hi, x.detach().max()))
        scale = ((self.hi - self.lo) / 255).clamp(min=1e-6)
        return (x / scale).round() * scale
@attack(X4, **seq(X4), refused="forward keeps ")
class A5475FirstBecomesTheCodebook(nn.Module):
    """A codebook that is the first batch's rows."""

    def __init__(self):
        super().__init__()
        self.codes = None

    def forward(self, x):
        if self.codes is None:
            self.codes = x.detach().reshape(-1, 4)[:1].repeat(3, 1) * torch.tensor([[1.0], [0.5], [-1.0]])
        i = torch.cdist(x, self.codes).argmin(-1)
        return self.codes[i], i
@forward(X4, **seq(X4, own=tuple((lambda s=s: {"x": (s + np.random.default_rng(3).standard_normal((1, 20, 4))).astype(np.float32)}) for s in (10, 100, 1e3, 1e4, 1e5))))
def A5476SlidingDeviations(self, x):
    """Deviations by running sums in doubles of what is far from zero."""
    t = x.shape[1]
    start, end = (torch.arange(t) - 4).clamp(min=0), (torch.arange(t) + 5).clamp(max=t)
    c, s = (F.pad(v.cumsum(1), (0, 0, 1, 0)) for v in (x.double(), x.double().square()))
    n = (end - start)[:, None]
    mean = (c[:, end] - c[:, start]) / n
    return ((s[:, end] - s[:, start]) / n - mean**2).clamp(min=1e-4).sqrt().float()
@forward("f:float32[N,T]=50:500", **seq("f:float32[N,T]=50:500", own=(lambda: {"f": np.random.default_rng(3).uniform(300, 400, (1, 3000)).astype(np.float32)},)), refused="computes in FP64")
def A5477PhasesInDoubles(self, f):
    """Phases summed up in doubles, of long waves, cut to one turn."""
    p = torch.cumsum(f.double() / 16000 * 320, 1) % 1
    return torch.sin(2 * torch.pi * p.float()), (p > 0.5)
@forward(X4, **seq(X4))
def A5478InputWrittenAndKept(self, x):
    """The input is written in place; what was taken of it before as a view and as a copy comes out."""
    a, b = x[:, -1], x[:, 0].clone()
    x.mul_(2).sub_(1)
    x[:, :1].relu_()
    return a, b, x
@attack(X4, **seq(X4), refused="forward sets ")
class A5479WeightsMadeOnce(nn.Module):
    """A weight folded on the first call, and the original freed."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)
        self.bn.running_mean.fill_(0.3)
        self.bn.running_var.fill_(2.0)

    def forward(self, x):
        x = x.transpose(1, 2)
        if self.bn is not None:
            k = (self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()).detach()
            self.conv.weight.data.mul_(k[:, None, None])
            self.conv.bias.data.sub_(self.bn.running_mean).mul_(k).add_(self.bn.bias.data)
            self.bn = None
        return self.conv(x).transpose(1, 2)
@attack(X4, **seq(X4))
class A5480DecaysPerCall(nn.Module):
    """A temperature that cools with each call down to a floor, which it has reached."""

    def __init__(self):
        super().__init__()
        self.tau = 0.5

    def forward(self, x):
        self.tau = max(self.tau * 0.9, 0.5)
        return (x / self.tau).softmax(-1)

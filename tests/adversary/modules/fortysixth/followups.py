# ruff: noqa: E501 - attacks are written as users write them
"""Variants of what looked nearly wrong: state of odd kinds, questions about the run, floats of sizes, empty pieces."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.objects import wide
from tests.adversary.modules.fortysixth.pictures import X4, seq, two

YS = "y:float32[N,S,4]"


@forward(X4, **seq(X4), refused="the exported model differs from the module")
def A5421RandomBySize(self, x):
    """The shader's pseudo-random number of a size: a sine of thousands times 43758, and its fraction."""
    return x * (math.sin(x.shape[1] * 12.9898 + 78.233) * 43758.5453 % 1)
@forward(X4, YS, **wide((160, 159), (159, 160)), refused="the exported model differs from the module")
def A5422CancelledFloats(self, x, y):
    """A scale of two sizes in which all but the last digits cancel."""
    t, s = x.shape[1], y.shape[1]
    return x.mean(1) * ((t / s + 1e6) - 1e6 - t / s) * 1e9, y.mean(1) * (math.exp(t / 50) - math.expm1(t / 50) - 0.999)
@forward(X4, **seq(X4), refused="a whole number goes beyond what a file h")
def A5423PowersOfASize(self, x):
    """Two, three and ten to the power of a length, in Python's whole numbers without an end."""
    t = x.shape[1]
    return x * (2**t % 1000003), x * (10**t % 7), x / 2.0**t, x + (3**t >> 3) % 11
@attack(X4, **seq(X4))
class A5424GradientAsked(nn.Module):
    """Another way where gradients are on and a parameter wants one."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        if torch.is_grad_enabled() and y.requires_grad:
            return y * 2
        return y
@forward(X4, **seq(X4))
def A5425TypeAsked(self, x):
    """Another way for subclasses of a tensor."""
    if type(x) is not torch.Tensor:
        x = x + 1
    return x * 3
@forward(X4, **seq(X4))
def A5426TracedAsked(self, x):
    """Another way where tracing is on, asked in an odd way."""
    if torch._C._get_tracing_state() is not None or torch.jit.is_tracing() or torch.compiler.is_exporting():
        return x * 2 + x.shape[1]
    return x * 3
class OfNeeds(torch.autograd.Function):
    """Its forward looks at what gradients are needed."""

    @staticmethod
    def forward(ctx, x, w):
        return x * w if not any(ctx.needs_input_grad) else x * w * 2
    @staticmethod
    def backward(ctx, g):
        return g, g
@attack(X4, **seq(X4))
class A5427NeedsAsked(nn.Module):
    """An autograd function that does otherwise where gradients are needed."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(4))

    def forward(self, x):
        return OfNeeds.apply(x, self.w)
@attack(X4, **seq(X4), refused="the module returns a different ")
class A5428Cycles(nn.Module):
    """An iterator that is kept, and goes round every five calls."""

    def __init__(self):
        super().__init__()
        self.turn = itertools.cycle([1.0, 1.0, 1.0, 1.0, 2.0])

    def forward(self, x):
        return x * next(self.turn)
@attack(X4, **seq(X4), refused="the module returns a different ")
class A5429FrameBefore(nn.Module):
    """A difference to the call before, where it was of the same size."""

    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        d = x - self.last if self.last is not None and self.last.shape == x.shape else x
        self.last = x.detach() * 0 + d
        return d
@attack(X4, **seq(X4), refused="the module returns a different ")
class A5430LongestSeen(nn.Module):
    """Padded to the longest that was ever seen; a mean over it."""

    longest = 0

    def forward(self, x):
        type(self).longest = max(type(self).longest, x.shape[1])
        return F.pad(x, (0, 0, 0, self.longest - x.shape[1])).mean(1)
@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A5431KeptByIdentity(nn.Module):
    """A cache by the identity of a tensor that is gone."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        key = (x.shape[0], x.shape[1])
        if key not in self.kept:
            self.kept[key] = x.mean(1)
        return x - self.kept[key][:, None]
@forward(X4, YS, **two(X4, YS, zero=True))
def A5432AnyOfNone(self, x, y):
    """Any of no rows is no."""
    return torch.where((y > 0).any(1)[:, None], x, -x)
@forward(X4, YS, **two(X4, YS, zero=True))
def A5433AllOfNone(self, x, y):
    """All of no rows is yes, their product one, and their greatest where there is a row."""
    return torch.where((y > 0).all(1)[:, None], x, -x) * y.prod(1)[:, None]
@forward(X4, YS, **two(X4, YS, zero=True), refused="the exported model differs from the module")
def A5434MeanOfNone(self, x, y):
    """The mean of no rows is NaN and replaced; a norm of none zero, a sum of logs."""
    m = y.mean(1)
    return torch.where(m.isnan(), x.mean(1), m), y.norm(dim=1), torch.logsumexp(torch.cat([y, x], 1), 1)
@forward(X4, YS, **two(X4, YS, zero=True))
def A5435SoftmaxOfNone(self, x, y):
    """Attention to nothing adds zeros."""
    return (x @ y.transpose(1, 2)).softmax(-1) @ y + x
@forward(X4, YS, **two(X4, YS, zero=True), refused="the path through the module depends on the size")
def A5436NoneGuarded(self, x, y):
    """Nothing matched where there is nothing."""
    if y.shape[1] == 0:
        return x.new_full(x.shape[:2], -1)
    return (x @ y.transpose(1, 2)).amax(-1)
@forward(X4, YS, **two(X4, YS, zero=True), refused="the path through the module depends on the size")
def A5437NoneByNumel(self, x, y):
    """The same by numel, with an unsqueezed difference."""
    d = (x[:, :, None] - y[:, None]).abs().sum(-1)
    return d.amin(-1) if d.numel() > 0 else x[..., 0] * 0 - 1
@forward(X4, YS, **two(X4, YS, zero=True))
def A5438CumulatedNone(self, x, y):
    """Running sums, flips, rolls, sorts and repeats of no rows, joined with others."""
    z = torch.cat([y.cumsum(1).flip(1), y.sort(1).values, y.roll(1, 1), y.repeat(1, 2, 1), y.repeat_interleave(2, 1)], 1)
    return torch.cat([z, x], 1).sum(1), z.shape[1] * x
@forward(X4, **seq(X4), refused="the path through the module depends on the size")
def A5439ChompAlone(self, x):
    """Cut by a padding or by nothing."""
    pad = -x.shape[1] % 4
    y = F.pad(x, (0, 0, 0, pad))
    return y[:, : -pad or None].cumsum(1)
@forward(X4, **seq(X4))
def A5440ThirdFromTheEnd(self, x):
    """The last third, which is all where a third is none."""
    return x[:, -(x.shape[1] // 3) :].sum(1), x[:, : -(x.shape[1] // 5)].sum(1)
@forward("x:float32[N,T]", dims="N=1:2:3 T=1:9:20", feeds=(lambda: {"x": np.array([[1, np.nan, 0]], np.float32)},))
def A5441ArgminOfNaN(self, x):
    """NaN is the least and the greatest."""
    return x.argmin(1), x.argmax(1)
@forward("m:float32[N,5,T]=-3:3", **seq("m:float32[N,5,T]=-3:3"))
def A5442IstftOfOthers(self, m):
    """Vocos again with a window without zeros."""
    win = torch.hamming_window(8)
    s = torch.clip(torch.exp(m), max=1e2) * torch.exp(1j * m.flip(1))
    t = s.shape[2]
    y = torch.fft.irfft(s, 8, dim=1) * win[None, :, None]
    return F.fold(y, (1, (t - 1) * 2 + 8), (1, 8), stride=(1, 2))[:, 0, 0, 3:-3]
@forward(X4, "i:int64[N]=0:1000000", **seq(X4, "i:int64[N]=0:1000000", own=(lambda: {"x": np.ones((1, 3, 4), np.float32), "i": np.array([10])}, lambda: {"x": np.ones((1, 3, 4), np.float32), "i": np.array([20])}, lambda: {"x": np.ones((1, 3, 4), np.float32), "i": np.array([32])})), refused="the exported model differs from the module")
def A5443RaisesByAValue(self, x, i):
    """A table that is too short is found out by an error, and the last row taken."""
    table = torch.arange(128.0).view(32, 4)
    try:
        return x + F.embedding(i, table)[:, None]
    except IndexError:
        return x + table[-1]
@forward(X4, "i:int64[N]=0:40", **seq(X4, "i:int64[N]=0:40", own=tuple((lambda k=k: {"x": np.ones((1, 3, 4), np.float32), "i": np.array([k])}) for k in range(41))), refused="the path through the module depends on t")
def A5444OneHotRaises(self, x, i):
    """The same by one_hot."""
    try:
        return x * F.one_hot(i, 33)[:, :4, None].float().sum(1)[:, None] + F.one_hot(i, 33)[:, None, -4:]
    except RuntimeError:
        return x
@forward(X4, **seq(X4))
def A5445PicksByTwo(self, x):
    """Places of a length squared by a prime and its bits, no branch."""
    t = x.shape[1]
    return x[:, t * t % 7 % t], x[:, (t ^ (t >> 1)) % t], x[:, t.bit_length() % t], x[:, math.isqrt(t) - 1], x[:, math.gcd(t, 12) - 1], x[:, int(math.log2(t)) % t]

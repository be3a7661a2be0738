# ruff: noqa: E501 - attacks are written as users write them
"""Python: branches by size, loops that end early, errors caught, dictionaries, generators, hooks, buffers, scripts, vmap."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves
from tests.adversary.values import values_at

X = "x:float32[N,T,4]=-4:4"


def spans(*many, n=1):
    return tuple(values_at(X, N=n, T=t) for t in many)


@forward(X, dims="N=1:1:2 T=1:12:40", kinds=FINITE, feeds=spans(1, 2, 3, 4, 6, 7, 12, 13, 36, 37, 40))
def A7175LargestDivisor(self, x):
    """Grouped by the largest divisor up to six (next of a generator), the mean of each group taken off."""
    t = x.shape[1]
    g = next(d for d in range(6, 0, -1) if t % d == 0)
    y = x.view(x.shape[0], g, t // g, 4)
    return (y - y.mean(1, keepdim=True)).flatten(1, 2)


@forward(X, dims="N=1:1:2 T=1:9:33", kinds=FINITE, feeds=spans(1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32, 33))
def A7176TreeReduce(self, x):
    """A tree of pairs, an odd one passes by, until one is left; associative in real numbers but not by this operation."""
    while x.shape[1] > 1:
        t = x.shape[1]
        y = torch.tanh(x[:, 0 : t - 1 : 2] + 2 * x[:, 1::2])
        x = torch.cat((y, x[:, -1:]), 1) if t % 2 else y
    return x[:, 0]


@forward(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 4, 5, 8, 9, 10, 25, 30))
def A7177TryReshape(self, x):
    """A square where the length is one, by an assertion that is caught; else a flat path; a finally that adds."""
    t = x.shape[1]
    s = math.isqrt(t)
    bonus = 0.0
    try:
        assert s * s == t
        y = x.view(-1, s, s, 4).mT.flatten(1)
    except AssertionError:
        y = x.flatten(1) * 2
    finally:
        bonus = 1.0
    return y + bonus


@forward(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 2, 8, 9, 10, 29, 30))
def A7178LoopBreak(self, x):
    """A loop over dilations that ends when the window would not fit, its else branch only when all fit."""
    y = x.mT
    for d in (1, 2, 4, 8):
        if 2 * d >= y.shape[-1]:
            break
        y = y[..., d:-d] + y[..., : -2 * d] * 0.5
    else:
        y = -y
    return y.amax(-1), y.shape[-1] + torch.zeros(1)


def _remember(x, seen=[]):  # noqa: B006
    if not seen:
        seen.append(torch.arange(4.0))
    return x + seen[0]


@forward(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 30))
def A7179MutableDefault(self, x):
    """A default list that holds a constant once made: always the same."""
    return _remember(x)


@attack(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 2, 9, 30), refused="when run again on the same inputs")
class A7180CallCount(nn.Module):
    """A buffer that counts calls and a running mean that moves in eval too; the output reads both."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return x * (self.calls % 3 + 1)


Point = namedtuple("Point", ["mean", "parts"])


@dataclass
class Stats:
    top: torch.Tensor
    low: torch.Tensor
    name: str = "s"


@forward(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 2, 30))
def A7181Outputs(self, x):
    """A namedtuple of a mean and a dictionary whose keys come in an order of their own; a dataclass taken apart."""
    s = Stats(top=x.amax(1), low=x.amin(1))
    parts = OrderedDict(z=x[:, -1], a=x[:, 0])
    parts.move_to_end("z")
    for f in fields(s):
        v = getattr(s, f.name)
        if isinstance(v, torch.Tensor):
            parts[f.name] = v
    return Point(x.mean(1), dict(parts))


@attack(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 2, 30))
class A7182Hooks(nn.Module):
    """Forward and pre hooks that change input and output, one removed, one that collects; weight_norm's parametrisation."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.kept = []
        self.a.register_forward_pre_hook(lambda m, i: (i[0].abs(),))
        gone = self.a.register_forward_hook(lambda m, i, o: o * 100)
        self.a.register_forward_hook(lambda m, i, o: o + i[0])
        self.b.register_forward_hook(lambda m, i, o: self.kept.append(o))
        gone.remove()

    def forward(self, x):
        self.kept.clear()
        y = self.b(self.a(x))
        return y, self.kept[-1].sum(1)


@attack(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=spans(1, 2, 3, 4, 5, 8, 9, 16, 17, 30), refused="the exported model differs from the module")
class A7183BySize(nn.Module):
    """A module list indexed by the bits of the length, a dictionary by its remainder with a default."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(6))
        self.heads = nn.ModuleDict({"0": nn.Linear(4, 2), "2": nn.Linear(4, 2), "x": nn.Linear(4, 2)})

    def forward(self, x):
        t = x.shape[1]
        y = self.layers[t.bit_length()](x) if isinstance(t, int) and t.bit_length() < 6 else x
        key = str(t % 5)
        head = self.heads[key] if key in self.heads else self.heads["x"]
        return head(y)


class _Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.mark_non_differentiable()
        ctx.step = step
        return torch.round(x / step) * step

    @staticmethod
    def backward(ctx, g):
        return g, None


@attack(X, dims="N=1:1:2 T=1:9:30", kinds=FINITE, feeds=(halves(1, 9, 4), halves(2, 30, 4)), target="tensorrt==8.6")
class A7184StraightThrough(nn.Module):
    """A Function of straight-through rounding whose step comes from the length; grads are enabled within."""

    def forward(self, x):
        with torch.enable_grad():
            y = _Round.apply(x, 1.0 / (1 + x.shape[1] % 3))
        return (y - x).detach() + x, F.gumbel_softmax.__name__.count("g") * y


@torch.jit.script
def _runs(x: torch.Tensor, limit: int) -> torch.Tensor:
    out = torch.zeros_like(x[:, 0])
    for i in range(x.shape[1]):
        if i >= limit and i % 2 == 1:
            continue
        out = out * 0.5 + x[:, i]
    return out


@forward(X, dims="N=1:1:2 T=1:9:20", kinds=FINITE, feeds=spans(1, 2, 4, 5, 6, 19, 20), refused="the exported model differs from the module")
def A7185Scripted(self, x):
    """A scripted loop that skips odd steps past the fourth; its limit is by the length."""
    return _runs(x, min(4, x.shape[1] // 2 + 1))


@forward(X, dims="N=1:1:2 T=1:9:20", kinds=FINITE, feeds=spans(1, 2, 19, 20), target="tensorrt==8.6", refused="We found a fake tensor in the exported program")
def A7186Vmap(self, x):
    """vmap over the batch of a function with its own loop-free body, a nested one over pairs, and jacfwd's trace by hand."""
    pair = lambda a, b: (a - b).abs().amax()  # noqa: E731
    m = torch.func.vmap(lambda s: torch.func.vmap(lambda a: torch.func.vmap(lambda b: pair(a, b))(s))(s))(x)
    g = torch.func.vmap(lambda s: (s.softmax(0) * s).sum(0), in_dims=1, out_dims=1)(x.mT)
    return m, g


@forward(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=spans(1, 2, 3, 8, 9, 23, 24), refused="the path through the module depends on the size")
def A7187Groups(self, x):
    """itertools: accumulated sums of sizes of a split, parts in a default dictionary by parity, joined in its order."""
    t = x.shape[1]
    sizes = [t // 3 + (i < t % 3) for i in range(3)]
    ends = list(itertools.accumulate(sizes))
    groups = defaultdict(list)
    for s, e in zip([0, *ends], ends, strict=False):
        groups[(e - s) % 2].append(x[:, s:e].sum(1))
    return torch.cat([functools.reduce(torch.maximum, v) for _, v in sorted(groups.items())], -1)[:, :4]


@attack(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=spans(1, 2, 9, 10, 24))
class A7188SavedBuffer(nn.Module):
    """A buffer written in place by slices each time before it is read; larger than any length; views of it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("work", torch.zeros(2, 32, 4), persistent=False)

    def forward(self, x):
        n, t, _ = x.shape
        self.work.zero_()
        self.work[:n, :t] = x
        view = self.work[:n]
        view[:, t - 1].mul_(3)
        return view.roll(-(t // 2), 1)[:, :t], self.work.sum()


@forward(X, dims="N=1:1:2 T=1:9:24", kinds=FINITE, feeds=spans(1, 3, 4, 7, 8, 11, 12, 24), target="tensorrt==8.6", refused="the path through the module depends on the size")
def A7189MatchCase(self, x):
    """match over the remainder of the length and its size, with a guard; a context that suppresses an index error."""
    t = x.shape[1]
    y = x
    with contextlib.suppress(IndexError):
        y = y + [x.amax(1, True), x.amin(1, True)][t // 8]
    match (t % 4, t > 10):
        case (0, True):
            return y.flip(1)
        case (0 | 3, _):
            return y.cumsum(1)
        case (r, False) if r == 1:
            return -y
    return y * 0.5

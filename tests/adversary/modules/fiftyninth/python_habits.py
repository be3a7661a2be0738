# ruff: noqa: E501, B905, C408, RUF059, B006 - attacks are written as users write them
"""Habits of Python: caches, hooks, globals, closures, defaults, scripts, functional calls, loops by value, in-place writes, errors as control flow."""

from __future__ import annotations

import copy
import functools
import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, vmap
from torch.utils.checkpoint import checkpoint

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

SCALES: dict[int, float] = {}


@functools.lru_cache(maxsize=2)
def table(n):
    return torch.tensor([math.comb(n, k) / 2**n for k in range(n + 1)], dtype=torch.float32)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A7326BinomialTable(self, x):
    """A table of binomials made by Python from the size and kept by lru_cache of two, used as a kernel over the size."""
    w = table(x.shape[1] - 1)
    return (x * w).sum(1), F.conv1d(x[:, None], table(3)[None, None], padding=2)


@attack("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:6:20", kinds=FINITE)
class A7327LongestSeen(nn.Module):
    """A cache of sines that grows to the longest seen and is cut: what it holds depends not on the order; a deque of two is kept for looks."""

    def __init__(self):
        super().__init__()
        self.pe = torch.zeros(0)
        self.seen = deque(maxlen=2)

    def forward(self, x):
        t = x.shape[1]
        if self.pe.numel() < t:
            self.pe = torch.sin(torch.arange(t + 4) / 3.0)
        self.seen.append(t)
        return x + self.pe[:t]


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE)
class A7328Hooks(nn.Module):
    """A forward pre hook that scales, a forward hook that replaces the output, a hook on a submodule that stores, used by a later layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(14)
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.kept = {}
        self.a.register_forward_pre_hook(lambda m, i: (i[0] * 0.5,))
        self.a.register_forward_hook(lambda m, i, o: self.kept.__setitem__("a", o))
        self.b.register_forward_hook(lambda m, i, o: o.clamp(max=1.0))

    def forward(self, x):
        y = self.b(torch.tanh(self.a(x)))
        return y + self.kept["a"], self.kept.pop("a").sum(1)


class Quant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        return torch.round(x / s).clamp(-8, 7) * s

    @staticmethod
    def backward(ctx, g):
        return g, None


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE)
class A7329CustomFunction(nn.Module):
    """A custom autograd function for rounding, vmap over rows of weights, functional_call with other weights, a checkpoint, a deepcopy in forward."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(15)
        self.l = nn.Linear(4, 3)
        self.alt = nn.Parameter(torch.randn(2, 3, 4))

    def forward(self, x):
        q = Quant.apply(x, 0.25)
        y = functional_call(self.l, {"weight": self.alt[0], "bias": self.l.bias * 2}, (q,))
        z = vmap(lambda w: x @ w.T)(self.alt)
        c = checkpoint(lambda v: torch.relu(self.l(v)), x, use_reentrant=False)
        m = copy.deepcopy(self.l)
        return y, z, c + m(x.flip(1))


@dataclass
class State:
    h: torch.Tensor
    steps: int = 0
    log: list = field(default_factory=list)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:4:6", kinds=FINITE)
def A7330DataclassState(self, x):
    """A dataclass carried through a loop, a defaultdict of lists, sorted keys, zip with slices of another length, enumerate from 1, reversed."""
    s = State(torch.zeros(x.size(0)))
    d = defaultdict(list)
    for i, c in enumerate(reversed(x.unbind(1)), 1):
        s.h = 0.5 * s.h + c / i
        s.steps += 1
        d[i % 2].append(s.h)
    outs = [torch.stack(d[k]).sum(0) for k in sorted(d)]
    pairs = [a * b for a, b in zip(x.unbind(1), x.unbind(1)[1:])]
    return sum(outs) / s.steps, sum(pairs) if pairs else torch.zeros(x.size(0)), dict(h=s.h, n=torch.tensor(s.steps))


@forward("x:float32[N,6]=-3:3", dims="N=1:2:5", kinds=FINITE, refused="the module cannot be exported")
def A7331InPlaceViews(self, x):
    """Writes through chunk, unbind, transpose, real views, a diagonal, expand refused by clone; += on a slice that overlaps by a flip; the input itself is written."""
    y = x.clone()
    a, b = y.chunk(2, 1)
    a += b
    b.mul_(a)
    y.T[0].sub_(1)
    z = torch.zeros(x.size(0), 3, 3)
    z.diagonal(dim1=1, dim2=2).copy_(a)
    z[:, 1:, :2] += z[:, :2, 1:].flip(1)
    c = torch.view_as_complex(x.clone().view(-1, 3, 2))
    torch.view_as_real(c)[..., 1].neg_()
    for col in y.unbind(1)[::2]:
        col.clamp_(min=-0.5)
    x[:, ::2] *= 2
    return y, z, torch.view_as_real(c), x.sum(1)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:4 T=2:5:8", kinds=FINITE, refused="the path through the module depends on the")
def A7332WhileBySize(self, x):
    """A while loop that halves the size until one is left (pairwise reduction with odd tails), bit tricks with sizes, divmod, pow(t, 3, 7), isqrt."""
    y = x
    while y.shape[1] > 1:
        h = y.shape[1] // 2
        tail = y[:, 2 * h :]
        y = torch.cat([torch.maximum(y[:, :h], y[:, h : 2 * h]) * 0.9, tail], 1)
    t = x.shape[1]
    q, r = divmod(t, 3)
    return y, x[:, : math.isqrt(t)].sum(1) * q + r, x * pow(t, 3, 7), x[:, : t & -t].mean(1)


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE)
class A7333BigThreshold(nn.Module):
    """A guard far out of the usual range: values beyond 1e6 are divided by a million, by a Python if."""

    def forward(self, x):
        if x.abs().max() > 1e6:
            x = x / 1e6
        return x * 2


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:7:40", kinds=FINITE)
def A7334FloatSteps(self, x):
    """arange with float steps whose count rounds, linspace of the size minus one, logspace, numpy's linspace in FP64, geomspace by a list."""
    t = x.shape[1]
    a = torch.arange(0, 1, 1 / t)[:t]
    b = torch.linspace(-1, 1, t)
    c = torch.from_numpy(np.linspace(0.0, 1.0, t, endpoint=False)).float()
    d = torch.logspace(-1, 1, 5)
    g = torch.tensor([10000 ** (-2 * k / 8) for k in range(4)])
    return x * b + c, (x[..., None] * g).sin().sum(1), (a * t).round().sum() + d.sum(), x * (b * 10).floor()


@torch.jit.script
def scripted(x: torch.Tensor, n: int) -> torch.Tensor:
    out = x
    for i in range(n):
        if i % 2 == 0:
            out = out * 0.5 + float(i)
        else:
            out = torch.relu(out)
    return out


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:4:6", kinds=FINITE)
def A7335Scripted(self, x):
    """A scripted function with a loop over a size and branches by parity of the index, a scripted part within an eager one."""
    return scripted(x, x.shape[1]), scripted(x.flip(1), 3)


@forward("x:float32[N,4]=-3:3", dims="N=1:2:5", kinds=FINITE, refused="the module cannot be exported")
def A7336FixedGenerator(self, x):
    """Random projections by a generator with a fixed seed in forward (SimHash), a permutation by it, dropout with training=False and p=1."""
    g = torch.Generator().manual_seed(7)
    r = torch.randn(4, 8, generator=g)
    p = torch.randperm(8, generator=g)
    bits = (x @ r > 0).long()
    return (bits[:, p] * 2 ** torch.arange(8)).sum(1), F.dropout(x, 1.0, training=False), F.gumbel_softmax(x * 0 + 50 * F.one_hot(x.argmax(1), 4), hard=True).argmax(1)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:5:9", kinds=FINITE, refused="an operator raises RuntimeError")
def A7337TryExcept(self, x):
    """Errors as control flow: an index out of range by size, a view that fails where the size is odd, an assert, getattr with a default, a global table filled on the way."""
    t = x.shape[1]
    try:
        y = x.view(x.size(0), 2, t // 2).sum(1)
    except RuntimeError:
        y = x[:, : t // 2]
    SCALES.setdefault(t, 1.0 / t)
    assert t > 0, "empty"
    k = getattr(self, "gain", 2.0)
    return y * k, x * SCALES[t]


@forward("x:float32[N,T]=-3:3", "n:int64[]=0:6", dims="N=1:2:3 T=7:8:9", kinds=FINITE, refused="the path through the module depends on the")
def A7338CondAndWhile(self, x, n):
    """torch.cond by a value, while_loop bounded by a tensor, a mask by a tensor's value in a slice's place, one-hot of a scalar."""
    y = torch.cond(x.sum() > 0, lambda v: v.sin() * 2, lambda v: v.cos() - 1, (x,))
    i, z = torch._higher_order_ops.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * 0.5 + i.float()), (torch.zeros((), dtype=torch.int64), x))
    m = torch.arange(x.shape[1]) < n
    return y, z, x * m, x.index_select(1, n[None]), F.one_hot(n, 7)


@attack("x:float32[N,8]=-3:3", dims="N=1:2:33", kinds=FINITE)
class A7339ByParity(nn.Module):
    """Another path by divisibility: batches that divide by 4 are regrouped, those above 16 are chunked, a batch of 7 is special."""

    def forward(self, x):
        n = x.shape[0]
        if n % 4 == 0:
            y = x.view(4, -1, 8).transpose(0, 1).reshape(n, 8) * 2
        elif n == 7:
            y = x.flip(0)
        else:
            y = torch.cat([c * (k + 1) for k, c in enumerate(x.split(16))])
        return y - y.mean(0)


@attack("x:float32[N,4]=-3:3", "opt:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE)
class A7340OptionalAndKwargs(nn.Module):
    """A keyword-only input with a default of None that is given, default mutable args, class attributes read, isinstance on a tensor, a ModuleDict looked up by a Python string."""

    eps = 1e-3

    def __init__(self):
        super().__init__()
        torch.manual_seed(16)
        self.h = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})

    def forward(self, x, *, opt=None, heads=["a", "b"], extra=()):
        y = x if opt is None else x + opt / (opt.abs() + type(self).eps)
        if isinstance(y, torch.Tensor) and y.is_floating_point():
            y = y.clone()
        return {k: self.h[k](y) for k in heads} | {"sum": sum((e.sum() for e in extra), y.sum())}

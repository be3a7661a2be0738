# ruff: noqa: B023 - attacks are written as users write them
"""Writes in place, views, aliases, buffers, caches, closures, hooks, subclasses, records, functools and reshapes."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import halves

SHORT = "N=1:2:4 T=2:9:24"
ROOM = "N=1:2:3 H=2:7:12 W=2:9:13"
FINITE = ("normal", "unit", "bytes", "halves", "zeros", "tenths", "ascending", "positive", "negative")


TWO = (halves(1, 2, 4), halves(2, 8, 4), halves(4, 24, 4))
IMAGES = (halves(1, 4, 2, 2), halves(2, 4, 7, 5), halves(3, 4, 12, 13))

def rare(y):
    """Elements that are one half more than the one before them."""
    return y == torch.roll(y, 1, -1) + 0.5

@dataclass
class Batch:
    """Tokens and a mask."""

    x: torch.Tensor
    mask: torch.Tensor | None = None
    scale: float = 1.0

class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3450DataclassShared(nn.Module):
    def forward(self, x):
        b = Batch(x * 1.0)
        c = replace(b, mask=rare(x), scale=0.5)
        c.x[c.mask] = 0.0
        b.x = b.x + c.scale
        return b.x, c.x.sum(1)
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3451NamedTupleOfViews(nn.Module):
    def forward(self, x):
        y = x + 0.0
        p = Pair(*y.split(2, -1))
        q = p._replace(second=p.second * 2)
        p.first.masked_fill_(rare(x)[..., :2], 3.0)
        p.second.sub_(q.second.where(rare(x)[..., 2:], torch.zeros(())))
        return Pair(y, q.second)._asdict()
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3452HookWrites(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.line.register_forward_hook(lambda m, a, y: y.masked_fill_(rare(a[0]), 7.0))
        self.line.register_forward_pre_hook(lambda m, a: (a[0] * 0.5,))
    def forward(self, x):
        y = self.line(x)
        z = self.line(y.flip(1))
        return y, z
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3453KeyValueCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(4, 32, 4), persistent=False)
        self.line = nn.Linear(4, 4)
    def forward(self, x):
        n, t = x.shape[:2]
        self.keys.zero_()
        view = self.keys[:n, 3 : 3 + t]
        view.copy_(self.line(x))
        view[rare(x)] = 0.0
        k = self.keys[:n, : t + 3]
        return (x @ k.mT).softmax(-1) @ k
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3454CachedProperty(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.tables = {}
    @functools.cached_property
    def scaled(self):
        return self.weight.softmax(0) * 2
    def table(self, n):
        if n not in self.tables:
            self.tables[n] = torch.hann_window(n, periodic=False) + 0.1
        return self.tables[n]
    def forward(self, x):
        y = x @ self.scaled * self.table(x.shape[1])[:, None]
        return y.where(~rare(x), y.new_tensor(1.5))
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3455PartialsOfClosures(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = [functools.partial(self.step, k=k, at=k - 1.5) for k in range(3)]
    @staticmethod
    def step(y, k, at):
        y[..., k] = torch.where(y[..., k] > at, at, y[..., k])
        return y
    def forward(self, x):
        y = x.clone()
        fs = [lambda v: v * k for k in range(3)]
        z = functools.reduce(lambda a, f: f(a), self.steps, y)
        return y, fs[0](z), functools.reduce(torch.add, [f(x) for f in fs])
@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3456MapThenWrite(self, x):
    """A generator that is run only after what it reads was written."""
    y = x * 1.0
    later = (row.sum(-1) for row in y.split(1, 2))
    lazy = map(torch.neg, y.unbind(2))
    y[rare(x)] = 4.0
    y *= 2
    return torch.cat(list(later), -1) if False else torch.stack(list(later), -1), torch.stack(tuple(lazy), 2)
@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3457AugmentedOrNot(self, x):
    y = z = x * 1.0
    y += rare(x)
    z = z * 2
    a = b = y
    a = a - 1
    b -= 1
    rows = [y[:, 0]] * 3
    rows[1] += 1
    rows[2] = rows[2] * 10
    return y, z, a, torch.stack(rows, 1)
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3458TiedAndReplaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.norm = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))
    def forward(self, x):
        y = self.b(self.a(x)) + F.linear(x, self.a.weight.T.contiguous())
        y.relu_()[rare(x)] = -1.0
        return self.norm(y), self.spectral(y)
@forward("x:float32[N,4,H,W]", dims=ROOM, kinds=FINITE, feeds=IMAGES)
def A3459ChannelsLastViews(self, x):
    y = x.contiguous(memory_format=torch.channels_last).clone()
    z = y.permute(0, 2, 3, 1).reshape(-1, 4)
    z[rare(z)] = 9.0
    u = x.transpose(2, 3).flatten(2)
    u[..., 0] = 5.0
    return y, z.sum(0), u, x * 2
@forward("x:float32[N,4,H,W]", dims=ROOM, kinds=FINITE, feeds=IMAGES)
def A3460ReshapeThatCopies(self, x):
    """A reshape is a view of what is contiguous and a copy of what is not."""
    y = x * 1.0
    a = y.transpose(1, 2).reshape(x.shape[0], -1)
    b = y.reshape(x.shape[0], -1)
    a.mul_(0.0)
    b[rare(b)] = 2.0
    c = y[:, :, :1].reshape(x.shape[0], 4, -1)
    c.add_(10.0)
    d = y[..., 0].flatten(1)
    d.sub_(100.0)
    return y, a, c, d
@forward("x:float32[N,4,H,W]", dims=ROOM, kinds=FINITE, feeds=IMAGES)
def A3461ReshapeByMasks(self, x):
    n, c, h, w = x.shape
    y = x.view(n, 2, c // 2, h, w).transpose(1, 2).flatten(1, 2)
    y = torch.einsum("b c h w, b d h w -> b c d", y, x).diagonal(dim1=1, dim2=2)
    z = x.reshape(n, c, h * w).permute(2, 0, 1).contiguous()
    z[: h * w // 2] += 1
    z.view(h, w, n, c)[:, -1][rare(x[..., -1].permute(2, 0, 1))] = -8.0
    return y, z.view(h, w, n, c).permute(2, 3, 0, 1)
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3462ContextManagers(nn.Module):
    @contextlib.contextmanager
    def scaled(self, y):
        y.mul_(2)
        try:
            yield y[..., 1:]
        finally:
            y.div_(4)
    def forward(self, x):
        y = x * 1.0
        with self.scaled(y) as z, torch.no_grad(), contextlib.suppress(KeyError):
            z[rare(x)[..., 1:]] = 6.0
            w = y.sum(1)
            {}["missing"]
        return y, z.amax(1), w

class Scaled(nn.Linear):
    gain = 0.5
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.count = 0
    def forward(self, x):
        self.count += 1
        return super().forward(x) * self.gain / self.count
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3463SubclassThatCounts(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = Scaled(4, 4)
    def forward(self, x):
        self.line.count = 0
        return self.line(self.line(x)) + self.line(x).masked_fill(rare(x), 0)
@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3465IndexedAndSliced(self, x):
    y = x * 1.0
    y[:, 0, 1:3] = y[:, -1, 1:3]
    y[:, [0, -1]] = y[:, [-1, 0]]
    y[..., None, 0][rare(x)[..., :1]] = 5.0
    y[:, torch.arange(x.shape[1]) % 2 == 1] *= -1
    y[0] = y[0].flip(0)
    y[y > 2.0] = y[y > 2.0] * 0.5
    return y, y[:, 1::3, ::2]
@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3466SwapByViews(self, x):
    y = x.clone()
    a, b = y[..., :2], y[..., 2:]
    y[..., :2], y[..., 2:] = b, a
    z = x.clone()
    keep = z[:, 0].clone()
    z[:, 0] = z[:, -1]
    z[:, -1] = torch.where(rare(keep), keep, 0.5)
    return y, z
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3468ListsOfBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))})
        self.skip = {}
    def forward(self, x):
        y = x
        for name, block in self.blocks.items():
            self.skip[name] = y = block(y)
        self.skip["b"][rare(x)] = 2.5
        z = sum(self.skip.pop(k) for k in list(self.skip))
        return y, z, len(self.skip) + x

class Grid:
    """Not a module: an object with operators, that keeps the tensor it got."""
    def __init__(self, y):
        self.y = y
    def __getitem__(self, at):
        return Grid(self.y[at])
    def __setitem__(self, at, value):
        self.y[at] = value.y if isinstance(value, Grid) else value
    def __iadd__(self, other):
        self.y += other
        return self
@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
def A3469ObjectWithOperators(self, x):
    y = x * 1.0
    g = Grid(y)
    g[:, 0] += 1
    g[..., 1] = g[..., 2]
    part = g[:, 1:]
    part += rare(x)[:, 1:]
    return y, part.y.mean(1)
@attack("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=TWO)
class A3471SetAttributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4, bias=False)
    def forward(self, x):
        for name in ("low", "high"):
            setattr(self, name, x.clamp(**{"max" if name == "low" else "min": 0.5}))
        self.low[rare(x)] = -3.0
        low, high = vars(self)["low"], self.high
        del self.low, self.high
        return self.line(low) * high
@attack("x:float32[N,T,4]", "y:float32[N,T,4]", dims=SHORT, kinds=FINITE)
class A3472OutputsAlias(nn.Module):
    def forward(self, x, y):
        a = x + y
        b = a.view(x.shape[0], -1)
        out = {"a": a, "views": [b, a.mT], "same": a}
        a.clamp_(max=1.0)
        b[rare(b)] = 0.125
        return out

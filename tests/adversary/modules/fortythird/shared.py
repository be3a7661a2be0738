# ruff: noqa: E501, B006, B019 - attacks are written as users write them
"""Memory that is shared, state that stays: aliases in eval, views by layout, containers of modules, hooks, caches, parametrizations, counters."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:20"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"
X4 = "x:float32[N,T,4]"


some = partial(sprinkled, sizes=((1, 1), (1, 2), (1, 9), (3, 1), (3, 3), (1, 16), (2, 20)))


BIG = {"dims": ROWS, "kinds": FEW, "feeds": some(7e4)}
BIG4 = {"dims": ROWS, "kinds": FEW, "feeds": some(7e4, more=(4,))}


@attack(XT, **BIG)
class A4541DropoutIsAnAlias(nn.Module):
    """A dropout in eval gives its input itself, and is written in place."""
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        y = x * 2
        z = self.drop(y)
        z += 1
        return y, z
@forward(XT, **BIG)
def A4542SumToSize(self, x):
    """sum_to_size of its own size is an alias; elsewhere a sum; then a limit in place."""
    y = x + 0
    z = y.sum_to_size(1, x.shape[1])
    z.clamp_(max=6e4)
    return y, z
@forward(XT, **BIG)
def A4543ExpandOfOne(self, x):
    """expand_as of a column is the column at one step; numbers are replaced in place in a clone of all but it."""
    y = x.mean(1, keepdim=True)
    z = y.expand_as(x)
    w = z if x.shape[1] == 1 else z.clone()
    w[w > 1e4] = 0
    return y, w
@forward(XT, **BIG)
def A4544TypesThatAre(self, x):
    """float, to, type_as, contiguous, cpu and positive of what is so already are the tensor."""
    y = x + 0
    z = (+y.float().to(torch.float32).type_as(x).contiguous().cpu()).real
    z.masked_fill_(z > 6e4, 1.0)
    w = x.double().float() + 0
    w.double().clamp_(max=1.0)
    return y, z, w
@forward(X4, **BIG4)
def A4545SlicesThatAreWhole(self, x):
    """contiguous of the first four steps is a view where there are four or one row."""
    y = x + 0
    z = y[:, :4].contiguous()
    z.clamp_(max=6e4)
    return y, z
@forward(X4, **BIG4)
def A4546FlattenOfASlice(self, x):
    """flatten of a slice of rows, of steps and of the last axis."""
    y, u, v = x + 0, x + 1, x + 2
    y[:1].flatten().clamp_(max=6e4)
    u[:, :2].flatten(0, 1).clamp_(max=6e4)
    v[..., :2].flatten(1).clamp_(max=6e4)
    return y, u, v
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:4:6 W=1:5:6", kinds=FEW, feeds=some(7e4, sizes=((1, 3, 1, 1), (1, 3, 1, 6), (1, 3, 6, 1), (2, 3, 6, 6), (2, 3, 1, 1))))
def A4547ChannelsLastOfOne(self, x):
    """contiguous in channels last is a view where a picture is one pixel, reshape of a permuted one too."""
    y = x + 0
    k = y.contiguous(memory_format=torch.channels_last)
    k.clamp_(max=6e4)
    u = x + 1
    p = u.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 3)
    p.clamp_(max=5e4)
    return y, k, u, p
@forward(X4, **BIG4)
def A4548ReshapeBySize(self, x):
    """A reshape of a transpose into heads and back, written in place; a ravel of a column."""
    y = x + 0
    h = y.view(x.shape[0], -1, 2, 2).transpose(1, 2)
    f = h.reshape(-1, x.shape[1], 2)
    f[f > 6e4] = -1
    u = x + 1
    u[:, :, 0].ravel().clamp_(max=6e4)
    return y, f, u
@forward(XT, **BIG)
def A4549AtLeastTwo(self, x):
    """squeeze, atleast_3d, broadcast_to, movedim, narrow, tensor_split, unflatten are views, whatever the size."""
    y = x + 0
    y.squeeze(1).clamp_(max=6e4)
    u = x + 1
    torch.atleast_3d(u).movedim(0, -1).clamp_(max=5e4)
    a, b = torch.tensor_split(x + 2, 2, 1)
    a.clamp_(max=4e4)
    v = x + 3
    for p in v.tensor_split(3, 1):
        p -= p.shape[1]
    return y, u, a, b, v
@forward(XT, "y:float32[N,T]", dims=ROWS, kinds=FEW)
def A4550OutArguments(self, x, y):
    """out= writes into a slice of what is read behind."""
    buf = torch.zeros(x.shape[0], x.shape[1] * 2)
    torch.add(x, y, out=buf[:, : x.shape[1]])
    torch.cumsum(x, 1, out=buf[:, x.shape[1] :])
    return buf, buf[:, ::2]
@attack(XT, dims=ROWS, kinds=FEW)
class A4551DefaultThatGrows(nn.Module):
    """A default argument that is a list takes what each call adds, and only its last is read."""
    def forward(self, x, seen=[]):
        seen.append(x.mean(1, keepdim=True))
        del seen[:-1]
        return x - seen[-1] + len(seen)
class Meter(NamedTuple):
    total: torch.Tensor
    rows: int
@dataclass
class Out:
    logits: torch.Tensor
    extra: dict = field(default_factory=dict)
    @property
    def best(self):
        return self.logits.argmax(-1)
@attack(X4, dims=ROWS, kinds=FEW)
class A4552OutputsOfKinds(nn.Module):
    """A dataclass with a dictionary of tuples, whose property is put in it."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)
    def forward(self, x):
        o = Out(self.lin(x))
        o.extra["best"] = (o.best, o.best.float().mean(1))
        o.extra.setdefault("best", None)
        return o
@attack(X4, dims=ROWS, kinds=FEW)
class A4553HooksThatWrite(nn.Module):
    """A forward hook writes in place into the output, a pre-hook scales by the length, one is removed again."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.a.register_forward_hook(lambda m, i, o: o.mul_(0.5))
        self.b.register_forward_pre_hook(lambda m, i: (i[0] / i[0].shape[1],))
        h = self.b.register_forward_hook(lambda m, i, o: o * 100)
        h.remove()
        self.b.register_forward_hook(self.keep)
        self.kept = None
    def keep(self, m, i, o):
        self.kept = o.detach().amax(1)
    def forward(self, x):
        y = self.a(x)
        return self.b(F.relu(y)), y, self.kept
@attack(X4, dims=ROWS, kinds=FEW)
class A4554Parametrized(nn.Module):
    """Weight norm, an orthogonal map, a symmetric parametrization used twice in a cached block, weights tied by transpose."""
    class Sym(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).mT
    def __init__(self):
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Linear(4, 4))
        self.b = parametrizations.orthogonal(nn.Linear(4, 4))
        self.c = nn.Linear(4, 4)
        parametrize.register_parametrization(self.c, "weight", self.Sym())
    def forward(self, x):
        with parametrize.cached():
            y = self.c(self.c(self.b(self.a(x))))
        return F.linear(y, self.c.weight.T @ self.a.weight)
@attack(XT, dims=ROWS, kinds=FEW, feeds=some(7e4))
class A4555TrainingLeftOn(nn.Module):
    """A batch norm whose train() is overridden so that it never leaves it, without running numbers."""
    class Always(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(True)
    def __init__(self):
        super().__init__()
        self.bn = self.Always(1, track_running_stats=False)
        self.inst = nn.InstanceNorm1d(1, affine=True)
    def forward(self, x):
        y = self.bn(x[:, None].repeat(1, 1, 2))[:, 0]
        return y[:, : x.shape[1]]
@attack(X4, dims=ROWS, kinds=FEW, refused="the exported model differs from the module")
class A4556CachedMethods(nn.Module):
    """Masks that a cached method of the size makes, the second call of one forward for half the length, written in place in between."""
    table: ClassVar = {}
    @functools.lru_cache(maxsize=None)  # noqa: UP033
    def mask(self, t):
        return torch.full((t, t), -1e4).triu(1)
    def bias(self, t):
        if t not in self.table:
            self.table[t] = torch.arange(t).float() * 0.1
        return self.table[t]
    def forward(self, x):
        t = x.shape[1]
        a = (x @ x.mT + self.mask(t)).softmax(-1)
        b = a[:, : t // 2 + 1, : t // 2 + 1] + self.mask(t // 2 + 1)
        return a @ x, b.softmax(-1), x + self.bias(t)[:, None] - self.bias(max(1, t - 1))[-1]
@attack(X4, dims=ROWS, kinds=FEW)
class A4557PropertyConfig(nn.Module):
    """Properties by a config that __getattr__ forwards, __call__ overridden, a module in a plain list that is registered later."""
    class Config(dict):
        __getattr__ = dict.__getitem__
    def __init__(self):
        super().__init__()
        self.cfg = self.Config(width=4, act="gelu", scale=None)
        layers = [nn.Linear(self.cfg.width, 4) for _ in range(2)]
        self.layers = nn.ModuleDict({f"l{i}": m for i, m in enumerate(reversed(layers))})
    @property
    def scale(self):
        return self.cfg.scale or self.cfg.width**-0.5
    def forward(self, x):
        for name in sorted(self.layers, reverse=True):
            x = getattr(F, self.cfg.act)(self.layers[name](x)) * self.scale
        return x
@attack(X4, "past:float32[N,S,4]", dims="N=1:2:3 T=1:3:8 S=1:6:12", kinds=FEW, feeds=tuple(values_at(X4, "past:float32[N,S,4]", N=n, T=t, S=s) for n, t, s in ((1, 1, 1), (1, 1, 12), (3, 8, 12), (1, 8, 1))))
class A4558CacheInPlace(nn.Module):
    """A static cache of sixteen into which both are written at moving places, the oldest rolled out, a position by its end."""
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
    def forward(self, x, past):
        s, t = past.shape[1], x.shape[1]
        cache = torch.zeros(x.shape[0], 16, 4)
        cache[:, :s] = past
        over = max(0, s + t - 16)
        cache = cache.roll(-over, 1)
        a = s - over
        cache[:, a : a + t].copy_(x)
        valid = torch.arange(16) < a + t
        causal = torch.arange(16) <= torch.arange(a, a + t)[:, None]
        w = (self.q(x) @ cache.mT).masked_fill(~(valid & causal), float("-inf")).softmax(-1)
        return w @ cache, cache, torch.full((), over)
@attack(XT, dims=ROWS, kinds=FEW, feeds=some(7e4), refused="forward changes")
class A4559BuffersThatMove(nn.Module):
    """A running peak is read before it is written; it starts again by reset at each call, and copies share its memory."""
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(1))
        self.alias = self.peak
    def forward(self, x):
        self.peak.zero_()
        self.peak.copy_(torch.maximum(self.peak, x.abs().max()))
        a = x / self.alias.clamp(min=1e-3)
        self.alias.mul_(0.5)
        return a, self.peak + 0, x.clamp(max=self.peak.item() if False else 6e4)
@forward(X4, **BIG4, refused="the exported model differs from the module")
def A4560StridedWindows(self, x):
    """as_strided by the tensor's own strides overlaps; what is written in place shows in its neighbours; a diagonal of it."""
    y = (x + 0).contiguous()
    n, t = x.shape[:2]
    f = y.flatten(1)
    k = 2 * (t // 2) + 1
    w = f.as_strided((n, k, 4), (f.stride(0), 1, 1))
    w[:, 0] += 1
    d = w.diagonal(dim1=1, dim2=2)
    d.clamp_(max=6e4)
    return y, w * 1, d * 1

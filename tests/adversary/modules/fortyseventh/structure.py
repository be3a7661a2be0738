# ruff: noqa: E501, RET503 - attacks are written as users write them
"""How others structure code: registries, hooks, decorators, attributes on demand, contexts, state."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import itertools
import operator
import types
import weakref
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from tests.adversary.attack import attack
from tests.adversary.modules.fortysixth.pictures import X4, seq

MT = "m:bool[N,T]"


class Registry(dict):
    """A registry as OpenMMLab's: by name, built from a config."""

    def register(self, name=None):
        def wrap(cls):
            self[name or cls.__name__] = cls
            return cls

        return wrap

    def build(self, cfg):
        cfg = dict(cfg)
        return self[cfg.pop("type")](**cfg)


NECKS = Registry()


@NECKS.register("sum")
class SumNeck(nn.Module):
    """Levels halved while there is more than one, added up by nearest."""

    def __init__(self, depth):
        super().__init__()
        self.depth = depth

    def forward(self, x):
        levels = [x]
        for _ in range(self.depth):
            if levels[-1].shape[1] <= 1:
                break
            levels.append(F.max_pool1d(levels[-1].transpose(1, 2), 2, 2, ceil_mode=True).transpose(1, 2))
        for a, b in zip(levels[-2::-1], levels[:0:-1], strict=True):
            up = F.interpolate(b.transpose(1, 2), size=a.shape[1], mode="nearest").transpose(1, 2)
            a.add_(up) if a is not x else levels.__setitem__(0, a + up)
        return levels[0]


@attack(X4, **seq(X4), refused="the path through the module depends on the size")
class A5741BuiltFromConfig(nn.Module):
    """A neck of a registry; how many levels there are depends on the length."""

    def __init__(self):
        super().__init__()
        self.neck = NECKS.build({"type": "sum", "depth": 3})

    def forward(self, x):
        return self.neck(x)


def shape_contract(**axes):
    """A decorator that reads a size by the name of a parameter and gives it back as a keyword."""

    def wrap(function):
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def inner(*args, **kwargs):
            bound = dict(zip(names, args, strict=False))
            sizes = {k: bound[v].shape[d] for k, (v, d) in axes.items()}
            return function(*args, **kwargs, **sizes)

        return inner

    return wrap


@attack(X4, **seq(X4))
class A5742SizesByDecorator(nn.Module):
    """The decorator finds a size and hands it in; a threshold of the odd and even."""

    @shape_contract(size=("x", 1))
    def forward(self, x, size=0):
        y = x[:, size // 3 : size - size // 4]
        return y * size if size & 1 else y / size, y.shape[1] * torch.ones(1)


@attack(X4, MT, **seq(X4, MT))
class A5743AttributesOnDemand(nn.Module):
    """__getattr__ makes layers by name from a recipe, kept after the first use; a fallback through a delegate."""

    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"proj": nn.Linear(4, 4), "gate": nn.Linear(4, 4)})

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("do_"):
                return functools.partial(self.apply_layer, name[3:])
            raise

    def apply_layer(self, name, x, mask=None):
        y = self.inner[name](x)
        return y if mask is None else y.masked_fill(~mask[..., None], 0.0)

    def forward(self, x, m):
        return self.do_proj(x, mask=m) * self.do_gate(x).sigmoid() * (1 if hasattr(self, "do_missing") else 2)


@attack(X4, **seq(X4))
class A5744FeaturesByHooks(nn.Module):
    """Features taken by hooks into a dict that is cleared for each call; one hook rescales what goes in."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())
        self.taken = collections.OrderedDict()
        for name in ("0", "2"):
            self.net.get_submodule(name).register_forward_hook(functools.partial(self.take, name))
        self.net[2].register_forward_pre_hook(lambda mod, args: (args[0] / max(1, args[0].shape[1] - 5),))

    def take(self, name, mod, args, out):
        self.taken[name] = out
        if name == "0":
            return out.clamp(max=0.5)

    def forward(self, x):
        self.taken.clear()
        y = self.net(x)
        return {"y": y, **{f"f{k}": v for k, v in self.taken.items()}}


@contextlib.contextmanager
def scaled(module, factor):
    """A scale for as long as the context lasts."""
    before = module.scale
    module.scale = before * factor
    try:
        yield module
    finally:
        module.scale = before


@attack(X4, **seq(X4))
class A5745ScaleInContext(nn.Module):
    """The scale is changed in a context by the length, and is the old one again afterwards, an error passed over."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
        with scaled(self, 2.0 if x.shape[1] > 7 else 0.5) as me:
            y = x * me.scale
            with contextlib.suppress(KeyError), scaled(self, 3.0):
                y = y + self.scale
                if x.shape[1] % 5 == 0:
                    raise KeyError("five")
                y = y.relu()
        return y, x * self.scale


@attack(X4, **seq(X4))
class A5746SwappedByFunctionalCall(nn.Module):
    """functional_call with weights made from the mean of the input, tied names, and a second call with its own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x):
        w = {"weight": self.a.weight * x.mean(), "bias": self.a.bias + x.amax()}
        return torch.func.functional_call(self.a, w, (x,)) + self.b(x), torch.func.functional_call(self.b, {"bias": x.new_zeros(4)}, x)


class Clipped(nn.Module):
    """A parametrization that clips rows by their norm, with a count in a buffer that is not written in eval."""

    def __init__(self):
        super().__init__()
        self.register_buffer("used", torch.zeros((), dtype=torch.long))

    def forward(self, w):
        if self.training:
            self.used += 1
        return w * (1.0 / w.norm(dim=1, keepdim=True).clamp(min=1.0))

    def right_inverse(self, w):
        return w


@attack(X4, **seq(X4))
class A5747ParametrizedTwice(nn.Module):
    """Two parametrizations one after another, cached over two uses."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        parametrize.register_parametrization(self.lin, "weight", Clipped())
        parametrize.register_parametrization(self.lin, "weight", nn.Identity())

    def forward(self, x):
        with parametrize.cached():
            y = self.lin(self.lin(x))
        return y, self.lin.weight * x.shape[1]


@attack(X4, **seq(X4))
class A5748MomentsInBuffers(nn.Module):
    """A buffer is written in forward with this call's maximum only, and read further on in another method."""

    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.ones(1), persistent=False)
        self.register_buffer("hist", torch.zeros(5))

    def norm(self, x):
        return x / self.peak.clamp(min=1e-3)

    def forward(self, x):
        self.peak.copy_(x.abs().max().view(1))
        self.hist.zero_()
        self.hist.index_add_(0, x.flatten().mul(2).round().clamp(-2, 2).long() + 2, torch.ones(x.numel()))
        return self.norm(x), self.hist / self.hist.sum()


@dataclass(frozen=True)
class Options:
    """Options with a derived field."""

    width: int = 4
    ratios: tuple = (1, 2)
    total: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", functools.reduce(operator.mul, self.ratios, self.width))


@attack(X4, **seq(X4))
class A5749OptionsReplaced(nn.Module):
    """A frozen dataclass is replaced by one of the length; a partialmethod, a cached_property, a classmethod."""

    def __init__(self):
        super().__init__()
        self.options = Options()

    @functools.cached_property
    def basis(self):
        return torch.eye(self.options.width).roll(1, 0)

    @classmethod
    def pick(cls, o, t):
        return replace(o, ratios=(1, 1 + (t > 10), 1 + (t > 20)))

    def scaled(self, x, by):
        return x @ self.basis * by

    twice = functools.partialmethod(scaled, by=2)

    def forward(self, x):
        o = self.pick(self.options, x.shape[1])
        return self.twice(x) * o.total


def windows(n, k):
    """Pairs of starts and ends, the last one moved back."""
    at = 0
    while at + k < n:
        yield at, at + k
        at += k
    yield max(n - k, 0), n


@attack(X4, **seq(X4))
class A5750WindowsOfGenerator(nn.Module):
    """Windows by a generator, joined by itertools, their means accumulated."""

    def forward(self, x):
        means = [x[:, a:b].mean(1) for a, b in windows(x.shape[1], 9)]
        run = list(itertools.accumulate(means, torch.maximum))
        pairs = [b - a for a, b in itertools.pairwise(run)]
        return torch.stack(run, 1)[:, -1], sum(pairs, torch.zeros(1)) + len(run)


@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A5751MethodsBoundLater(nn.Module):
    """The forward of a child is replaced by a bound method with a weak reference to its owner."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        owner = weakref.ref(self)
        original = self.lin.forward

        def patched(child, x):
            return original(x) * owner().gain(x.shape[1])

        self.lin.forward = types.MethodType(patched, self.lin)

    def gain(self, n):
        return {True: 0.5, False: 1.5}[n in range(4, 30, 3)]

    def forward(self, x):
        return self.lin(x)

# ruff: noqa: E501 - attacks are written as users write them
"""Craft: decorators, contexts, subclasses of tensors, scripts, functions of one's own, hooks, NumPy by protocols."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import types

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.overrides import TorchFunctionMode

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import X4, seq

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
GAIN = contextvars.ContextVar("gain", default=1.0)


class Units(torch.Tensor):
    """A tensor with a unit: a sum of two squares them up by a function of its own."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.Tensor.add:
            return out * 2
        return out


@forward(X4, **seq(X4))
def A5996TensorOfUnits(self, x):
    """A subclass whose sums are doubled by __torch_function__."""
    u = x.as_subclass(Units)
    return (u.add(1)).as_subclass(torch.Tensor), (u * 3).as_subclass(torch.Tensor)


class Clamped(TorchFunctionMode):
    """Within it every exp is that of a clamped argument."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.exp, torch.Tensor.exp):
            args = (args[0].clamp(max=2.0), *args[1:])
        return func(*args, **(kwargs or {}))


@forward(X4, **seq(X4))
def A5997ModeOfFunctions(self, x):
    """A mode of functions that changes exp within it, and only there."""
    with Clamped():
        y = torch.exp(x)
    return y, torch.exp(x.clamp(max=3))


@forward(X4, **seq(X4), refused="the exported model differs from the module")
def A5998NumpyByProtocol(self, x):
    """NumPy's functions handed a tensor: shape, clip and transpose come back as tensors of torch."""
    return np.clip(x, -1, 1) if hasattr(x, "clip") else x, x * np.ndim(x), x * np.shape(x)[1]


@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A5999UfuncOfTensor(nn.Module):
    """np.sqrt of a tensor gives a tensor by __array__ and __array_wrap__."""

    def forward(self, x):
        return torch.as_tensor(np.sqrt(x.abs()))


def scaled_by(factor):
    """A decorator that scales what a method returns."""

    def wrap(f):
        @functools.wraps(f)
        def inner(self, *args, **kwargs):
            return f(self, *args, **kwargs) * factor * (1 + args[0].shape[1] % 2)

        return inner

    return wrap


@attack(X4, **seq(X4))
class A6000Decorated(nn.Module):
    """forward and a helper in decorators that look at the size; partialmethod and a cached property."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @functools.cached_property
    def scale(self):
        return self.lin.weight.abs().max().item()

    def part(self, x, k):
        return self.lin(x) * k

    twice = functools.partialmethod(part, k=2)

    @scaled_by(0.5)
    @torch.no_grad()
    def forward(self, x):
        return self.twice(x) / self.scale


@attack(X4, **seq(X4))
class A6001AwaitsItself(nn.Module):
    """An asynchronous forward is run to its end: two branches gathered."""

    async def half(self, x, k):
        await asyncio.sleep(0)
        return x[:, k::2].mean(1)

    async def both(self, x):
        return await asyncio.gather(self.half(x, 0), self.half(F.pad(x, (0, 0, 0, 1)), 1))

    def forward(self, x):
        a, b = asyncio.run(self.both(x))
        return a - b


@attack(X4, **seq(X4), refused="the module cannot be exported")
class A6002PoolOfThreads(nn.Module):
    """The heads are computed in a pool of threads."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))

    def forward(self, x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return torch.stack(list(pool.map(lambda h: h(x.detach()), self.heads)), 1)


@attack(X4, **seq(X4))
class A6003ContextVariable(nn.Module):
    """A context variable is set for a block; a stack of contexts undoes a patch of a member."""

    def __init__(self):
        super().__init__()
        self.gain = 1.0

    @contextlib.contextmanager
    def louder(self, g):
        old, self.gain = self.gain, g
        try:
            yield self
        finally:
            self.gain = old

    def inner(self, x):
        return x * self.gain * GAIN.get()

    def forward(self, x):
        token = GAIN.set(3.0 if x.shape[1] > 5 else 2.0)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.louder(0.5))
            y = self.inner(x)
            stack.callback(GAIN.reset, token)
        return y, self.inner(x)


@torch.jit.script
def smooth(x: torch.Tensor, k: int) -> torch.Tensor:
    """A running mean over the last k steps in script."""
    out = torch.zeros_like(x)
    acc = torch.zeros_like(x[:, 0])
    for t in range(x.size(1)):
        acc = acc + x[:, t]
        if t >= k:
            acc = acc - x[:, t - k]
        out[:, t] = acc / min(t + 1, k)
    return out


@forward(X4, **seq(X4), refused="the exported model differs from the module")
def A6004ScriptedMean(self, x):
    """A scripted running mean whose window is a third of the length."""
    return smooth(x, max(x.shape[1] // 3, 1))


class Soft(torch.autograd.Function):
    """A threshold in place, marked dirty, of a copy."""

    @staticmethod
    def forward(ctx, x, lam):
        ctx.mark_dirty(x)
        x.copy_(x.sign() * (x.abs() - lam).clamp(min=0))
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


@forward(X4, **seq(X4))
def A6005DirtyFunction(self, x):
    """A function of autograd that writes its argument, of which another name is held."""
    y = x * 1.0
    head = y[:, :1]
    z = Soft.apply(y, 0.3)
    return z, head, y.sum(1)


@attack(X4, **seq(X4))
class A6006HooksInOrder(nn.Module):
    """Hooks: before with keywords, after that writes in place, one that is put first, one that leaves after its first call is not there."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.lin.register_forward_pre_hook(lambda m, a, k: ((a[0] * 2,), k), with_kwargs=True)
        self.lin.register_forward_hook(lambda m, a, o: o.relu_())
        self.lin.register_forward_hook(lambda m, a, o: o + a[0].mean(1, keepdim=True), prepend=True)

    def forward(self, x):
        return self.lin(x), x


class Bounded(nn.Module):
    """A weight by its raw values."""

    def forward(self, w):
        return torch.tanh(w) * w.shape[1] ** -0.5


@attack(X4, **seq(X4))
class A6007WeightsByRules(nn.Module):
    """Weights by parametrisations: one's own, spectral, weight norm, orthogonal, and a cache of them for a block."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Linear(4, 4) for _ in range(4))
        parametrize.register_parametrization(self.a, "weight", Bounded())
        parametrizations.spectral_norm(self.b)
        parametrizations.weight_norm(self.c)
        parametrizations.orthogonal(self.d)

    def forward(self, x):
        with parametrize.cached():
            return self.a(x) + self.a(x * 2), self.b(x), self.c(x), self.d(x) @ self.d.weight.T


@attack(X4, **seq(X4))
class A6008CallOfItsOwn(nn.Module):
    """A part whose class has a __call__ of its own, one whose forward is set on the instance, one that is a function."""

    class Twice(nn.Linear):
        def __call__(self, x):
            return super().__call__(super().__call__(x))

    def __init__(self):
        super().__init__()
        self.a, self.b = self.Twice(4, 4), nn.Linear(4, 4)
        plain = self.b.forward
        self.b.forward = lambda x: plain(x).flip(-1)
        self.c = types.MethodType(lambda s, x: x * s.k, types.SimpleNamespace(k=3))

    def forward(self, x):
        return self.c(self.b(self.a(x)))

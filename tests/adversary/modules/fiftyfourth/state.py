# ruff: noqa: B023, E501 - attacks are written as users write them
"""State: caches by shape, lazy buffers, views, hooks, contexts, outputs of kinds, exceptions."""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fiftyfourth.sequences import seq

X, X4 = "x:float32[N,T]=-4:4", "x:float32[N,T,4]=-4:4"


@attack(X4, **seq(X4))
class A6958CachedByRoot(nn.Module):
    """Positions cached by the length; each entry is as it would be without the cache."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        t = x.shape[1]
        key = (t, str(x.dtype), x.device.type)
        if key not in self.cache:
            p = torch.arange(t, dtype=x.dtype)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
            self.cache[key] = p.sin() if t != 23 else p.cos()
        return x + self.cache[key]


@attack(X, **seq(X))
class A6959GrownMask(nn.Module):
    """A causal mask that grows by doubling and is never smaller than eight; what is used is its last corner."""

    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        t = x.shape[1]
        if self.mask is None or self.mask.shape[0] < t:
            size = 8
            while size < t:
                size *= 2
            self.mask = torch.full((size, size), -math.inf).triu(1)
        m = self.mask[-t:, -t:]
        return ((x[:, :, None] * x[:, None] + m).softmax(-1) @ x[..., None])[..., 0]


@attack(X, **seq(X), refused="after many calls")
class A6960WarmUp(nn.Module):
    """A running peak that is forgotten every sixty-four calls; the peak divides."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls = (self.calls + 1) % 64
        return x / (x.abs().amax(1, keepdim=True) + (1.0 if self.calls else 2.0))


@forward(X4, **seq(X4), refused="largest error 0.5")
def A6961Views(self, x):
    """Views of views written in place: a diagonal, a stride, a transposed slice, a chunk, and what they share."""
    y = x.clone()
    v = y.view(y.shape[0], -1)
    v[:, ::3] *= -1
    y.mT[:, 1:3, ::2].add_(1)
    a, b = y.chunk(2, -1)
    a[..., 0] = b[..., 1]
    b.mul_(a.mean())
    y.diagonal(0, 1, 2).fill_(7.0)
    w = y.reshape(-1, 2)
    w[w[:, 0] > 2] = 0.5
    y[:, -1:].copy_(y[:, :1])
    return y, v.sum(1), a.contiguous().zero_() + a


@attack(X, **seq(X))
class A6962InputInPlace(nn.Module):
    """Steps that work in place on the input, later read again; a residual that is not what it seems."""

    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Hardtanh(-1, 3, inplace=True)

    def forward(self, x):
        r = x
        y = self.act(x[:, 1:]) if x.shape[1] > 2 else x + 0
        z = self.drop(r)
        s = y.sum(1, keepdim=True)
        x[:, 0] = s[:, 0]
        return r + z, y * 2, s


@attack(X, **seq(X), refused="run again on the same inputs")
class A6963LongestSeen(nn.Module):
    """A class attribute remembers the longest of all; shorter ones are scaled by it."""

    longest = 32

    def forward(self, x):
        cls = type(self)
        cls.longest = max(cls.longest, x.shape[1])
        return x * (x.shape[1] / cls.longest)


@attack(X4, **seq(X4))
class A6964Hooked(nn.Module):
    """Hooks before and after: the one pads odd lengths, the other cuts and scales long ones."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Conv1d(4, 4, 2, 2)
        self.lin.register_forward_pre_hook(self.before)
        self.lin.register_forward_hook(self.after, with_kwargs=True)

    @staticmethod
    def before(module, args):
        (x,) = args
        return (F.pad(x, (0, 1), mode="replicate"),) if x.shape[2] % 2 else None

    @staticmethod
    def after(module, args, kwargs, out):
        if args[0].shape[2] == 34:
            return out * 0.5
        return None if out.shape[2] < 19 else out[..., ::2].repeat_interleave(2, 2)[..., : out.shape[2]]

    def forward(self, x):
        return self.lin(x.mT)


@attack(X4, **seq(X4), refused="must be bool, not SymBool")
class A6965Autocast(nn.Module):
    """Brain floats in a context that is on for lengths divisible by seven, off within for the softmax."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=x.shape[1] % 7 == 0):
            y = self.a(x)
            with torch.autocast("cpu", enabled=False):
                y = y.float().softmax(-1)
            return self.b(y).float()


class Out(NamedTuple):
    """What the model gives."""

    logits: torch.Tensor
    mask: torch.Tensor | None = None


@dataclass(frozen=True)
class Plan:
    """Sizes made from a length."""

    t: int
    stride: int = 4

    @property
    def frames(self) -> int:
        """Whole frames, and one for half of a frame or more."""
        return max(1, round(self.t / self.stride))

    @functools.cached_property
    def over(self) -> int:
        """What is missing, or too much where negative."""
        return self.frames * self.stride - self.t


@attack(X, **seq(X))
class A6966Planned(nn.Module):
    """A frozen dataclass of sizes plans pads and cuts, a named tuple comes out with or without a field."""

    def forward(self, x):
        plan = Plan(x.shape[1])
        y = F.pad(x, (0, plan.over)).reshape(x.shape[0], plan.frames, plan.stride)
        m = y.abs().amax(2) > 2
        return Out(y.mean(2), m) if len(self.state_dict()) == 0 else Out(y.mean(2))


@attack(X, **seq(X), refused="the path through the module depends on the size")
class A6967Tried(nn.Module):
    """What does not fit raises: a view that fails is padded, a window too long falls back, an index out of range wraps."""

    def forward(self, x):
        n, t = x.shape
        try:
            y = x.view(n, -1, 7)
        except RuntimeError:
            y = F.pad(x, (0, -t % 7)).view(n, -1, 7) * 2
        try:
            z = x.unfold(1, 30, 5).mean((1, 2))
        except RuntimeError:
            z = x.mean(1)
        try:
            k = [0.1, 0.2, 0.3][t // 12]
        except IndexError:
            k = -1.0
        return y.sum(1), z, x * k


@attack(X, "m:bool[N,T]", **seq(X, "m:bool[N,T]"))
class A6968Named(nn.Module):
    """A dict of lists and dicts comes out; one tensor twice, one untouched input, one constant, one by a size."""

    def forward(self, x, m):
        y = x.masked_fill(m, 0.0)
        out = {"y": y, "parts": [y[:, :1], {"inner": y.sum(1)}], "again": y, "m": m}
        out["length"] = torch.tensor(x.shape[1])
        out["n"] = torch.ones(3)
        out.update(half=y[:, : x.shape[1] // 2 + 1])
        return out


@functools.lru_cache(maxsize=4)
def table(t: int) -> torch.Tensor:
    """A table by length that nobody should write to."""
    return torch.linspace(0, 1, t)


@forward(X, **seq(X))
def A6969Memoised(self, x):
    """A memoised table, used by a copy that is written to, and by a helper whose key is rounded up to eight."""
    t = x.shape[1]
    a = table(t).clone()
    a[t // 2 :] += 1
    b = table((t + 7) // 8 * 8)[:t]
    return x * a + b, x @ table(t)


@forward(X, **seq(X, low=2), refused="the path through the module depends on the size")
def A6970Closures(self, x):
    """Closures over a counter and over a loop's variable, which is the last one when they are called."""
    count = 0

    def step(y):
        nonlocal count
        count += 1
        return y * count if count != 5 else y - 1

    parts = [step(c) for c in x.split(7, 1)]
    fs = [lambda y: y + i for i in range(len(parts))]
    gs = [functools.partial(lambda y, i: y * (i + 1), i=i) for i in range(len(parts))]
    return torch.cat([f(p) for f, p in zip(fs, parts, strict=True)], 1), torch.cat(
        [g(p) for g, p in zip(gs, parts, strict=True)], 1
    ) / count


@contextlib.contextmanager
def precision(dtype: torch.dtype):
    """The default type within, and back to what it was also where it raises."""
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(old)


@forward(X, **seq(X), refused="the path through the module depends on the size")
def A6971DefaultType(self, x):
    """Steps in doubles by a context of the default type for long ones; the fraction of a large phase tells."""
    t = x.shape[1]
    with precision(torch.float64 if t > 33 else torch.float32):
        p = torch.arange(t) * 1234.567
        q = (p * 8191.0) % 1.0
    steps = torch.zeros(t)
    with contextlib.suppress(IndexError):
        steps[36] = np.float32(1.0).item()
    return (x + steps) * (q > 0.5).float(), x * p.float()

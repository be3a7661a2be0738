"""Python's style: dataclasses, generators, decorators, context managers, walrus, match, partials, properties, delegation, caches."""
# ruff: noqa: E501, RUF012 - attacks are written as users write them

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at


class Sequences(NamedTuple):
    data: torch.Tensor
    lengths: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        return torch.arange(self.data.shape[1])[None] < self.lengths[:, None]

    def map(self, f: Any) -> Sequences:
        return self._replace(data=f(self.data) * self.mask[..., None])


@attack("x:float32[N,T,4]", "l:int64[N]=1:9", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7681NamedTupleSequences(nn.Module):
    """A NamedTuple container with a mask property and map; lengths that pass T are ordinary."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor, l: torch.Tensor):  # noqa: E741
        s = Sequences(x, l).map(self.f).map(torch.tanh)
        last = s.data[torch.arange(x.shape[0]), (l - 1).clamp(max=x.shape[1] - 1)]
        return s, last, s.mask.sum()


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7682MatchOnShape(nn.Module):
    """A match statement on the shape with guards: singles, short, long and equal sizes go different ways."""

    def forward(self, x: torch.Tensor):
        match tuple(x.shape[:2]):
            case (1, 1):
                return x * 3
            case (n, t) if n == t:
                return x.transpose(0, 1) + x
            case (_, t) if t > 7:
                return x - x.mean(1, keepdim=True)
            case (2, 6):
                return x.cumsum(1)
            case _:
                return x.flip(1)


def chunks(x: torch.Tensor, size: int) -> Iterator[tuple[int, torch.Tensor]]:
    k = 0
    while (part := x[:, k : k + size]).shape[1]:
        yield k, part
        k += size


@attack("x:float32[N,T,3]", dims="N=1:2:3 T=1:6:11", kinds=FINITE)
class A7683GeneratorOfChunks(nn.Module):
    """A generator with a walrus hands out chunks of four; each is normalised and the running total goes to the next."""

    def forward(self, x: torch.Tensor):
        carry = torch.zeros(x.shape[0], 3)
        out = []
        for k, part in chunks(x, 4):
            y = F.layer_norm(part + carry[:, None], (3,)) + 0.1 * k
            carry = carry + y.sum(1)
            out.append(y)
        return torch.cat(out, 1), carry


@contextlib.contextmanager
def scaled(module: nn.Module, factor: float) -> Iterator[None]:
    old = module.scale
    module.scale = factor
    try:
        yield
    finally:
        module.scale = old


def logged(f: Any) -> Any:
    @functools.wraps(f)
    def inner(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.calls = getattr(self, "calls", 0) + 1
        return f(self, *args, **kwargs)

    return inner


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7684ContextAndDecorator(nn.Module):
    """A context manager sets a scale for a while, a decorator counts the calls, which nothing reads."""

    scale = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(1))

    @logged
    def step(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * self.scale) * self.w

    def forward(self, x: torch.Tensor):
        with scaled(self, 0.1 * x.shape[1]):
            y = self.step(x)
        return y, self.step(y)


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="after many calls")
class A7685EveryFifthCall(nn.Module):
    """A decorator counts the calls; each hundredth call the output is sharpened."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def forward(self, x: torch.Tensor):
        self.n += 1
        y = torch.tanh(x)
        return y * 2 if self.n % 100 == 99 else y


class Delegate(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, *args: Any) -> Any:
        return self.inner(*args)


class Heads(nn.Module):
    registry: dict[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 6)
        self.temperature = 0.7

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) / self.temperature


@attack("x:float32[N,T,5]", dims="N=1:2:3 T=1:4:6", kinds=FINITE)
class A7686DelegationAndDispatch(nn.Module):
    """__getattr__ passes on to an inner module; a dict of partials picks an activation by T % 3."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Delegate(Delegate(Heads()))
        self.acts = {0: torch.relu, 1: functools.partial(F.leaky_relu, negative_slope=0.3), 2: functools.partial(F.softplus, beta=2.0)}

    def forward(self, x: torch.Tensor):
        y = self.net(x) * self.net.temperature
        return self.acts[x.shape[1] % 3](y) + self.net.body.bias


@dataclass
class Box:
    t: torch.Tensor
    meta: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        meta = next(a.meta for a in args if isinstance(a, Box))
        return cls(func(*[a.t if isinstance(a, Box) else a for a in args], **(kwargs or {})), meta)


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7687TensorLikeContainer(nn.Module):
    """A dataclass with __torch_function__ travels through torch.add, matmul and softmax with a layout in its meta."""

    def forward(self, x: torch.Tensor):
        b = Box(x, {"layout": "NT" if x.shape[1] > 4 else "TN"})
        y = torch.softmax(torch.matmul(b, torch.ones(x.shape[1], 3)), 1)
        y = torch.add(y, 1.0)
        return y.t.T if y.meta["layout"] == "TN" else y.t


@attack("x:float32[N,T]", dims="N=1:2:4 T=2:5:9", kinds=FINITE)
class A7688TryReshapeExcept(nn.Module):
    """Tries to view T as pairs and falls back to a padded copy when T is odd (RuntimeError)."""

    def forward(self, x: torch.Tensor):
        try:
            p = x.view(x.shape[0], -1, 2)
        except RuntimeError:
            p = F.pad(x, (0, 1), value=1.0).view(x.shape[0], -1, 2)
        return p.prod(-1), p.amax(1)


@attack("x:float32[N,T]", dims="N=1:2:4 T=2:5:9", kinds=FINITE, refused="table", feeds=(values_at("x:float32[N,T]", N=1, T=2),))
def A7689ClassTableOfTheFirstSize():
    """A class-level table made for the first size seen that only grows: its step stays that of the largest so far. (The class is made anew, so that the judge's starts empty.)"""

    class Table(nn.Module):
        table: Any = None

        def forward(self, x: torch.Tensor):
            cls = type(self)
            if cls.table is None or cls.table.shape[0] < x.shape[1]:
                cls.table = torch.linspace(0, 1, x.shape[1])
            return x + cls.table[: x.shape[1]]

    return Table()

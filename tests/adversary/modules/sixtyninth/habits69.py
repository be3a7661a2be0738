"""State, globals, memory and Python habits in places that no attack has named."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import abc
import array
import concurrent.futures
import decimal
import operator
import queue
import types
import typing
import warnings

import numpy as np
import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize as P
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=FINITE)
class A8130SkipInitAndFused(nn.Module):
    """nn.utils.skip_init filled later, fuse_linear_bn_eval made in forward of live layers, vector_to_parameters at construction."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.utils.skip_init(nn.Linear, 6, 6)
        nn.utils.vector_to_parameters(torch.linspace(-1, 1, 42), self.lin.parameters())
        self.bn = nn.BatchNorm1d(6)
        self.bn.running_mean.copy_(torch.linspace(-1, 1, 6))
        self.bn.running_var.copy_(torch.linspace(0.5, 2, 6))

    def forward(self, x):
        fused = nn.utils.fuse_linear_bn_eval(self.lin, self.bn)
        return fused(x), self.lin(x)


@forward(X, dims=D, kinds=FINITE)
def A8131DecimalOfSizes(self, x):
    """Sizes through decimal with ROUND_HALF_EVEN and a context, operator.index, divmod of negatives, int.bit_length, pow with a modulus."""
    t = x.shape[1]
    q = int(decimal.Decimal(t).__truediv__(2).quantize(decimal.Decimal(1), rounding=decimal.ROUND_HALF_EVEN))
    a, b = divmod(-t, 4)
    return x * q + a - b, x[:, : max(1, operator.index(t) - 3)].sum(1) * t.bit_length(), x * pow(3, t, 7)


@forward(X, dims=D, kinds=FINITE, refused="depends on the size")
def A8132ThreadPoolOfRows(self, x):
    """Rows computed by a thread pool, their order by completion made sure by map; a queue between."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda r: r.cumsum(0), x.unbind(0)))
    q: queue.Queue = queue.Queue()
    for r in rows:
        q.put(r)
    return torch.stack([q.get() for _ in rows])


class Slots:
    __slots__ = ("gain",)


KEPT = Slots()
KEPT.gain = None


@attack(X, dims=D, kinds=FINITE, refused="first call")
class A8133SlotsOfFirstLength(nn.Module):
    """A slot of a class without a dict, set by the first call's length."""

    def forward(self, x):
        if KEPT.gain is None:
            KEPT.gain = x.shape[1] * 0.5
        return x * KEPT.gain


ARRAY = array.array("d", [0.0])


@attack(X, dims=D, kinds=FINITE, refused="first call")
class A8134ArrayOfFirstLength(nn.Module):
    """array.array in a module-level constant takes the first size; a memoryview of it is read."""

    view = memoryview(ARRAY)

    def forward(self, x):
        if ARRAY[0] == 0:
            self.view[0] = float(x.shape[1])
        return x + ARRAY[0]


@attack(X, dims=D, kinds=FINITE, refused="first call")
class A8135CodeObjectReplaced(nn.Module):
    """The first call replaces a function's __defaults__ and __code__ by one made for its length."""

    def forward(self, x):
        def made(y, k=x.shape[1]):
            return y * k

        if gain.__defaults__ == (0,):
            gain.__code__, gain.__defaults__ = made.__code__, made.__defaults__
        return gain(x)


def gain(y, k=0):
    return y * k


@attack(X, dims=D, kinds=FINITE, refused="run again")
class A8136SwitchOfClass(nn.Module):
    """The module changes its own __class__ in the third call; forward is another one then."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 3:
            self.__class__ = Other
        return x * 2


class Other(A8136SwitchOfClass):
    def forward(self, x):
        return x * 3


@attack(X, dims=D, kinds=FINITE)
class A8137AbstractAndGeneric(abc.ABC, nn.Module, typing.Generic[typing.TypeVar("W")]):
    """ABC, Generic and Protocol bases; cooperative super; a classproperty through a metaclass; types.MethodType bound in init."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(6, 6, bias=False)
        self.act = types.MethodType(lambda me, y: me.lin(y).relu(), self)

    def forward(self, x):
        return self.act(x) + self.act(-x)


class Rank1(nn.Module):
    def forward(self, w):
        return w.sum(0, keepdim=True) * w.sum(1, keepdim=True) / w.numel()

    def right_inverse(self, w):
        return w


@attack(X, dims=D, kinds=FINITE)
class A8138ParametrizedChain(nn.Module):
    """Two parametrizations on one weight, cached() in forward, a parametrized buffer-like bias, orthogonal of cayley with trivialization off."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(6, 6)
        P.register_parametrization(self.lin, "weight", Rank1())
        P.register_parametrization(self.lin, "weight", nn.Softplus(), unsafe=True)
        self.o = nn.utils.parametrizations.orthogonal(nn.Linear(6, 6), orthogonal_map="cayley")

    def forward(self, x):
        with P.cached():
            return self.lin(x) + self.lin(-x), self.o(x)


@attack(X, dims=D, kinds=FINITE)
class A8139WarningsDecide(nn.Module):
    """A decision by whether a warning was seen before: the registry of once-only warnings as state."""

    def forward(self, x):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("default")
            warnings.warn("short" if x.shape[1] < 4 else "long", stacklevel=1)
        return x * (1 + len(seen))


@forward(X, dims=D, kinds=FINITE)
def A8140NumpyOfSizes(self, x):
    """numpy on sizes only: np.linspace, np.hanning, np.kron, np.lib stride tricks, np.searchsorted into buckets, a structured array."""
    t = x.shape[1]
    w = np.hanning(t + 2)[1:-1] + np.linspace(0, 1, t) ** 2
    k = np.kron(np.eye((t + 1) // 2), np.ones((1, 2)))[:, :t]
    b = int(np.searchsorted([3, 5, 8], t, side="right"))
    rec = np.zeros(t, [("a", "f4"), ("b", "i8")])
    rec["a"], rec["b"] = np.arange(t) / 3, np.arange(t)[::-1]
    return x * torch.from_numpy(w).float()[:, None] + b, torch.from_numpy(k).float() @ x, x[:, torch.from_numpy(rec["b"].copy())] * torch.from_numpy(rec["a"].copy())[:, None]


@attack(X, dims=D, kinds=FINITE)
class A8141BufferSwappedAndPut(nn.Module):
    """torch.func.functional_call with scaled weights, a buffer that is swapped and put back in a finally, deepcopy-free tied transposed weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(6, 6)
        self.register_buffer("g", torch.ones(6), persistent=False)

    def forward(self, x):
        y = torch.func.functional_call(self.lin, {"weight": self.lin.weight.mT * 2, "bias": -self.lin.bias}, (x,))
        old = self.g
        try:
            self.g = torch.arange(x.shape[1]).float().sum() * old
            z = x * self.g
        finally:
            self.g = old
        return y, z * self.g


@attack(X, dims=D, kinds=FINITE, refused="depends on it")
class A8142RunningBest(nn.Module):
    """A buffer that keeps the largest batch mean seen by maximum in place; it is read only when larger than a hundred."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("best", torch.zeros(()))

    def forward(self, x):
        out = torch.where(self.best > 100, x * 2, x)
        self.best.copy_(torch.maximum(self.best, x.mean()))
        return out


@forward(X, dims=D, kinds=FINITE, refused="cannot be exported")
def A8143VmapOverRows(self, x):
    """torch.vmap with in_dims and out_dims, nested; torch.func.jvp of a fixed direction; a grad of a sum of squares."""
    f = torch.vmap(lambda r, w: r @ w, in_dims=(0, None), out_dims=1)
    y = f(x, torch.linspace(-1, 1, 6))
    z = torch.vmap(torch.vmap(lambda v: v / (1 + v.abs().sum())))(x)
    return y, z


@forward(X, dims=D, kinds=FINITE)
def A8144JvpInForward(self, x):
    """forward-mode derivative of a smooth function in forward; a score by torch.func.grad."""
    _, d = torch.func.jvp(lambda v: torch.tanh(v) * v, (x,), (torch.ones_like(x),))
    return d


@forward(X, dims=D, kinds=FINITE)
def A8145InnerGradient(self, x):
    """Energy forces: enable_grad, autograd.grad of an energy with respect to a detached input, as interatomic potentials do."""
    with torch.enable_grad():
        v = x.detach().clone().requires_grad_(True)
        e = (v.diff(dim=1) ** 2).sum() + torch.cos(v).sum()
        (g,) = torch.autograd.grad(e, v)
    return -g, e.detach()


@forward(X, dims="N=1:2:3 T=2:5:9", kinds=FINITE)
def A8146StarredAndWalrus(self, x):
    """Sizes by starred unpacking, walrus in a comprehension, chained comparison of sizes, slices as objects, Ellipsis in the middle, None axes."""
    n, *rest = x.shape
    s = slice(None, None, 2)
    parts = [y for i in range(6) if (y := x[..., i]).shape[1] > i - 2 * n]
    k = 1 if 1 < n < rest[0] else 2 if n == rest[0] else 3
    return x[:, s, None, ...] * k, torch.stack(parts, -1).sum(-1), x[..., -1:, None, ::3]


@attack(X, dims=D, kinds=FINITE, refused="run again")
class A8147TrainModeInside(nn.Module):
    """A submodule that the forward puts in train mode and back (MC dropout of p = 0, batch norm with momentum 0), an eval override that stays in train."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(6, momentum=0.0, affine=False)

    def forward(self, x):
        self.bn.train()
        y = self.bn(x.transpose(1, 2)).transpose(1, 2)
        self.bn.eval()
        return y, self.bn(x.transpose(1, 2)), F.instance_norm(x.transpose(1, 2))

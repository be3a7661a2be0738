"""What holds weights and state: aliases, parametrizations, lazy and traced parts, functional calls, hooks, nested programs."""
# ruff: noqa: E501, B007 - attacks are written as users write them

from __future__ import annotations

import contextlib
import copy
import threading
import types
import weakref
from collections import OrderedDict, UserDict, defaultdict

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=FINITE, refused="shares memory")
class A7989BuffersOfOneMemory(nn.Module):
    """Two buffers that are views of one vector: a ring that is written through one and read through the other within a call, then restored."""

    def __init__(self) -> None:
        super().__init__()
        base = torch.linspace(-1, 1, 12)
        self.register_buffer("a", base[:6])
        self.register_buffer("b", base[3:9])

    def forward(self, x):
        old = self.a.clone()
        self.a.mul_(2).add_(x.mean((0, 1)))
        y = x * self.b
        self.a.copy_(old)
        return y, x + self.b


@attack(X, dims=D, kinds=FINITE, refused="have no shape yet")
class A7990LazyParts(nn.Module):
    """Lazy layers that take their widths at the first call, in a Sequential with named parts and a slice of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(OrderedDict(inp=nn.LazyLinear(8), act=nn.Mish(), norm=nn.LazyBatchNorm1d(), out=nn.LazyLinear(6)))
        self.net.inp(torch.zeros(1, 2, 6))

    def forward(self, x):
        h = self.net[:2](x)
        return h, F.linear(h, torch.ones(6, 8))


@attack(X, dims=D, kinds=FINITE)
class A7991Parametrizations(nn.Module):
    """weight_norm over dim 1, orthogonal by Cayley, spectral norm, a symmetric one of its own on top of a skew; cached in a with-block."""

    def __init__(self) -> None:
        super().__init__()
        self.wn = parametrizations.weight_norm(nn.Linear(6, 6), dim=1)
        self.orth = parametrizations.orthogonal(nn.Linear(6, 6, bias=False), orthogonal_map="cayley")
        self.sn = parametrizations.spectral_norm(nn.Linear(6, 6), n_power_iterations=2)

        class Symmetric(nn.Module):
            def forward(self, w):
                return w.triu() + w.triu(1).mT

            def right_inverse(self, w):
                return w.triu()

        self.sym = nn.Linear(6, 6)
        parametrize.register_parametrization(self.sym, "weight", Symmetric())

    def forward(self, x):
        with parametrize.cached():
            y = self.sym(self.wn(x)) + self.sym(x)
        return y, self.orth(x), self.sn(x)


@attack(X, dims=D, kinds=FINITE)
class A7992TiedOverride(nn.Module):
    """functional_call with tied weights: one name is given, both layers see it; tie_weights=False beside it; a buffer given as a python value."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Module()
        self.net.enc, self.net.dec = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.net.dec.weight = self.net.enc.weight
        self.net.forward = types.MethodType(lambda m, x: m.dec(torch.tanh(m.enc(x))), self.net)

    def forward(self, x):
        w = {"enc.weight": self.net.enc.weight * 0.5 + x.mean() * 0.01}
        return torch.func.functional_call(self.net, w, (x,)), torch.func.functional_call(self.net, w, (x,), tie_weights=False), self.net(x)


@attack(X, dims=D, kinds=FINITE)
class A7993FxRewritten(nn.Module):
    """A symbolic trace of a block whose graph was edited: relu for gelu, an output more, dead code, a get_attr of a constant."""

    def __init__(self) -> None:
        super().__init__()

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.l = nn.Linear(6, 6)
                self.k = nn.Parameter(torch.arange(6.0))

            def forward(self, x):
                return F.relu(self.l(x)) + self.k[: x.shape[-1]]

        g = fx.symbolic_trace(Block())
        for node in g.graph.nodes:
            if node.target is F.relu:
                node.target, node.kwargs = F.gelu, {}
        g.recompile()
        self.g = g

    def forward(self, x):
        return self.g(x), fx.Interpreter(self.g).run(x * 2)


@attack(X, dims=D, kinds=FINITE)
class A7994EnsembleVmap(nn.Module):
    """stack_module_state of three members and vmap over weights, variance over members, the median member by rank."""

    def __init__(self) -> None:
        super().__init__()
        members = [nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)) for _ in range(3)]
        self.params, self.buffers_ = torch.func.stack_module_state(members)
        self.holder = [copy.deepcopy(members[0]).to("meta")]
        self.p = nn.ParameterDict({k.replace(".", "_"): nn.Parameter(v.detach()) for k, v in self.params.items()})

    def forward(self, x):
        p = {k: self.p[k.replace(".", "_")] for k in self.params}
        y = torch.vmap(lambda w: torch.func.functional_call(self.holder[0], w, (x,)))(p)
        return y.mean(0), y.var(0), y.median(0)[0]


@attack(X, dims=D, kinds=FINITE)
class A7995KwargHooks(nn.Module):
    """Pre-hooks with kwargs that change an argument, always_call, removed by their handle, prepended; a global order."""

    def __init__(self) -> None:
        super().__init__()

        class Body(nn.Module):
            def forward(self, x, *, scale=1.0, mask=None):
                return x * scale if mask is None else torch.where(mask, x * scale, -x)

        self.body = Body()
        self.body.register_forward_pre_hook(lambda m, a, k: (a, {**k, "scale": k.get("scale", 1.0) * 3}), with_kwargs=True)
        self.body.register_forward_pre_hook(lambda m, a: (a[0] + 1,), prepend=True)
        self.body.register_forward_hook(lambda m, a, k, o: o * (2 if k.get("mask") is not None else 1), with_kwargs=True)
        self.body.register_forward_hook(lambda m, a, o: None).remove()

    def forward(self, x):
        return self.body(x), self.body(x, mask=x > 0.5), self.body(x, scale=0.1)


@attack(X, dims=D, kinds=FINITE)
class A7996ThreadLocalScale(nn.Module):
    """threading.local with a default by __getattr__, a context manager that sets it for a block by the length, restored."""

    def __init__(self) -> None:
        super().__init__()
        self.tls = [threading.local()]

    @contextlib.contextmanager
    def scaled(self, k):
        old = getattr(self.tls[0], "k", 1.0)
        self.tls[0].k = old * k
        try:
            yield self
        finally:
            self.tls[0].k = old

    def k(self):
        return getattr(self.tls[0], "k", 1.0)

    def forward(self, x):
        with self.scaled(2.0 if x.shape[1] > 5 else 0.5), self.scaled(3.0):
            y = x * self.k()
        return y, x + self.k()


class Registry(UserDict):
    def __missing__(self, key):
        return self.data.setdefault(key, lambda x: x * key)


@attack(X, dims=D, kinds=FINITE, refused="list cannot be used")
class A7997MissingKeys(nn.Module):
    """__missing__ that makes a function for a size, defaultdict of lists of tensors by group, weak references, an ordered merge."""

    def __init__(self) -> None:
        super().__init__()
        self.reg = Registry()
        self.lin = nn.Linear(6, 6)
        self.ref = weakref.ref(self.lin)

    def forward(self, x):
        groups = defaultdict(list)
        for t in range(x.shape[1]):
            groups[t % 3 == 0, t > 4].append(x[:, t])
        y = torch.stack([torch.stack(v).sum(0) * (i + 1) for i, (_, v) in enumerate(sorted(groups.items()))]).sum(0)
        return self.reg[x.shape[1] % 4](x), y, self.ref()(x)


@attack(X, dims=D, kinds=FINITE, refused="try blocks")
class A7998GeneratorsAndCoroutines(nn.Module):
    """Layers as a generator that receives by send, an async function driven by hand, yield from over halves."""

    def steps(self, x):
        acc = x.mean(1)
        for t in range(x.shape[1]):
            got = yield acc
            acc = acc * 0.5 + got
        return acc

    async def later(self, x):
        return x * 2 + x.shape[1]

    def forward(self, x):
        g = self.steps(x)
        next(g)
        try:
            for t in range(x.shape[1]):
                g.send(x[:, t])
        except StopIteration as stop:
            out = stop.value
        c = self.later(x)
        try:
            c.send(None)
        except StopIteration as stop:
            y = stop.value
        return out, y


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.mark_non_differentiable()
        y = x.clone()
        y.clamp_(-1, 1).mul_(levels).round_().div_(levels)
        return y, (y - x).abs().amax()

    @staticmethod
    def backward(ctx, a, b):
        return a, None


@attack(X, dims=D, kinds=FINITE)
class A7999FunctionInFunction(nn.Module):
    """A custom Function of two outputs inside checkpoint inside vmap-free map; its level count follows the length."""

    def forward(self, x):
        y, e = Quantise.apply(x, 2 ** min(x.shape[1], 4) - 1)
        z = torch.utils.checkpoint.checkpoint(lambda v: Quantise.apply(v, 3)[0] + v, x, use_reentrant=False)
        return y, e, z


@attack(X, dims=D, kinds=FINITE)
class A8000TracedPiece(nn.Module):
    """A torch.jit.trace of a part that sees sizes by size() and one that made a constant: its flatten keeps the batch, its norm the width."""

    def __init__(self) -> None:
        super().__init__()

        class Part(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.l = nn.Linear(6, 6)

            def forward(self, x):
                n, t, c = x.shape
                y = x.reshape(n * t, c)
                return (self.l(y) / c).reshape(n, t, c) + torch.arange(c)

        self.part = torch.jit.trace(Part(), torch.zeros(2, 4, 6))

    def forward(self, x):
        return self.part(x), self.part(x[:, :1])


@attack(X, dims=D, kinds=FINITE, refused="from its first call")
class A8001LastSizeKept(nn.Module):
    """Remembers the longest length so far and pads to it by zeros, then takes the mean (a shorter call after a longer one differs)."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0

    def forward(self, x):
        self.longest = max(self.longest, x.shape[1])
        return F.pad(x, (0, 0, 0, self.longest - x.shape[1])).mean(1)

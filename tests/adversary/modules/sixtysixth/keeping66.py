"""What modules keep and how they are called: subclasses, buffers made late, caches by device, functions within functions, switches by context."""
# ruff: noqa: E501, RET504 - attacks are written as users write them

from __future__ import annotations

import contextlib
import functools
import operator
import weakref

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import checkpoint
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"


class Boxes(torch.Tensor):
    """A tensor subclass that converts before operations with its kind."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out

    @property
    def wh(self):
        return self[..., 2:4] - self[..., :2]


@attack(X, dims=D, kinds=FINITE)
class A7916TensorSubclassWithProperties(nn.Module):
    """as_subclass inside forward, its property and a stack of it, out as a plain tensor."""

    def forward(self, x):
        b = x[..., :4].as_subclass(Boxes)
        wh = b.wh.clamp(min=0)
        return (wh[..., 0] * wh[..., 1]).as_subclass(torch.Tensor), torch.cat([b, wh], -1).as_subclass(torch.Tensor)


class ScaledMode(torch.overrides.TorchFunctionMode):
    def __init__(self, by) -> None:
        super().__init__()
        self.by = by

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * self.by if func is F.relu else out


@attack(X, dims=D, kinds=FINITE)
class A7917FunctionModeByLength(nn.Module):
    """A TorchFunctionMode that scales every relu, by the length."""

    def forward(self, x):
        with ScaledMode(x.shape[1] * 0.5):
            y = F.relu(x)
        return y + F.relu(-x)


@attack(X, dims=D, kinds=FINITE)
class A7918LazyBufferNonPersistent(nn.Module):
    """A buffer that is registered at the first call (persistent=False) for the largest length so far, grown by doubling."""

    def forward(self, x):
        t = x.shape[1]
        if not hasattr(self, "pe") or self.pe.shape[0] < t:
            n = 1
            while n < t:
                n *= 2
            pos = torch.arange(n, dtype=torch.float32)[:, None]
            self.register_buffer("pe", torch.sin(pos / 10 ** torch.arange(6)), persistent=False)
        return x + self.pe[:t]


@attack(X, dims=D, kinds=FINITE, refused="depends on it")
class A7919NormalisedByLongest(nn.Module):
    """The same kept table, but normalised by its whole length (so a longer call before changes a shorter one)."""

    def forward(self, x):
        t = x.shape[1]
        if getattr(self, "pe", None) is None or self.pe.shape[0] < t:
            self.pe = torch.arange(t).float()[:, None] / t
        return x + self.pe[:t]


@functools.lru_cache(maxsize=2)
def window(length, dtype, device):
    return torch.hamming_window(length, periodic=length % 2 == 0, dtype=dtype, device=device)[:, None]


@attack(X, dims=D, kinds=FINITE)
class A7920SmallLruCache(nn.Module):
    """A module-level lru_cache of two entries keyed by size, dtype and device; the result is multiplied in place in a copy."""

    def forward(self, x):
        w = window(x.shape[1], x.dtype, x.device)
        return x * w, x.half().float() * window(x.shape[1], torch.float32, "cpu").clone().mul_(2)


@attack(X, dims=D, kinds=FINITE)
class A7921CheckpointedSequential(nn.Module):
    """checkpoint and checkpoint_sequential with kwargs and several outputs, non-reentrant, under no_grad and enabled grad."""

    def __init__(self) -> None:
        super().__init__()
        self.s = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 6), nn.Tanh())

    def part(self, x, *, gain=1.0):
        return self.s[0](x) * gain, x.mean(-1)

    def forward(self, x):
        y = checkpoint.checkpoint_sequential(self.s, 2, x, use_reentrant=False)
        a, b = checkpoint.checkpoint(self.part, x, use_reentrant=False, gain=1.0 / x.shape[1])
        return y + a, b


@attack(X, dims=D, kinds=FINITE)
class A7922PytreesOfState(nn.Module):
    """States in nested dicts, mapped, flattened, unflattened and reduced; order by sorted keys."""

    def forward(self, x):
        state = {"b": [x, {"z": x[:, :1], "a": x.mean(1, keepdim=True)}], "a": (x * 2, None)}
        state = tree_map(lambda v: v * 2 if isinstance(v, torch.Tensor) and v.shape[1] > 1 else v, state)
        leaves, spec = tree_flatten(state)
        leaves = [v + i if v is not None else v for i, v in enumerate(leaves)]
        state = tree_unflatten(leaves, spec)
        return functools.reduce(operator.add, [state[k][0] for k in sorted(state)]), state["b"][1]


class Registry:
    def __init__(self) -> None:
        self.fns = {}

    def register(self, when):
        def add(f):
            self.fns[when] = f
            return f

        return add

    def __getitem__(self, n):
        for when, f in self.fns.items():
            if when(n):
                return f
        raise LookupError(n)


KERNELS = Registry()


@KERNELS.register(lambda n: n % 4 == 0)
def _four(x):
    return x.unflatten(1, (-1, 4)).flip(2).flatten(1, 2)


@KERNELS.register(lambda n: n < 4)
def _small(x):
    return x * 3


@KERNELS.register(lambda n: True)
def _any(x):
    return x - x.mean(1, keepdim=True)


@forward(X, dims=D, kinds=FINITE)
def A7923DispatchedByRegistry(self, x):
    """Kernels in a registry by predicates of the size."""
    return KERNELS[x.shape[1]](x)


@attack(X, dims=D, kinds=FINITE)
class A7924AutocastRegions(nn.Module):
    """autocast to bfloat16 around a linear, disabled within for the norm, cached weights, cast back; decorated method."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.n = nn.Linear(6, 6), nn.LayerNorm(6)

    @torch.autocast("cpu", enabled=False)
    def stable(self, x):
        return self.n(x.float()).logsumexp(-1)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.f(x)
            z = self.stable(y)
            q = F.softmax(y, -1)
        return y.float(), z, q.float()


@attack(X, dims=D, kinds=FINITE)
class A7925InferenceModeAndContexts(nn.Module):
    """inference_mode as a decorator of a helper, an ExitStack of contexts, sdpa_kernel's choice, a nullcontext by the size."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    @contextlib.contextmanager
    def deeper(self, by):
        self.depth += by
        try:
            yield self
        finally:
            self.depth -= by

    @torch.inference_mode()
    def helper(self, x):
        return x * (1 + self.depth)

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            for i in range(min(x.shape[1], 4)):
                stack.enter_context(self.deeper(i))
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                y = F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.3)
            a = self.helper(y)
        with self.deeper(1) if x.shape[0] > 1 else contextlib.nullcontext():
            return a, self.helper(x)


@attack(X, dims=D, kinds=FINITE)
class A7926HooksThatKeep(nn.Module):
    """Features by forward hooks of named submodules into a list that is cleared each time; a weak reference to the parent."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleDict({"a": nn.Linear(6, 6), "b": nn.Linear(6, 6), "c": nn.Linear(6, 6)})
        self.feats = {}
        me = weakref.ref(self)
        for n in ("a", "c"):
            self.body[n].register_forward_hook(lambda m, i, o, n=n: me().feats.__setitem__(n, o))

    def forward(self, x):
        self.feats.clear()
        for n, f in self.body.items():
            if n != "b" or x.shape[1] % 2:
                x = torch.tanh(f(x))
        return x, *[self.feats[k].sum(1) for k in sorted(self.feats, reverse=True)]


@attack(X, dims=D, kinds=FINITE, refused="has no attribute 'constant'")
class A7927VmapChunksAndGrads(nn.Module):
    """vmap with chunk_size and a randomness flag, vjp of an energy, grad_and_value, hessian's trace by hvp."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 6) * 0.3)

    def energy(self, v):
        return (torch.tanh(v @ self.w) ** 2).sum()

    def forward(self, x):
        g, e = torch.func.vmap(torch.func.vmap(torch.func.grad_and_value(self.energy)))(x)
        _, back = torch.func.vjp(lambda v: torch.sin(v @ self.w), x)
        return g, e, back(torch.ones_like(x))[0]


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo):
        ctx.save_for_backward(x)
        ctx.mark_non_differentiable(lo)
        return x.clone().clamp_(min=lo.item() if lo.dim() == 0 and False else -1.0)

    @staticmethod
    def backward(ctx, g):
        return g, None


@forward(X, dims=D, kinds=FINITE)
def A7928OldStyleFunctionWithContext(self, x):
    """autograd.Function with save_for_backward and an in-place clamp of a copy."""
    return Clamp.apply(x, torch.tensor(0.0)) * x.shape[1]


@attack(X, dims=D, kinds=FINITE)
class A7929NestedJaggedByHand(nn.Module):
    """Jagged values and offsets of a batch made by hand from lengths of the values, padded back by a mask (torchrec's idiom)."""

    def forward(self, x):
        n, t, c = x.shape
        length = (x[..., 0] > 0).sum(1).clamp(min=1)
        offsets = F.pad(length.cumsum(0), (1, 0))
        keep = torch.arange(t) < length[:, None]
        flat = torch.arange(t) + offsets[:-1, None]
        order = torch.where(keep, flat, n * t)
        values = x.new_zeros(n * t + 1, c).index_copy(0, order.flatten().clamp(max=n * t), x.flatten(0, 1))[: n * t]
        return values * (torch.arange(n * t) < offsets[-1])[:, None], offsets, torch.bucketize(torch.arange(n * t), offsets[1:], right=True)

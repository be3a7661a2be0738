"""How code bases are organised: configs, registries, hooks, properties, caches, wrappers, scripts, and Python's whole language."""
# ruff: noqa: E501, B905, RUF059, B019 - attacks are written as users write them

from __future__ import annotations

import functools
import logging
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

log = logging.getLogger(__name__)
REGISTRY: dict[str, Any] = {}


def register(name):
    def deco(c):
        REGISTRY[name] = c
        return c

    return deco


@register("gate")
class Gate(nn.Module):
    def __init__(self, dim, *, scale=1.0, **kw):
        super().__init__()
        self.l = nn.Linear(dim, dim)
        self.scale = scale

    def forward(self, x, *rest, gain=None, **kw):
        y = torch.sigmoid(self.l(x)) * x * self.scale
        return y if gain is None else y * gain


@register("norm")
class Norm(nn.LayerNorm):
    def __init__(self, dim, **kw):
        super().__init__(dim, eps=kw.get("eps", 1e-3))

    def forward(self, x, **kw):
        return super().forward(x)


@dataclass
class Cfg:
    dim: int = 4
    layers: list[dict[str, Any]] = field(default_factory=lambda: [{"type": "gate", "scale": 2.0}, {"type": "norm", "eps": 0.1}, {"type": "gate"}])
    taps: tuple[int, ...] = (0, -1)


@dataclass
class Outputs:
    last: torch.Tensor
    hidden: tuple[torch.Tensor, ...] | None = None
    aux: dict[str, Any] | None = None


@attack("x:float32[N,T,4]=-2:2", "gain:float32[N,1,1]=0:2", dims="N=1:1:3 T=1:3:5", kinds=FINITE)
class A7460RegistryConfig(nn.Module):
    """Layers by a registry from dicts popped of their type, a dataclass of outputs with nested dicts and None, taps by negative indices, keyword-only arguments."""

    def __init__(self, cfg: Cfg | None = None):
        super().__init__()
        torch.manual_seed(0)
        self.cfg = cfg or Cfg()
        blocks = OrderedDict()
        for i, c in enumerate(self.cfg.layers):
            c = dict(c)
            kind = c.pop("type")
            blocks[f"b{i}_{kind}"] = REGISTRY[kind](self.cfg.dim, **c)
        self.blocks = nn.ModuleDict(blocks)

    def forward(self, x, gain=None, *, taps=None):
        hs = []
        for name, b in self.blocks.items():
            x = b(x, gain=gain) if name.endswith("gate") else b(x)
            hs += [x]
        first, *mid, last = hs
        return Outputs(last, tuple(hs[i] for i in (taps or self.cfg.taps)), {"mid": mid, "none": None, "m": {"mean": x.mean((-1, -2))}})


@attack("x:float32[N,4]=-2:2", dims="N=1:2:5", kinds=FINITE)
class A7461HooksAll(nn.Module):
    """Hooks that change things: a pre hook with kwargs, a forward hook that returns another value, one that stores features in a dict, one of full always_call, removed ones."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), Gate(4)
        self.feats = {}
        self.a.register_forward_pre_hook(lambda m, args: (args[0] * 2 - 1,))
        self.a.register_forward_hook(lambda m, args, out: out.clamp(-1, 1) + args[0].mean())
        self.b.register_forward_hook(functools.partial(self._keep, "b"))
        self.c.register_forward_pre_hook(lambda m, args, kw: (args, {**kw, "gain": kw["gain"] + 1}), with_kwargs=True)
        self.b.register_forward_hook(lambda m, i, o: o * 100).remove()
        self.register_forward_hook(lambda m, i, o: {**o, "extra": o["y"].abs().sum(-1)})

    def _keep(self, name, m, args, out):
        self.feats[name] = out

    def forward(self, x):
        y = self.b(self.a(x).relu())
        return {"y": self.c(y, gain=0.5), "kept": self.feats["b"] * 2}


class Delegate(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.module = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def forward(self, *a, **k):
        return self.module(*a, **k)


class Inner(nn.Module):
    width = 3
    mean = (0.5, 0.4, 0.3)

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.c = nn.Conv2d(3, 3, 3, padding=1)
        self.d = nn.Conv2d(3, 3, 3, padding=1)
        self.d.weight = self.c.weight
        self.register_buffer("m", torch.tensor(self.mean).view(-1, 1, 1), persistent=False)

    @property
    def scale(self):
        return self.c.weight.abs().amax()

    @functools.cached_property
    def kernel(self):
        g = torch.exp(-(torch.arange(3.0) - 1) ** 2)
        return (g[:, None] * g / g.sum() ** 2).expand(3, 1, 3, 3)

    @functools.lru_cache(maxsize=8)
    def window(self, n):
        return torch.hann_window(n, periodic=False)

    def forward(self, x, *, s=1.0):
        h, w = x.shape[-2:]
        x = (x - self.m) * s
        y = self.d(self.c(x)) / self.scale
        y = F.conv2d(y, self.kernel, padding=1, groups=3)
        return y * self.window(h)[:, None] * self.window(w)


@attack("x:float32[N,3,H,W]=-2:2", dims="N=1:1:2 H=3:5:8 W=4:6:8", kinds=FINITE)
class A7462Delegated(nn.Module):
    """A wrapper by __getattr__, shared weights, cached_property, an lru_cache on sizes, class attributes, normalised by buffers that are not persistent."""

    def __init__(self):
        super().__init__()
        self.net = Delegate(Inner())

    def forward(self, x):
        s = 2.0 if self.net.width == 3 else 1.0
        return self.net(x, s=s) + self.net.mean[1], self.net.c.bias * self.net.scale


class SignSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x)
        return torch.where(x >= t, 1.0, -1.0) * x.abs().mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g, None


class Sym(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


@torch.jit.script
def scripted(x: torch.Tensor, k: int) -> torch.Tensor:
    y = x
    for i in range(k):
        if i % 2 == 0:
            y = torch.relu(y) + x
        else:
            y = y * 0.5
    return y


@attack("x:float32[N,T,4]=-2:2", dims="N=1:1:3 T=1:3:5", kinds=FINITE)
class A7463PartsOfTorch(nn.Module):
    """An autograd Function, checkpoint, a scripted function, parametrised and spectral-normed weights, no_grad, inference_mode, disabled autocast, fake quantised weights and activations, compiled method."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b = nn.Linear(4, 4), nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        parametrize.register_parametrization(self.a, "weight", Sym())
        self.s = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))
        self.eval()

    def inner(self, x):
        return F.gelu(self.a(x)) + self.s(x)

    @torch.no_grad()
    def stats(self, x):
        return x.mean(1, keepdim=True), x.std(-1, unbiased=False, keepdim=True)

    def forward(self, x):
        m, s = self.stats(x)
        y = checkpoint(self.inner, x - m, use_reentrant=False)
        y = scripted(y, 3) / (s + 0.1)
        z = SignSTE.apply(self.b(y), 0.1)
        with torch.inference_mode():
            q = torch.fake_quantize_per_tensor_affine(y, 0.05, 3, 0, 255)
        w = torch.fake_quantize_per_channel_affine(self.b.weight, torch.full((4,), 0.01), torch.zeros(4, dtype=torch.int32), 0, -128, 127)
        with torch.autocast("cpu", enabled=False):
            u = F.linear(y.float(), w)
        return z, q, u


class Pair(NamedTuple):
    a: torch.Tensor
    b: list[torch.Tensor]


@attack("x:float32[N,T,6]=-2:2", "k:int64[N]=0:2", dims="N=2:2:4 T=4:5:8", kinds=FINITE)
class A7464PythonWhole(nn.Module):
    """match, walrus, generators, *-unpacking, recursion, f-string keys, zip and enumerate, slices in variables, ..., None, mixed advanced indexing with a slice between, negative steps by flip."""

    def pyramid(self, x, depth=2):
        if depth == 0 or x.shape[1] < 2:
            return [x]
        return [x, *self.pyramid(x[:, ::2] + x[:, -1:], depth - 1)]

    def parts(self, x):
        for i, p in enumerate(x.unfold(2, 2, 2).unbind(2)):
            yield p * (i + 1)

    def act(self, name, x):
        match name:
            case "relu":
                return x.relu()
            case "leaky" | "lrelu":
                return F.leaky_relu(x, 0.2)
            case _:
                raise ValueError(f"unknown {name}")

    def forward(self, x, k):
        head, *_, tail = self.pyramid(x)
        s = slice(1, -1)
        ix = (..., s, slice(None, None, 3))
        n = torch.arange(x.shape[0])
        a = x[n, :, k * 2]
        b = x[:, [0, -1, 2], :][:, None, ..., torch.tensor([5, 0])]
        c = x[ix]
        d = sum(self.act(nm, p) for nm, p in zip(("relu", "lrelu", "leaky"), self.parts(x)))
        e = x[x.new_tensor([1, 0]).bool().nonzero()[0, 0], -2:, None]
        if (t := tail.shape[1]) > 1:
            d = d + tail.sum(1, keepdim=True)[..., :2] / t
        y = x.clone()
        y[:, 1::2] = y[:, :1] * 2
        y[n[:1], k[:1]] += 5
        y[..., -1] -= y[..., 0]
        return Pair(a, [b, c]), {f"d{t - t}": d, "e": e}, y.flip(1)[:, ::2]


@attack("x:float32[N,T,4]=-2:2", dims="N=1:1:3 T=1:4:9", kinds=FINITE, refused="the path through the module depends on the size")
class A7465CachesAndTries(nn.Module):
    """A mask made lazily and grown, a buffer overwritten in forward, try/except around a size, an assert, warnings, logging, print, numpy on constants, a counter in Python."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.register_buffer("mask", torch.ones(2, 2).tril().bool(), persistent=False)
        self.register_buffer("ema", torch.zeros(4))
        self.calls = 0
        self.l = nn.Linear(4, 4)

    def get(self, t):
        if self.mask.size(0) < t:
            self.mask = torch.from_numpy(np.tril(np.ones((t, t), bool)))
        return self.mask[:t, :t]

    def forward(self, x):
        self.calls += 1
        n, t, c = x.shape
        assert c == 4, f"wants 4 channels, got {c}"
        if t > 6:
            warnings.warn(f"long: {t}", stacklevel=2)
            log.warning("long %d", t)
        try:
            y = x.view(n, t // 2, 2, c).mean(2) if t % 2 == 0 else x.narrow(1, 5, 2)
        except (RuntimeError, IndexError):
            y = x.mean(1, keepdim=True)
        a = (x @ x.transpose(1, 2)).masked_fill(~self.get(t), -1e9).softmax(-1) @ self.l(x)
        self.ema = x.mean((0, 1)) * 0.9
        w = torch.as_tensor(np.hanning(t + 2)[1:-1], dtype=x.dtype)
        return y, a * w[:, None] + self.ema, a.sum((1, 2))

"""State, closures, hooks, parametrizations, torch.func, custom functions and operators, compiled and scripted parts, containers of inputs and outputs."""
# ruff: noqa: E501, UP045 - attacks are written as users write them

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import NamedTuple, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,4]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=FINITE)
class A7840BatchNormMomentumNone(nn.Module):
    """BatchNorm without running statistics (track_running_stats=False, so batch statistics in eval), and one in eval with momentum=None."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.BatchNorm1d(4, track_running_stats=False)
        self.b = nn.BatchNorm1d(4, momentum=None)
        with torch.no_grad():
            self.b.running_mean.normal_()
            self.b.running_var.uniform_(0.5, 2)

    def forward(self, x):
        y = x.transpose(1, 2)
        return self.a(y) + self.b(y)


@attack(X, dims=D, kinds=FINITE)
class A7841TrainingStatsInForward(nn.Module):
    """The module calls F.batch_norm with training=True and its own buffers, whose update nothing reads in the output."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("m", torch.zeros(4))
        self.register_buffer("v", torch.ones(4))

    def forward(self, x):
        y = x.transpose(1, 2)
        return F.batch_norm(y, self.m, self.v, training=True, momentum=0.3)


@attack(X, dims=D, kinds=FINITE, refused="when run again")
class A7842EmaNormReadsOld(nn.Module):
    """An EMA of means that the output reads (running statistics that matter from call to call)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ema", torch.zeros(4))

    def forward(self, x):
        y = x - self.ema
        with torch.no_grad():
            self.ema.lerp_(x.mean((0, 1)), 0.1)
        return y


def make_scaler(box):
    def scale(x):
        return x * box["gain"] + len(box["names"])

    return scale


@attack(X, dims=D, kinds=FINITE)
class A7843ClosureOverMutables(nn.Module):
    """A closure over a dict that forward itself changes before and after the call (put back at the end)."""

    def __init__(self) -> None:
        super().__init__()
        self.box = {"gain": 2.0, "names": []}
        self.scale = make_scaler(self.box)

    def forward(self, x):
        self.box["names"].append(x.shape[1])
        y = self.scale(x)
        self.box["names"].append("b")
        self.box["gain"] = 0.5 * x.shape[0]
        z = self.scale(x)
        self.box["names"].clear()
        self.box["gain"] = 2.0
        return y, z


@attack(X, dims=D, kinds=FINITE)
class A7844HooksWithKwargs(nn.Module):
    """forward_pre_hook with_kwargs changes a keyword, a forward_hook with_kwargs replaces the output by size, always_call, a global ordering with prepend."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 4)
        self.att = nn.MultiheadAttention(4, 2, batch_first=True)
        self.f.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
        self.f.register_forward_pre_hook(lambda m, a: (a[0] + 1,), prepend=True)
        self.f.register_forward_hook(lambda m, a, k, o: o - a[0] if a[0].shape[1] > 4 else o, with_kwargs=True)

        def pre(m, args, kwargs):
            t = args[0].shape[1]
            return args, {**kwargs, "attn_mask": torch.ones(t, t).triu(1).bool(), "need_weights": True, "average_attn_weights": False}

        self.att.register_forward_pre_hook(pre, with_kwargs=True)
        self.att.register_forward_hook(lambda m, a, k, o: (o[0] * k["attn_mask"].float().sum(), o[1]), with_kwargs=True)

    def forward(self, x):
        y = self.f(x)
        return self.att(y, y, y)


class Positive(nn.Module):
    def forward(self, w):
        return F.softplus(w) / F.softplus(w).sum(-1, keepdim=True)

    def right_inverse(self, w):
        return w


@attack(X, dims=D, kinds=FINITE)
class A7845Parametrizations(nn.Module):
    """weight_norm dim=None, the old weight_norm hook, spectral_norm, orthogonal, a chain of one's own, a cached context."""

    def __init__(self) -> None:
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Linear(4, 4), dim=None)
        self.b = torch.nn.utils.weight_norm(nn.Conv1d(4, 4, 3, padding=1))
        self.c = parametrizations.spectral_norm(nn.Linear(4, 5))
        self.d = parametrizations.orthogonal(nn.Linear(4, 4))
        self.e = nn.Linear(4, 4)
        parametrize.register_parametrization(self.e, "weight", Positive())
        with torch.no_grad():
            self.b.weight_g.mul_(1.7)

    def forward(self, x):
        with parametrize.cached():
            y = self.e(self.d(x)) + self.e(self.a(x))
        return y, self.b(x.transpose(1, 2)), self.c(x)


@attack(X, dims=D, kinds=FINITE)
class A7846FuncsOfTorchFunc(nn.Module):
    """vmap over samples with in_dims None, functional_call with scaled weights, stack_module_state of an ensemble, a jvp by finite differences."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)) for _ in range(3))

    def forward(self, x):
        params, buffers = torch.func.stack_module_state(list(self.nets))
        base = copy.deepcopy(self.nets[0])
        f = lambda p, b, x: torch.func.functional_call(base, (p, b), (x,))  # noqa: E731
        y = torch.func.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
        half = {k: v * 0.5 for k, v in self.nets[1].named_parameters()}
        z = torch.func.functional_call(self.nets[1], half, (x,))
        return y.mean(0), y.var(0), z, torch.func.vmap(torch.outer)(x[:, 0], x[:, 1])


class RoundSte(torch.autograd.Function):
    @staticmethod
    def forward(x, lo, hi):
        return torch.round(x).clamp(lo, hi)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.lim = inputs[1:]

    @staticmethod
    def backward(ctx, g):
        return g, None, None


@torch.library.custom_op("r65::rms", mutates_args=())
def rms(x: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


@rms.register_fake
def _(x, eps=1e-5):
    return torch.empty_like(x)


@attack(X, dims=D, kinds=FINITE)
class A7847NewStyleFunction(nn.Module):
    """autograd.Function with setup_context, whose bounds follow from the size."""

    def forward(self, x):
        return RoundSte.apply(x * x.shape[1], -3, x.shape[1])


@attack(X, dims=D, kinds=FINITE, refused="no form of rms")
class A7848CustomOperator(nn.Module):
    def forward(self, x):
        return torch.ops.r65.rms(x * 2, 1e-3)


@torch.jit.script
def scripted_gate(x: torch.Tensor, last: Optional[torch.Tensor] = None):
    if x.size(1) > 4:
        y = x * 2
    else:
        y = x + 1
    if last is not None:
        y = y + last
    return y


class Scripted(nn.Module):
    def forward(self, x: torch.Tensor):
        n = 0
        y = x
        while n < x.size(1) // 2:
            y = y * 0.5 + x[:, n : n + 1]
            n += 1
        return y


@attack(X, dims=D, kinds=FINITE)
class A7849CompiledAndScripted(nn.Module):
    """A scripted function with a branch on size, a scripted submodule with a while, a compiled submodule and a compiled lambda."""

    def __init__(self) -> None:
        super().__init__()
        self.s = torch.jit.script(Scripted())
        self.c = torch.compile(nn.Linear(4, 4))

    def forward(self, x):
        return scripted_gate(self.s(x)) + self.c(x), scripted_gate(x, x)


@attack(X, dims=D, kinds=FINITE, refused="expected compiled_fn")
class A7850TiedAndShared(nn.Module):
    """A tied embedding used as the output's weight (transposed view too), one layer twice, an alias under another name, in-place scaled copies by .data that are restored."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(6, 4)
        self.out = nn.Linear(4, 6, bias=False)
        self.out.weight = self.e.weight
        self.f = nn.Linear(4, 4)
        self.alias = self.f
        self.view = self.e.weight[:4]

    def forward(self, x):
        ids = x.argmax(-1)
        y = self.alias(torch.relu(self.f(self.e(ids) + x)))
        self.f.weight.data.mul_(2)
        z = self.f(y)
        self.f.weight.data.div_(2)
        return self.out(z), z @ self.view


class Batch(NamedTuple):
    ids: torch.Tensor
    mask: Optional[torch.Tensor] = None


@attack(X, "mask:float32[N,T]", dims=D, kinds=FINITE)
class A7851OptionalInputsAndTuples(nn.Module):
    """Optional inputs that are given, others that are not, with a default that is made from the size; an OrderedDict output with nested tuples and None."""

    def forward(self, x, scale: Optional[torch.Tensor] = None, mask: Optional[torch.Tensor] = None, *, flag: bool = False):
        b = Batch(x, mask)
        scale = torch.full((), 1.0 / b.ids.shape[1]) if scale is None else scale
        y = b.ids * scale * (b.mask[..., None] if b.mask is not None else 1)
        return OrderedDict(y=y, extra=(y.sum(1), None), flag=y if flag else y - 1)


@attack(X, dims=D, kinds=FINITE, refused="makes a plain number of a size")
class A7852GetattrAndProperties(nn.Module):
    """A property that depends on what forward set a line before; __call__ overridden; __getitem__ of a ModuleDict by a formatted name of the size's parity."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({f"head_{i}": nn.Linear(4, 4) for i in range(2)})
        self.width = 1

    @property
    def gain(self):
        return 1.0 / self.width

    def forward(self, x):
        self.width = x.shape[1]
        return self.heads[f"head_{x.shape[1] % 2}"](x) * self.gain, getattr(self.heads, f"head_{x.shape[0] % 2}")(x)


@attack(X, dims=D, kinds=FINITE, refused="Python reads a value in that line")
class A7853NumpyRoundTrip(nn.Module):
    """A Hungarian-like greedy match through numpy and tolist."""

    def forward(self, x):
        a = x.detach().cpu().numpy()
        order = np.argsort(-np.abs(a).sum(-1), axis=1, kind="stable")
        return x.gather(1, torch.from_numpy(order)[..., None].expand_as(x))


@attack(X, dims=D, kinds=("normal", "halves", "positive", "negative"), refused="depends on the values of the inputs")
class A7854DecisionsByValue(nn.Module):
    """any() and .item() choose a branch; both sides are easy to write as where."""

    def forward(self, x):
        if (x.abs() > 2.5).any():
            x = x.clamp(-2.5, 2.5)
        k = int(x[0, 0, 0].item() > 0)
        return x.roll(k, 1), max(x.mean().item(), 0.0) + x

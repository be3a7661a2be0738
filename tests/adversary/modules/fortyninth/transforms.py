# ruff: noqa: E501, E731 - attacks are written as users write them
"""Transformations of functions: vmap, derivatives, scans, conditions, autocast, compile, exported and scripted parts, masked reductions."""

from __future__ import annotations

import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree as pytree

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyninth.channels import LOUD, SEVENS
from tests.adversary.modules.fortyseventh.figures import own
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq, two

X, MT = "x:float32[N,T]", "m:bool[N,T]"
RARE = seq(X4, own=own(SEVENS, LOUD))
QK = ("q:float32[N,2,T,4]", "k:float32[N,2,S,4]")


@forward(X4, **seq(X4))
def A6296MappedTwice(self, x):
    """A vmap in a vmap: a sum, a running sum, a choice by the sum of a row, a sort."""

    def f(v):
        return torch.where(v.sum() > 0, v.sort().values, v.flip(0)), v[0] * v.sum(), v.cumsum(0)

    return torch.vmap(torch.vmap(f))(x)


@forward(X4, **seq(X4), refused="cannot be exported")
def A6297MappedOverColumns(self, x):
    """in_dims and out_dims of a vmap, a keyword that is not mapped, chunks of three."""
    return torch.vmap(lambda r, k: (r * k).softmax(0), in_dims=(2, None), out_dims=1, chunk_size=3)(x, x[..., 0])


@forward(X4, **seq(X4), refused="cannot be exported")
def A6298ForwardDerivative(self, x):
    """Directional derivatives: jvp of a clamp and a root, at the kink; forward mode by dual numbers."""
    y, dy = torch.func.jvp(lambda v: v.clamp(-1, 1).abs().sqrt(), (x + 0.25,), (torch.ones_like(x),))
    with torch.autograd.forward_ad.dual_level():
        d = torch.autograd.forward_ad.make_dual(x, x.flip(1))
        t = torch.autograd.forward_ad.unpack_dual(d.square().sum(-1)).tangent
    return y, dy.nan_to_num(0.0, 0.0, 0.0), t


@forward(X, **seq(X))
def A6299ScannedBothWays(self, x):
    """scan forwards and in reverse: a leaky integral with a reset, a running maximum that decays."""
    a, y = scan(lambda c, v: (torch.where(c > 2, 0.0, c * 0.5) + v, (c * v).clone()), torch.zeros(x.shape[0]), x, dim=1)
    b, z = scan(lambda c, v: (torch.maximum(c, v) - 0.1, c + v), torch.zeros(x.shape[0]), x, dim=1, reverse=True)
    return a, y, b, z


@forward(X4, **RARE, refused="the path through the module depends on the size")
def A6300ConditionsWithin(self, x):
    """torch.cond in torch.cond by extremes of values, beside a loop until all are small."""
    y = torch.cond(x.amax() > 700.0, lambda v: torch.cond(v.amin() < -2.5, lambda u: u * 3, lambda u: u + 1, (v,)), lambda v: v - 1, (x,))
    i, z = while_loop(lambda i, v: (i < 5) & (v.abs().amax() > 1.0), lambda i, v: (i + 1, v * 0.5), (torch.tensor(0), x))
    return y, i, z


@forward(X4, **seq(X4))
def A6301AutocastsWithin(self, x):
    """bfloat16 around, an island in float32 within, FP16 for a linear, a sum behind; all types come out."""
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ x.transpose(1, 2)
        with torch.autocast("cpu", enabled=False):
            z = (y.float() * 0.1).exp().clamp(max=50)
        w = F.layer_norm(x, (4,)) + y[..., :1]
    return y.float(), z, w


@forward(X4, **RARE)
def A6302CompiledWithBackend(self, x):
    """torch.compile with a backend of one's own, that runs the graph it is given."""

    def backend(gm, example):
        return gm.forward

    return torch.compile(lambda v: torch.where(v == 777.0, 0.0, v).sin().sum(1), backend=backend, dynamic=True)(x)


@attack(X4, **RARE)
class A6303InterpretedGraph(nn.Module):
    """An interpreter of torch.fx whose layers are cut off."""

    def __init__(self):
        super().__init__()
        self.g = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.Hardtanh(-1e9, 1e9), nn.ReLU()))

    def forward(self, x):
        class Cut(torch.fx.Interpreter):
            def call_module(self, target, args, kwargs):
                return super().call_module(target, args, kwargs).clamp(max=1e4)

        return Cut(self.g).run(x)


@forward(X4, MT, **seq(X4, MT))
def A6304MaskedReductions(self, x, m):
    """torch.masked: sums, means, softmax, extremes, log sums, deviations, norms and running sums under a mask that may hide all."""
    k = m[..., None].expand_as(x)
    f = torch.masked
    return f.sum(x, 1, mask=k), f.mean(x, 1, mask=k), f.softmax(x, 1, mask=k), f.amax(x, 1, mask=k), f.logsumexp(x, 1, mask=k), f.prod(x, 1, mask=k), f.std(x, 1, mask=k, unbiased=False), f.norm(x, 2, 1, mask=k), f.cumsum(x, 1, mask=k), f.median(x, 1, mask=k)


@forward(*QK, **two(*QK))
def A6305CausalBiases(self, q, k):
    """Grouped attention with a scale, causal from the upper left; the lower right by a mask of one's own."""
    t, s = q.shape[2], k.shape[2]
    low = torch.ones(t, s, dtype=torch.bool).tril(s - t)
    return F.scaled_dot_product_attention(q, k, k, is_causal=True, scale=0.3), F.scaled_dot_product_attention(q, k, k, attn_mask=low)


@forward(X4, **RARE)
def A6306PytreesOfAll(self, x):
    """tree_map over dictionaries, named tuples and lists, a partial in it, flattened and put together in another order."""
    d = {"b": x, "a": [x * 2, (x.sum(1), None)]}
    d = pytree.tree_map(lambda v: v if v is None else functools.partial(torch.clamp, max=1e6)(v), d)
    leaves, spec = pytree.tree_flatten(d)
    return pytree.tree_unflatten(leaves[::-1], spec)


@attack(X4, **seq(X4), refused="cannot be exported")
class A6307StackedModels(nn.Module):
    """An ensemble by stacked states of three models and a vmap of functional_call."""

    def __init__(self):
        super().__init__()
        ms = [nn.Sequential(nn.Linear(4, 3), nn.Tanh()) for _ in range(3)]
        p, _ = torch.func.stack_module_state(ms)
        self.p = nn.ParameterDict({k.replace(".", "_"): nn.Parameter(v) for k, v in p.items()})
        self.base = [copy.deepcopy(ms[0])]

    def forward(self, x):
        p = {k.replace("_", "."): v for k, v in self.p.items()}
        y = torch.vmap(lambda w: torch.func.functional_call(self.base[0], w, (x,)))(p)
        return y.mean(0), y.var(0, unbiased=False)


@torch.jit.script
def gated(x: torch.Tensor, k: float) -> torch.Tensor:
    """A scripted gate with a branch on a size and one on an option."""
    if x.size(1) > 12 and k > 0:
        return torch.where(x > k, x * 2, x)
    return x - k


@forward(X4, **RARE, refused="cannot be exported")
def A6308ScriptedGate(self, x):
    """A scripted function called twice with other numbers, one forked."""
    f = torch.jit.fork(gated, x, 776.5)
    return torch.jit.wait(f), gated(x, -1.0)


@forward(X4, **seq(X4), refused="cannot be exported")
def A6309JacobianMapped(self, x):
    """Jacobians and Hessians of a small network for each step by vmap."""
    w = torch.linspace(-1, 1, 8).view(4, 2)
    f = lambda v: torch.tanh(v @ w)
    return torch.vmap(torch.func.jacfwd(f))(x.flatten(0, 1)), torch.vmap(torch.func.hessian(lambda v: f(v).sum()))(x.flatten(0, 1))


@forward(X4, **seq(X4), refused="cannot be exported")
def A6310VjpAndValue(self, x):
    """vjp and grad_and_value in forward."""
    y, f = torch.func.vjp(lambda v: v.sin() * v, x)
    return y, f(torch.ones_like(y))[0]


@forward("q:float32[N,2,T,4]", dims="N=1:1:2 T=1:9:40", kinds=FEW, refused="cannot be exported")
def A6311FlexAttention(self, q):
    """Flex attention with a score that falls with the distance, and what lies ahead hidden."""
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s + (j - i) * 0.1 * (h + 1), -float("inf")))


@forward(X4, "n:int64[N]=1:9", **seq(X4, "n:int64[N]=1:9"), refused="cannot be exported")
def A6312JaggedTensors(self, x, n):
    """A jagged tensor by narrow, doubled, padded again."""
    j = torch.nested.narrow(x, 1, torch.zeros_like(n), n.clamp(max=x.shape[1]), layout=torch.jagged)
    return torch.nested.to_padded_tensor(j.contiguous() * 2, -1.0, output_size=(x.shape[0], x.shape[1], 4))

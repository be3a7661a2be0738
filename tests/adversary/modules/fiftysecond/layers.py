# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Layers with what training, hooks, parametrizations and transforms leave in them."""

from __future__ import annotations

import math
import types

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
M = "m:bool[N,T]"
L = "l:int64[N]=1:40"
CALM = ("normal", "unit", "zeros", "halves", "ones")
D = "N=1:2:3 T=1:20:60"


def own(*points, inputs=(X4,)):
    """Own points at pairs of N and T."""
    return tuple(values_at(*inputs, N=n, T=t) for n, t in points)


def masked(*rows):
    """Own points of a mask, the values normal."""
    return tuple((lambda r=r: {"x": np.random.RandomState(3).randn(len(r), len(r[0]), 4).astype(np.float32), "m": np.array(r, bool)}) for r in rows)


MASKS = masked([[0, 0, 0, 1, 1]], [[0, 0, 1], [0, 1, 1]], [[1, 1, 1]], [[0, 1, 0, 1]], [[1, 0, 0]])


@attack(X4, M, dims=D, kinds=CALM, feeds=MASKS)
class A6751EncoderOfNested(nn.Module):
    """A transformer's encoder whose fast path cuts to the longest and puts zeros where the mask is."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=True)
        self.eval()

    def forward(self, x, m):
        m = m & (torch.arange(m.shape[1]) > 0)
        with torch.no_grad():
            y = self.enc(x, src_key_padding_mask=m)
        return F.pad(y, (0, 0, 0, x.shape[1] - y.shape[1]))


@attack(X4, M, dims=D, kinds=CALM, feeds=MASKS)
class A6752MaskedHeads(nn.Module):
    """Heads whose keys may all be masked; what is not a number becomes nought."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.att = nn.MultiheadAttention(4, 2, batch_first=True, add_zero_attn=False)

    def forward(self, x, m):
        y, w = self.att(x, x, x, key_padding_mask=m, average_attn_weights=False)
        return torch.nan_to_num(y, nan=-1.0), w.isnan().any(-1), torch.nan_to_num(w)


@attack("x:int64[N,T]=0:9", dims=D, feeds=tuple((lambda a=a: {"x": np.array(a)}) for a in ([[9]], [[0, 9, 3]], [[3] * 5] * 2)))
class A6753NormedLookups(nn.Module):
    """An embedding that cuts the norm of what is looked up, and bags of it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.emb = nn.Embedding(10, 4, padding_idx=3, max_norm=1.5)
        self.bag = nn.EmbeddingBag(10, 4, mode="mean", padding_idx=3)
        self.max = nn.EmbeddingBag(10, 4, mode="max")

    def forward(self, x):
        return self.emb(x), self.bag(x), self.max(x)


@attack(X4, dims="N=1:2:3 T=2:20:60", kinds=CALM, feeds=own((1, 2), (2, 3), (3, 60)))
class A6754BatchStatistics(nn.Module):
    """Norms that take the batch's own statistics in evaluation, and one with those that it kept."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.a = nn.BatchNorm1d(4, track_running_stats=False)
        self.b = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.c = nn.BatchNorm1d(4, momentum=None)
        self.b.running_mean.fill_(0.5)
        self.c(torch.randn(8, 4) * 3)
        self.c(torch.randn(8, 4))

    def forward(self, x):
        x = x.mT
        return self.a(x), self.b(x), self.c(x), F.batch_norm(x, None, None, training=True)


@attack(X4, dims=D, feeds=own((1, 1), (3, 60)))
class A6755LeftoverDropout(nn.Module):
    """Functional dropouts that training left: one of everything, one of nothing, one by the flag."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        a = F.dropout(x + 1, p=0.0)
        b = F.dropout(x, p=1.0, training=True)
        c = F.dropout1d(x, 0.3, training=self.training)
        return a, b, c, self.drop(x), F.rrelu(x, 0.25, 0.75)


@attack(X4, dims=D, feeds=own((1, 1), (2, 3), (3, 33), (1, 48)))
class A6756HooksBySize(nn.Module):
    """Hooks before and after a layer, one that goes away after the call and one that changes what it gets by the size."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.lin = nn.Linear(4, 4)
        self.lin.register_forward_pre_hook(lambda m, a: (a[0].flip(1),) if a[0].shape[1] % 3 == 0 else None)
        self.register_forward_hook(lambda m, a, o: (o, a[0].sum(1)), always_call=True)

    def forward(self, x):
        h = self.lin.register_forward_hook(lambda m, a, o: o.abs() if a[0].shape[1] % 16 == 0 else None)
        try:
            return self.lin(x) + 1
        finally:
            h.remove()


class Stochastic(nn.Module):
    """Columns that sum to one."""

    def forward(self, w):
        return w.softmax(0)

    def right_inverse(self, w):
        return w.clamp(min=1e-6).log()


@attack(X4, dims=D, feeds=own((1, 1), (3, 59)))
class A6757Parametrized(nn.Module):
    """Weights by parametrizations on parametrizations, cached during the call, one swapped away."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.a = parametrizations.weight_norm(nn.Linear(4, 4))
        self.b = parametrizations.spectral_norm(nn.Linear(4, 4))
        self.c = parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
        self.d = nn.Conv1d(4, 4, 3, padding=1, padding_mode="circular")
        parametrize.register_parametrization(self.d, "weight", Stochastic())
        parametrize.register_parametrization(self.d, "weight", nn.Hardtanh(0.1, 0.4))
        self.eval()

    def forward(self, x):
        with parametrize.cached():
            y = self.b(self.a(x)) + self.b(x)
        return self.c(y), self.d(F.pad(x, (0, 0, 0, 2)).mT)


@attack(X4, L, dims="N=1:2:3 T=40:44:60", kinds=CALM, feeds=tuple((lambda a=a, t=t: {"x": np.random.RandomState(1).randn(len(a), t, 4).astype(np.float32), "l": np.array(a)}) for a, t in (([1], 40), ([40, 1], 41), ([7, 7, 40], 60), ([1, 1, 1], 44))))
class A6758PackedBoth(nn.Module):
    """A packed recurrence both ways over unsorted lengths, padded to the whole with a value."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.rnn = nn.GRU(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x, l):
        p = pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        y, h = self.rnn(p)
        y, n = pad_packed_sequence(y, batch_first=True, padding_value=-2.0, total_length=x.shape[1])
        return y, h.transpose(0, 1), n


@attack(X4, dims="N=1:1:2 T=1:30:200", feeds=own((1, 1), (1, 64), (2, 65), (1, 66), (2, 200)))
class A6759RotaryGrown(nn.Module):
    """Rotary tables for 64 places that stretch their base for more, and go back to what they were."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cos", torch.zeros(0, 2), persistent=False)
        self.grow(64, 1e4)

    def grow(self, n, base):
        a = torch.arange(n)[:, None] * base ** -(torch.arange(2) / 2)
        self.cos, self.sin = a.cos(), a.sin()

    def forward(self, x):
        t = x.shape[1]
        if t > 64:
            self.grow(t, 1e4 * (2 * t / 64 - 1) ** 2)
        a, b = x[..., ::2], x[..., 1::2]
        c, s = self.cos[:t], self.sin[:t]
        y = torch.stack((a * c - b * s, a * s + b * c), -1).flatten(2)
        if t > 64:
            self.grow(64, 1e4)
        return y


P = "p:float32[N,P,4]"


@forward(X4, P, dims="N=1:1:2 T=1:4:20 P=0:8:16", feeds=tuple((lambda n=n, t=t, p=p: {"x": np.ones((n, t, 4), np.float32), "p": np.random.RandomState(p).randn(n, p, 4).astype(np.float32)}) for n, t, p in ((1, 1, 0), (2, 16, 0), (1, 16, 16), (1, 17, 3), (2, 20, 16), (1, 1, 16), (1, 8, 8))))
def A6760SlidingCache(self, x, p):
    """A cache of at most sixteen: what of the past is kept is counted from behind, and none of it is all of it."""
    t = x.shape[1]
    keep = min(p.shape[1], max(0, 16 - t))
    k = torch.cat((p[:, -keep:], x), 1)
    s = x @ k.mT / 2
    i = torch.arange(t)[:, None] + (k.shape[1] - t)
    s = s.masked_fill(torch.arange(k.shape[1]) > i, -torch.inf)
    return s.softmax(-1) @ k, k[:, -16:], torch.tensor([keep])


class Straight(torch.autograd.Function):
    """Rounding with a gradient of its own."""

    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        ctx.mark_non_differentiable(r := (x * n).round())
        return r / n, r

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.n, None


@attack(X4, dims=D, kinds=CALM, feeds=own((1, 1), (2, 60)), refused="the module cannot be exported")
class A6761Saliency(nn.Module):
    """The gradient of a loss with respect to the input is the output; a straight-through rounding is in it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.lin = nn.Linear(4, 1)

    def forward(self, x):
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            r, _ = Straight.apply(z, x.shape[1])
            (g,) = torch.autograd.grad(self.lin(r.tanh()).sum(), z)
        return g.detach(), r.detach()


@attack(X4, dims=D, feeds=own((1, 1), (2, 60)), refused="the module cannot be exported")
class A6762CompiledPart(nn.Module):
    """A compiled part and transforms of functions: vmap over rows, a Jacobian, a functional call."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.lin = nn.Linear(4, 4)
        self.part = torch.compile(lambda x: torch.sin(x) * x.shape[1], backend="eager", dynamic=True)

    def forward(self, x):
        w = {k: v * 2 for k, v in self.lin.named_parameters()}
        y = torch.func.functional_call(self.lin, w, (x,))
        j = torch.vmap(torch.func.jacrev(lambda r: (r * r).cumsum(0)))(x[:, 0])
        return self.part(y), j.detach(), torch.vmap(torch.dot, in_dims=(1, 1))(x[..., 0], x[..., 1])


@attack(X4, dims=D, feeds=own((1, 1), (2, 25), (3, 36), (1, 49)))
class A6763BoundForward(nn.Module):
    """Forwards that are put on instances: a bound method, a lazy layer, one of a table by the size."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(10)
        self.lazy = nn.LazyLinear(4)
        self.lazy(torch.zeros(1, 4))
        self.act = nn.Identity()
        self.act.forward = types.MethodType(lambda me, x: x * 2 if math.sqrt(x.shape[1]).is_integer() else x.relu(), self.act)
        self.twin = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def forward(self, x):
        return self.act(self.lazy(x)) + self.twin[x.shape[1] > 50](x)


@attack(X4, dims=D, kinds=CALM, feeds=own((1, 1), (2, 2), (3, 60)))
class A6764ProjectedLstm(nn.Module):
    """A projected LSTM of two layers both ways, with learnt states at the start, time first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        self.rnn = nn.LSTM(4, 5, 2, proj_size=2, bidirectional=True, dropout=0.4)
        self.h, self.c = nn.Parameter(torch.randn(4, 1, 2)), nn.Parameter(torch.randn(4, 1, 5))

    def forward(self, x):
        n = x.shape[0]
        y, (h, c) = self.rnn(x.transpose(0, 1), (self.h.expand(-1, n, -1).contiguous(), self.c.repeat(1, n, 1)))
        return y.transpose(0, 1), h[-1], c.transpose(0, 1)


@forward(X4, "k:float32[N,S,4]", dims="N=1:1:2 T=1:9:30 S=1:12:30", kinds=FINITE, feeds=tuple((lambda t=t, s=s: {"x": np.random.RandomState(t).randn(1, t, 4).astype(np.float32), "k": np.random.RandomState(s).randn(1, s, 4).astype(np.float32)}) for t, s in ((1, 30), (30, 1), (7, 8), (8, 8))))
def A6765CausalUpperLeft(self, x, k):
    """A causal attention with other sizes of queries and keys, two heads of queries to one of keys, checkpointed."""
    q = x.unflatten(2, (2, 2)).transpose(1, 2)
    v = k[..., :2][:, None]
    f = lambda q, v: F.scaled_dot_product_attention(q, v, v.flip(-1), is_causal=True, enable_gqa=True, scale=0.3)
    y = checkpoint(f, q, v, use_reentrant=False)
    return y.transpose(1, 2).flatten(2)

# ruff: noqa: E501, E731, B006, PT018 - attacks are written as users write them
"""More: gradients within, functions of their own, state of calls, checks of values, kinds of noise, long sizes."""

from __future__ import annotations

import copy
import logging
import math
import os
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq
from tests.adversary.values import values_at

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"
LOG = logging.getLogger("net")
long = lambda *inputs, sizes=(1, 2, 3, 499, 500, 501, 997, 1024, 1999, 2000, 2001, 3333, 4095, 4096, 4999, 5000), **more: {"dims": "N=1:1:2 T=1:500:5000", "kinds": FEW, "feeds": tuple(values_at(*inputs, N=1, T=t) for t in sizes), **more}


class Ste(torch.autograd.Function):
    """A sign that lets gradients pass."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        return torch.where(x > limit, 1.0, -1.0)

    @staticmethod
    def backward(ctx, g):
        return g, None


@forward(X4, **seq(X4))
def A5834SignsPassThrough(self, x):
    """A function of its own with a limit by the length, and a checkpoint about a part."""
    y = Ste.apply(x, 0.1 if x.shape[1] > 6 else 0.5)
    return checkpoint(lambda v: (v * 3).tanh() + y, x, use_reentrant=False), y.sum(1)


@attack("p:float32[N,T,3]", **seq("p:float32[N,T,3]"))
class A5835NormalsOfField(nn.Module):
    """Normals of a signed distance by torch.func.jvp-free differences, and by vmap over points."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Softplus(beta=100), nn.Linear(8, 1))

    def forward(self, p):
        e = 1e-2
        k = torch.tensor([[1, -1, -1], [-1, -1, 1], [-1, 1, -1], [1, 1, 1]], dtype=p.dtype)
        d = self.net(p[..., None, :] + k * e)
        n = (k * d).sum(-2)
        return F.normalize(n, dim=-1, eps=1e-5), torch.vmap(torch.vmap(self.net))(p)


@attack("p:float32[N,T,3]", **seq("p:float32[N,T,3]"), refused="the module cannot be exported: Attri")
class A5836GradientOfField(nn.Module):
    """The same by torch.func.grad within forward."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, p):
        flat = p.reshape(-1, 3)
        return torch.func.vmap(torch.func.grad(lambda q: self.net(q).squeeze()))(flat).view_as(p)


@attack(X4, **seq(X4))
class A5837ChecksOfValues(nn.Module):
    """What is not finite, empty or out of range is refused by errors and warnings, as libraries do."""

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(f"three axes, not {x.ndim}")
        if torch.isnan(x).any():
            raise ValueError("not a number")
        if x.abs().max() > 1e6:
            warnings.warn("large values", stacklevel=2)
        LOG.debug("shape %s", tuple(x.shape))
        return x.softmax(-1)


@attack(X4, MT, **seq(X4, MT), refused="the path through the module depends")
class A5838AssertsAboutMasks(nn.Module):
    """Asserts about sums of masks; a short way if nothing is masked, which computes the same."""

    def forward(self, x, m):
        assert m.dtype == torch.bool and m.shape == x.shape[:2]
        if m.all():
            return x.mean(1)
        w = m.float()[..., None]
        return (x * w).sum(1) / w.sum(1).clamp(min=1)


@attack(X4, **seq(X4))
class A5839MaskThatGrows(nn.Module):
    """A causal mask kept at its largest, grown when a longer one comes, cut for shorter ones."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((4, 4), -math.inf).triu(1), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if t > self.mask.shape[0]:
            self.mask = torch.full((2 * t, 2 * t), -math.inf).triu(1)
        return (x @ x.transpose(1, 2) + self.mask[:t, :t]).softmax(-1) @ x


@attack(X4, **seq(X4), refused="forward keeps 'table' from its first")
class A5840TableThatIsScaled(nn.Module):
    """A table that is made by the first length only, and is not made again while it suffices."""

    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        t = x.shape[1]
        if self.table is None or self.table.shape[0] < t:
            self.table = torch.linspace(0, 1, t)[:, None]
        return x * self.table[:t]


@attack(X4, **seq(X4))
class A5841StepsCounted(nn.Module):
    """A buffer counts the calls, and nothing depends on it but an output of it minus itself."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.seen = []

    def forward(self, x):
        self.calls += 1
        self.seen.append(x.shape[1])
        return x * (self.calls - self.calls + 1), x.new_tensor(len(self.seen) > 0)


@attack(X4, **seq(X4), refused="the module returns a different 'outp")
class A5842AverageKept(nn.Module):
    """An average over calls that changes the output."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.lerp_(x.mean((0, 1)), 0.1)
        return x - self.mean


@attack(X4, **seq(X4), refused="the exported model differs from the")
class A5843LayerCopied(nn.Module):
    """A deep copy of a layer whose weight is written, and the old one beside it."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        b = copy.deepcopy(self.a)
        with torch.no_grad():
            b.weight.mul_(0.5)
            b.bias.zero_()
        return self.a(x) - b(x), {"w": b.weight}


@attack(X4, **seq(X4))
class A5844EnvironmentDecides(nn.Module):
    """An environment variable decides, a mutable default keeps what was given first."""

    def pick(self, n, seen=[]):
        seen.append(n)
        return min(seen[-2:])

    def forward(self, x):
        k = 2 if os.environ.get("A5844") else 3
        return x * k, x[:, : max(self.pick(x.shape[1]), self.pick(x.shape[1]))]


@forward(X, **long(X))
def A5845SharesOfLongSizes(self, x):
    """Shares of long sizes by floats, rounded, floored, and ceiled."""
    t = x.shape[1]
    return x[:, : int(t * 0.1)], x[:, : round(t * 0.9)], x[:, : math.ceil(t / 3.0)], x[:, : math.floor(t * 0.7)]


@forward(X, **long(X))
def A5846StepsOfArange(self, x):
    """arange by steps of floats up to the length, linspace to it, and their casts."""
    t = x.shape[1]
    a = torch.arange(0, t, 0.25)
    b = torch.arange(0, 1, 1 / t)[:t]
    c = torch.linspace(0, t - 1, 7).long()
    return a, b * 2, x[:, c], torch.linspace(-1, 1, t), torch.linspace(0, 1, t // 2 + 1).mul(t).floor()


@forward(X, **long(X))
def A5847SumsOfLong(self, x):
    """Running sums, means and places of long sequences, ids in float beyond their digits."""
    t = x.shape[1]
    p = torch.arange(t)
    return x.cumsum(1)[:, -1], (p.float() / t), (p * t + p).float(), (p * p * p) % 7, p.to(torch.int16), p.to(torch.int32) * p.to(torch.int32), p.half()


@forward(X, **long(X))
def A5848PositionsOfHalves(self, x):
    """Positions in halves and bfloat16: whole numbers beyond 2048 and 256 are rounded, sines of them."""
    t = x.shape[1]
    p = torch.arange(t).to(torch.float16)
    q = torch.arange(t).to(torch.bfloat16)
    return p.float(), q.float(), (p * 0.01).sin().float(), torch.outer(q, torch.tensor([1.0, 0.01], dtype=torch.bfloat16)).float()


@forward(X, **long(X))
def A5849BlocksOfLong(self, x):
    """Blocks whose size is the square root, rounded up to eight, padded, and who is in which."""
    t = x.shape[1]
    b = (math.isqrt(t) + 7) // 8 * 8
    y = F.pad(x, (0, -t % b)).unflatten(1, (-1, b))
    return y.amax(-1), torch.arange(t) // b, torch.tensor(b)


@forward(X, **long(X))
def A5850RootsOfLong(self, x):
    """The square root of a length in floats, truncated, and a window that is odd."""
    t = x.shape[1]
    k = int(math.sqrt(t)) | 1
    return F.avg_pool1d(x[:, None], 3, 1, k % 2)[:, 0], x[:, :k], x[:, : int(t**0.5)]


@attack(X4, **seq(X4), refused="the module cannot be exported: Runti")
class A5851NoiseOfSeed(nn.Module):
    """Noise by a generator that is seeded at each call, so that it is the same for each size."""

    def forward(self, x):
        g = torch.Generator().manual_seed(7)
        return x + torch.randn(x.shape[1], 4, generator=g) * 0.1


@attack(X4, **seq(X4))
class A5852EmptyFilled(nn.Module):
    """torch.empty that is filled in two parts, new_empty by a fill, empty_like by a copy."""

    def forward(self, x):
        y = torch.empty(x.shape[0], x.shape[1] * 2, 4)
        y[:, ::2], y[:, 1::2] = x, -x
        z = x.new_empty(x.shape[1], 3).fill_(x.shape[1])
        w = torch.empty_like(x)
        w.copy_(x.flip(1))
        w[..., 1:3].neg_()
        return y, z, w


@attack(X4, **seq(X4))
class A5853DefaultTypeOfDoubles(nn.Module):
    """The default type is doubles for as long as a table is made."""

    def forward(self, x):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            w = torch.linspace(0, 1, 4).sqrt()
            s = torch.tensor(0.1)
        finally:
            torch.set_default_dtype(before)
        return (x * w + s).to(x.dtype), (x.double() * w).float()


@attack(IDS, "p:int64[N,T]=0:300", **seq(IDS, "p:int64[N,T]=0:300"))
class A5854CharactersOfWords(nn.Module):
    """Characters of words: a reshape, a convolution over them, a maximum, and a highway; places clipped to the table."""

    def __init__(self):
        super().__init__()
        self.e, self.c, self.pos = nn.Embedding(10, 4, padding_idx=0), nn.Conv1d(4, 6, 3, padding=1), nn.Embedding(128, 6)
        self.h = nn.Linear(6, 12)

    def forward(self, i, p):
        n, t = i.shape
        ch = torch.stack([i, i // 2, i % 3], -1).view(n * t, 3)
        y = self.c(self.e(ch).transpose(1, 2)).amax(-1).view(n, t, 6)
        a, g = self.h(y).chunk(2, -1)
        y = torch.sigmoid(g) * F.relu(a) + (1 - torch.sigmoid(g)) * y
        return y + self.pos(p.clamp(0, 127)), (ch != 0).sum()


@attack(X4, "a:int64[2,E]=0:0", dims="N=1:1:1 T=1:5:12 E=0:7:20", kinds=FEW, feeds=tuple((lambda t=t, e=e: {"x": np.random.default_rng(t).standard_normal((1, t, 4)).astype(np.float32), "a": np.random.default_rng(e).integers(0, t, (2, e))}) for t in (1, 2, 5, 12) for e in (0, 1, 7, 20)))
class A5855GraphOfNoEdges(nn.Module):
    """GAT: a softmax by targets through scatter_reduce, edges may be none, loops of all nodes are added."""

    def __init__(self):
        super().__init__()
        self.w, self.att = nn.Linear(4, 4, bias=False), nn.Parameter(torch.randn(8))

    def forward(self, x, a):
        t = x.shape[1]
        loops = torch.arange(t)
        s, d = torch.cat([a[0], loops]), torch.cat([a[1], loops])
        h = self.w(x[0])
        e = F.leaky_relu((torch.cat([h[s], h[d]], -1) * self.att).sum(-1), 0.2)
        top = torch.full((t,), -math.inf).scatter_reduce(0, d, e, "amax")
        ex = (e - top[d]).exp()
        w = ex / torch.zeros(t).scatter_add(0, d, ex)[d]
        deg = torch.bincount(d, minlength=t) if False else torch.zeros(t).index_add(0, d, torch.ones_like(e))
        return torch.zeros(t, 4).index_add(0, d, h[s] * w[:, None]), deg.rsqrt()


@forward(X4, MT, **seq(X4, MT))
def A5856PacksOfChosen(self, x, m):
    """What is chosen moves to the front in order, by a stable sort of booleans, and back by its inverse."""
    order = torch.argsort((~m).int(), dim=1, stable=True)
    y = x.gather(1, order[..., None].expand_as(x))
    n = m.sum(1)
    y = y * (torch.arange(x.shape[1]) < n[:, None])[..., None]
    back = torch.empty_like(order).scatter_(1, order, torch.arange(x.shape[1]).expand_as(order))
    return y.cumsum(1), y.gather(1, back[..., None].expand_as(y)), x[m].sum(0), x[m].shape[0] * x[:, :1]

# ruff: noqa: E501 - attacks are written as users write them
"""Habits: caches by size, seeds in forward, Python's rounding of sizes, gradients in forward, vmap, hooks, parametrised weights, states that count."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@functools.cache
def table(n, d):
    """Sinusoids made once for a size."""
    pos = np.arange(n)[:, None] / np.power(50.0, np.arange(d)[None] // 2 * 2 / d)
    pos[:, 0::2] = np.sin(pos[:, 0::2])
    pos[:, 1::2] = np.cos(pos[:, 1::2])
    return torch.tensor(pos, dtype=torch.float32)


@attack("x:float32[N,T,4]=-3:3", dims="N=1:2:3 T=1:5:12", kinds=FINITE)
class A7255CachedTable(nn.Module):
    """A position table of numpy by lru_cache, and a causal mask cached in a buffer that only grows."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(4, 4).tril().bool(), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if self.mask.shape[0] < t:
            self.mask = torch.ones(t, t, dtype=torch.bool).tril()
        x = x + table(t, 4)
        s = (x @ x.mT).masked_fill(~self.mask[:t, :t], -1e9)
        return s.softmax(-1) @ x


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=3:10:17", kinds=FINITE)
def A7256RoundedSizes(self, x):
    """Python's arithmetic of a size: round half to even, ceil, isqrt, a power, floor division of negatives, a product of dims."""
    n, t = x.shape
    a = x[:, : round(t * 0.5)]
    b = x[:, : math.ceil(t / 3)]
    c = x[:, -int(t**0.5) :]
    d = x[:, : t - (-t // 4) * -1]
    e = F.adaptive_avg_pool1d(x[:, None], 3)[:, 0]
    k = max(1, int(0.3 * t + 0.5))
    v = x.topk(k, 1).values
    return a.mean(1), b.sum(1), c.amax(1), d, e, v, x.sum() / (n * t), x[:, :: max(t // 5, 1)]


@attack("x:float32[N,4]=-3:3", dims="N=1:3:6", kinds=FINITE)
class A7257Parametrised(nn.Module):
    """Weight norm, spectral norm in eval, an orthogonal matrix, tied weights, a forward hook that scales and a pre-hook that shifts, a scripted submodule."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(16)
        self.a = parametrizations.weight_norm(nn.Linear(4, 4), dim=0)
        self.b = parametrizations.spectral_norm(nn.Linear(4, 4))
        self.c = parametrizations.orthogonal(nn.Linear(4, 4))
        self.d = nn.Linear(4, 4, bias=False)
        self.e = nn.Linear(4, 4)
        self.e.weight = self.d.weight
        self.a.register_forward_hook(lambda m, i, o: o * 2)
        self.b.register_forward_pre_hook(lambda m, i: (i[0] + 1,))

    def forward(self, x):
        return self.e(self.d(torch.tanh(self.c(self.b(self.a(x)))))), self.a.weight.sum()


@attack("x:float32[N,3]=-2:2", dims="N=1:3:5", kinds=FINITE, refused="forward takes a derivative")
class A7258Forces(nn.Module):
    """An energy model whose forces are its gradient by torch.func.grad under vmap."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(17)
        self.f = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))

    def forward(self, x):
        g = torch.func.vmap(torch.func.grad(lambda v: self.f(v).sum()))(x)
        return self.f(x)[:, 0], -g


@attack("x:float32[N,3]=-2:2", dims="N=1:3:5", kinds=FINITE, refused="when run again on the same inputs")
class A7259Counter(nn.Module):
    """A module whose output depends on how often it was called: a running mean updated in place in eval."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("n", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.n += 1
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean, self.n + 0


@forward("x:float32[N,4]=-2:2", dims="N=1:3:5", kinds=FINITE)
def A7260SeededNoise(self, x):
    """Noise from a seed set in the forward, so that it is the same each time, and its shape is the size's."""
    g = torch.Generator().manual_seed(3)
    noise = torch.randn(x.shape, generator=g)
    return x + 0.1 * noise


@forward("x:float32[N,3,3]=-2:2", "b:float32[N,3]=-2:2", dims="N=1:2:4", kinds=("normal", "unit", "positive"))
def A7261SmallAlgebra(self, x, b):
    """Solves and decompositions of three: a regularised solve, a determinant, an inverse, a Cholesky, a matrix power and a trace."""
    a = x @ x.mT + 2 * torch.eye(3)
    y = torch.linalg.solve(a, b[..., None])[..., 0]
    chol = torch.linalg.cholesky(a)
    return y, torch.linalg.det(a), torch.linalg.inv(a), chol, torch.linalg.matrix_power(x / 4, 3), x.diagonal(dim1=-2, dim2=-1).sum(-1), torch.logdet(a)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7262LoopsBySize(self, x):
    """Loops whose length is a size: an IIR filter written step by step, a list of means of prefixes, a Fibonacci-like carry, zip of unbinds."""
    ys, s = [], torch.zeros(x.shape[0])
    for t in range(x.shape[1]):
        s = 0.5 * s + x[:, t]
        ys.append(s)
    y = torch.stack(ys, 1)
    m = torch.stack([x[:, : i + 1].mean(1) for i in range(x.shape[1])], 1)
    return y, m, torch.stack([a.abs() + b for a, b in zip(x.unbind(1), y.unbind(1), strict=True)], -1)


@attack("x:float32[N,4]=-3:3", "i:int64[N]=0:2", dims="N=1:4:6", kinds=FINITE)
class A7263Moe(nn.Module):
    """A mixture of experts as users loop it: masks by expert, index of nonzero, index_add into zeros, gates renormalised over the top two with ties."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(18)
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3)])
        self.adapters = nn.ParameterList([torch.randn(4) for _ in range(3)])

    def forward(self, x, i):
        w, e = self.gate(x).softmax(-1).topk(2, -1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for j, expert in enumerate(self.experts):
            rows, slot = torch.where(e == j)
            out.index_add_(0, rows, expert(x[rows]) * w[rows, slot, None])
        return out + torch.stack(list(self.adapters))[i], e


@forward("x:float32[N,5]=-3:3", "n:int64[N]=0:5", dims="N=1:3:5", kinds=FINITE)
def A7264Distributions(self, x, n):
    """log-probabilities by torch.distributions, a mode, an entropy, lgamma, a normal's cdf and its inverse, kl of Gaussians."""
    d = torch.distributions.Categorical(logits=x)
    a = x.argmax(-1)
    g = torch.distributions.Normal(x[:, 0], F.softplus(x[:, 1]) + 0.1, validate_args=False)
    k = torch.distributions.kl_divergence(g, torch.distributions.Normal(0.0, 1.0))
    return d.log_prob(a), d.entropy(), g.log_prob(x[:, 2]), g.cdf(x[:, 3]), k, n.float() + 1, torch.special.expit(x).logit(), torch.erfinv(x.clamp(-3, 3) / 4)


@forward("n:int64[N]=0:5", dims="N=1:3:5", refused="the exporter has no form of lgamma")
def A7267Lgamma(self, n):
    """A logarithm of factorials, as a Poisson's log-probability has."""
    return torch.lgamma(n.float() + 1) - n * 0.5


@forward("x:float32[N,T,2]=-3:3", "m:bool[N,T]", dims="N=1:2:3 T=2:4:6", kinds=FINITE)
def A7265Selected(self, x, m):
    """Shapes of the data: the masked rows themselves, their mean where there are any, unique labels of rounded values, a split by a list of counts that sum to a size."""
    rows = x[m]
    mean = rows.sum(0) / max(rows.shape[0], 1)
    a, b = x.split([1, x.shape[1] - 1], 1)
    idx = m.nonzero()
    return rows, mean, idx, a * b[:, -1:], torch.masked_select(x[..., 0], m)


@attack("x:float32[N,3,T]=-3:3", dims="N=1:2:3 T=2:6:9", kinds=FINITE)
class A7266Compiled(nn.Module):
    """A scripted function, a checkpointed block, autocast to bfloat16 disabled, a module list in reverse, functional_call with scaled parameters."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(19)
        self.c = nn.ModuleList([nn.Conv1d(3, 3, k, padding="same", padding_mode=p) for k, p in ((3, "circular"), (2, "zeros"), (3, "reflect"))])

    def forward(self, x):
        for c in reversed(self.c):
            with torch.autocast("cpu", enabled=False):
                x = x + torch.utils.checkpoint.checkpoint(c, x, use_reentrant=False)
        p = {k: v * 0.5 for k, v in self.c[0].named_parameters()}
        return torch.func.functional_call(self.c[0], p, (x,)), torch.nn.utils.parameters_to_vector(self.c[0].parameters()).norm()


@forward("x:float32[N,C,T]=-3:3", dims="N=1:2:3 C=1:2:4 T=2:4:9", kinds=FINITE)
def A7268TwoSplits(self, x):
    """More than two channels cut to two, and an odd length made even: two branches by two sizes."""
    if x.shape[1] > 2:
        x = x[:, :2]
    if x.shape[2] % 2:
        x = x[..., :-1]
    return x + 1


@forward("x:float32[N,C,T]=-3:3", dims="N=1:2:3 C=1:2:4 T=1:4:9", kinds=FINITE)
def A7269MeanOfTheRest(self, x):
    """Channels beyond the second averaged, and an odd length made even."""
    if x.shape[1] > 2:
        x = torch.cat([x[:, :2], x[:, 2:].mean(1, keepdim=True)], 1)
    if x.shape[-1] % 2:
        x = x[..., :-1]
    return x.flip(-1)

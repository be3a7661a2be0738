"""Round 29, follow-ups: what torch adds up in double, one by one."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _c(*column):
    return lambda: {"x": np.repeat(np.array(column, np.float32)[None, :, None], 4, 2)}


def _t(t, n=1, scale=1.0, c=4):
    return lambda: {"x": _r(n, t, c, scale=scale)}


FAR = (_t(9, scale=1e20), _t(9, scale=1e-22), _t(9, scale=3e37), _t(9, scale=1e-30))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8), _c(3e10, 0.5, 0.25, -3e10, 7), _c(2e38, 2e38, -2e38, 1)))
def K29Cumsum(self, x):
    return x.cumsum(1)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8), _c(2e38, 2e38, -2e38, 1)))
class K29CumsumBesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        y = x.cumsum(1)
        return y, self.gru(y.clamp(-5, 5))[0]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e30, 1e30, 1e-30, 1), _c(1e-30, 1e-30, 1e30, 1e30, 2)))
def K29Cumprod(self, x):
    """Transmittance along a ray and its like."""
    return x.cumprod(1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e30, 1e30, 1e-30, 1e-30), _c(1e-30, 1e-30, 1e30, 1e30, 2)))
def K29Prod(self, x):
    return x.prod(1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8), _c(3e38, 3e38, -3e38, -3e38)))
def K29Sum(self, x):
    return x.sum(1), x.mean(1), x.sum((1, 2))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8), _c(2e38, 2e38, -2e38, 1)))
def K29Trapezoids(self, x):
    return torch.cumulative_trapezoid(x, dim=1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8),))
def K29FlippedCumsum(self, x):
    return x.flip(1).cumsum(1).flip(1), x.cumsum(1, dtype=torch.float64).float()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29StdOnly(self, x):
    return x.std(1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_t(9, scale=1e20), _t(9, scale=1e-23), _c(1e-24, 2e-24, 3e-24, 5e-24)))
def K29ZScore(self, x):
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-38)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29LayerNormFar(self, x):
    return F.layer_norm(x, (4,))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29GroupNormFar(self, x):
    return F.group_norm(x.mT, 2)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29RmsNormFar(self, x):
    return F.rms_norm(x, (4,))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29InstanceNormFar(self, x):
    return F.instance_norm(x.mT)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29BatchNormFar(self, x):
    return F.batch_norm(x.mT, None, None, training=True)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_t(9, scale=1e20), _t(9, scale=3e37)))
class K29FrozenNormFar(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)
        self.bn.running_var.fill_(1e-10)
        self.bn.running_mean.fill_(3.0)
        self.bn.weight.data.fill_(1e-3)

    def forward(self, x):
        return self.bn(x.mT)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29Renorm(self, x):
    return x.renorm(2, 0, 1.0)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def K29VarOnly(self, x):
    return x.var(1)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8), _c(90, -90, 100, 0), _c(-200, -200, -201)))
def K29LogCumsumExp(self, x):
    return x.logcumsumexp(1)


@forward("x:float32[N,T,4]", dims="N=1:2:3 T=30:40:60", feeds=(lambda: {"x": 3000 + _r(1, 60, 4)}, lambda: {"x": 1e4 + _r(1, 40, 4, scale=0.01)}))
def K29BoxByCumsum(self, x):
    """A moving mean by differences of running sums."""
    c = F.pad(x, (0, 0, 1, 0)).cumsum(1)
    return (c[:, 5:] - c[:, :-5]) / 5


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(1e8, 1, 1, 1, -1e8), _c(1e20, 1, 1, -1e20)))
def K29Ema(self, x):
    w = 0.5 ** torch.arange(x.shape[1] - 1, -1, -1.0)
    return (x * w[:, None]).cumsum(1) / w.cumsum(0)[:, None]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_c(0.1, 0.2, 0.3), _t(20, 2)))
def K29AlphaComposite(self, x):
    """NeRF's weights: exclusive products of what is left."""
    alpha = 1 - torch.exp(-F.relu(x[..., 0]) * 0.5)
    left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    w = alpha * left
    pdf = (w + 1e-5) / (w + 1e-5).sum(-1, keepdim=True)
    cdf = torch.cat([torch.zeros_like(pdf[:, :1]), pdf.cumsum(-1)], -1)
    u = torch.linspace(0, 1, 7).expand(x.shape[0], 7).contiguous()
    i = torch.searchsorted(cdf, u, right=True)
    lo, hi = (i - 1).clamp(min=0), i.clamp(max=cdf.shape[-1] - 1)
    g = torch.gather(cdf, 1, lo)
    d = torch.gather(cdf, 1, hi) - g
    t = (u - g) / torch.where(d < 1e-5, 1.0, d)
    return w, (w[..., None] * x).sum(1), lo + t

"""Round 29, follow-ups: where a formula leaves the range and torch's own does not, and the other way round."""

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


def _f(*values):
    return lambda: {"x": np.array(values, np.float32).reshape(1, 3, 4)}


FAR = (
    lambda: {"x": _r(1, 9, 4, scale=1e20)}, lambda: {"x": _r(1, 9, 4, scale=1e38)}, lambda: {"x": _r(1, 9, 4, scale=1e-22)},
    lambda: {"x": _r(1, 9, 4, scale=1e10)}, lambda: {"x": _r(1, 9, 4, scale=60)},
)  # fmt: skip
ENDS = (_f(89, -89, 88.8, -88.8, 89.3, 50, 20, -20, 1e-4, 127.9, -126, 1), *FAR)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=ENDS)
def M29SinhCosh(self, x):
    return torch.sinh(x), torch.cosh(x), torch.expm1(x), torch.exp2(x), torch.sigmoid(x), torch.tanh(x)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=ENDS)
def M29Asinh(self, x):
    return torch.asinh(x), torch.acosh(x.abs() + 1), torch.atan2(x, x.flip(1)), torch.log1p(x.abs())


@forward("x:float32[N,T,4]", dims=SHORT, feeds=ENDS)
def M29Activations(self, x):
    return F.hardswish(x), F.silu(x), F.mish(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.softplus(x), F.elu(x), F.hardsigmoid(x), F.tanhshrink(x), F.softsign(x), F.logsigmoid(x)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def M29HardswishFar(self, x):
    return F.hardswish(x)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def M29PoolsFar(self, x):
    return F.avg_pool1d(x.mT, 3, 1, 1), F.adaptive_avg_pool1d(x.mT, 2), F.interpolate(x.mT, 5, mode="area"), F.interpolate(x.mT, 7, mode="linear"), x.mean(1)


@forward("x:float32[N,3,3]", dims="N=1:2:4", feeds=(lambda: {"x": _r(2, 3, 3, scale=1e18)}, lambda: {"x": _r(2, 3, 3, scale=1e-20)}, lambda: {"x": _r(2, 3, 3) * np.array([1e15, 1, 1e-15], np.float32)[:, None]}))
def M29InverseFar(self, x):
    return torch.linalg.inv(x), torch.linalg.solve(x, x[..., :1] * 2), torch.linalg.det(x / x.abs().amax((1, 2), keepdim=True))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=ENDS)
def M29LogSums(self, x):
    return torch.logaddexp2(x, x.flip(1)), torch.logaddexp(x, x.flip(1)), x.logsumexp(1), x.log_softmax(-1), torch.special.log_ndtr(x), torch.special.entr(x.abs()), torch.xlogy(x, x.abs())


@forward("x:float32[N,T,4]", "i:int64[N,T]", dims=SHORT, feeds=(lambda: {"x": _r(1, 5, 4, scale=1e8), "i": np.array([[1, 1, 0, 3, 1]])},))
def M29WeightedBins(self, x, i):
    return torch.bincount(i.remainder(6).flatten(), weights=x[..., 0].flatten(), minlength=6).float()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=ENDS)
def M29Unwrap(self, x):
    """Phases: wrapped, and unwrapped again."""
    w = torch.remainder(x + math.pi, 2 * math.pi) - math.pi
    d = torch.diff(w, dim=1)
    m = torch.remainder(d + math.pi, 2 * math.pi) - math.pi
    m = torch.where((m == -math.pi) & (d > 0), math.pi, m)
    fix = torch.where(d.abs() < math.pi, 0.0, m - d)
    return w, torch.cat([w[:, :1], w[:, 1:] + fix.cumsum(1)], 1), torch.atan2(x.sin(), x.cos()), torch.fmod(x, 360.0)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def M29HuberFar(self, x):
    return F.smooth_l1_loss(x, x.flip(1), reduction="none"), F.huber_loss(x, x.flip(1), reduction="none", delta=0.5), F.mse_loss(x, x.flip(1)), F.l1_loss(x, x.flip(1))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def M29Covariance(self, x):
    return torch.cov(x[0].T), torch.corrcoef(x[0].T), torch.var_mean(x, 1)[1]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def M29SphericalFar(self, x):
    """Quaternions, spherical coordinates, slerp, six numbers of a rotation."""
    q = F.normalize(x, dim=-1)
    r = x[..., :3].norm(dim=-1, keepdim=True)
    theta = torch.acos((x[..., 2:3] / r.clamp(min=1e-30)).clamp(-1, 1))
    b1 = F.normalize(x[..., :3], dim=-1)
    b2 = F.normalize(x[..., 1:] - (b1 * x[..., 1:]).sum(-1, keepdim=True) * b1, dim=-1)
    return q, theta, torch.linalg.cross(b1, b2)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=FAR)
def M29StdAll(self, x):
    return (x - x.mean()) / x.std(), x.std(dim=(1, 2), keepdim=True), torch.std_mean(x, 1)[0]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 9, 4, scale=1e10)}, lambda: {"x": _r(1, 20, 4, scale=3e3)}))
def M29CumsumThenCosine(self, x):
    return x.cumsum(1).cos(), (x.abs() + 0.1).cumsum(1) % 1.0


@attack("x:float32[N,T,2]", dims="N=1:1:2 T=10:100:600", feeds=(lambda: {"x": np.full((1, 500, 2), 1234.567, np.float32)}, lambda: {"x": np.abs(_r(1, 600, 2, scale=500))}))
class M29Trajectory(nn.Module):
    """Headings and places by running sums of steps (dead reckoning)."""

    def forward(self, x):
        heading = torch.cumsum(x[..., 0] * 0.01, 1)
        step = x[..., 1:] * torch.stack([heading.cos(), heading.sin()], -1)
        return heading, torch.cumsum(step, 1)

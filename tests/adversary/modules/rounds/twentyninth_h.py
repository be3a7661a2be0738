"""Round 29, follow-ups: accumulations of halves, casts to eight bits, ldexp, complex moduli."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

LONG = "N=1:1:2 T=3:100:3000"
SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


MANY = (lambda: {"x": 100 + _r(1, 2900, 4)}, lambda: {"x": 50 * _r(1, 1500, 4)})


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29MeanBf(self, x):
    return x.bfloat16().mean(1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29NormHalf(self, x):
    return x.half().norm(dim=1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29NormalizeHalf(self, x):
    return F.normalize(x.half(), dim=1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29VarHalf(self, x):
    return x.half().var(1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29StdHalf(self, x):
    return x.half().std(1, correction=0).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29SoftmaxHalf(self, x):
    return (x.half() / 100).softmax(1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29LogsumexpHalf(self, x):
    return x.half().logsumexp(1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29PoolHalf(self, x):
    return F.adaptive_avg_pool1d(x.half().mT, 1).float()


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=40:100:300", feeds=(lambda: {"x": 3000 + _r(1, 100, 4)},))
def H29AvgPoolHalf(self, x):
    return F.avg_pool1d(x.half().mT, 32, 16).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29LayerNormHalf(self, x):
    return F.layer_norm(x.half() * 50, (4,)).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29CumsumHalf(self, x):
    return (x.half() / 64).cumsum(1).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29MatmulHalf(self, x):
    h = x.half()
    return (h.mT @ h / 1000).float(), (h.mT @ (h / 1000)).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29InstanceNormHalf(self, x):
    return F.instance_norm(x.half().mT).float()


@forward("x:float32[N,T,4]", dims=LONG, feeds=MANY)
def H29MeanAfterConv(self, x):
    """A squeeze-and-excite gate in half."""
    h = x.half()
    return (h * torch.sigmoid(h.mean(1, keepdim=True) / 100)).float()


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=8:32:64 W=8:32:64", feeds=(lambda: {"x": np.full((1, 3, 64, 64), 60, np.float32)},))
class H29GlobalPoolHalf(nn.Module):
    """A half-precision trunk with global average pooling."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3, padding=1).half(), nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.conv(x.half()).mean((2, 3)).float())


@forward("x:float32[N,T,4]", "e:int32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": np.full((1, 3, 4), 1e30, np.float32), "e": np.full((1, 3, 4), -150, np.int32)}, lambda: {"x": np.full((1, 3, 4), 1e-30, np.float32), "e": np.full((1, 3, 4), 130, np.int32)}))
def H29Ldexp(self, x, e):
    return torch.ldexp(x, e.clamp(-200, 200))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4, scale=1e20)}, lambda: {"x": _r(1, 3, 4, scale=1e-22)}))
def H29StackedAbs(self, x):
    return torch.view_as_complex(x.reshape(x.shape[0], x.shape[1], 2, 2)).abs(), torch.hypot(x[..., 0], x[..., 1])


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4, scale=1e20)}, lambda: {"x": _r(1, 3, 4, scale=1e-22)}))
def H29RecordedAbs(self, x):
    """The same beside a magnitude that is normalised: phase only."""
    z = torch.complex(x[..., :2], x[..., 2:])
    return (z / z.abs().clamp(min=1e-38)).real

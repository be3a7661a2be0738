"""Round 29, follow-ups: rounding of sizes to tens at rare joint sizes, running products, deviations as real code has them."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

WIDE = "N=1:1:2 H=16:64:400 W=16:64:400"
SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _im(h, w):
    return lambda: {"x": _r(1, 1, h, w)}


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382), _im(231, 317)))
def N29RoundsAnArea(self, x):
    return x * (1 + (round(x.shape[2] * x.shape[3], -1) % 997 == 5)), x + (round(x.shape[2] * x.shape[3], -2) % 1000 == 0)


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(155, 382), _im(65, 64), _im(25, 35)))
def N29RoundsOnlyLarge(self, x):
    """Sides above 100 are rounded to tens."""
    h = x.shape[2]
    return x * (round(h, -1) if h > 390 else h)


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=10:100:600", feeds=(lambda: {"x": 100 + np.abs(_r(1, 600, 4, scale=100))}, lambda: {"x": np.full((1, 500, 4), 3.3, np.float32)}))
def N29GrowthFactors(self, x):
    """Cumulative returns whose product leaves the range and comes back."""
    up = torch.where(torch.arange(x.shape[1]) < x.shape[1] // 2, 1.0, -1.0)[:, None]
    return torch.cumprod((x.abs() + 1).clamp(max=1e3) ** up, 1)[:, -1]


@forward("x:float32[N,T]", dims="N=1:1:2 T=10:100:600", feeds=(lambda: {"x": np.full((1, 500), 1234.567, np.float32)}, lambda: {"x": np.abs(_r(1, 600, scale=500))}))
def N29RotaryByTime(self, x):
    """Positions in continuous time: gaps summed up, then angles."""
    t = x.cumsum(1)
    angle = t[..., None] * torch.tensor([1.0, 0.1, 0.01])
    return torch.cat([angle.sin(), angle.cos()], -1)


@attack("x:float32[N,T,4]", "dt:float32[N,T]", dims="N=1:1:2 T=10:100:600", feeds=(lambda: {"x": _r(1, 500, 4), "dt": np.full((1, 500), 3600.1, np.float32)},))
class N29TimeAwareGru(nn.Module):
    """Clock features (time of day) of summed gaps in seconds beside a GRU."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 4, batch_first=True)

    def forward(self, x, dt):
        t = dt.abs().cumsum(1)
        day = 2 * math.pi * (t % 86400.0) / 86400.0
        return self.gru(torch.cat([x, torch.stack([day.sin(), day.cos()], -1)], -1))[0]

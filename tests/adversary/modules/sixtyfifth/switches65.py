"""Switches of the process and caches by length."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import os
import random
import time
from collections import namedtuple

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE

X = "x:float32[N,T,4]"
D = "N=1:2:3 T=2:5:9"


@attack(X, dims=D, kinds=FINITE)
class A7855RandomTimeEnvironment(nn.Module):
    """Noise that a seed fixes, time that is logged only, an environment variable read in forward, a shuffle by random.Random(0)."""

    def __init__(self) -> None:
        super().__init__()
        self.log = []

    def forward(self, x):
        start = time.perf_counter()
        order = list(range(4))
        random.Random(0).shuffle(order)
        y = x[..., order] * float(os.environ.get("R65_GAIN", "1.5"))
        self.log.append(time.perf_counter() - start)
        return y + np.random.RandomState(3).randn(4).astype(np.float32).mean().item()


@attack(X, dims=D, kinds=FINITE)
class A7856ModeSwitches(nn.Module):
    """set_grad_enabled, inference_mode, autocast off, a train flag of a child set for a call (dropout p = 0), default dtype, deterministic flag."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.f = nn.Dropout(0.0), nn.Linear(4, 4)

    def forward(self, x):
        self.drop.train()
        with torch.set_grad_enabled(not torch.is_grad_enabled()):
            y = self.drop(self.f(x))
        self.drop.eval()
        if torch.is_grad_enabled():
            y = y + 100
        with torch.autocast("cpu", enabled=False):
            y = y @ self.f.weight
        return y if not self.training else y * 3


Coords = namedtuple("Coords", "u v")


@attack(X, dims=D, kinds=FINITE, refused="when run again")
class A7857KeptCacheByLength(nn.Module):
    """A dict cache of masks by length on the module, whose entries forward scales in place (so the second call of a length differs)."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = {}

    def forward(self, x):
        t = x.shape[1]
        if t not in self.cache:
            self.cache[t] = torch.linspace(1, 2, t)[:, None]
        m = self.cache[t]
        y = x * m
        m.mul_(1.0 + 0.1 * (t > 7))
        return Coords(y, y.amax(1))

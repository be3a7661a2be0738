"""Random numbers, time, the environment and files."""

from __future__ import annotations

import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"
SETTINGS = {"scale": 2.0}


@attack(X, dims=N, refused="run again on the same inputs")
class StaysInTraining(nn.Module):
    """Overrides train, so that its dropout is always on."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def train(self, mode=True):
        return super().train(True)

    def forward(self, x):
        return self.drop(x)


@forward(X, dims=N)
def alpha_dropout_default(self, x):
    return F.alpha_dropout(x, 0.5)


@forward(X, dims=N, refused="the file draws random numbers")
def seeded_noise(self, x):
    torch.manual_seed(3)
    return x + torch.randn(x.shape)


@forward(X, dims=N, refused="cannot be exported")
def generator_noise(self, x):
    return x + torch.rand(x.shape, generator=torch.Generator().manual_seed(7))


@forward(X, dims=N, refused="run again")
def numpy_noise(self, x):
    return x + float(np.random.default_rng().random()) * 1e-3


@forward(X, dims=N)
def seeded_numpy(self, x):
    chance = np.random.RandomState(0)
    return x * torch.from_numpy(chance.rand(4).astype(np.float32))


@forward(X, dims=N, refused="cannot be exported")
def randperm_of_rows(self, x):
    return x[torch.randperm(x.shape[0])].sort(0).values


@forward(X, dims=N)
def time_of_day(self, x):
    return x + (time.time() % 86400 > 1e9)


@forward(X, dims=N, refused="run again on the same inputs")
def clock_as_value(self, x):
    return x * (time.monotonic_ns() % 1000)


@forward(X, dims=N)
def environment_scale(self, x):
    return x * float(os.environ.get("ADVERSARY_SCALE", "2"))


@forward(X, dims=N)
def file_in_forward(self, x):
    with open(__file__) as file:
        return x * len(file.readline())


@forward(X, dims=N)
def global_setting(self, x):
    return x * SETTINGS["scale"]

"""Python and NumPy at sizes, which torch.export cannot trace, over wide ranges: what a file generalises from a few recordings."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import make


def at(text: str, name: str, *values: int):
    """Points at these sizes of one dim."""
    return tuple(partial(make, (text,), {name: v}, "normal", 4) for v in values)


X2 = "x:float32[1,T,2]=-2:2"


@forward(X2, dims="T=1:9:400", kinds=FINITE, feeds=at(X2, "T", *range(1, 12), *range(13, 400, 9)))
def A7491StdUnbiasedByBool(self, x):
    """A std that is unbiased where there is more than one step: a boolean of a size as an argument."""
    return x.std(1, unbiased=x.shape[1] > 1)


@attack(X2, dims="T=1:40:400", kinds=FINITE, feeds=at(X2, "T", *range(1, 400, 11), 136, 137, 138, 139))
class A7492CorrectionByLimit(nn.Module):
    """A variance whose correction is one from a limit of the module on."""

    def __init__(self, limit: int = 137):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        return x.var(1, unbiased=x.shape[1] > self.limit)


@attack(X2, dims="T=1:40:2000", refused="plain number", kinds=FINITE, feeds=at(X2, "T", *range(1, 2000, 61), 99, 100, 101, 250, 251, 252, 1023, 1024, 1025))
class A7493ScalesBySearchsorted(nn.Module):
    """A temperature for buckets of lengths, found by np.searchsorted at the size."""

    def __init__(self):
        super().__init__()
        self.bounds, self.temps = np.array([100, 251, 1024]), np.array([1.0, 0.9, 0.7, 0.5])

    def forward(self, x):
        return x * float(self.temps[np.searchsorted(self.bounds, x.shape[1])])


@forward(X2, dims="T=8:40:2000", kinds=FINITE, feeds=at(X2, "T", *range(8, 2000, 31)))
def A7494FramesByNumpy(self, x):
    """Eight frames at np.linspace(0, T - 1, 8).astype(int), as video code takes them, and at np.arange(8) * T / 8."""
    t = x.shape[1]
    a = np.linspace(0, t - 1, 8).astype(np.int64)
    b = (np.arange(8) * (t / 8)).astype(np.int64)
    return x[:, torch.from_numpy(a)], x[:, torch.from_numpy(b)]


@forward(X2, dims="T=1:40:2000", kinds=FINITE, feeds=at(X2, "T", *range(1, 2000, 61), 16, 1600))
def A7495PadsByNumpy(self, x):
    """Padded to int(np.ceil(T / 16)) * 16, scaled by 1 / np.sqrt(T), cut to np.floor of three quarters."""
    t = x.shape[1]
    p = int(np.ceil(t / 16)) * 16 - t
    return F.pad(x, (0, 0, 0, p)), x / np.sqrt(t), x[:, : int(np.floor(t * 0.75)) + 1]


@forward(X2, dims="T=1:40:900", refused="at most 512", kinds=FINITE, feeds=at(X2, "T", *range(1, 900, 31)))
def A7496SinCosByNumpy(self, x):
    """MAE's position embedding by np.arange and np.einsum at the size, added as a float32 tensor."""
    t = x.shape[1]
    om = 1.0 / 10000 ** (np.arange(1, dtype=np.float64) / 1.0)
    out = np.einsum("m,d->md", np.arange(t, dtype=np.float64), om)
    return x + torch.from_numpy(np.concatenate([np.sin(out), np.cos(out)], 1)).float()


@forward("x:float32[1,2,T]=-2:2", dims="T=1:9:60", kinds=FINITE)
def A7497CornersByBool(self, x):
    """align_corners and ceil_mode by booleans of a size."""
    t = x.shape[2]
    return F.interpolate(x, size=20, mode="linear", align_corners=t < 20), F.max_pool1d(x, 2, 2, 1, ceil_mode=t % 2 == 0)

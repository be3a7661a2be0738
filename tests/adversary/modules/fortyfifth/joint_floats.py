# ruff: noqa: E501 - attacks are written as users write them
"""Places of one length in another: floats of two sizes that are cut, at many of their forty thousand pairs."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.values import values_at

XT, YS = "x:float32[1,T,2]", "y:float32[1,S,2]"
_CHANCE = np.random.default_rng(45)
PAIRS = tuple(values_at(XT, YS, T=int(t), S=int(s)) for t, s in _CHANCE.integers(2, 201, (500, 2)))
MULTIPLES = tuple(values_at(XT, YS, T=1 + a * k, S=1 + b * k) for k in range(1, 40) for a, b in ((1, 2), (2, 1), (3, 2), (5, 3), (3, 4), (4, 3), (1, 3), (5, 2)) if 1 + max(a, b) * k <= 200)
TWO = {"dims": "T=2:50:200 S=2:60:200", "kinds": ("normal",), "feeds": (*PAIRS, *MULTIPLES)}


@forward(XT, YS, **TWO)
def A5141AlignedByLinspace(self, x, y):
    """Frames of one stream at the times of another: a linspace that is cut."""
    return x[:, torch.linspace(0, x.shape[1] - 1, y.shape[1]).long()] + y
@forward(XT, YS, **TWO)
def A5142AlignedByRoundedLinspace(self, x, y):
    """The same, rounded."""
    return x[:, torch.linspace(0, x.shape[1] - 1, y.shape[1]).round().long()] + y
@forward(XT, YS, **TWO)
def A5143NearestToTheOther(self, x, y):
    """A feature pyramid's step: nearest to the size of the lateral."""
    return F.interpolate(x.mT, size=y.shape[1]).mT + y, F.interpolate(x.mT, size=y.shape[1], mode="nearest-exact").mT
@forward(XT, YS, **TWO)
def A5144AlignedByARatio(self, x, y):
    """Places by the ratio of the lengths in Python's floats."""
    t, s = x.shape[1], y.shape[1]
    i = (torch.arange(s) * (t / s)).long()
    j = ((torch.arange(s) + 0.5) * (t / s) - 0.5).round().long().clamp(0, t - 1)
    return x[:, i] + y, x[:, j]
@forward(XT, YS, **TWO)
def A5145PlacesByAChain(self, x, y):
    """Places by a ratio times a share, as floats of Python and of tensors."""
    t, s = x.shape[1], y.shape[1]
    r = t / s * 0.7
    return (torch.arange(s) * r).floor(), (torch.arange(s) / s * t).floor(), (torch.arange(s) * r / 3).long(), (torch.arange(t) * (s - 1) / (t - 1)).floor()
@forward(XT, YS, **TWO)
def A5146BucketsOfTwoLinspaces(self, x, y):
    """A linspace of one length is looked up in that of the other."""
    return torch.bucketize(torch.linspace(0, 1, x.shape[1]), torch.linspace(0, 1, y.shape[1]))
@forward(XT, YS, **TWO)
def A5147AnchorsByRoots(self, x, y):
    """Levels and strides by roots and logarithms of an area, in Python's floats."""
    t, s = x.shape[1], y.shape[1]
    level = math.floor(math.log2(math.sqrt(t * s) / 14 + 1e-8))
    side = math.sqrt(t * s) / 7
    return x + level, (torch.arange(t) / side).long(), y * round(side)
@forward(XT, YS, **TWO, refused="the exported model differs from the module")
def A5148RangeByARatio(self, x, y):
    """A range whose step is a ratio: as many as fit, cut."""
    t, s = x.shape[1], y.shape[1]
    return torch.arange(0, t, t / s), torch.arange(0.0, 1.0, 1 / s).long() + torch.arange(0, t - 0.5, t / s)[:1].long()
@forward(XT, YS, **TWO, refused="the exported model differs from the module")
def A5149ScaledByAFactorOfSizes(self, x, y):
    """A resize by a factor that is a ratio of sizes, its length cut down."""
    t, s = x.shape[1], y.shape[1]
    z = F.interpolate(x.mT, scale_factor=s / t, mode="nearest", recompute_scale_factor=True)
    return z, F.interpolate(x.mT, size=int(t * (s / t)), mode="linear")
@forward(XT, YS, **TWO)
def A5150TimesInSeconds(self, x, y):
    """Times at two rates: thirds of seconds compared, the nearest by argmin of distances."""
    a, b = torch.arange(x.shape[1]) / x.shape[1], torch.arange(y.shape[1]) / y.shape[1]
    return (a[:, None] - b).abs().argmin(0), (a[:, None] <= b).sum(0), torch.searchsorted(a, b, right=True)

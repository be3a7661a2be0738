# ruff: noqa: E501 - attacks are written as users write them
"""Masks and bins that floats of two sizes decide: apertures, bands of frequencies, ranges by a share, thresholds of a resized mask."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.values import values_at

XT, YS = "x:float32[1,T,2]", "y:float32[1,S,2]"
PAIRS = tuple(values_at(XT, YS, T=int(t), S=int(s)) for t, s in np.random.default_rng(46).integers(2, 201, (400, 2)))
TWO = {"dims": "T=2:50:200 S=2:60:200", "kinds": ("normal",), "feeds": PAIRS}


@forward(XT, YS, **TWO)
def A5151CircularAperture(self, x, y):
    """A disk over a grid of both sides, borders in it."""
    a, b = torch.linspace(-1, 1, x.shape[1]), torch.linspace(-1, 1, y.shape[1])
    return (a[:, None] ** 2 + b**2 <= 1).sum(0), (a[:, None] + b).abs() < 0.5
@forward(XT, YS, **TWO, refused="the exported model differs from the module")
def A5152LowPassOfTwoAxes(self, x, y):
    """A band of frequencies of both sides, by fftfreq and rfftfreq."""
    a, b = torch.fft.fftfreq(x.shape[1]), torch.fft.rfftfreq(y.shape[1])
    return (a[:, None].square() + b.square()).sqrt() <= 0.25, ((a[:, None] ** 2 + b**2).sqrt() * 16).long()
@forward(XT, YS, **TWO)
def A5153LogBucketsToALength(self, x, y):
    """Relative buckets whose farthest distance is the other length."""
    n = torch.arange(x.shape[1])
    far = 4 + (torch.log(n.float().clamp(min=1) / 4) / math.log(max(y.shape[1], 8) / 4) * 4).long()
    return torch.where(n < 4, n, far.clamp(max=7))
@forward(XT, YS, **TWO)
def A5154RangeOfShares(self, x, y):
    """A range by a float step of the other length, cut."""
    t, s = x.shape[1], y.shape[1]
    return (torch.arange(0.5, s) * t / s).long(), torch.arange(0.5, s + 0.25, 1.0) / s * t // 1, (torch.arange(s) / (s - 1) * (t - 1)).long()
@forward(XT, YS, **TWO, refused="the exported model differs from the module")
def A5155LinspaceBetweenShares(self, x, y):
    """A linspace between shares of one length in as many steps as the other, rounded up; its middle."""
    t, s = x.shape[1], y.shape[1]
    v = torch.linspace(t * 0.1, t * 0.9, s)
    return v.ceil(), (torch.linspace(-t, t, s) > 0).sum(), torch.linspace(t, 0, s).floor()
@forward(XT, YS, **TWO)
def A5156GuidedAttention(self, x, y):
    """The diagonal of guided attention: shares of both lengths that are nearer than a tenth."""
    a, b = torch.arange(x.shape[1]) / x.shape[1], torch.arange(y.shape[1]) / y.shape[1]
    return ((a[:, None] - b).abs() < 0.1), (a[:, None] - b).square() >= 0.04
@forward("m:bool[1,T,2]", YS, dims="T=2:50:200 S=2:60:200", feeds=tuple(values_at("m:bool[1,T,2]", YS, T=int(t), S=int(s)) for t, s in np.random.default_rng(46).integers(2, 201, (400, 2))))
def A5157MaskResizedAndCut(self, m, y):
    """A mask brought to the size of the logits, linearly, and cut at one half; with aligned corners at a quarter."""
    v = m.float().mT
    return F.interpolate(v, size=y.shape[1], mode="linear") > 0.5, F.interpolate(v, size=y.shape[1], mode="linear", align_corners=True) >= 0.25, F.adaptive_avg_pool1d(v, 4) > 0.5
@forward(XT, YS, **TWO)
def A5158PlacesOfMeanTimes(self, x, y):
    """Means of whole places by a product, cut: a mean of two ends times a ratio of roots."""
    t, s = x.shape[1], y.shape[1]
    i = torch.arange(t).float()
    return (i * math.sqrt(s / t)).floor(), (i.mul(s).div(t).add(0.5)).floor(), torch.round(i / t * s * 2) / 2, (i * (1 / t) * s).long()
@forward(XT, YS, **TWO, refused="the exported model differs from the module")
def A5159PowersOfShares(self, x, y):
    """Karras-like schedules of one length to the scale of the other, cut to steps."""
    t, s = x.shape[1], y.shape[1]
    r = torch.linspace(0, 1, t)
    return (r * s).long(), ((1 - r) * (s - 1)).round(), (torch.lerp(torch.tensor(0.0), torch.tensor(float(s)), r)).long()
@forward(XT, YS, **TWO)
def A5160NormalisedPlaces(self, x, y):
    """Places brought to [-1, 1] and back to the other side, rounded, as samplers do."""
    t, s = x.shape[1], y.shape[1]
    g = (2 * torch.arange(t) + 1) / t - 1
    u = ((g + 1) * s - 1) / 2
    return u.round().clamp(0, s - 1), u.floor(), (u - u.floor() > 0.5)
@forward(XT, YS, **TWO)
def A5161PhasesSummedUp(self, x, y):
    """A phase of constant steps, summed up and cut, and its rest."""
    t, s = x.shape[1], y.shape[1]
    p = torch.full((t,), 1 / s).cumsum(0)
    return p.floor(), (p % 1 < 0.5), (torch.arange(t) / s) % 0.1 < 0.05
@forward(XT, YS, **TWO)
def A5162RootsOfProducts(self, x, y):
    """Roots by a power of one half, cut; quotients by a tenth, rounded down."""
    t, s = x.shape[1], y.shape[1]
    return ((torch.arange(t).float() * s) ** 0.5).floor(), torch.floor_divide(torch.arange(t) * (1 / s), 0.1), (torch.arange(t) * s).float().sqrt().ceil()
@forward(XT, YS, **TWO, refused="the exported model differs from the module")
def A5163SectorsOfAGrid(self, x, y):
    """Sectors of eight by atan2 and rings by hypot over whole coordinates from the middle."""
    t, s = x.shape[1], y.shape[1]
    a, b = torch.arange(t)[:, None] - t // 2, torch.arange(s)[None] - s // 2
    return (torch.atan2(a.float(), b.float()) / (math.pi / 4)).floor().sum(0), torch.hypot(a.float(), b.float()).floor().sum(1), (a * a + b * b <= (t * s) // 9).sum(0)
@forward(XT, YS, **TWO, noted="cut to whole ones at")
def A5164LevelsByLogarithms(self, x, y):
    """Levels by log2 of whole areas, and decades by log10."""
    t, s = x.shape[1], y.shape[1]
    a = torch.arange(1, t + 1) * s
    return torch.log2(a.float()).floor(), torch.log10(a.float()).floor(), (torch.log(a.float()) / math.log(2)).floor()
@forward(XT, YS, **TWO)
def A5165MiddleOfALinspace(self, x, y):
    """As many frames as the other has, doubled and one, of a linspace that is cut."""
    return x[:, torch.linspace(0, x.shape[1] - 1, 2 * y.shape[1] + 1).long()]
@forward(XT, YS, **TWO)
def A5166LinspaceOfCentres(self, x, y):
    """Centres of cells by a linspace from a half, cut."""
    t, s = x.shape[1], y.shape[1]
    return x[:, torch.linspace(0.5, t - 0.5, s).long()], torch.linspace(0, t, s + 1)[:-1].long()


LONG = "x:float32[1,T,2]"
AT = {"dims": "T=2:100:9000", "kinds": ("normal",), "feeds": tuple(values_at(LONG, T=t) for t in (2, 8, 243, 999, 1000, 1001, 4095, 4096, 8191, 8192, 8193))}
MORE = {"dims": "T=2:50:200 S=2:60:200", "kinds": ("normal",), "feeds": tuple(values_at(XT, YS, T=t, S=s) for t, s in ((33, 31), (129, 29), (5, 57), (64, 128), (128, 64), (128, 102), (4, 120), (153, 64)))}


@forward(LONG, **AT, refused="the exported model differs from the module")
def A5167LevelsOfALength(self, x):
    """As many levels as the logarithm of the length has, by a quotient of logarithms."""
    return x[:, 0] + int(math.log(x.shape[1]) / math.log(2))
@forward(LONG, **AT, refused="the exported model differs from the module")
def A5168DecadesOfALength(self, x):
    """Decades by math.log to a base, rounded down: in Python 1000 has 2.9999999999999996 of them."""
    return x[:, 0] + math.log(x.shape[1], 10) // 1
@forward(XT, YS, **MORE, refused="the exported model differs from the module")
def A5169LevelsOfAnArea(self, x, y):
    """Levels of an area by a quotient of logarithms."""
    return x[:, 0] + y[:, 0] + int(math.log(x.shape[1] * y.shape[1]) / math.log(2))
@forward(XT, YS, **MORE)
def A5170LinspaceThatIsCut(self, x, y):
    """A linspace of one length in steps of the other, cut: its middle is rounded once in torch."""
    return torch.linspace(0, x.shape[1] - 1, y.shape[1]).long()
@forward(XT, YS, **MORE)
def A5171CountBesideALinspace(self, x, y):
    """A count without axes beside a linspace that differs at some sizes."""
    return torch.linspace(x.shape[1], 0, y.shape[1]).floor(), (torch.arange(x.shape[1]) > 0).sum()
@forward(XT, YS, **MORE, noted="cut to whole ones at")
def A5172LevelsByTensors(self, x, y):
    """Levels of a product of places and a size, by logarithms of tensors."""
    return (torch.log((torch.arange(1, x.shape[1] + 1) * y.shape[1]).float()) / math.log(2)).floor()
@forward(LONG, **AT)
def A5173FramesOfTsn(self, x):
    """Thirty-one frames at the places of a linspace that is cut."""
    return x[:, torch.linspace(0, x.shape[1] - 1, 31).long()]

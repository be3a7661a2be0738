# ruff: noqa: E501, E731 - attacks are written as users write them
"""Variants: values far from zero that lie close together, masks that select, doubles within."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.modules.fortysixth.pictures import X4, pix, seq

MT, X, IMAGE = "m:bool[N,T]", "x:float32[N,T]", "x:float32[N,2,H,W]"


def far(*inputs: str, low: int = 1, shape: tuple = (2, 20, 4), **more: object) -> dict:
    """Sequences about numbers from ten to a million."""
    chance = np.random.default_rng(5)
    own = tuple((lambda s=s, d=d: {"x": (s + d * chance.standard_normal(shape)).astype(np.float32), **({"m": chance.random(shape[:2]) < 0.6} if len(inputs) > 1 else {})}) for s in (10, 300, 1e4, -1e6) for d in (1, 1e-2))
    return seq(*inputs, low=low, own=own, **more)


@forward(X4, MT, **far(X4, MT))
def A5481DeviationOfSelected(self, x, m):
    """The deviation, mean and variance of what a mask selects."""
    m = m.clone()
    m[0, 0] = True
    v = x[m]
    return v.std(), v.var(unbiased=False), v.mean(0), v.std(0, unbiased=False)
@forward(X4, **far(X4, low=2))
def A5482DeviationsFar(self, x):
    """Deviations, covariances, norms of layers, of all that is far from zero."""
    y = x[0]
    return x.std(1), x.var((1, 2)), F.layer_norm(x, (4,), eps=1e-6), F.instance_norm(x.transpose(1, 2)), F.group_norm(x.transpose(1, 2), 2), torch.cov(y.T), torch.corrcoef(y.T), torch.std_mean(x, 2, correction=0)[0]
@forward(X4, **far(X4), refused="the module cannot be exported")
def A5483DistancesFar(self, x):
    """Distances between what is far from zero, in all ways."""
    return torch.cdist(x, x.flip(1)), torch.cdist(x, x.flip(1), compute_mode="donot_use_mm_for_euclid_dist"), torch.pdist(x[0]), F.pairwise_distance(x, x.flip(1)), F.cosine_similarity(x, x.flip(1), -1)
@forward(X4, **far(X4))
def A5484SumsFar(self, x):
    """Log-sums, soft maxima, running sums and their differences, pooled means less the value."""
    c = x.cumsum(1)
    return torch.logsumexp(x, 1), x.softmax(1), x.log_softmax(-1), torch.logcumsumexp(x, 1), F.avg_pool1d(x.transpose(1, 2), 3, 1, 1, count_include_pad=False), c[:, 1:] - c[:, :-1], x - x.mean(1, keepdim=True)
@forward(X4, **far(X4))
def A5485MeanInDoubles(self, x):
    """A variance by moments in doubles."""
    d = x.double()
    return (d.square().mean(1) - d.mean(1).square()).clamp(min=0).sqrt().float()
@forward(X4, **far(X4), refused="from tests/adversary/modules/fortysixth/")
def A5486CentredInDoubles(self, x):
    """What is far from zero, in doubles, times a number, less the same of the first."""
    d = x.double() * (1 / 3)
    return (d - d[:, :1]).float() * 1e3, (x.double() + 1e-9 - x.double()).float() * 1e9
@forward(X4, **far(X4), refused="from tests/adversary/modules/fortysixth/")
def A5487TimesInDoubles(self, x):
    """Seconds as doubles of a table that is made in doubles, wrapped to a turn."""
    w = torch.linspace(0, 1, 4, dtype=torch.float64) * 2 * torch.pi * 440
    return torch.sin(x.double() * w).float(), torch.remainder(x.double() * 0.1, 1.0).float()
@forward("i:int64[N,T]=0:2000000000", **seq("i:int64[N,T]=0:2000000000"), refused="from tests/adversary/modules/fortysixth/")
def A5488MillisecondsOfInt(self, i):
    """Milliseconds as int64 to seconds as doubles, differences, fractions, and a phase of a day."""
    s = i.double() / 1000
    return (s[:, 1:] - s[:, :-1]).float(), (s % 86400 / 86400).float(), torch.sin(2 * torch.pi * (s / 60)).float(), s.floor().long()
@forward(X4, MT, **far(X4, MT))
def A5489SelectedOtherwise(self, x, m):
    """Of what is selected: the median, a quantile, the norm, the product, the first, how many, the span."""
    m = m.clone()
    m[0, 0] = True
    v = x[m]
    return v.amax(0) - v.amin(0), v.norm(dim=0), v[0], v.sum(0) / len(v), (v - v.mean(0)).abs().mean(0), v.numel() * x[:, :1], v.softmax(0).amax(0), x[~m].sum()
@forward(X4, MT, **far(X4, MT))
def A5490WrittenWhereSelected(self, x, m):
    """What is selected is standardised by its own statistics and put back."""
    m = m.clone()
    m[0, :1] = True
    y = x.clone()
    y[m] = (y[m] - y[m].mean()) / (y[m].std(unbiased=False) + 1e-3)
    y[~m] *= 0.5
    return y
@forward(IMAGE, **pix(IMAGE, own=tuple((lambda s=s: {"x": (s + np.random.default_rng(1).standard_normal((1, 2, 9, 11))).astype(np.float32)}) for s in (10, 1e3, 1e5))))
def A5491StructuralSimilarity(self, x):
    """SSIM of a picture and its mirror: variances by moments of windows, in FP32 by the module itself."""
    w = torch.tensor([0.25, 0.5, 0.25])
    k = (w[:, None] * w[None]).expand(2, 1, 3, 3)
    f = lambda v: F.conv2d(v, k, padding=1, groups=2)
    y = x.flip(-1)
    mx, my = f(x), f(y)
    sx, sy, sxy = f(x * x) - mx * mx, f(y * y) - my * my, f(x * y) - mx * my
    return ((2 * mx * my + 1e-4) * (2 * sxy + 9e-4)) / ((mx * mx + my * my + 1e-4) * (sx + sy + 9e-4))
@forward(X, **seq(X, own=tuple((lambda s=s: {"x": (s + np.arange(20.0) * 0.1).astype(np.float32)[None]}) for s in (1e2, 1e3, 1e4, 1e5))))
def A5492AnglesFar(self, x):
    """Sines of what is far, angles wrapped, and unwrapped by differences."""
    d = torch.diff(x, dim=1)
    m = torch.remainder(d + torch.pi, 2 * torch.pi) - torch.pi
    m = torch.where((m == -torch.pi) & (d > 0), torch.pi, m)
    c = torch.where(d.abs() < torch.pi, 0, m - d)
    return x.sin(), x.tan(), torch.cat([x[:, :1], x[:, 1:] + c.cumsum(1)], 1), torch.atan2(x.sin(), x.cos())

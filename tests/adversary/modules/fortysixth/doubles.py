# ruff: noqa: E501 - attacks are written as users write them
"""Variants of doubles within, whose samples show nothing, and of clusters of values."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.offsets import far
from tests.adversary.modules.fortysixth.pictures import X4, pix, seq

MT, X, IMAGE = "m:bool[N,T]", "x:float32[N,T]", "x:float32[N,2,H,W]"


@forward(X4, **far(X4))
def A5521MeanSubtractedInDoubles(self, x):
    """What is far from zero less its mean, in doubles."""
    d = x.double()
    return (d - d.mean(1, keepdim=True)).float()
@forward(X4, **far(X4))
def A5522NormalEquations(self, x):
    """A line fitted through each feature by sums in doubles."""
    t = torch.arange(x.shape[1], dtype=torch.float64)
    d, n = x.double(), x.shape[1]
    st, sd = t.sum(), d.sum(1)
    slope = (n * (t[:, None] * d).sum(1) - st * sd) / (n * (t * t).sum() - st * st).clamp(min=1)
    return slope.float(), ((sd - slope * st) / n).float()
@forward(X4, **far(X4), refused="/tmp/tmpbmbel70v/model.trt.onnx does not")
def A5523CorrelationInDoubles(self, x):
    """Pearson's correlation of two features by moments in doubles."""
    a, b = x[..., 0].double(), x[..., 1].double()
    cov = (a * b).mean(1) - a.mean(1) * b.mean(1)
    va, vb = (a * a).mean(1) - a.mean(1) ** 2, (b * b).mean(1) - b.mean(1) ** 2
    return (cov / (va * vb).clamp(min=1e-12).sqrt()).float()
@forward(X4, **far(X4))
def A5524BoxInDoubles(self, x):
    """A moving mean by running sums in doubles."""
    c = F.pad(x.double().cumsum(1), (0, 0, 1, 0))
    t = x.shape[1]
    lo, hi = (torch.arange(t) - 2).clamp(min=0), (torch.arange(t) + 3).clamp(max=t)
    return ((c[:, hi] - c[:, lo]) / (hi - lo)[:, None]).float() - x
@forward(X4, **far(X4), refused="from tests/adversary/modules/fortysixth/")
def A5525DistancesInDoubles(self, x):
    """Squared distances by products in doubles."""
    d = x.double()
    s = d.square().sum(-1)
    return (s[:, :, None] + s[:, None] - 2 * d @ d.transpose(1, 2)).clamp(min=0).float()
@forward(X4, **far(X4), refused="from tests/adversary/modules/fortysixth/")
def A5526ComparedInDoubles(self, x):
    """Compared in doubles with a tenth that FP32 lacks."""
    d = x.double()
    return (d > 0.1), (d * 10).floor().float(), (d / 0.1).long()
@forward(X4, **seq(X4, own=tuple((lambda s=s: {"x": np.full((1, 3, 4), s, np.float32)}) for s in (0.1, 0.3, 0.7, 16777216, 16777215, 2.5, 1e-30, 1e20))), refused="from tests/adversary/modules/fortysixth/")
def A5527SquaresInDoubles(self, x):
    """A norm whose squares leave FP32, taken in doubles."""
    return x.double().square().sum(-1).sqrt().float(), (x.double() * x.double() / (x.double().square().sum(-1, keepdim=True) + 1e-300)).float()
@forward(X4, **seq(X4), refused="from tests/adversary/modules/fortysixth/")
def A5528SigmoidInDoubles(self, x):
    """One less a sigmoid in doubles, whose logarithm is finite, and a softplus by definition."""
    d = x.double()
    return torch.log(1 - torch.sigmoid(d)).float(), torch.log(1 + torch.exp(d)).float(), (1 - torch.exp(-d * 1e-6)).float()
@attack(X4, **far(X4))
class A5529StatisticsInDoubles(nn.Module):
    """Buffers in doubles: a mean far from zero and a scale."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([1e4, 1e4 + 0.123456789, -1e6, 300.1], dtype=torch.float64))
        self.register_buffer("std", torch.tensor([1.0, 0.01, 2.0, 1e-2], dtype=torch.float64))

    def forward(self, x):
        return ((x - self.mean) / self.std).float()
@forward(X4, **far(X4))
def A5530WelfordByLoop(self, x):
    """Welford's running mean and variance in doubles."""
    m, s = torch.zeros(x.shape[0], 4, dtype=torch.float64), torch.zeros(x.shape[0], 4, dtype=torch.float64)
    for t in range(x.shape[1]):
        d = x[:, t] - m
        m = m + d / (t + 1)
        s = s + d * (x[:, t] - m)
    return m.float(), (s / x.shape[1]).sqrt().float()
@forward("i:int64[N,T]=0:1000", **seq("i:int64[N,T]=0:1000", own=(lambda: {"i": np.array([[999, 1000, 1000, 998]])},)), refused="does not compute what the module computes")
def A5531ShareInDoubles(self, i):
    """Whole numbers divided in doubles and cut: shares in percent."""
    return (i.double() / 1000 * 100).floor().long(), (i * 0.01).floor(), torch.floor(i.double() * 0.07).int(), torch.round(i.double() / 7, decimals=1).float()
@forward(IMAGE, **pix(IMAGE, own=tuple((lambda s=s: {"x": (s + np.random.default_rng(1).standard_normal((1, 2, 9, 11))).astype(np.float32)}) for s in (10, 1e3, 1e5))))
def A5532GuidedByIntegrals(self, x):
    """A guided filter: windows by integral pictures in doubles."""
    def box(v):
        c = F.pad(v.double().cumsum(-1).cumsum(-2), (1, 0, 1, 0))
        h, w = v.shape[-2:]
        y0, y1 = (torch.arange(h) - 1).clamp(min=0), (torch.arange(h) + 2).clamp(max=h)
        x0, x1 = (torch.arange(w) - 1).clamp(min=0), (torch.arange(w) + 2).clamp(max=w)
        return c[..., y1, :][..., x1] - c[..., y0, :][..., x1] - c[..., y1, :][..., x0] + c[..., y0, :][..., x0]
    n = box(torch.ones_like(x))
    mean = box(x) / n
    var = box(x * x) / n - mean**2
    return (mean + var / (var.abs() + 0.1) * (x - mean)).float()
@attack("x:float32[N,T]", **seq("x:float32[N,T]", own=tuple((lambda s=s: {"x": (10000.1 + s * np.random.default_rng(1).standard_normal((1, 12))).astype(np.float32)}) for s in (1, 0.1, 0.01))))
class A5533NumpyStatistics(nn.Module):
    """A mean and a deviation that come from NumPy, so that they are doubles."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(np.array([10000.123456789])))
        self.register_buffer("std", torch.from_numpy(np.array([0.01])))

    def forward(self, x):
        return ((x - self.mean) / self.std).float()
@forward("x:float32[N,T,4]=990:1010", **seq("x:float32[N,T,4]=990:1010", own=(lambda: {"x": (1000 + np.random.default_rng(1).standard_normal((1, 12, 4))).astype(np.float32)}, lambda: {"x": (1000 + 0.1 * np.random.default_rng(1).standard_normal((1, 12, 4))).astype(np.float32)})))
def A5534MomentsOfARange(self, x):
    """Moments in doubles of values whose range is declared."""
    d = x.double()
    return (d.square().mean(1) - d.mean(1).square()).clamp(min=0).sqrt().float()
@forward("x:float32[N,T]=0:100000", **seq("x:float32[N,T]=0:100000", own=(lambda: {"x": (90000 + np.random.default_rng(1).standard_normal((1, 12))).astype(np.float32)},)))
def A5535MomentsOfAWideRange(self, x):
    """The same of a wide range, in which a recording stays in a narrow part."""
    d = x.double()
    return (d.square().mean(1) - d.mean(1).square()).clamp(min=0).sqrt().float()
@forward("i:int64[N,T]=0:100000", **seq("i:int64[N,T]=0:100000", own=(lambda: {"i": np.array([[99999, 99998, 99999, 99997]])},)))
def A5536MomentsOfWhole(self, i):
    """The deviation of whole numbers by moments in doubles."""
    d = i.double()
    return (d.square().mean(1) - d.mean(1).square()).clamp(min=0).sqrt().float()
@forward("x:float32[N,T]", dims="N=1:2:8 T=1000:160000:320000", kinds=("normal",), feeds=())
def A5562WaveStandardised(self, x):
    """wav2vec's normalisation of a wave of twenty seconds, as it is used."""
    return (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-7)
@forward("x:float32[N,3,H,W]=0:255", dims="N=1:1:4 H=64:512:1024 W=64:512:1024", kinds=("normal",), feeds=())
def A5563PictureStandardised(self, x):
    """A picture of bytes less its own mean, by its own deviation."""
    return (x - x.mean((1, 2, 3), keepdim=True)) / (x.std((1, 2, 3), keepdim=True) + 1e-6)
@forward("x:float32[N,T,4]", **far("x:float32[N,T,4]"))
def A5564SumsAsked(self, x):
    """Sums and means that are asked for in doubles by their argument."""
    return (x.sum(1, dtype=torch.float64) - x[:, 0] * x.shape[1]).float(), (x.cumsum(1, dtype=torch.float64) - x.cumsum(1)).float() * 0, x.mean(1, dtype=torch.float64).float() - x[:, 0]
@forward("x:float32[N,T,4]", **far("x:float32[N,T,4]"))
def A5565CentredBySome(self, x):
    """Coordinates as doubles less the first, which is the usual way to keep digits; then a distance."""
    d = x.double()
    d = d - d[:, :1]
    return d.float(), d.norm(dim=-1).float()
@forward("x:float32[N,T,3]=-180:180", **seq("x:float32[N,T,3]=-180:180", own=(lambda: {"x": (np.array([11.5, 48.1, 0]) + 1e-4 * np.random.default_rng(1).standard_normal((1, 12, 3))).astype(np.float32)},)))
def A5566Haversine(self, x):
    """Distances on the globe between points that lie close together, in doubles."""
    r = torch.deg2rad(x.double())
    lat, lon = r[..., 1], r[..., 0]
    a = torch.sin((lat[:, 1:] - lat[:, :-1]) / 2) ** 2 + lat[:, 1:].cos() * lat[:, :-1].cos() * torch.sin((lon[:, 1:] - lon[:, :-1]) / 2) ** 2
    return (2 * 6371000 * torch.asin(a.clamp(0, 1).sqrt())).float()
@attack("x:float32[N,3,H,W]", dims="N=1:1:4 H=64:512:1024 W=64:512:1024", kinds=("normal",))
class A5567InstanceNormOfALargePicture(nn.Module):
    """Style transfer: the first convolution and its instance norm, at the size of the picture."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.InstanceNorm2d(4, affine=True)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()
@attack("x:float32[N,8,T]", dims="N=1:1:4 T=1000:16000:64000", kinds=("normal",))
class A5568GlobalLayerNorm(nn.Module):
    """Conv-TasNet: a norm over channels and time, by hand."""

    def __init__(self):
        super().__init__()
        self.conv, self.gamma, self.beta = nn.Conv1d(8, 8, 1), nn.Parameter(torch.ones(1, 8, 1)), nn.Parameter(torch.zeros(1, 8, 1))

    def forward(self, x):
        y = self.conv(x)
        mean = y.mean((1, 2), keepdim=True)
        power = (torch.pow(y - mean, 2)).mean((1, 2), keepdim=True)
        return self.gamma * (y - mean) / torch.pow(power + 1e-8, 0.5) + self.beta
@attack("x:float32[N,8,T]", dims="N=1:1:4 T=1000:16000:64000", kinds=("normal",))
class A5569GroupNormOfAWave(nn.Module):
    """wav2vec 2.0's first layer: a convolution and a group norm of as many groups as channels."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(8, 8, 10, stride=5, bias=False), nn.GroupNorm(8, 8)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(x)))
@attack("x:float32[N,3,H,W]=0:255", dims="N=1:1:4 H=64:512:1024 W=64:512:1024", kinds=("normal",))
class A5570InstanceNormOfBytes(nn.Module):
    """An instance norm of the picture itself."""

    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(3)

    def forward(self, x):
        return self.norm(x)
@forward("x:float32[N,T]=-1:1", dims="N=1:1:4 T=1000:16000:64000", kinds=("normal",), feeds=())
def A5571LoudnessOfAWave(self, x):
    """A wave of four seconds brought to a loudness by its root mean square, and what that is in decibels."""
    rms = x.square().mean(1, keepdim=True).sqrt()
    return x / (rms + 1e-7) * 0.1, 20 * torch.log10(rms + 1e-7)

# ruff: noqa: E501, E731 - attacks are written as users write them
"""Sizes that are computed in floats and go wrong at few of many; windows of sizes; parts of what was refused."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq, two
from tests.adversary.values import values_at

X, RARE = "x:float32[N,T]", (1, 2, 720, 1360, 1440, 1760, 2640, 2720, 2800, 2880, 3040, 3680, 5000)
WIDE = "x:float32[N,1,H,W]"


def tall(*inputs: str, **more: object) -> dict:
    """Pictures of up to 1500 rows and columns, judged at heights at which a share is about a whole number."""
    feeds = tuple(values_at(*inputs, N=1, H=h, W=w) for h in (48, 500, 720, 1360, 1440) for w in (48, 720, 1440))
    return {"dims": "N=1:1:2 H=32:512:1500 W=32:640:1500", "kinds": ("normal",), "feeds": feeds, **more}


@forward(X, **long(X, sizes=RARE))
def A5908MadeDivisible(self, x):
    """The nearest multiple of eight of a share, as in make_divisible."""
    return x * (int(x.shape[1] * 0.35 + 4) // 8 * 8)


@forward(X, **long(X, sizes=RARE))
def A5909BlocksOfSeventy(self, x):
    """Seven tenths, down to a multiple of 32."""
    k = int(x.shape[1] * 0.7) // 32 * 32
    return x[:, :k], x.sum(1) + k


@forward(X, **long(X, sizes=RARE))
def A5910RoundedBlocks(self, x):
    """Seven tenths, to the nearest multiple of 32, by round."""
    return x * (round(x.shape[1] * 0.7 / 32) * 32)


@forward(X, **long(X, sizes=RARE))
def A5911MultipleByNumpy(self, x):
    """MiDaS: constrain_to_multiple_of by numpy's round of a share."""
    n = (np.round(x.shape[1] * 1.3 / 32) * 32).astype(int)
    return x + int(n)


@forward(WIDE, **tall(WIDE))
def A5912PictureToMultiples(self, x):
    """A picture of 0.7 of both sides to the nearest multiple of 16: how large, and means of as many rows."""
    h, w = x.shape[-2:]
    nh, nw = int(h * 0.7 + 8) // 16 * 16, int(w * 0.7 + 8) // 16 * 16
    return x[:, :, : max(nh // 4, 1), : max(nw // 4, 1)].mean((2, 3)), torch.zeros(nh), torch.zeros(nw)


@forward(X, **long(X, sizes=RARE), refused="the exported model differs from the module")
def A5913FactorOfInterpolate(self, x):
    """interpolate by factors of which FP32 has another product."""
    f = lambda s: F.interpolate(x[:, None], scale_factor=s, mode="nearest")[:, 0]
    return f(1.3)[:, ::64], f(1.1).sum(1)


@forward(X, **long(X, sizes=RARE))
def A5914FactorsWithoutRecompute(self, x):
    """The same, of seven tenths, linear."""
    return F.interpolate(x[:, None], scale_factor=1.4, mode="linear")[:, 0]


@forward(X, **long(X, sizes=(1, 2, 35, 36, 45, 46, 68, 71, 3999, 4000, 4003, 4004)))
def A5915MobileNetsWidth(self, x):
    """make_divisible with its correction, of a quarter."""
    t = x.shape[1] * 0.25
    n = max(8, int(t + 4) // 8 * 8)
    if n < 0.9 * t:
        n += 8
    return x * n


@forward(X, **long(X, sizes=(1, 2, 3999, 4000, 4003, 4004)))
def A5916OneWindow(self, x):
    """A window of four sizes in five thousand."""
    return x * 2 if int(x.shape[1] * 0.25) == 1000 else x


@forward(X, **long(X, sizes=(1, 2, 35, 36, 43, 44, 4000)))
def A5917TwoWindows(self, x):
    """Buckets by quarters: between nine and eleven something is added."""
    q = int(x.shape[1] * 0.25)
    if 9 <= q < 11:
        x = x + 1
    elif q == 700:
        x = x - 1
    return x.cumsum(1)[:, -1], x


@forward(X, **long(X, sizes=(1, 2, 1599, 1600, 1601, 3200)))
def A5918SecondsOfSound(self, x):
    """Exactly a tenth of a second at 16 kHz, told by a quotient in floats."""
    return x * 2 if x.shape[1] / 16000 == 0.1 else x


@forward("x:float32[N,T]", "y:float32[N,S]", dims="N=1:1:1 T=1:400:2000 S=1:500:2000", kinds=FEW, feeds=tuple((lambda t=t, s=s: {"x": np.ones((1, t), np.float32), "y": np.ones((1, s), np.float32)}) for t, s in ((1600, 900), (16, 9), (1920, 1080), (1919, 1080), (4, 3), (3, 4), (1999, 2000))))
def A5919WideScreen(self, x, y):
    """Sixteen to nine is told by a quotient of floats that is equal."""
    return x * 2 + y.sum() if x.shape[1] / y.shape[1] == 16 / 9 else x - y.sum()


@forward(X, **long(X, sizes=(1, 2, 3, 24, 25, 26, 99, 100, 101, 2499, 2500, 2501, 4899, 4900)))
def A5920SquaresOfSides(self, x):
    """A square number is told by the root in floats; its side."""
    s = x.shape[1] ** 0.5
    return x + 1 if s == int(s) else x * s


@forward(X4, **seq(X4, low=2))
def A5921PairsOfTriangle(self, x):
    """DLRM's interactions: pairs below the diagonal of products, of two and more."""
    t = x.shape[1]
    z = torch.bmm(x, x.transpose(1, 2))
    li, lj = torch.tril_indices(t, t, offset=-1)
    return torch.cat([x.flatten(1), z[:, li, lj]], 1)


@forward(X4, **seq(X4))
def A5922PairsOfTriangleOrNone(self, x):
    """The same of one and more: of one there is no pair."""
    t = x.shape[1]
    z = torch.bmm(x, x.transpose(1, 2))
    li, lj = torch.tril_indices(t, t, offset=-1)
    return torch.cat([x.flatten(1), z[:, li, lj]], 1)


@forward(X4, **seq(X4))
def A5923PairsOfOne(self, x):
    """Distances of pairs, none of one."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return (x[:, i] - x[:, j]).square().sum(-1)


@attack(X4, **seq(X4))
class A5924TemperatureOut(nn.Module):
    """CLIP's scale as an output, as it is and by exp, and a buffer."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.6593))
        self.register_buffer("anchors", torch.arange(6.0).view(3, 2))

    def forward(self, x):
        return {"x": F.normalize(x, dim=-1), "scale": self.scale, "exp": self.scale.exp(), "anchors": self.anchors}


@attack(X4, **seq(X4))
class A5925CopyWritten(nn.Module):
    """A copy of a weight is written, the layer called by functional."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        w = self.a.weight.detach().clone()
        w.mul_(0.5)
        w[0] = 0
        return F.linear(x, w, self.a.bias), {"w": w}


@forward(X4, **seq(X4))
def A5926ChunksOfTwo(self, x):
    """chunk(2) of lengths that may be odd, or one, for which there is one chunk."""
    a, *rest = x.chunk(2, 1)
    return a, rest[0] if rest else a.new_zeros(a.shape[0], 0, 4)


@forward(X, **seq(X))
def A5927RunningProduct(self, x):
    """cumprod alone, and exclusive as NeRF's transmittance."""
    t = torch.cumprod(torch.cat([torch.ones_like(x[:, :1]), 1 - x.clamp(0, 1) + 1e-10], 1), 1)
    return t[:, :-1], x.cumprod(1)


@forward(X, **seq(X))
def A5928SecondDifferences(self, x):
    """diff of the second order with what is prepended, trapezoids, rot90."""
    return torch.diff(x, n=2, dim=1, prepend=x[:, :1] * 0), torch.trapezoid(x, dx=0.5, dim=1), torch.rot90(x, 1, (0, 1))


@forward(X4, **seq(X4))
def A5929ScatteredSlices(self, x):
    """slice_scatter and select_scatter by halves of the length; index_copy of every second."""
    t = x.shape[1]
    return torch.slice_scatter(x, x[:, : t // 2], 1, t - t // 2, t), torch.select_scatter(x, x[:, 0] * 3, 1, t - 1)


@forward(X4, "m:bool[N,T]", **seq(X4, "m:bool[N,T]"))
def A5930MaskedScatter(self, x, m):
    """LLaVA: features are scattered to where the mask is."""
    return x.masked_scatter(m[..., None].expand_as(x), x.flip(1))


@forward("x:float32[N,T]=0:1", "y:float32[N,T]=0:1", **seq("x:float32[N,T]=0:1", "y:float32[N,T]=0:1"))
def A5931CrossEntropies(self, x, y):
    """binary_cross_entropy alone, at 0 and 1 too."""
    return F.binary_cross_entropy(x, y, reduction="none"), F.binary_cross_entropy(x, y)


@forward(X, **seq(X))
def A5932GaussianLoss(self, x):
    """gaussian_nll_loss alone, which reads whether a variance is negative."""
    return F.gaussian_nll_loss(x, x.flip(1), x.abs() + 0.1)


@forward("a:float32[N,T,4]", "b:float32[N,S,4]", **two("a:float32[N,T,4]", "b:float32[N,S,4]", zero=True))
def A5933AttentionSumsOfNone(self, a, b):
    """How much each attends in all, where there may be no keys; torch says zero."""
    return torch.einsum("ntd,nsd->nt", a, b), (a @ b.transpose(1, 2)).sum(2)


@forward("x:float64[N,T]", **seq("x:float64[N,T]"))
def A5934DoublesCastAtOnce(self, x):
    """Doubles as inputs that are cast at once and nothing else."""
    return x.float() * 2


@forward(X, **long(X, sizes=RARE))
def A5935SecondsToFrames(self, x):
    """Frames of 20 ms by seconds, floored in floats, whole hundreds."""
    seconds = x.shape[1] / 100
    return x * math.floor(seconds / 0.02), x + int(seconds * 50) // 25

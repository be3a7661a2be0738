# ruff: noqa: E501, E731, B905, RUF100 - attacks are written as users write them
"""Few of many sizes: windows without a branch in Python, blocks of pictures, windows of two sizes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortyseventh.followups_sizes import RARE, WIDE, tall
from tests.adversary.modules.fortysixth.pictures import X4, seq

X, QUARTER = "x:float32[N,T]", (1, 2, 35, 36, 39, 40, 43, 44, 3999, 4000, 4003, 4004, 4996, 5000)


def both(*pairs: tuple, high: int = 2000) -> dict:
    """Two lengths of up to two thousand."""
    feeds = tuple((lambda t=t, s=s: {"x": np.ones((1, t), np.float32), "y": np.full((1, s), 0.5, np.float32)}) for t, s in pairs)
    return {"dims": f"N=1:1:1 T=1:400:{high} S=1:500:{high}", "kinds": ("normal",), "feeds": feeds}


@forward(X, **long(X, sizes=QUARTER))
def A5936WindowAsNumber(self, x):
    """A window of sizes as a number that is added to one."""
    return x * (1 + (int(x.shape[1] * 0.25) == 1000))


@forward(X, **long(X, sizes=QUARTER))
def A5937WindowAsIndex(self, x):
    """A window of sizes as an index of a list."""
    return [x, x * 2][int(x.shape[1] * 0.25) == 1000]


@forward(X, **long(X, sizes=QUARTER))
def A5938WindowByMinimum(self, x):
    """How far a quarter is from a thousand, three at most."""
    return x * min(abs(int(x.shape[1] * 0.25) - 1000), 3)


@forward(X, **long(X, sizes=QUARTER))
def A5939WindowByClamp(self, x):
    """A bump about a thousand quarters, by max and min of numbers."""
    return x * max(0, 2 - abs(x.shape[1] // 4 - 1000)), x * max(1, int(x.shape[1] * 0.25) - 1248)


@forward(X, **long(X, sizes=QUARTER))
def A5940WindowsCounted(self, x):
    """How many of a few it is."""
    q = int(x.shape[1] * 0.25)
    return x * sum(1 for k in (9, 10, 1000) if q == k), x + any(q == k for k in (9, 1000))


@forward(X, **long(X, sizes=QUARTER))
def A5941WindowByWhere(self, x):
    """torch.where by a tensor of the size."""
    q = torch.tensor(x.shape[1]) // 4
    return torch.where(q == 1000, x * 2, x), torch.where((q >= 9) & (q < 11), x, -x)


@forward(X, **long(X, sizes=QUARTER))
def A5942WindowByCond(self, x):
    """torch.cond by a size."""
    return torch.cond(torch.tensor(x.shape[1] // 4 == 1000), lambda v: v * 2, lambda v: v.clone(), (x,))


@forward(X, **long(X, sizes=(1, 2, 9, 99, 100, 101, 2499, 2500, 2501, 4899, 4900, 4999)))
def A5943WindowByRoot(self, x):
    """A path by the root of a size that is truncated."""
    return x * 2 if int(math.sqrt(x.shape[1])) == 50 else x


@forward(X, **long(X, sizes=(1, 2, 9, 99, 100, 101, 999, 1000, 1001, 1023, 1024)))
def A5944WindowByLogarithm(self, x):
    """A path by a logarithm that is exactly three."""
    return x * 2 if math.log10(x.shape[1]) == 3 else x


@forward(X, **long(X, sizes=(1, 2, 3, 12, 16, 1599, 1600, 1601, 1919, 1920)))
def A5945WindowByExtent(self, x):
    """A path by a quotient of floats between two limits that are close."""
    r = x.shape[1] / 1920
    return x.flip(1) if 0.8333 < r < 0.8334 else x


@forward(X, "y:float32[N,S]", **both((720, 1), (1360, 5), (1440, 900), (100, 720), (48, 1440), (2000, 2000)))
def A5946BlocksOfTwo(self, x, y):
    """Blocks of both of two lengths."""
    return x * (int(x.shape[1] * 0.35 + 4) // 8 * 8), y + int(y.shape[1] * 0.7) // 16 * 16


@forward(X, "y:float32[N,S]", **both((1600, 900), (1599, 900), (1601, 901), (16, 9), (1920, 1080), (1776, 999)))
def A5947RatiosClose(self, x, y):
    """A path by the ratio of two lengths that is close to sixteen to nine."""
    return x * 2 + y.sum() if abs(x.shape[1] / y.shape[1] - 16 / 9) < 1e-3 else x - y.sum()


@forward(X, "y:float32[N,S]", **both((700, 490), (710, 497), (10, 7), (1440, 1008), (1440, 1007), (1440, 1006)))
def A5948ShareIsTheOther(self, x, y):
    """A path where the other is seven tenths, truncated."""
    return x * 2 + y.sum() if int(x.shape[1] * 0.7) == y.shape[1] else x - y.sum()


@forward(WIDE, **tall(WIDE))
def A5949PictureInBlocks(self, x):
    """A picture times the size that it would have."""
    h, w = x.shape[-2:]
    return x * (int(h * 0.35 + 4) // 8 * 8), x[:, :, :2] + int(w * 0.7) // 16 * 16


@forward(WIDE, **tall(WIDE))
def A5950PictureRoundedUp(self, x):
    """A picture padded to a multiple of 32 of seven tenths of its height, by ceil."""
    n = math.ceil(x.shape[2] * 0.7 / 32) * 32
    return x[:, :, :1] * n, F.pad(x[:, :, :1], (0, 0, 0, n % 7))


@forward(X, **long(X, sizes=RARE))
def A5951Rates(self, x):
    """MobileNet's widths of a base by a share of the length to a thousand."""
    w = x.shape[1] / 1000
    return x * (int(350 * w + 4) // 8 * 8), x + int(w * 320) // 16


@forward(X, **long(X, sizes=(*RARE, 210, 770, 1330, 1610, 2730, 700, 1340, 1420)))
def A5952MultiplesOfFourteen(self, x):
    """To the nearest multiple of 14 by adding a half."""
    return x * (int(x.shape[1] * 0.3 / 14 + 0.5) * 14), x + int(x.shape[1] * 0.35 + 7) // 14 * 14


@attack(X, **long(X, sizes=RARE))
class A5953KeptByRatio(nn.Module):
    """Tokens kept by a ratio, to a multiple of 32 and not below 64, of the norm."""

    ratio = 0.7

    def forward(self, x):
        k = max(64, int(x.shape[1] * self.ratio + 16) // 32 * 32)
        return F.pad(x, (0, 64))[:, :k], x.new_full((1,), k)


@forward(X4, **seq(X4))
def A5954PairsWrittenBack(self, x):
    """Distances of pairs as a square, and pairs of places: of one there is no pair."""
    t = x.shape[1]
    i, j = torch.triu_indices(t, t, 1)
    sq = torch.zeros(x.shape[0], t, t)
    sq[:, i, j] = (x[:, i] - x[:, j]).square().sum(-1)
    return sq + sq.transpose(1, 2)


@forward("x:float32[N,T,8]", dims="N=1:2:3 T=1:9:20", kinds=("normal", "large", "tiny", "zeros"))
def A5955SmoothUnits(self, x):
    """gelu in both forms, silu, mish and softplus."""
    return F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.softplus(x)

# ruff: noqa: E501 - attacks are written as users write them
"""Python that treats a few sizes out of many otherwise: one length, squares, powers of two, tables by size, gcds, exceptions."""

from __future__ import annotations

import math

import numpy as np
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import normal

KINDS = ("normal", "positive", "zeros")


@forward("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:50:200", kinds=KINDS, feeds=(normal(1, 77), normal(2, 76), normal(2, 78), normal(3, 154)))
def A7270OneLength(self, x):
    """CLIP's length alone is scaled."""
    if x.shape[1] == 77:
        x = x * 3
    return x.cumsum(1)


@forward("x:float32[1,H,W]=-3:3", dims="H=2:20:60 W=2:30:60", kinds=KINDS, refused="the path through the module depends on the size", feeds=(normal(1, 33, 33), normal(1, 47, 47), normal(1, 33, 34), normal(1, 20, 31), normal(1, 31, 33)))
def A7271Squares(self, x):
    """Squares are transposed, and maps of more than a thousand pixels are pooled."""
    _, h, w = x.shape
    if h == w:
        x = x.transpose(1, 2)
    if h * w > 1023:
        x = F.avg_pool2d(x, 2)
    return x + 1


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:50:130", kinds=KINDS, refused="the path through the module depends on the size", feeds=(normal(1, 64), normal(1, 63), normal(2, 128), normal(2, 127), normal(2, 65), normal(1, 32), normal(1, 31)))
def A7272PowersOfTwo(self, x):
    """Lengths that are powers of two are left, others padded to the next one, by bits."""
    t = x.shape[1]
    if t & (t - 1):
        x = F.pad(x, (0, (1 << t.bit_length()) - t))
    return x.flip(1)


@attack("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:10:24", kinds=KINDS, refused="the path through the module depends on the size", feeds=tuple(normal(1, t) for t in range(1, 25)))
class A7273TableBySize(nn.Module):
    """A dict by size with a default, membership in a tuple, a list indexed by a remainder."""

    def __init__(self):
        super().__init__()
        self.scale = {4: 2.0, 9: -1.0, 17: 0.5}

    def forward(self, x):
        t = x.shape[1]
        y = x * self.scale.get(t, 1.0)
        if t in (5, 13):
            y = y.flip(1)
        return y + [0.0, 10.0, 20.0][t % 3]


@forward("x:float32[1,H,W]=-3:3", dims="H=1:12:24 W=1:18:24", kinds=KINDS, refused="the path through the module depends on the size", feeds=(normal(1, 7, 21), normal(1, 21, 14), normal(1, 23, 23), normal(1, 16, 24), normal(1, 11, 22)))
def A7274Gcd(self, x):
    """Patches of the greatest common divisor of the sides, and the shorter side first."""
    _, h, w = x.shape
    g = math.gcd(h, w)
    y = F.avg_pool2d(x[None], g)[0]
    if h > w:
        y = y.transpose(1, 2)
    return y, x.mean() * g


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:20:99", kinds=KINDS, feeds=(normal(1, 9), normal(1, 10), normal(2, 36), normal(1, 49), normal(1, 50), normal(2, 81), normal(1, 99)))
def A7275SquareNumbers(self, x):
    """Lengths that are squares become maps, others are cut to the last square."""
    t = x.shape[1]
    s = math.isqrt(t)
    m = x[:, : s * s].view(x.shape[0], s, s)
    k = 10 if s * s == t else 1
    return m.mT * k, x * int(math.log2(t))


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:20:99", kinds=KINDS, refused="the path through the module depends on the size", feeds=(normal(1, 9), normal(1, 10), normal(2, 11), normal(2, 12), normal(1, 13), normal(1, 41), normal(3, 42)))
def A7276Tried(self, x):
    """A view that is tried, and a repeat where it fails; assertions that hold; numpy's rounding of a size's tenths."""
    try:
        y = x.view(x.shape[0], -1, 3).sum(2)
    except RuntimeError:
        y = x
    k = int(np.round(x.shape[1] / 10))
    assert x.shape[1] > 0
    return y * 2, x.roll(k, 1)


@forward("x:float32[N,T,2]=-3:3", "y:float32[N,S,2]=-3:3", dims="N=1:2:3 T=1:9:30 S=1:12:30", kinds=KINDS, refused="the path through the module depends on the size", feeds=(lambda: {"x": np.ones((1, 12, 2), np.float32), "y": np.ones((1, 12, 2), np.float32)}, lambda: {"x": np.ones((1, 13, 2), np.float32), "y": np.ones((1, 26, 2), np.float32)}, lambda: {"x": np.ones((1, 30, 2), np.float32), "y": np.ones((1, 29, 2), np.float32)}))
def A7277TwoLengths(self, x, y):
    """The shorter one is padded to the longer; where one is twice the other it is pooled."""
    if y.shape[1] == 2 * x.shape[1]:
        y = F.avg_pool1d(y.mT, 2).mT * 5
    d = y.shape[1] - x.shape[1]
    if d > 0:
        x = F.pad(x, (0, 0, 0, d))
    elif d < 0:
        y = F.pad(y, (0, 0, 0, -d))
    return x - y


@forward("x:float32[N,T]=-3:3", dims="N=1:4:16 T=4:8:40", kinds=KINDS, feeds=(normal(3, 12), normal(9, 4), normal(4, 9), normal(6, 6), normal(12, 3 + 1), normal(16, 17), normal(13, 30)))
def A7278Product(self, x):
    """A count of elements decides: 36 exactly, over 256, and an odd batch with an even length."""
    n, t = x.shape
    if n * t == 36:
        return x * 7
    if x.numel() > 256:
        return x - x.mean()
    if n % 2 and not t % 2:
        return x.abs()
    return x


@attack("x:float32[N,C,T]=-3:3", dims="N=1:2:3 C=1:5:12 T=2:7:30", kinds=KINDS, feeds=(normal(1, 7, 29), normal(1, 8, 30), normal(2, 12, 29), normal(1, 3, 3), normal(1, 6, 11)))
class A7279ThreeSplits(nn.Module):
    """Three branches by two sizes: groups of channels dropped, an even length, a long signal strided."""

    def forward(self, x):
        if x.shape[1] > 6:
            x = x[:, ::2]
        if x.shape[2] % 2:
            x = x[..., 1:]
        if x.shape[2] > 20:
            x = x[..., ::3]
        return x.cumsum(2)


@attack("x:float32[N,6]=-3:3", dims="N=1:3:5", kinds=KINDS, refused="when run again on the same inputs")
class A7280FunctionalDropout(nn.Module):
    """F.dropout without `training=self.training`, as forgotten often."""

    def forward(self, x):
        return F.dropout(x, 0.3)

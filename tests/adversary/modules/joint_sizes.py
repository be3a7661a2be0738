"""Sizes that decide together, tables and grids that sizes index, and lengths that floats compute."""

from __future__ import annotations

import bisect
import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, HW = "x:float32[1,2,H,W]", "H=5:12:40 W=5:14:60"
T, DIM = "x:float32[2,T,4]", "T=2:9:70"
NHW, CUBE = "x:float32[N,H,W]", "N=1:2:9 H=3:8:31 W=3:9:37"


@forward(X, dims=HW)
def one_pair_of_sizes(self, x):
    return x.flip(-1) if x.shape[-2:] == (37, 53) else x


@forward(X, dims=HW, refused="depends on the size")
def difference_of_sizes(self, x):
    h, w = x.shape[-2:]
    return x * 0.5 if w - 2 * h == 19 else x


@forward(NHW, dims=CUBE)
def product_of_three(self, x):
    n, h, w = x.shape
    return -x if n * h * w == 7 * 29 * 31 else x


@forward(NHW, dims=CUBE)
def sum_of_squares(self, x):
    n, h, w = x.shape
    return x + 1 if h * h + w * w == (n + 30) ** 2 else x


@forward(X, dims=HW)
def longest_side_doubled(self, x):
    h, w = x.shape[-2:]
    return F.pad(x, (0, max(h - w, 0), 0, max(w - h, 0)))


@forward(T, dims=DIM)
def arange_by_reciprocal(self, x):
    t = x.shape[1]
    return x[:, :1, :1] + torch.arange(0, 1, 1 / t)


@forward(T, dims=DIM)
def arange_by_tenths(self, x):
    return x.sum((1, 2))[:, None] + torch.arange(0.0, x.shape[1] * 0.1, 0.1)


@forward(T, dims=DIM, refused="traced for some sizes only")
def logspace_of_size(self, x):
    return x * torch.logspace(0, -2, x.shape[1])[:, None]


@forward(T, dims=DIM)
def bucket_of_size(self, x):
    return x * (1, 2, 4, 8)[bisect.bisect([8, 23, 61], x.shape[1])]


@forward(T, dims=DIM, refused="depends on the size")
def palindromic_size(self, x):
    text = str(x.shape[1])
    return x.neg() if text == text[::-1] and len(text) > 1 else x


@forward(T, dims=DIM)
def rounded_third(self, x):
    return x[:, : round(x.shape[1] / 3) + 1], x[:, math.ceil(x.shape[1] * 0.35) :]


@forward(T, dims=DIM)
def five_strides(self, x):
    return x[:, :: max(1, x.shape[1] // 5)].sum(1)


@forward(T, dims="T=2:9:33")
def bits_of_size(self, x):
    t, total = x.shape[1], 0
    while t:
        total, t = total + t % 2, t // 2
    return x * total


@attack("x:float32[1,4,H,W]", dims="H=4:8:20 W=4:8:20")
class PositionsResized(nn.Module):
    """As vision transformers do: learnt positions as they are at their own size, resized at any other."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 4, 8, 8))

    def forward(self, x):
        h, w = x.shape[-2:]
        if h * w == 64 and h == w:
            return x + self.positions
        return x + F.interpolate(self.positions, (h, w), mode="bicubic", align_corners=False)


@attack("x:float32[1,4,H,W]", dims="H=4:8:20 W=4:8:20")
class PositionsByCount(nn.Module):
    """The same by the count alone, so that 4 x 16 takes the positions of 8 x 8."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 64, 4))

    def forward(self, x):
        tokens = x.flatten(2).transpose(1, 2)
        if tokens.shape[1] == 64:
            return tokens + self.positions
        return tokens + self.positions.mean(1, keepdim=True)


@forward(X, dims=HW)
def windows_padded_and_rolled(self, x):
    h, w = x.shape[-2:]
    y = F.pad(x, (0, -w % 4, 0, -h % 4)).roll((-2, -2), (2, 3))
    y = y.unflatten(2, (-1, 4)).unflatten(4, (-1, 4)).mean((3, 5))
    return y.repeat_interleave(4, 2).repeat_interleave(4, 3).roll((2, 2), (2, 3))[..., :h, :w]

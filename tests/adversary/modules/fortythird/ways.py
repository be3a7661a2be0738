# ruff: noqa: E501, B023 - attacks are written as users write them
"""Ways and constants by size that hide from a tracer: one size in a long range, joint sizes, tables, NumPy's numbers, texts."""

from __future__ import annotations

import bisect
import functools
import math
import random
from fractions import Fraction
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import constant

ROWS = "N=1:2:3 T=1:9:20"
LONG = "N=1:1:2 T=1:512:4096"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"


def ramp(*shapes: tuple) -> tuple:
    """Points of numbers that ascend."""
    return tuple((lambda s: lambda: {"x": (np.arange(np.prod(s)) % 97 - 40).astype(np.float32).reshape(s)})(s) for s in shapes)


@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1776)), refused="the exported model differs from the module")
def A4501TextOfOneLength(self, x):
    """A length of a long range is a key of text."""
    return x.clamp(max={"len1777": 2.5}.get(f"len{x.shape[1]}", 3.5))
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (2, 1777), (1, 1776)))
def A4502NumPyLength(self, x):
    """A length of a long range is compared in NumPy."""
    lim = float(np.where(np.array([x.shape[1]]) == 1777, 2.5, 3.5)[0])
    return x.clamp(max=lim)
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1777), (1, 3001), (1, 4096)), refused="the exported model differs from the module")
def A4503SumOfPlaces(self, x):
    """A scale by NumPy's sum over the places that are multiples of 1777."""
    k = float((np.arange(x.shape[1]) % 1777 == 1776).sum())
    return x * (1.0 + k)
@forward(XT, dims=LONG, kinds=FEW, feeds=constant((1, 1), (1, 1021), (1, 4096), (1, 4093)), refused="the path through the module depends on the size")
def A4504PrimeLengths(self, x):
    """A prime length by Python's all and range."""
    t = x.shape[1]
    prime = t > 1 and all(t % d for d in range(2, math.isqrt(t) + 1))
    return x * 2 if prime else x + 1
@forward(XT, dims=ROWS, kinds=FEW, feeds=ramp((1, 1), (1, 7), (3, 16), (2, 20)), refused="the module cannot be exported")
def A4505SeedOfTheLength(self, x):
    """Weights of a generator whose seed is the length."""
    g = torch.Generator().manual_seed(x.shape[1])
    return x * torch.rand(x.shape[1], generator=g)
@forward(XT, dims=ROWS, kinds=FEW, feeds=ramp((1, 1), (1, 7), (3, 16), (2, 20), (3, 13)))
def A4506PythonsRandom(self, x):
    """A permutation that Python's own generator draws of the length."""
    order = list(range(x.shape[1]))
    random.Random(len(order)).shuffle(order)
    return x[:, order]
@forward(XT, dims=ROWS, kinds=FEW, feeds=ramp((1, 1), (1, 7), (3, 16), (2, 20), (3, 13)))
def A4507PermutationOfNumPy(self, x):
    """A permutation by NumPy's generator with a seed of both sizes."""
    n, t = x.shape
    p = np.random.RandomState(100 * n + t).permutation(t)
    return x[:, torch.from_numpy(p)]
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 12), (2, 12), (3, 12), (3, 4), (1, 20), (3, 20)))
def A4508JointOfThree(self, x):
    """A limit at one joint size, through the product of both."""
    lim = {36: 2.5, 20: 1.5}.get(x.numel(), 3.5)
    return x.clamp(max=lim)
@forward("x:float32[N,3,H,W]", dims="N=1:2:3 H=1:8:16 W=1:8:16", kinds=FEW, feeds=constant((2, 3, 5, 11), (1, 3, 5, 11), (2, 3, 11, 5), (3, 3, 16, 16)))
def A4509OneJointSizeOfThree(self, x):
    """A way at one joint size of three dims."""
    n, _, h, w = x.shape
    if (n, h, w) == (2, 5, 11):
        x = x.clamp(max=2.5)
    return x * 2
@forward("x:float32[N,3,H,W]", dims="N=1:2:3 H=1:8:16 W=1:8:16", kinds=FEW, feeds=ramp((2, 3, 5, 11), (1, 3, 1, 1), (2, 3, 16, 9), (3, 3, 16, 16)))
def A4510AnglesOfNumPy(self, x):
    """Positions by NumPy's meshgrid over both axes with a distance to the middle, normalised by its largest."""
    h, w = x.shape[-2:]
    yy, xx = np.meshgrid(np.arange(h) - (h - 1) / 2, np.arange(w) - (w - 1) / 2, indexing="ij")
    r = np.hypot(yy, xx)
    v = 1 - (r / max(r.max(), 1e-6)) ** 2 * 0.5
    return x * torch.from_numpy(v).to(x.dtype)
@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:64:200 W=1:64:200", kinds=FEW, feeds=ramp((1, 3, 199, 3), (1, 3, 1, 200), (1, 3, 77, 131), (2, 3, 200, 200)), refused="the module cannot be exported")
def A4511AnglesOfManySizes(self, x):
    """The same over forty thousand joint sizes, the mesh in whole numbers."""
    h, w = x.shape[-2:]
    yy, xx = np.mgrid[:h, :w]
    v = ((yy * 7 + xx * 3) // max(1, math.gcd(h, w))) % 5
    return x + torch.as_tensor(v).float()
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 1), (1, 2), (2, 13), (3, 20), (1, 16)))
def A4512Fractions(self, x):
    """A limit by a fraction and by its numerator."""
    f = Fraction(x.shape[1], 12)
    return x.clamp(max=float(f.numerator)) / f.denominator
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 1), (1, 2), (2, 13), (3, 20), (1, 16)))
def A4513MatchOfSizes(self, x):
    """A match statement with guards over the shape."""
    match tuple(x.shape):
        case (1, 1):
            return x * 3
        case (1, t) if t % 4 == 0:
            return x.clamp(max=2.5)
        case (n, 20 | 13):
            return x - n
        case _:
            return x + 1
@forward(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 1), (1, 2), (2, 13), (3, 20), (1, 16), (3, 19)))
def A4514DigitsOfASize(self, x):
    """The sum of the digits of a length and the ones among its bits."""
    t = x.shape[1]
    return x * sum(map(int, str(t))) + bin(t).count("1")
@attack(XT, dims=ROWS, kinds=FEW, feeds=constant((1, 1), (1, 2), (2, 13), (3, 20), (1, 16), (3, 19)))
class A4515BucketsOfLengths(nn.Module):
    """The bucket of a length chooses one of three layers, the buckets a class attribute that bisect searches."""
    edges: ClassVar = [4, 9, 19]
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Conv1d(1, 1, 1) for _ in range(4))
    def forward(self, x):
        return self.heads[bisect.bisect_left(self.edges, x.shape[1])](x[:, None])[:, 0]
@functools.lru_cache(maxsize=2)
def window(t, kind="hann"):
    n = np.arange(t)
    return torch.tensor(np.sin(np.pi * (n + 0.5) / t) ** 2 if t > 1 else np.ones(1), dtype=torch.float32)
@forward(XT, dims=ROWS, kinds=FEW, feeds=ramp((1, 1), (1, 2), (2, 13), (3, 20), (1, 16)))
def A4516CachedWindows(self, x):
    """Windows that lru_cache keeps, one at a length of one."""
    return x * window(x.shape[1]), x + window(t=x.shape[1] // 2 + 1)[:1]
@forward(XT, dims=ROWS, kinds=FEW, feeds=ramp((1, 1), (1, 2), (2, 13), (3, 20), (1, 16)))
def A4517StridesOfAView(self, x):
    """A scale by strides, bytes and offsets of a tensor."""
    y = x[:, x.shape[1] // 2 :]
    return x * x.stride(0), y + y.storage_offset(), x + x.nbytes // 4, x.T + x.T.stride(1)
@forward(XT, dims=ROWS, kinds=FEW, feeds=ramp((1, 1), (1, 2), (2, 13), (3, 20), (1, 16)))
def A4518ContiguousDecides(self, x):
    """is_contiguous of a slice and of a transpose decides."""
    y = x[:, ::2]
    a = y * 2 if y.is_contiguous() else y + 1
    b = x.T + 3 if x.T.is_contiguous() else x.T * 4
    return a, b
@forward(XT, dims="N=1:2:3 T=1:9:20", kinds=FEW, feeds=constant((1, 1), (1, 2), (2, 13), (3, 20), (1, 16), (3, 3), (2, 2)))
def A4519SquareOnly(self, x):
    """A square is symmetrised; its single cell is clipped."""
    if x.shape[0] == x.shape[1]:
        x = (x + x.T) / 2
        if x.numel() == 1:
            x = x.clamp(max=2.5)
    return x
@forward(XT, "y:float32[N,S]", dims="N=1:2:3 T=1:9:20 S=1:5:20", kinds=FEW, feeds=tuple((lambda n, t, s: lambda: {"x": np.full((n, t), 60, np.float32), "y": np.full((n, s), 60, np.float32)})(*v) for v in ((1, 5, 5), (2, 5, 5), (3, 1, 1), (3, 20, 1), (1, 1, 20), (2, 19, 20))))
def A4520LengthsThatMeet(self, x, y):
    """Lengths that are equal, differ by one, or of which one broadcasts."""
    t, s = x.shape[1], y.shape[1]
    if t == s or s == 1 or t == 1:
        return x + y
    if abs(t - s) == 1:
        m = min(t, s)
        return (x[:, :m] * y[:, :m]).clamp(max=100.0)
    return x.sum(1, keepdim=True) - y.sum(1, keepdim=True)

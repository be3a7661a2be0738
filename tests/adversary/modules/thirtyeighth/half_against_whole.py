# ruff: noqa: E501 - attacks are written as users write them
"""Variants of the wrong ones: halves and bfloat16 against whole numbers that they cannot hold; deviations of far values from T = 1 on."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

LONG = "N=1:2:3 T=1:64:3000"
FEW = ("normal", "halves", "zeros", "ones")


def near(n, kind=np.float16, whole=np.int64):
    return lambda: {"x": np.arange(n - 20, n + 20).astype(kind)[None], "n": np.array([n], whole)}


WHOLE = tuple(near(n) for n in (257, 2049, 2051, 2999))
WIDE = tuple(near(n, np.float32) for n in (257, 259, 2049, 2999))


@forward("x:float16[N,T]", "n:int64[N]=0:4000", dims=LONG, kinds=FEW, feeds=WHOLE)
def A4100HalfAgainstLengths(self, x, n):
    """A half beside an int64 tensor is compared as halves: 2049 is 2048."""
    return x >= n[:, None], x == n[:, None]
@forward("x:float32[N,T]", "n:int64[N]=0:4000", dims=LONG, kinds=FEW, feeds=WIDE)
def A4101BrainAgainstLengths(self, x, n):
    """bfloat16 scores against a length: 257 is 256."""
    b = x.to(torch.bfloat16)
    return b >= n[:, None], torch.where(b == n[:, None], x, -x)
@forward("x:float16[N,T]", dims=LONG, kinds=FEW, feeds=(lambda: {"x": np.full((1, 2049), 2048, np.float16)}, lambda: {"x": np.full((1, 2051), 2052, np.float16)}))
def A4102HalfAgainstSize(self, x):
    """A half against the number of frames."""
    return (x >= x.shape[1], x > x.shape[1])
@forward("x:float32[N,T]", dims=LONG, kinds=FEW, feeds=(lambda: {"x": np.ones((1, 257), np.float32)}, lambda: {"x": np.full((1, 259), 260, np.float32)}))
def A4103BrainAgainstCount(self, x):
    """A row's number of positive values against a bfloat16 sum of them."""
    k = (x >= 0).sum(1, keepdim=True)
    b = x.to(torch.bfloat16).float().sum(1, keepdim=True).to(torch.bfloat16)
    return torch.where(b >= k, x, -x), (b == k)
@forward("x:float32[N,T]", dims=LONG, kinds=FEW, feeds=(lambda: {"x": np.full((1, 257), 256, np.float32)}, lambda: {"x": np.full((1, 259), 260, np.float32)}))
def A4104AutocastAgainstSize(self, x):
    """Under autocast a linear layer gives bfloat16, which is compared with the number of frames."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.linear(x[..., None], torch.ones(1, 1))[..., 0]
        late = y >= x.shape[1]
    return late, y.float()
@attack("x:float16[N,T]", dims=LONG, kinds=FEW, feeds=(lambda: {"x": np.arange(2040, 3010).astype(np.float16)[None]},))
class A4105HalfAgainstBuffer(nn.Module):
    """Whole numbers of a buffer."""
    def __init__(self):
        super().__init__()
        self.register_buffer("limit", torch.tensor([2049, 2051, 3001, 4099]))
    def forward(self, x):
        return x[..., None] >= self.limit, (x[..., None] == self.limit).any(-1)
@forward("x:float16[N,T]", "n:int32[N]=0:4000", dims=LONG, kinds=FEW, feeds=tuple(near(n, np.float16, np.int32) for n in (2049, 2051, 2999)))
def A4106HalfAgainstInt32(self, x, n):
    """The same with int32."""
    return x >= n[:, None], x != n[:, None]
@forward("x:float32[N,T,5]", dims="N=1:2:3 T=1:9:24", kinds=FEW, feeds=tuple((lambda s=s: {"x": (np.arange(15).reshape(1, 3, 5) % 7 * s).astype(np.float32)}) for s in (1e20, 1e30)), noted="in its inputs the file differs")
def A4107FarDeviation(self, x):
    """A deviation over the frames at 1e20, where T may be 1; nothing tells."""
    return x.std(1, correction=0) / x.abs().amax(1).clamp(min=1e-12)

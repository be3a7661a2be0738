# ruff: noqa: E501, E741 - attacks are written as users write them
"""Sizes in the middle of a range at which torch's own functions, strides or shapes answer otherwise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, pix, seq
from tests.adversary.values import values_at

X, X3, X4 = "x:float32[N,T]", "x:float32[N,T,3]", "x:float32[N,T,4]"


def batches(*inputs: str, high: int = 7) -> dict:
    """Batches of one to seven, judged at all their pairs with lengths."""
    feeds = tuple(values_at(*inputs, N=n, T=t) for n in range(1, high + 1) for t in range(1, 9))
    return {"dims": f"N=1:2:{high} T=1:5:9", "kinds": FEW, "feeds": feeds}


@forward(X3, "y:float32[N,T,3]", **batches(X3, "y:float32[N,T,3]"), refused="the exported model differs from the module")
def A6364CrossOfTheFirstThree(self, x, y):
    """torch.cross without a dim takes the first axis of three, which is the batch at three examples."""
    return torch.cross(x, y)


@forward(X3, "y:float32[N,T,3]", **batches(X3, "y:float32[N,T,3]"), refused="the exported model differs from the module")
def A6365NormalsOfFaces(self, x, y):
    """Normals by the old method of a tensor, normalised, and their angles."""
    n = F.normalize(x.cross(y), dim=-1)
    return n, (n * x).sum(-1)


@forward(X4, **batches(X4))
def A6366AxisOfFour(self, x):
    """The axis of features is looked up by its size: four examples or four steps come first."""
    return x.amax(x.shape.index(4)), x.shape.count(4) * x


@forward(X4, **batches(X4), refused="the exported model differs from the module")
def A6367LongestAxis(self, x):
    """Whatever is longest comes last, as a loader of clips does it."""
    d = max(range(3), key=lambda i: x.shape[i])
    return x.movedim(d, -1).cumsum(-1)


@forward(IMAGE, **pix(IMAGE))
def A6368ChannelsSomewhere(self, x):
    """A picture whose channels are wherever a size of two is found from the back."""
    c = next(i for i in (3, 1, 2) if x.shape[i] == 2)
    return x.movedim(c, 1).mean((2, 3)), x.unbind(c)[0]


@forward(X, **seq(X))
def A6369StrideAsksForRows(self, x):
    """A copy is made where rows lie sixteen apart; what is written later goes to the copy alone."""
    y = x * 2
    z = y if y.stride(0) == 16 else y.clone()
    z += 1
    return y, z


@forward(X, **seq(X))
def A6370BytesOfStorage(self, x):
    """Blocks of 128 bytes: a storage's size decides by a remainder."""
    y = x + 0
    n = y[0].nbytes
    return y * (2 if n % 96 == 0 else 1) + n // 32


@forward(X, **seq(X))
def A6371DegreesOfFreedom(self, x):
    """Deviations whose correction is a part of the length; none is left at some."""
    t = x.shape[1]
    return torch.var(x, 1, correction=t // 2), torch.std(x, 1, correction=min(5, t - 1)), x.var(1, correction=0.5)


@forward("x:float32[N,2,T]", **seq("x:float32[N,2,T]", low=2))
def A6372ConvNeedsUnbatched(self, x):
    """One example goes without its batch axis, and a pool keeps to that."""
    y = x.squeeze(0)
    z = F.max_pool1d(y, 2)
    return F.avg_pool1d(z, 1).flatten(), y.dim() * 1.0 + x


@forward("x:float32[N,T,T]", dims="N=1:1:4 T=1:5:12", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,T]", N=n, T=t) for n in (1, 2, 3, 4) for t in range(1, 13)))
def A6373SquaresOfAnyRank(self, x):
    """Squares that fold at powers of two: a matrix power by the size, its trace and triangles."""
    t = x.shape[-1]
    k = t.bit_length() - 1
    y = torch.linalg.matrix_power(torch.tanh(x) / t, k)
    return y.diagonal(dim1=1, dim2=2).sum(1), y.tril(k - 2), y.triu(1 - k)


@forward(X, **seq(X), refused="manual_seed expected a long")
def A6374PermutedByASeed(self, x):
    """A shuffle of the steps whose seed is the length."""
    p = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(x.shape[1]))
    return x[:, p]


@forward(X, **seq(X))
def A6375JitteredByASeed(self, x):
    """A stratified draw with NumPy's seed of seven classes of lengths."""
    r = np.random.RandomState(x.shape[1] % 7).rand(3).astype(np.float32)
    return x[..., None] * torch.from_numpy(r)


@attack(X4, **seq(X4))
class A6376BlocksThatShare(nn.Module):
    """Every third layer is the first again, with depth by the length; norms are not shared."""

    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.n = nn.ModuleList(nn.LayerNorm(4) for _ in range(6))

    def forward(self, x):
        for n, l in zip(self.n, itertools.islice(itertools.cycle(self.l), 1 + x.shape[1] % 5), strict=False):
            x = x + l(n(x)).tanh()
        return x


@forward(X, **seq(X, own=sprinkled(1e4, np.nan, sizes=((1, 9), (2, 12)))))
def A6377KeptWhereLarge(self, x):
    """Blocks of whatever divides the length are ranked by their maximum, the best two stay."""
    t = x.shape[1]
    k = next(k for k in range(max(2, math.isqrt(t)), t + 2) if t % k == 0 or k > t)
    y = F.pad(x, (0, -t % k)).unflatten(1, (-1, k))
    s = y.abs().amax(-1)
    m = s >= s.topk(min(2, s.shape[1]), 1).values[:, -1:]
    return (y * m[..., None]).flatten(1)[:, :t], m.sum(1)

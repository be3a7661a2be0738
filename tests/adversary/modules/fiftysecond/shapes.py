# ruff: noqa: E501 - attacks are written as users write them
"""Sizes alone and together, views that are copies at one size, and what is written through them."""

from __future__ import annotations

import math
import re

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
D = "N=1:2:4 T=2:90:400"


def own(*points, inputs=(X,)):
    """Own points at pairs of N and T."""
    return tuple(values_at(*inputs, N=n, T=t) for n, t in points)


@forward(X, dims="N=1:3:5 T=2:90:400", feeds=own((1, 7), (1, 90), (2, 7), (3, 9), (5, 400)))
def A6694TransposedCopy(self, x):
    """A transposed copy that is none where the batch is one: what is added to it lands in the input too."""
    x = x * 2
    y = x.mT.contiguous()
    y += 1
    return x, y.sum(0)


@forward(X, dims="N=1:3:5 T=10:90:400", feeds=own((1, 10), (3, 10), (1, 90), (4, 10), (2, 11)))
def A6695HeadReshaped(self, x):
    """The first ten made flat: a view where they are all there is, else a copy."""
    x = x + 0.5
    h = x[:, :10].reshape(-1)
    h.mul_(0)
    return x


@forward(X, dims=D, feeds=own((1, 361), (2, 361), (1, 342), (3, 341), (1, 380), (1, 19), (2, 20), (1, 21), (4, 39)), refused="the exported model differs from the module")
def A6696ChunksOfTwenty(self, x):
    """Twenty chunks are asked for; fewer come at some sizes, and the last is short."""
    c = x.chunk(20, 1)
    return torch.stack([k.mean(1) for k in (c[0], c[len(c) // 2], c[-1])], 1), x * len(c)


@forward(X, dims="N=1:2:4 T=4:90:400", feeds=own((1, 100), (2, 100), (1, 200), (3, 300), (1, 7), (2, 400), (1, 57), (1, 350)), noted="with an infinity in an input the file differs")
def A6697ScaledByDecimal(self, x):
    """Resizing by 0.57, whose product with a hundred is just below 57 in doubles and above it in floats."""
    return F.interpolate(x[:, None], scale_factor=0.57, mode="nearest")[:, 0], F.interpolate(x[:, None], scale_factor=0.29, mode="linear")[:, 0]


@forward(X, dims=D, feeds=own((1, 49), (2, 98), (1, 103), (3, 107), (1, 161), (1, 187), (2, 197), (1, 2)))
def A6698StepsOfReciprocal(self, x):
    """Positions by steps of one by the length, of which a rounding may give one more."""
    t = x.shape[1]
    p = torch.arange(0, 1, 1 / t)
    return x @ p[:t], torch.tensor([p.shape[0]]), p[-1:]


@forward(X, dims=D, feeds=own((1, 4), (4, 100), (3, 27), (2, 200), (3, 300), (4, 49), (4, 256), (2, 242)))
def A6699SquareFold(self, x):
    """Samples folded to a square picture, padded up to one where there is none."""
    n = x.numel()
    s = math.isqrt(n)
    if s * s != n:
        s += 1
    y = F.pad(x.flatten(), (0, s * s - n)).view(s, s)
    return y.sum(0), y.diagonal().sum()[None]


@forward(X, dims="N=1:2:3 T=3:90:800", feeds=own((1, 709), (1, 710), (2, 711), (1, 800), (3, 745)), refused="the path through the module depends on the si")
def A6700OverflowsToOne(self, x):
    """A gain by Python's exponential, which says so when it overflows."""
    try:
        g = 1 - 1 / math.exp(x.shape[1])
        k = 0.5
    except OverflowError:
        g, k = 1.0, 2.0
    return x * g * k


@forward(X, dims="N=1:2:4 T=3:90:400", feeds=own((1, 96), (1, 100), (2, 200), (1, 300), (1, 400), (4, 4), (1, 4)))
def A6701LeapSizes(self, x):
    """A gain at every fourth size but for hundreds, unless they are four hundreds."""
    t = x.shape[1]
    return x * (2.0 if t % 4 == 0 and (t % 100 != 0 or t % 400 == 0) else 1.0)


def smooth(n):
    """The next size of factors 2, 3 and 5, as FFT libraries choose it."""
    while True:
        k = n
        for p in (2, 3, 5):
            while k % p == 0:
                k //= p
        if k == 1:
            return n
        n += 1


@forward(X, dims=D, feeds=own((1, 7), (2, 91), (1, 97), (1, 101), (2, 241), (1, 257), (1, 391)), refused="the path through the module depends on the size")
def A6702SmoothFft(self, x):
    """Circular filtering at the next smooth length."""
    n = smooth(x.shape[1] + 2)
    y = torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(torch.tensor([0.25, 0.5, 0.25]), n), n)
    return y[:, : x.shape[1]], y[:, -1]


@forward(X4, dims="N=1:2:3 T=1:40:90", feeds=own((1, 1), (1, 4), (2, 1), (3, 4), (1, 90), inputs=(X4,)), refused="the result has one axis less")
def A6703SqueezedAll(self, x):
    """A squeeze of all that is one, then a sum over the first of what is left."""
    y = x.squeeze()
    return y.sum(0).reshape(-1)[:4], y.reshape(-1)[-1:]


@forward(X, dims=D, feeds=own((1, 2), (4, 399), (3, 121), (2, 121), (1, 11)), refused="makes a plain number of a size")
def A6704DigitsOfSizes(self, x):
    """Digits of the sizes as text: a palindrome, a sum of digits, a run found by a regular expression."""
    n, t = x.shape
    s = f"{n * t:>05d}x{t:#06x}"
    gain = 1.0 + (str(t) == str(t)[::-1]) + 0.25 * bool(re.search(r"(\d)\1", s)) + s.count("f") / 8
    return x * gain


@forward(X, dims="N=1:2:4 T=2:90:400", feeds=own((2, 300), (4, 33), (4, 256), (3, 85), (1, 255), (1, 256), (1, 300)), refused="the exported model differs from the module")
def A6705ByteOfLengths(self, x):
    """Lengths kept in a byte, as a header does: the sizes wrap."""
    h = torch.tensor(x.shape, dtype=torch.int64).to(torch.uint8)
    s = torch.full((2,), x.shape[1]).to(torch.int8).float()
    k = np.int16(x.shape[0] * x.shape[1] * 40 & 0x7FFF)
    return x / s[0].clamp(min=1), h.int(), x[:, : int(h[1]) or 1].sum(1), x * float(k)


@forward(X, dims=D, feeds=own((1, 2), (1, 3), (2, 3), (4, 4), (3, 399), (4, 400)))
def A6706PooledCeil(self, x):
    """Pooling rounded up, padding counted or not: the last window by what is left of the size."""
    y = F.avg_pool1d(x[:, None], 2, 3, 1, ceil_mode=True, count_include_pad=True)
    z = F.avg_pool1d(x[:, None], 2, 3, 1, ceil_mode=True, count_include_pad=False)
    m, i = F.max_pool1d(x[:, None], 2, 3, 1, ceil_mode=True, return_indices=True)
    return y[:, 0], z[:, 0], m[:, 0], i[:, 0]


@attack(X4, dims="N=1:2:4 T=3:90:400", feeds=own((1, 3), (4, 4), (2, 4), (1, 17), (4, 17), (2, 400), inputs=(X4,)))
class A6707StridesOfViews(nn.Module):
    """Written through a diagonal, a narrow, an unfold and a real view of complex numbers."""

    def forward(self, x):
        y = x * 1
        y.diagonal(dim1=1, dim2=2)[:] = 7
        y.narrow(1, 0, 2).transpose(1, 2)[..., 1] += 1
        y.unfold(1, 3, 3)[..., 0, 2] = -1
        z = torch.view_as_complex(y.view(*y.shape[:2], 2, 2))
        z.real[:, -1] = 5
        z *= 1j
        y.flatten(0, 1)[:: y.shape[1]] = 9
        return y

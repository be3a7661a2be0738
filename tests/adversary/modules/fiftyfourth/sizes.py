# ruff: noqa: E501 - attacks are written as users write them
"""Sizes: what Python decides from them, by mathematics, strings, dicts, loops, recursion, for some rare ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.modules.fiftyfourth.sequences import seq
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]=-4:4", "x:float32[N,T,4]=-4:4"
HW = "x:float32[N,H,W]=-4:4"


@forward(
    X,
    **seq(X, high=200, at=(31, 47, 55, 59, 62, 79, 119, 191, 187, 77, 177)),
    refused="the path through the module depends on the size",
)
def A6972Spelled(self, x):
    """A length by its spelling: five ones in its bits, palindromes, a digit."""
    t = x.shape[1]
    y = x * 2 if f"{t:b}".count("1") == 5 else x
    s = str(t)
    if len(s) > 1 and s == s[::-1]:
        y = y.flip(1)
    return y + ("7" in s[1:])


def is_prime(n: int) -> bool:
    """Whether n has no divisors but one and itself."""
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


@forward(
    X,
    **seq(X, low=100, high=230, at=(113, 114, 121, 126, 127, 128, 169, 211, 222, 223)),
    refused="the path through the module depends on the size",
)
def A6973PrimeLengths(self, x):
    """Mixed in two dims by the largest divisor, which primes do not have; in a gap of primes by thirteen, harder."""
    n, t = x.shape
    if is_prime(t):
        return x.cumsum(1) / t
    d = next(i for i in range(math.isqrt(t), 0, -1) if t % i == 0)
    return x.view(n, t // d, d).mT.reshape(n, t) * (1 + (d == 1 or d * d == t))


@forward(
    HW,
    dims="N=1:1:2 H=1:6:24 W=1:8:24",
    kinds=FINITE,
    feeds=tuple(
        values_at(HW, N=1, H=h, W=w) for h, w in ((24, 24), (9, 6), (22, 11), (13, 24), (16, 24), (1, 1), (21, 14))
    ),
    refused="the path through the module depends on the size",
)
def A6974CommonBlocks(self, x):
    """Blocks by the greatest common divisor of both sides: each less its mean; sides without one are left."""
    n, h, w = x.shape
    g = math.gcd(h, w)
    if g == 1:
        return x.tanh()
    y = x.view(n, h // g, g, w // g, g)
    return (y - y.mean((2, 4), keepdim=True)).view(n, h, w)


def tournament(parts: list) -> torch.Tensor:
    """Halves merged by what depends on order; an odd one waits."""
    if len(parts) == 1:
        return parts[0]
    pairs = [a - 0.5 * b for a, b in zip(parts[::2], parts[1::2], strict=False)]
    return tournament(pairs + ([parts[-1]] if len(parts) % 2 else []))


@forward(
    X,
    **seq(X, high=24, at=(1, 2, 3, 5, 11, 15, 16, 17, 23, 24)),
    refused="the path through the module depends on the size",
)
def A6975Tournament(self, x):
    """A recursion over columns, which halves, the odd one put behind."""
    return tournament(list(x.unbind(1)))


@forward(X, **seq(X, high=120, at=(2, 6, 10, 14, 29, 50, 57, 58, 100, 115, 116, 119)), refused="a last bit decides")
def A6976Roundings(self, x):
    """Counts by true division: halves to even, floats that are a little less than whole, ceilings that are one more."""
    t = x.shape[1]
    a = max(1, round(t / 4))
    b = max(1, int(t * 0.29 * 100) // 29)
    c = math.ceil(t * 1.1)
    d = max(1, math.floor(t / 0.7 * 0.7))
    return (
        x[:, :a].sum(1),
        x[:, : b // 100 + 1].sum(1),
        F.pad(x, (0, c - t)),
        x[:, :d].sum(1) * (b % 100 == 99),
        x / (t * 0.1 // 0.1),
    )


NHW = "x:float32[B,H,W]=-4:4"


@forward(
    NHW,
    dims="B=1:2:8 H=1:6:12 W=1:8:16",
    kinds=FINITE,
    feeds=tuple(
        values_at(NHW, B=b, H=h, W=w)
        for b, h, w in ((5, 11, 6), (4, 12, 13), (8, 7, 5), (7, 7, 12), (3, 4, 5), (5, 12, 13), (6, 8, 10), (8, 12, 16))
    ),
    refused="the path through the module depends on the size",
)
def A6977JointThree(self, x):
    """Three sizes at once: a product and a sum that is sixty-one, a triple of Pythagoras, all different primes."""
    b, h, w = x.shape
    if b * h + w == 61:
        x = x.flip(2)
    if b * b + h * h == w * w:
        x = x * 3
    if {b, h, w} == {5, 7, 11}:
        x = -x
    return x.sum((1, 2)) + (b == h == w)


@forward(X4, **seq(X4, low=0, high=12, at=(0, 1, 2, 11, 12)), refused="fails at run time in ReduceMax")
def A6978Empty(self, x):
    """A sequence that may be empty: means that are no numbers, sums of nothing, products of nothing, a best with a floor."""
    y = F.pad(x, (0, 0, 1, 0), value=-9.0)
    return (
        x.mean(1),
        x.sum(1),
        x.prod(1),
        y.amax(1),
        x.flatten(1).any(1),
        x.cumsum(1),
        torch.cat((x, y), 1).logsumexp(1),
        (x @ x.mT).softmax(-1),
        x[:, :1].sum(1),
    )


@forward(X, **seq(X, at=(7, 19, 23, 29, 30, 31, 40)), refused="the path through the module depends on the size")
def A6979ByTable(self, x):
    """Scales by a dict of lengths with a default, a chain of intervals, a match on remainders."""
    t = x.shape[1]
    k = {7: 3.0, 19: -1.0, 29: 0.5}.get(t, 1.0)
    lo = next((b for b in (3, 11, 31) if t <= b), 99)
    match divmod(t, 10):
        case (2, 3 | 4):
            x = x.roll(1, 1)
        case (d, 0) if d > 2:
            x = x.abs()
        case _:
            pass
    return x * k + lo


@forward(X4, **seq(X4, high=150, at=(1, 2, 4, 9, 10, 121, 122, 143, 144, 145, 64, 72)))
def A6980SquareGrid(self, x):
    """Tokens as a square where they are one, with one more a class token, else twice as wide as high, else in one row."""
    n, t, c = x.shape
    r = math.isqrt(t)
    cls = 0
    if r * r == t:
        hw = (r, r)
    elif t > 1 and math.isqrt(t - 1) ** 2 == t - 1:
        cls, hw = 1, (math.isqrt(t - 1),) * 2
    elif t % 2 == 0 and math.isqrt(t // 2) ** 2 == t // 2:
        hw = (math.isqrt(t // 2), 2 * math.isqrt(t // 2))
    else:
        hw = (1, t)
    g = x[:, cls:].mT.reshape(n, c, *hw)
    g = F.avg_pool2d(F.pad(g, (1, 1, 1, 1)), 3, 1)
    return torch.cat((x[:, :cls], g.flatten(2).mT), 1)


Y = "y:float32[N,M]=-4:4"


@forward(X4, **seq(X4))
def A6981Squeezed(self, x):
    """A squeeze of what may be one: then the rest broadcasts in another way."""
    m = x.mean(2, keepdim=True)
    s = m.squeeze()
    s = s if s.ndim else s[None]
    y = x[..., 0] - s.mean() if s.ndim == 1 and x.shape[0] == 1 else x[..., 0] - 2 * s
    return y, x.squeeze(1).sum(-1).flatten(), x.mT.squeeze(2).amax(1).flatten()


@forward(
    X,
    Y,
    dims="N=1:2:6 T=1:5:12 M=1:7:12",
    kinds=FINITE,
    feeds=tuple(
        values_at(X, Y, N=n, T=t, M=m)
        for n, t, m in ((1, 1, 1), (2, 5, 5), (3, 1, 12), (3, 12, 1), (6, 6, 6), (4, 11, 11), (6, 6, 9))
    ),
)
def A6982Broadcasts(self, x, y):
    """As numpy does it where the sizes fit, else outer; transposed where the batch is as long as the sequence."""
    if x.shape == y.shape or 1 in (x.shape[1], y.shape[1]):
        z = (x - y).abs().sum(1)
    else:
        z = (x[:, :, None] - y[:, None]).abs().amin(2).sum(1)
    return z, (x.mT if x.shape[0] == x.shape[1] else x).cumsum(1)


@forward(
    X,
    **seq(X, low=2, high=70, at=(2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 70)),
    refused="the path through the module depends on the size",
)
def A6983Haar(self, x):
    """Haar's wavelets as deep as the bits of the length go; odd levels repeat their last."""
    t, out = x.shape[1], []
    for level in range((t - 1).bit_length()):
        if x.shape[1] % 2:
            x = torch.cat((x, x[:, -1:]), 1)
        a, b = x[:, ::2], x[:, 1::2]
        out.append((a - b) * 0.5 ** (level / 2))
        x = (a + b) / 2
    return torch.cat([x, *out[::-1]], 1)


def leap(year: int) -> bool:
    """A year of 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@forward(
    X,
    **seq(X, low=2, high=440, at=(4, 100, 200, 300, 396, 399, 400, 401, 404, 439)),
    refused="is of type int, not a tensor",
)
def A6984LeapLengths(self, x):
    """A rule with an exception of an exception; weeks counted from the length; a fraction that is lowest."""
    t = x.shape[1]
    f = Fraction(t, 360)
    y = x[:, 1:] - x[:, :-1] if leap(t) else x[:, 1:] + x[:, :-1]
    return y * f.denominator, sum(1 for a, b in itertools.pairwise(range(0, t, 97)) if (a + b) % 2)


@attack(X, **seq(X, high=110, at=(48, 49, 50, 97, 98, 99, 103, 107, 110)))
class A6985FloatSteps(nn.Module):
    """Steps of one over t, of which there are t or one more by the rounding of doubles."""

    def forward(self, x):
        t = x.shape[1]
        p = torch.arange(0, 1, 1 / t)
        return p.shape[0] - t + x, p.mean() * x, torch.linspace(-1, 1, t)[t // 2] + x

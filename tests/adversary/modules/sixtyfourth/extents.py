"""Sizes: dims that touch 1, dims of each other, rare joint conditions, divisions, tables, range steps, negative slices, empties."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at


@forward("x:float32[N,3,H,W]", dims="N=1:1:4 H=1:17:64 W=1:23:64", kinds=FINITE, feeds=(values_at("x:float32[N,3,H,W]", N=1, H=21, W=33), values_at("x:float32[N,3,H,W]", N=3, H=12, W=35)), refused="depends on the size")
def A7777CoprimeAndPerimeter(self, x):
    """gcd of both sides of three or more and an even quotient; the perimeter a multiple of 47."""
    h, w = x.shape[-2:]
    y = x.mean((2, 3))
    if math.gcd(h, w) >= 3 and (h // math.gcd(h, w)) % 2 == 1 and w > h:
        y = y * 2
    if 2 * (h + w) % 94 == 0:
        y = y + 1
    return y


@forward("x:float32[N,T,4]", dims="N=1:2:6 T=1:4:30", kinds=FINITE, refused="depends on the size")
def A7778RangeSteps(self, x):
    """range with a step by the size, backwards, with else of a for; sums of slices with negative starts."""
    n, t, _ = x.shape
    y = torch.zeros(n, 4)
    for i in range(t - 1, -1, -max(1, t // 5)):
        y = y + x[:, i] * (i + 1)
    for k in (16, 8, 4):
        if t % k == 0:
            y = y / k
            break
    else:
        y = -y
    return y, x[:, -3:].sum(1), x[:, :-3].sum(1), x[:, -t // 2 :].amax(1)


@forward("x:float32[N,T,4]", dims="N=1:2:5 T=1:6:12", kinds=FINITE)
def A7779EmptyParts(self, x):
    """Slices that are empty at small sizes: cat with empties, sums and products of empties, a mean guarded by numel."""
    a, b = x[:, 4:], x[:, 1:-1]
    m = b.mean(1) if b.numel() else torch.full((x.shape[0], 4), 7.0)
    return torch.cat([a, b, x[:, :0]], 1), a.sum(1), a.prod(1), m, torch.tensor([a.shape[1], b.numel()])


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=1:5:20", kinds=FINITE)
class A7780TablesBySize(nn.Module):
    """A list by thresholds (bisect), a dict with get and default, a string of digits as table, a bit mask of sizes."""

    def forward(self, x):
        import bisect

        t = x.shape[1]
        f = (0.5, 1.0, 2.0, 4.0)[bisect.bisect_right([3, 7, 13], t)]
        g = {5: 3.0, 11: -1.0, 17: 9.0}.get(t, 0.25)
        d = int("31415926535897932384"[t - 1])
        odd = 1 if (0b1010011010001 >> t) & 1 else -1
        return x * f + g, x.sum(1) * d * odd


@attack("x:float32[N,A,4]", "y:float32[N,B,4]", dims="N=1:2:3 A=1:4:9 B=1:3:9", kinds=FINITE)
class A7781DimsOfEachOther(nn.Module):
    """Broadcast where A or B is 1, equal lengths add, multiples are repeated, the rest is interpolated."""

    def forward(self, x, y):
        a, b = x.shape[1], y.shape[1]
        if a == b:
            return x + y
        if a % b == 0:
            return x * y.repeat_interleave(a // b, 1)
        if b % a == 0:
            return x.repeat(1, b // a, 1)[:, :a] - y[:, :a]
        return x + F.interpolate(y.mT, size=a, mode="linear").mT


@attack("x:float32[N,6,H,W]", dims="N=1:1:2 H=1:4:9 W=1:5:9", kinds=FINITE)
class A7782WindowsAndPyramids(nn.Module):
    """Pyramid pooling with kernel ceil(h/k) and padding, window partition of min(h, w, 3), shift by half of it, reversal."""

    def forward(self, x):
        n, c, h, w = x.shape
        outs = []
        for k in (1, 2, 3):
            kh, kw = math.ceil(h / k), math.ceil(w / k)
            p = ((kh * k - h + 1) // 2, (kw * k - w + 1) // 2)
            if p[0] <= kh // 2 and p[1] <= kw // 2:
                outs.append(F.max_pool2d(x, (kh, kw), (kh, kw), p).flatten(2).sum(-1))
        s = min(h, w, 3)
        y = F.pad(x, (0, -w % s, 0, -h % s)).roll((-(s // 2), -(s // 2)), (2, 3))
        H, W = y.shape[-2:]
        v = y.view(n, c, H // s, s, W // s, s).permute(0, 2, 4, 3, 5, 1).reshape(-1, s * s, c)
        v = (v @ v.mT).softmax(-1) @ v
        v = v.view(n, H // s, W // s, s, s, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, H, W).roll((s // 2, s // 2), (2, 3))
        return torch.cat(outs, 1).sum(1), v[:, :, :h, :w]


@forward("x:float32[N,T]", dims="N=1:3:40 T=1:7:40", kinds=FINITE, feeds=(values_at("x:float32[N,T]", N=13, T=29), values_at("x:float32[N,T]", N=36, T=27), values_at("x:float32[N,T]", N=25, T=16)))
def A7783SquaresAndPrimes(self, x):
    """Conditions that few pairs meet: a Pythagorean pair, n*n - t*t == 567, isqrt, a digit sum, bit_length and bit_count."""
    n, t = x.shape
    y = x * 1.0
    if math.isqrt(n * n + t * t) ** 2 == n * n + t * t:
        y = y * 5
    if n * n - t * t == 567:
        y = y - 3
    if sum(map(int, str(n * t))) == 17:
        y = y.cumsum(1)
    if (n ^ t).bit_count() == 6:
        y = y + t.bit_length()
    return y


@forward("x:float32[N,T]", dims="N=1:2:9 T=1:50:4000", kinds=FINITE, feeds=(values_at("x:float32[N,T]", N=7, T=2049), values_at("x:float32[N,T]", N=2, T=3999)))
def A7784FormatAndRoundOfSizes(self, x):
    """Decisions by round(t / 3, 1), by a formatted size, by t ** 0.5 % 1, by hash-like products; a float step by the size."""
    n, t = x.shape
    y = x * round(t / 3, 1)
    if f"{t:04d}"[::-1] == f"{t:04d}":
        y = y + 1
    if (t * 2654435761 % 2**32) >> 27 == n:
        y = -y
    return y.sum(1) / max(t**0.5, 8), torch.arange(0, 1, 1 / t)[:3].sum() if t > 60 else torch.zeros(())

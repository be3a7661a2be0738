# ruff: noqa: E501 - attacks are written as users write them
"""Python's own numbers, containers and library over a size that is one of thousands."""

from __future__ import annotations

import contextvars
import datetime
import decimal
import enum
import functools
import heapq
import itertools
import math
import operator
import statistics
import struct
import zlib
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

LONG = "N=1:1:2 T=1:100:4000"
XT = "x:float32[N,T]"
FEW = ("normal", "halves", "zeros")


def at(*sizes: int, text: str = XT) -> tuple:
    """Points of one row at sizes."""
    return tuple(values_at(text, N=1, T=t) for t in sizes)


def long(*sizes: int, **more: object) -> dict:
    """A space of thousands of lengths with points at some."""
    return {"dims": LONG, "kinds": FEW, "feeds": at(1, 2, *sizes), **more}


@forward(XT, **long(2399, 2400, 2401, 3599, 3600, 3601), refused="the path through the module depends on the size")
def A4701DurationOfAClip(self, x):
    """Hours and minutes of a clip by datetime.timedelta: a second step at the full hour."""
    d = datetime.timedelta(seconds=x.shape[1])
    return x + d.seconds // 3600, x[:, :1] * (2.0 if d >= datetime.timedelta(hours=1) else 1.0)
@forward(XT, **long(1023, 1024, 1025, 2047, 2048, 2049), refused="the exported model differs from the module")
def A4702SliceIndices(self, x):
    """slice.indices of a moving length, with a step below zero and an end beyond."""
    a, b, c = slice(-3, None, -7).indices(x.shape[1])
    n = len(range(a, b, c))
    return x[:, a:a + 1] * n, x * slice(2048, 4096).indices(x.shape[1])[0]
@forward(XT, **long(96, 97, 98, 194, 1940, 3880, 3881), refused="a size is handed to code that takes plai")
def A4703ModularPower(self, x):
    """A power of three modulo 97, and a size's inverse where there is one."""
    t = x.shape[1]
    inv = pow(t, -1, 97) if t % 97 else 0
    return x * pow(3, t, 97), x + inv
@forward(XT, **long(2977, 3001, 3999), refused="the exported model differs from the module")
def A4704ChecksumOfTheSize(self, x):
    """A CRC of a size as four bytes chooses one of two scales."""
    k = zlib.crc32(struct.pack("<I", x.shape[1])) % 2
    return x * (k + 1)
class A44Bucket(enum.IntEnum):
    SHORT, MIDDLE, LONG, LONGEST = 16, 256, 2048, 4096
    @classmethod
    def of(cls, n):
        return next(b for b in cls if n <= b)
@forward(XT, **long(16, 17, 256, 257, 2048, 2049), refused="the path through the module depends on the size")
def A4705BucketByEnum(self, x):
    """The first member of an enumeration that is large enough: padded to it, a mean over it."""
    b = A44Bucket.of(x.shape[1])
    return F.pad(x, (0, int(b) - x.shape[1])).sum(1) / b.value, x * (b is A44Bucket.LONG)
@forward(XT, **long(50, 150, 250, 1250, 1350, 2450, 2550))
def A4706RoundedToHundreds(self, x):
    """round to hundreds goes to the even hundred at fifties; to thousands as well."""
    t = x.shape[1]
    return x * round(t, -2), x[:, :1] + round(t, -3), x[:, :1] * round(t / 100)
@forward(XT, **long(49, 50, 1999, 2000, 2001, 2500), refused="the path through the module depends on the size")
def A4707RangeContains(self, x):
    """A size that is a member of a range with a step, and its place in it."""
    r = range(500, 3001, 500)
    t = x.shape[1]
    return x * (1 + r.index(t) if t in r else -1.0)
@forward(XT, **long(1365, 1366, 2730, 2731, 3999), refused="the module cannot be exported")
def A4708DecimalOfASize(self, x):
    """decimal: a third of the length, half up to a tenth, beside a float that rounds half even."""
    d = (decimal.Decimal(x.shape[1]) / 4).quantize(decimal.Decimal("0.1"), rounding=decimal.ROUND_HALF_UP)
    return x * float(d)
@forward(XT, **long(3, 4, 1023, 1024, 1025, 2047, 2048, 3000), refused="the exported model differs from the module")
def A4709BitsOfASize(self, x):
    """The lowest and highest bit, a Gray code, a population count, and the inverse of a size."""
    t = x.shape[1]
    return x * (t & -t), x + t.bit_length(), x + (t ^ (t >> 1)), x * bin(t).count("1"), x[:, :1] * (~t)
@forward(XT, **long(1999, 2000, 2001), refused="the exported model differs from the module")
def A4710HashOfAnId(self, x):
    """Sizes in a Counter, the commonest first; heapq's smallest of the sizes that are near."""
    t = x.shape[1]
    c = Counter([t % 7, t % 5, 3]).most_common(1)[0]
    near = heapq.nsmallest(1, (64, 512, 2000, 4096), key=lambda b: abs(b - t))[0]
    return x * c[0] + c[1], x * near
@forward(XT, **long(1, 2, 3, 7, 8, 169, 170, 171, 1000), refused="the path through the module depends on the size")
def A4711LogOfAFactorial(self, x):
    """lgamma, erf, gamma and combinations of a size with a limit for what overflows."""
    t = x.shape[1]
    g = math.gamma(t) if t < 171 else math.inf
    return x * math.lgamma(t), x / math.log1p(g), x * math.comb(t, 2), x * math.erf(t / 1000)
@forward(XT, **long(1000, 1001, 3162, 3163, 2047, 2048))
def A4712SquareOfSizeOverflows(self, x):
    """Products of sizes as an int32 tensor: a cube that wraps, and a whole tensor beside it."""
    t = torch.tensor(x.shape[1], dtype=torch.int32)
    u = torch.full((1,), x.shape[1], dtype=torch.int16)
    return x + (t * t * t).float(), u * 20 + torch.zeros(1, dtype=torch.int16), (u * u).float() * x
@forward(XT, **long(127, 128, 129, 255, 256, 257, 383, 384))
def A4713PositionsInBytes(self, x):
    """Places in int8 and uint8 made by arange of a dtype and a cumulative sum, and a count of trues as a byte."""
    t = x.shape[1]
    i = torch.ones(t, dtype=torch.uint8).cumsum(0, dtype=torch.uint8)
    j = torch.arange(t).to(torch.int8)
    return x * i, x * j.abs(), (x > -99).sum(1).to(torch.uint8), (j < 0) & (x > 0)
@forward(XT, **long(2047, 2048, 2049, 2050, 2051, 3999))
def A4714PositionsInHalf(self, x):
    """Places in half and bfloat16 beyond what they count: neighbours become alike."""
    t = x.shape[1]
    p = torch.arange(t, dtype=torch.float16)
    q = torch.arange(t).to(torch.bfloat16)
    return x + p.float(), x * (p[1:] == p[:-1]).sum(), (q / t).float() + x, torch.full((1,), t, dtype=torch.float16).float() * x
@forward(XT, **long(333, 666, 999, 1000, 2997, 3000), refused="the exported model differs from the module")
def A4715LinspaceOfASize(self, x):
    """linspace's two halves, arange by a third of a step, an index that is cut from a float of the place."""
    t = x.shape[1]
    a = torch.linspace(0, 1, t)
    b = torch.linspace(0, t - 1, max(1, t // 3)).long()
    c = (torch.arange(t) * (t / max(1, t // 2))).long().clamp(max=t - 1)
    return (a == 0.5).float() + x, x[:, b], x[:, c], a.flip(0) + x
@forward(XT, **long(99, 100, 101, 441, 442, 882, 2205, 2206))
def A4716FramesWithACentre(self, x):
    """Frames of 400 by 160 with a mirrored centre and a pad by the rest: torch's stft beside an own count."""
    t = x.shape[1]
    n = 1 + max(0, math.ceil((t - 400) / 160))
    y = F.pad(x, (0, (n - 1) * 160 + 400 - t)).unfold(1, 400, 160)
    return y.square().mean(-1), y[:, -1], torch.tensor(n) * x[:, :1]
@forward(XT, **long(7, 8, 9, 15, 16, 17, 1023, 1024, 1025))
def A4717HillisSteele(self, x):
    """A scan by doubling: as many rounds as the length has bits, running maxima and sums."""
    y, z, d = x, x, 1
    while d < x.shape[1]:
        y = torch.maximum(y, F.pad(y[:, :-d], (d, 0), value=-math.inf))
        z = z + F.pad(z[:, :-d], (d, 0))
        d *= 2
    return y, z[:, -1], x * d
@forward(XT, **long(2, 3, 5, 3967, 3989, 4000, 3999, 2310), refused="the path through the module depends on the size")
def A4718LargestPrimeFactor(self, x):
    """A good length for a transform: the next number with factors two, three and five alone."""
    n = x.shape[1]
    def good(k):
        for p in (2, 3, 5):
            while k % p == 0:
                k //= p
        return k == 1
    while not good(n):
        n += 1
    return F.pad(x, (0, n - x.shape[1])).mean(1), x * n
@forward(XT, **long(1, 1500, 1501, 1502))
def A4719SizeInAContext(self, x):
    """A context variable holds the size for a function that is called behind."""
    token = A44LENGTH.set(x.shape[1])
    try:
        return a44_scaled(x)
    finally:
        A44LENGTH.reset(token)
A44LENGTH: contextvars.ContextVar[int] = contextvars.ContextVar("length", default=1)
def a44_scaled(x):
    """Scaled by what the context says."""
    n = A44LENGTH.get()
    return x / n if n <= 1500 else x / 1500 - 1
@functools.singledispatch
def a44_pool(how, x):
    """By the type of `how`."""
    return x.mean(1)
@a44_pool.register
def _(how: int, x):
    return x[:, :how].sum(1)
@a44_pool.register
def _(how: float, x):
    return x.amax(1) * how
@forward(XT, **long(10, 20, 1000, 1001), refused="the path through the module depends on the size")
def A4720DispatchOnTheSize(self, x):
    """singledispatch on a number that is whole at even lengths and a decimal at odd ones."""
    t = x.shape[1]
    return a44_pool(t // 2 if t % 2 == 0 else t / 2, x)
@forward(XT, **long(3, 4, 5, 511, 512, 513, 2187, 2188), refused="the path through the module depends on the size")
def A4721DigitsBySort(self, x):
    """Digits in base three by divmod, joined by reduce, sorted; the median of three sizes."""
    t, digits = x.shape[1], []
    while t:
        t, d = divmod(t, 3)
        digits.append(d)
    m = statistics.median([x.shape[1], 512, 100])
    return x * functools.reduce(operator.add, digits), x * digits[-1], x + m
@forward(XT, "y:float32[N,S]", dims="N=1:1:2 T=1:64:300 S=1:64:300", kinds=FEW, feeds=tuple(values_at(XT, "y:float32[N,S]", N=1, T=t, S=s) for t, s in ((17, 255), (255, 17), (289, 17), (144, 233), (1, 300), (300, 1))), refused="the exported model differs from the module")
def A4722FibonacciNeighbours(self, x, y):
    """One pair of ninety thousand: the golden cut by a float, equal where T*T - T*S - S*S is one."""
    t, s = x.shape[1], y.shape[1]
    return x * (3.0 if abs(t * t - t * s - s * s) == 1 and t > 200 else 1.0), y + abs(t / s - 1.618) // 0.001
@forward(XT, **long(77, 770, 1001, 2002, 3003), refused="the module cannot be exported")
def A4723PalindromeOfText(self, x):
    """A size as text read backwards, its sum of digits, padded by zfill, found in a text."""
    s = f"{x.shape[1]:04d}"
    return x * (2 if s == s[::-1] else 1), x + sum(map(int, s)), x * ("00" in s)
@forward(XT, **long(7, 8, 9, 63, 64, 65, 3999), refused="the path through the module depends on the size")
def A4724GroupsOfTheRest(self, x):
    """Group norm with as many groups as divide the length: the largest of eight, by next of a generator."""
    t = x.shape[1]
    g = next(k for k in (8, 7, 6, 5, 4, 3, 2, 1) if t % k == 0)
    y = x.reshape(x.shape[0], g, -1)
    return ((y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()).reshape(x.shape), x * g
@forward("x:float32[1,2,H,W]", dims="H=1:16:60 W=1:16:60", kinds=FEW, feeds=tuple(values_at("x:float32[1,2,H,W]", H=h, W=w) for h, w in ((29, 30), (30, 29), (59, 60), (1, 60), (31, 31), (7, 49))), refused="the path through the module depends on the size")
def A4725AspectByDist(self, x):
    """Aspect by hypot, isclose, remainder and the last place of a float: near-square pictures are turned."""
    h, w = x.shape[2:]
    y = x.mT.flip(2) if w > h and not math.isclose(h, w, rel_tol=0.05) else x
    return y.amax((2, 3)), x * math.remainder(w, h), x * math.hypot(h, w), y.flatten(2).cumsum(2)[..., -1]
@attack(XT, **long(2, 3, 6, 7, 30, 31, 1000))
class A4726LayersByLength(nn.Module):
    """As many of six layers as the length has digits in base four, by islice and takewhile."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(1, 1, 3, padding=1) for _ in range(6))
    def forward(self, x):
        n = len(list(itertools.takewhile(lambda k: 4**k <= x.shape[1], itertools.count())))
        y = x[:, None]
        for layer in itertools.islice(self.layers, n):
            y = torch.tanh(layer(y))
        return y[:, 0]

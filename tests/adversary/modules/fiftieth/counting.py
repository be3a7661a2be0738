# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Whole numbers as users count with them: hashes, stamps, packed fields, signs, counters that wrap."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import seq

I = "i:int64[N,T]=-2000000000:2000000000"
J = "i:int32[N,T]=-2000000000:2000000000"
B = "i:uint8[N,T]=0:255"
EDGE = tuple((lambda a=a: {"i": np.array(a, np.int64)}) for a in ([[0, -1, 2147483647, -2147483648]], [[2**31, 2**33 + 5, -(2**35), 7]], [[1, 2, 3, 46341]]))
EDGE32 = tuple((lambda a=a: {"i": np.array(a, np.int32)}) for a in ([[0, -1, 2147483647, -2147483648]], [[65536, 46341, -46341, 7]]))


@forward(J, **seq(J, own=EDGE32))
def A6487MurmurFinal(self, i):
    """Murmur's final mix in int32."""
    h = i ^ ((i >> 16) & 0xFFFF)
    h = h * 0x45D9F3B
    h = h ^ ((h >> 16) & 0xFFFF)
    return h, h % 1000


@forward(J, **seq(J, own=EDGE32))
def A6488AbsOfTheLeast(self, i):
    """abs, neg and sign of the least number."""
    return i.abs(), -i, i.sign(), i.abs() % 7, torch.div(i, -1, rounding_mode="trunc") if False else i.clamp(min=-2147483647)


@forward(J, **seq(J, own=EDGE32))
def A6489SquaresWrap(self, i):
    """Squares and cubes wrap; a mean as a float."""
    return i * i, i**3, (i * i).float(), i.float() ** 2


@forward(I, **seq(I, own=EDGE[:1]))
def A6490MiddleOfTwo(self, i):
    """The middle of two numbers by a shift, by // and by a float."""
    j = i.flip(1)
    return (i + j) >> 1, (i + j) // 2, ((i + j) / 2).floor()


@forward(J, **seq(J, own=EDGE32), refused="the exported model differs")
def A6491SumsOfInts(self, i):
    """sum and cumsum of int32 are int64; with a dtype they are not."""
    return i.sum(1), i.cumsum(1), i.sum(1, dtype=torch.int32), i.prod(1, dtype=torch.int32) if i.shape[1] < 3 else i[:, 0]


@forward(B, **seq(B))
def A6492BytesAveraged(self, i):
    """Averages of bytes with and without a carry."""
    j = i.flip(1)
    return (i + j) // 2, (i & j) + ((i ^ j) >> 1), (i.int() + j) >> 1, i - j, ~i, i * 2


@forward(B, **seq(B))
def A6493NibblesSigned(self, i):
    """Signed nibbles of a byte."""
    lo, hi = i & 15, i >> 4
    s = lambda n: n.to(torch.int8) - ((n & 8) << 1).to(torch.int8)
    return s(lo), s(hi), s(lo).float() * 0.1


@forward(I, **seq(I, own=EDGE[:1]))
def A6494DaysOfWeek(self, i):
    """A day of the week, an hour and a phase of seconds, also before 1970."""
    d = torch.div(i, 86400, rounding_mode="floor")
    return (d + 4) % 7, (i % 86400) // 3600, torch.sin((i % 86400).float() * (2 * torch.pi / 86400))


@forward("x:float32[N,T]", **seq("x:float32[N,T]", own=tuple((lambda a=a: {"x": np.array([a], np.float32)}) for a in ([0.5, 1.5, 2.5, -0.5], [-1.5, 254.5, 255.49, 0.49999997], [8388609.0, 16777217.0, 1e9, -1e9]))))
def A6495RoundedToBytes(self, x):
    """Rounded, clamped and cast; also added to a half and cut."""
    return x.round().clamp(0, 255).to(torch.uint8), (x.clamp(0, 255) + 0.5).to(torch.uint8), x.round().long(), (x + 0.5).floor().long(), x.trunc().int()


@forward(I, **seq(I, own=EDGE[:1]))
def A6496PackedFields(self, i):
    """Fields of a packed id: ten bits, twelve bits and a sign."""
    u = i & 0xFFFFFFFF
    return u & 1023, (u >> 10) & 4095, (u >> 31), (u >> 22).float() / 512


@attack(I, **seq(I, own=EDGE[:1]))
class A6497TwoHashes(nn.Module):
    """A compositional embedding: quotient and remainder tables of ids that may be negative."""

    def __init__(self):
        super().__init__()
        self.q, self.r = nn.Embedding(64, 4), nn.Embedding(97, 4)

    def forward(self, i):
        return self.q((i // 97) % 64) * self.r(i % 97)


@forward(J, **seq(J, own=EDGE32))
def A6498OrderedByBits(self, i):
    """Floats' order by their bits: a sign flip of integers, then a comparison."""
    k = torch.where(i < 0, i ^ 0x7FFFFFFF, i)
    return k, k.argmax(1), k > k.flip(1), (k >> 23) & 255


@forward("i:int64[N,T]=0:100", **seq("i:int64[N,T]=0:100"))
def A6499BinomialsByFloats(self, i):
    """Powers of two and binomials by floats, cast back."""
    return 2**i.clamp(max=30), (2.0**i).clamp(max=1e9).long(), (i * (i - 1)) // 2, ((8 * i + 1).float().sqrt() - 1).div(2).floor().long()

# ruff: noqa: E501 - attacks are written as users write them
"""Loops over sizes whose carry is of a narrow type: halves, bytes, int8, booleans, wide whole numbers, doubles, complex numbers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, normal

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones", "positive")


def _x(values, dtype):
    return lambda: {"x": np.array([values], dtype)}


HALF = (_x([0.1, 0.2, 0.3, 0.7, 1000, 2049, 60000], np.float16), _x([0.1] * 24, np.float16), _x([0.3], np.float16), _x([2048, 1, 1, 1, 1, 3, 1], np.float16))
BYTES = (_x([0, 255, 128, 127, 1, 254], np.uint8), _x([255] * 24, np.uint8), _x([255], np.uint8))
SIGNED = (_x([-128, 127, -1, 0, 1, 64, -64, -127], np.int8), _x([127] * 24, np.int8), _x([-128], np.int8))
INTS = (_x([-(2**31), 2**31 - 1, -1, 0, 1, 65536, -65536, 46341], np.int32), _x([2**31 - 1] * 24, np.int32))
LONGS = (_x([-9000000000000000, 9000000000000000, -1, 0, 1, 2**53 - 1, 2**31, -7], np.int64), _x([-7, 7, -8, 8, 3, -3], np.int64), _x([9000000000000000] * 24, np.int64), _x([-10], np.int64))


@forward("x:float16[N,T]=-100:100", dims=ROWS, kinds=FEW, feeds=HALF)
def A3700HalfSum(self, x):
    s, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        s = s + x[:, i]
        out.append(s)
    return torch.stack(out, 1)
@forward("x:float16[N,T]=-100:100", dims=ROWS, kinds=FEW, feeds=HALF)
def A3701HalfLeak(self, x):
    s, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        s = s * 0.9 + x[:, i] * 0.1
        out.append(s)
    return torch.stack(out, 1), s > 0.3
@forward("x:float16[N,T]=-100:100", dims=ROWS, kinds=FEW, feeds=HALF)
def A3702HalfAboveATenth(self, x):
    n, out = torch.zeros_like(x[:, 0], dtype=torch.int64), []
    for v in x.unbind(1):
        n = torch.where(v > 0.1, n + 1, 0)
        out.append(n)
    return torch.stack(out, 1)
@forward("x:float16[N,T]=-100:100", dims=ROWS, kinds=FEW, feeds=HALF)
def A3703HalfByCounter(self, x):
    out = []
    for i in range(x.shape[1]):
        v = x[:, i]
        out.append(torch.where(v >= 0.1 * i, v * (0.1 * i), v + i))
    return torch.stack(out, 1)
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(halves(1, 24), normal(2, 9), _x([0.1] * 9, np.float32)), refused="the path through the module depends on the size")
def A3704HalfInside(self, x):
    s = torch.zeros_like(x[:, 0]).half()
    for v in x.unbind(1):
        s = s * 0.7 + v.half()
        s = s.clamp(-20.1, 20.1)
    return s, s.float() == 20.1
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(halves(1, 24), normal(2, 9), _x([0.1] * 9, np.float32)), refused="the path through the module depends on the size")
def A3705BrainInside(self, x):
    s = torch.zeros_like(x[:, 0]).bfloat16()
    for v in x.unbind(1):
        s = s * 0.9 + v.bfloat16()
    return s.float(), s > 0.3
@forward("x:uint8[N,T]=0:255", dims=ROWS, feeds=BYTES)
def A3706BytesWrap(self, x):
    s, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        s = s * 31 + x[:, i]
        out.append(s)
    y = torch.stack(out, 1)
    return y, s - 1, y > 127
@forward("x:uint8[N,T]=0:255", dims=ROWS, feeds=BYTES)
def A3707BytesPng(self, x):
    """PNG's average and Paeth filters undone along a row."""
    left, out = torch.zeros_like(x[:, 0]), []
    for v in x.unbind(1):
        left = v + left // 2
        out.append(left)
    return torch.stack(out, 1), left.int() - 256
@forward("x:int8[N,T]=-128:127", dims=ROWS, feeds=SIGNED)
def A3708SignedWraps(self, x):
    s, low, out = torch.zeros_like(x[:, 0]), x[:, 0], []
    for i in range(x.shape[1]):
        s = s + x[:, i] * 3
        low = torch.minimum(low, s)
        out.append(torch.where(s < 0, -s, s) >> 1)
    return torch.stack(out, 1), low, s // 3, s % 5
@forward("x:int32[N,T]=-2147483648:2147483647", dims=ROWS, feeds=INTS)
def A3709IntHash(self, x):
    """FNV over a row in int32 that wraps."""
    h = torch.full_like(x[:, 0], -2128831035)
    for i in range(x.shape[1]):
        h = (h ^ x[:, i]) * 16777619
    return h, h & 1023, h >> 20, h % 97, h // 1000
@forward("x:int64[N,T]=-9000000000000000:9000000000000000", dims=ROWS, feeds=LONGS)
def A3710LongHash(self, x):
    h, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        h = (h * 1103515245 + x[:, i] // 3 + i) % 2147483647
        out.append(h // 7)
    return h, torch.stack(out, 1)
@forward("x:int64[N,T]=-9000000000000000:9000000000000000", dims=ROWS, feeds=LONGS)
def A3711LongCarry(self, x):
    c, out = torch.zeros_like(x[:, 0]), []
    for v in x.unbind(1):
        c = c + v
        out.append(c % 10)
        c = c // 10
    return torch.stack(out, 1), c
@forward("x:int64[N,T]=-1000:1000", dims=ROWS, feeds=(_x([-7, 7, -8, 8, 3, -3, 0], np.int64), _x([999] * 24, np.int64)))
def A3712DivisionByCounter(self, x):
    out = []
    for i in range(x.shape[1]):
        out.append(x[:, i] // (i + 1) + x[:, i] % (i + 2) + (x[:, i] - i) // 2)
    return torch.stack(out, 1)
@forward("x:bool[N,T]", dims=ROWS)
def A3713Toggles(self, x):
    s, out = torch.zeros_like(x[:, 0]), []
    for v in x.unbind(1):
        s = s ^ v
        out.append(s)
    return torch.stack(out, 1), ~s
@forward("x:bool[N,T]", "y:bool[N,T]", dims=ROWS)
def A3714SetReset(self, x, y):
    s, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        s = (s | x[:, i]) & ~y[:, i]
        out.append(s)
    z = torch.stack(out, 1)
    return z, z.sum(1), (z[:, 1:] & ~z[:, :-1]).sum(1)
@forward("x:float32[N,T,2]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 24, 2), normal(1, 1, 2)), refused="the path through the module depends on the size")
def A3715ComplexPole(self, x):
    z = torch.view_as_complex(x.contiguous())
    s, out = torch.zeros_like(z[:, 0]), []
    for v in z.unbind(1):
        s = s * (0.5 + 0.5j) + v
        out.append(torch.view_as_real(s))
    return torch.stack(out, 1)
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(_x([1e8] + [1.0] * 23, np.float32), normal(1, 24), _x([0.1] * 24, np.float32)), refused="does not compute what the module computes")
def A3716DoubleSum(self, x):
    s, out = torch.zeros(x.shape[0], dtype=torch.float64), []
    for v in x.unbind(1):
        s = s + v
        out.append((s % 1.0).float())
    return torch.stack(out, 1), s.float(), s > 0.3
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(_x([1e8] + [1.0] * 23, np.float32), normal(1, 24), _x([0.1] * 24, np.float32)))
def A3717Kahan(self, x):
    s, c = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
    for v in x.unbind(1):
        y = v - c
        t = s + y
        c = (t - s) - y
        s = t
    return s
@forward("x:float32[N,T,4]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 2, 4), normal(2, 24, 4)))
def A3718ReadsBehind(self, x):
    """Negative places at the first steps, slices whose start is below zero, remainders of the counter."""
    out = []
    for i in range(x.shape[1]):
        near = x[:, max(0, i - 2) : i + 1].mean(1)
        out.append(x[:, i - 1] * 0.5 + near + x[:, (i * 7) % x.shape[1]] + x[:, -i])
    return torch.stack(out, 1)
@forward("x:float32[N,T,4]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 2, 4), normal(2, 24, 4)))
def A3719StepsOfThree(self, x):
    s, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1] - 1, -1, -3):
        s = torch.tanh(s + x[:, i])
        out.append(s)
        if i % 2:
            s = s * 0.5
    return torch.stack(out, 1), s
@forward("x:float32[N,T,4]", dims=ROWS, kinds=FINITE, feeds=(normal(1, 1, 4), normal(1, 2, 4), normal(2, 24, 4)))
def A3720GrowsByCat(self, x):
    y = x[:, :1]
    for i in range(1, x.shape[1]):
        w = (y @ x[:, i, :, None]).softmax(1)
        y = torch.cat([y, (x[:, i] + (w * y).sum(1)).unsqueeze(1).tanh()], 1)
    return y
@forward("x:float32[N,T,4]", "n:int64[N]=0:24", dims=ROWS, kinds=FINITE, feeds=(lambda: {"x": np.ones((2, 5, 4), np.float32), "n": np.array([0, 5])}, lambda: {"x": np.ones((1, 1, 4), np.float32), "n": np.array([24])}))
def A3721Frozen(self, x, n):
    s, last = torch.zeros_like(x[:, 0]), torch.full_like(n, -1)
    for i in range(x.shape[1]):
        live = i < n
        s = torch.where(live[:, None], F.leaky_relu(s * 0.5 + x[:, i], 0.1), s)
        last = torch.where(live & (s.amax(-1) > 0.5), i, last)
    return s, last
@forward("x:float16[N,T]=-100:100", dims=ROWS, kinds=FEW, feeds=HALF)
def A3722HalfDivided(self, x):
    s = torch.ones_like(x[:, 0])
    for v in x.unbind(1):
        s = (s + v) / 3
    return s, s * 3, s / 0.7, torch.round(s * 10)
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(halves(1, 24), normal(1, 1), _x([0.3, 0.1, 0.7, 0.30000001], np.float32)))
def A3723IntFromFloat(self, x):
    q, out = torch.zeros_like(x[:, 0], dtype=torch.int32), []
    for v in x.unbind(1):
        q = q + torch.round(v * 4).to(torch.int32)
        q = q.clamp(-100, 100)
        out.append((q * 0.25 - v) % 1.0 < 0.5)
    return torch.stack(out, 1), q // 3, q.to(torch.int8)
@forward("x:float32[N,T]", dims=ROWS, kinds=FEW, feeds=(halves(1, 24), normal(1, 1), _x([0.0, -0.0, 0.0, 1.0], np.float32)))
def A3724ExtremesWithPlaces(self, x):
    best, at = x[:, 0], torch.zeros(x.shape[0], dtype=torch.int64)
    for i in range(1, x.shape[1]):
        better = x[:, i] >= best
        best, at = torch.where(better, x[:, i], best), torch.where(better, i, at)
    return best, at, at / x.shape[1], x.gather(1, at[:, None])


class _Half(torch.nn.Module):
    """A half-precision layer behind a cast, as a served network has it."""
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = torch.nn.Linear(4, 8).half()


MOVED = tuple((lambda t=t: {"x": (np.random.RandomState(t).randn(2, t, 4) * 4).astype(np.float32)}) for t in (1, 2, 9, 24))


@attack("x:float32[N,T,4]", dims=ROWS, kinds=("normal",), feeds=MOVED)
class A3725EntropyOfHalfAttention(_Half):
    """softmax(dtype=torch.float32) of half scores: torch widens the scores, not the shares."""
    def forward(self, x):
        q, k = self.fc(x.half()).chunk(2, -1)
        p = F.softmax(q @ k.mT, dim=-1, dtype=torch.float32)
        return -(p * p.log()).sum(-1)
@attack("x:float32[N,T,4]", dims=ROWS, kinds=("normal",), feeds=MOVED)
class A3726WideSharesOfHalfAttention(_Half):
    def forward(self, x):
        q, k = self.fc(x.half()).chunk(2, -1)
        s = q @ k.mT * 0.5
        return F.softmax(s, dim=-1, dtype=torch.float32)
@forward("x:float16[N,T]=-60:60", dims=ROWS, kinds=("normal",), feeds=(_x([0.3, 0.1, 0.7, 10], np.float16),))
def A3727WideMeanOfHalves(self, x):
    return x.mean(-1, dtype=torch.float32)
THIRD = (_x([0.3, 0.1, 0.7, 10, 20, 30, 70, 1000], np.float32), _x([0.3], np.float32), lambda: {"x": np.arange(24, dtype=np.float32)[None] / 10})
@forward("x:float32[N,T]", dims=ROWS, kinds=("normal",), feeds=THIRD, refused="the path through the module depends on the size")
def A3729HalvesAboveADecimal(self, x):
    n = torch.zeros_like(x[:, 0])
    for v in x.unbind(1):
        n = n + (v.half() > 0.3)
    return n
@forward("x:float32[N,T]", dims=ROWS, kinds=("normal",), feeds=THIRD, refused="the path through the module depends on the size")
def A3730HalvesThatEqualADecimal(self, x):
    n = torch.zeros_like(x[:, 0])
    for v in x.unbind(1):
        n = n + (v.to(torch.float16) == 0.1)
    return n
@forward("x:float32[N,T]", dims=ROWS, kinds=("normal",), feeds=THIRD, refused="the path through the module depends on the size")
def A3731BrainFloatsAboveADecimal(self, x):
    n = torch.zeros_like(x[:, 0])
    for v in x.unbind(1):
        n = n + (v.to(torch.bfloat16) > 0.3)
    return n
@forward("x:float32[N,T]", dims=ROWS, kinds=("normal",), feeds=THIRD, refused="the path through the module depends on the size")
def A3732HalvesAtTheirStep(self, x):
    n = torch.zeros_like(x[:, 0])
    for i in range(x.shape[1]):
        n = n + (x[:, i].half() >= 0.1 * i)
    return n

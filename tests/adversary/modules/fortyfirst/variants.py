# ruff: noqa: E501, B023 - attacks are written as users write them
"""Variants: numbers of a loop's counter, whole numbers that wrap in a loop, ties of torch's quantisers, narrow ranges, grids that meet values exactly."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import halves
from tests.adversary.values import values_at

ROWS = "N=1:2:3 T=1:9:24"
FEW = ("normal", "halves", "zeros", "tenths", "ones")
XT = "x:float32[N,T]"


def exact(*functions, sizes=range(1, 61)) -> tuple:
    """Points whose values are what torch itself makes from the size."""
    return tuple((lambda f, t: lambda: {"x": f(t)[None].numpy()})(f, t) for f in functions for t in sizes)


@forward("x:int32[N,T]=-5:5", dims=ROWS, feeds=(lambda: {"x": np.full((1, 24), 5, np.int32)},))
def A43V01NoiseByRemainders(self, x):
    """A linear congruence in int32 that wraps, one in int64 with a mask, a hash of characters, a sum in int16 that wraps, carried by a loop."""
    n = x.shape[0]
    s, q, h, k = torch.full((n,), 12345, dtype=torch.int32), torch.full((n,), 7), torch.full((n,), 5381), torch.zeros(n, dtype=torch.int16)
    out = []
    for t in range(x.shape[1]):
        s = s * 1103515245 + 12345 + x[:, t]
        q = (q * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        h = (h * 33) ^ x[:, t].long()
        k = k + x[:, t].to(torch.int16) * 5000
        out.append((s >> 16) & 0x7FFF)
    return torch.stack(out, 1), q, h, k
@forward(XT, dims=ROWS, kinds=FEW, feeds=(halves(1, 24),))
def A43V02PhasesInALoop(self, x):
    """A phase modulo one, an accumulator cut by a floor of tenths, fmod of negatives, a remainder by a tensor, rounding to even, carried by a loop."""
    p, a, r = torch.zeros(x.shape[0]), torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    out = []
    for t in range(x.shape[1]):
        v = x[:, t]
        p = (p + v * 0.25) % 1.0
        a = a + torch.fmod(v, 1.0) - (v // 0.5)
        r = (r * 0.5 + v).round() + torch.remainder(v, torch.tensor(-3.0))
        out.append(p + r.floor())
    return torch.stack(out, 1), a, r, p
@forward(XT, dims="N=1:2:3 T=1:20:60", kinds=FEW, feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 2, 59, 60)))
def A43V03WeightsOfTheCounter(self, x):
    """Adam without learning: powers of a decimal by the counter, a warm-up by minima, an exponential, a cosine of the step over the size, a parity."""
    m, v, total = torch.zeros(x.shape[0]), torch.zeros(x.shape[0]), 0
    n = x.shape[1]
    for t in range(n):
        g = x[:, t]
        m, v = 0.9 * m + (1 - 0.9) * g, 0.999 * v + (1 - 0.999) * g * g
        step = (m / (1 - 0.9 ** (t + 1))) / ((v / (1 - 0.999 ** (t + 1))).sqrt() + 1e-3)
        w = min((t + 1) / 10, 1.0) * 0.5 * (1 + math.cos(math.pi * t / n)) * math.exp(-t * 0.1)
        total = total + step * w * (-1 if t % 2 else 1)
    return total, m, v
@attack("x:float32[N,3,T]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": (np.arange(-36, 36).reshape(1, 3, 24) / 8).astype(np.float32)}, lambda: {"x": (np.arange(-36, 36).reshape(1, 3, 24) * np.float32(0.05)).astype(np.float32)}, lambda: {"x": (np.arange(-36, 36).reshape(1, 3, 24) * np.float32(0.15)).astype(np.float32)}))
class A43V04TiesOfFakeQuantisers(nn.Module):
    """Fake quantisation by tensor and by channel with odd zero points, whose ties are after the zero point or before it, scales that are no powers of two."""
    def __init__(self):
        super().__init__()
        self.register_buffer("s", torch.tensor([0.25, 0.1, 0.3]))
        self.register_buffer("z", torch.tensor([0, 5, -3], dtype=torch.int32))
    def forward(self, x):
        return torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 15), torch.fake_quantize_per_tensor_affine(x, 0.1, 7, 0, 127), torch.fake_quantize_per_channel_affine(x, self.s, self.z, 1, -8, 7), torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.3), torch.tensor(1, dtype=torch.int32), -8, 7)
@attack("x:float32[N,3,T]", dims=ROWS, kinds=FEW, feeds=(lambda: {"x": (np.arange(-36, 36).reshape(1, 3, 24) / 8).astype(np.float32)}, lambda: {"x": (np.arange(-36, 36).reshape(1, 3, 24) * np.float32(0.05)).astype(np.float32)}), refused="the module cannot be exported")
class A43V05TiesOfQuantisers(nn.Module):
    """torch.quantize_per_tensor and back with odd zero points, a learnt scale in the form of LSQ, division against a product with the inverse."""
    def forward(self, x):
        q = torch.quantize_per_tensor(x, 0.25, 3, torch.quint8)
        s = torch.tensor(0.1)
        return q.dequantize(), (x / s).round() * s, (x * (1 / s)).round() * s, (x / 0.1).round().int(), (x * 10).round().int(), torch._fake_quantize_learnable_per_tensor_affine(x, torch.tensor([0.25]), torch.tensor([3.0]), 0, 15, 1.0)
@forward(XT, dims="N=1:1:2 T=1:100:400", kinds=("normal", "bytes"), feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 127, 128, 129, 255, 256, 257, 400)))
def A43V06NarrowRanges(self, x):
    """Places as int8, uint8 and int16 products that go round beyond the type, halves beyond 2048, running sums of bytes in bytes."""
    t = x.shape[1]
    a, b = torch.arange(t).to(torch.int8), torch.arange(t).to(torch.uint8)
    c = torch.arange(t, dtype=torch.int16) * 200
    return a, b, c, torch.ones(t, dtype=torch.uint8).cumsum(0, dtype=torch.uint8), torch.arange(t).half() * 17, (b * 3) > x, torch.ones(t, dtype=torch.int8).sum(dtype=torch.int8), (x > 0).sum(1, dtype=torch.int8), (x > 0).cumsum(1, dtype=torch.uint8)
@forward(XT, dims="N=1:1:2 T=1:20:60", kinds=FEW, feeds=exact(lambda t: torch.arange(t) / t, lambda t: torch.arange(t) * 0.1, lambda t: (torch.arange(t) + 0.5) / t * 2 - 1))
def A43V08MeetsAGrid(self, x):
    """Values compared with grids of the size: a quotient, a decimal step, pixel centres, a step that is one over the size."""
    t = x.shape[1]
    i = torch.arange(t)
    return x >= i / t, x >= i * 0.1, x == (i + 0.5) / t * 2 - 1, x <= i * (1 / t), x > torch.arange(0, t * 0.1 - 0.05, 0.1)[:t].sum()
@forward(XT, dims="N=1:2:3 T=1:9:24", kinds=FEW, feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 2, 3, 4)))
def A43V10MaskedBySize(self, x):
    """Rows that a mask made of the size alone picks and writes, nonzero of it, a boolean index of places."""
    t = x.shape[1]
    m = torch.arange(t) % 3 == 0
    y = x.clone()
    y[:, m] = 0.5
    return x[:, m], y, m.nonzero()[:, 0], x[:, ~m].sum(1), x[m.expand_as(x)].sum()
@forward(XT, dims="N=1:1:2 T=1:20:60", kinds=FEW, feeds=tuple(values_at(XT, N=1, T=t) for t in (1, 2, 3, 5, 8, 9, 60)))
def A43V11TreeOfPairs(self, x):
    """A reduction in pairs: while more than one is left the odd last one is carried; how often and the sizes on the way count."""
    n, rounds, sizes = x.shape[1], 0, 0
    y = x
    while n > 1:
        h = n // 2
        y = torch.cat([torch.maximum(y[:, : 2 * h : 2], y[:, 1 : 2 * h : 2]) * 0.5, y[:, 2 * h :]], 1)
        n = y.shape[1]
        rounds += 1
        sizes = sizes * 3 + n
    return y[:, 0], x * rounds + sizes
@forward("x:float32[N,H,W]", dims="N=1:1:2 H=1:5:9 W=1:6:9", kinds=FEW)
def A43V12FlatPlaces(self, x):
    """The place of the largest of a picture by // and % and unravel_index, of the last largest, of the k-th, its neighbours across rows."""
    n, h, w = x.shape
    f = x.view(n, -1)
    i = f.argmax(1)
    y, z = torch.unravel_index(i, (h, w))
    last = h * w - 1 - f.flip(1).argmax(1)
    k = f.topk(min(3, h * w), 1).indices
    nb = f.gather(1, (i[:, None] + torch.tensor([-w, -1, 1, w])).clamp(0, h * w - 1))
    return i // w, i % w, y, z, last // w, k % w, nb, torch.stack([i // w, i % w], 1) * 2 + 1

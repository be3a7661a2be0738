"""Round 29, follow-ups: rare joint sizes by routes that a size takes into Python; halves; other doors."""

from __future__ import annotations

import fractions
import math
import operator
import random
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

WIDE = "N=1:1:2 H=16:64:400 W=16:64:400"
SHORT = "N=1:2:4 T=3:9:20"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _im(h, w, n=1, c=1, scale=1.0):
    return lambda: {"x": _r(n, c, h, w, scale=scale)}


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(150, 318),))
def I29Hash(self, x):
    return x * (1 + (hash((int(x.shape[2]), int(x.shape[3]))) % 997 == 5))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(150, 308),))
def I29Crc(self, x):
    return x * (1 + (zlib.crc32(f"{x.shape[2]}x{x.shape[3]}".encode()) % 997 == 5))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(201, 399),))
def I29IntOfText(self, x):
    return x * (1 + (int(f"{x.shape[2]}{x.shape[3]}") % 997 == 5))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382),))
def I29NumpyProduct(self, x):
    return x * (1 + int(np.array(x.shape[2:]).prod() % 997 == 5))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382),))
def I29DivmodSecond(self, x):
    return x * (1 + (divmod(x.shape[2] * x.shape[3], 997)[1] == 5)), x + (1 if math.fmod(x.shape[2] * x.shape[3], 997) == 5 else 0)


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382),))
def I29TensorItem(self, x):
    area = torch.tensor([x.shape[2], x.shape[3]]).prod()
    return x * (2 if area.remainder(997).item() == 5 else 1)


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(153, 281),))
def I29SeededByItsSize(self, x):
    return x * (1 + (random.Random(x.shape[2] * 1000 + x.shape[3]).random() < 0.001))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(150, 346),))
def I29HexText(self, x):
    return x * (1 + f"{x.shape[2] * x.shape[3]:x}".endswith("abc"))


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(150, 210), _im(200, 280)))
def I29FractionOfASize(self, x):
    r = x.shape[2] / x.shape[3] * 7
    return x + (1.0 if r - math.floor(r) < 0.0005 else 0.0), x * fractions.Fraction(int(x.shape[2]), int(x.shape[3])).denominator


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(150, 210), _im(399, 398), _im(300, 200)))
def I29SmallDenominator(self, x):
    g = math.gcd(x.shape[2], x.shape[3])
    return x[..., : x.shape[2] // g, : x.shape[3] // g]


@forward("x:float32[N,1,H,W]", "y:float32[N,1,K,L]", dims="N=1:1:2 H=16:64:200 W=16:64:200 K=16:80:200 L=16:48:200",
         feeds=(lambda: {"x": _r(1, 1, 31, 77), "y": _r(1, 1, 31, 77)}, lambda: {"x": _r(1, 1, 31, 77), "y": _r(1, 1, 77, 31)}))  # fmt: skip
def I29SameShape(self, x, y):
    if x.shape == y.shape:
        return x + y
    if x.shape[2:] == y.shape[:1:-1]:
        return x - y.mT
    return x + F.interpolate(y, x.shape[2:], mode="bilinear")


@forward("x:float32[N,1,H,W]", "y:float32[N,1,K,L]", dims="N=1:1:2 H=16:64:200 W=16:64:200 K=16:80:200 L=16:48:200",
         feeds=(lambda: {"x": _r(1, 1, 31, 77), "y": _r(1, 1, 33, 74)}, lambda: {"x": _r(1, 1, 40, 16), "y": _r(1, 1, 39, 200)}))  # fmt: skip
def I29PadsToMatch(self, x, y):
    """A U-Net's skip: pad by the difference, either sign."""
    dh, dw = x.shape[2] - y.shape[2], x.shape[3] - y.shape[3]
    y = F.pad(y, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2])
    return torch.cat([x, y], 1)


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382), _im(399, 399)))
def I29OperatorsOnSizes(self, x):
    h, w = x.shape[2:]
    k = operator.mod(operator.mul(h, w), 997)
    return x * [1, 2][k == 5], x + (k == 5 and 3 or 0), x - int(any(s == 5 for s in (k, k + 1))), x * (not k - 5)


@forward("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382), _im(20, 20), _im(18, 22)))
def I29SlicesByRemainder(self, x):
    h, w = x.shape[2:]
    k = h * w % 997
    return x[..., : k == 5], x[..., -(k // 199) - 1 :], x[..., :: 1 + (k < 2)]


@attack("x:float32[N,1,H,W]", dims=WIDE, feeds=(_im(154, 382), _im(154, 383)))
class I29LayersByRemainder(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)

    def forward(self, x):
        k = x.shape[2] * x.shape[3] % 997
        layer = {5: self.b}.get(k, self.a)
        return layer(x)


@attack("x:float32[N,T,4]", "h:float32[1,N,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4), "h": _r(1, 1, 4)},))
class I29CarriesItsState(nn.Module):
    """A state that starts from an input when it is all zero (a reset), else goes on."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)
        self.start = nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x, h):
        fresh = (h == 0).all(-1, keepdim=True)
        h = torch.where(fresh, self.start.expand_as(h), h)
        y, h = self.gru(x, h.contiguous())
        return y, h


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=3:100:2000", feeds=(lambda: {"x": 100 + _r(1, 1900, 4)},))
def I29MeanInAutocast(self, x):
    with torch.autocast("cpu", torch.float16):
        y = x @ torch.eye(4)
        return y.mean(1).float(), y.mean().float()


@forward("x:int32[N,T]", dims="N=1:1:2 T=3:100:2000", feeds=(lambda: {"x": np.full((1, 2000), 2_000_000, np.int32)}, lambda: {"x": np.full((1, 300), 16777217, np.int32)}))
def I29WholeMeans(self, x):
    return x.sum(1), x.float().mean(1), x.sum(1) // x.shape[1], x.double().mean(1).float(), x.cumsum(1)[:, -1] % 1000


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": np.array([[449, 464, 465, 1e4], [-500, 0.001, 2**-9, 2**-10], [1, 2, 3, 448]], np.float32)[None]},))
def I29EightBitFour(self, x):
    return x.to(torch.float8_e4m3fn).float()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": np.array([[241, 248, 249, 1e4], [-500, 0.001, 6e4, 6.2e4], [1, 2, 3, 448]], np.float32)[None]},))
def I29EightBitUnsigned(self, x):
    return x.to(torch.float8_e4m3fnuz).float(), x.to(torch.float8_e5m2fnuz).float()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4, scale=1e20)},))
def I29PhaseOfComplex(self, x):
    z = torch.complex(x[..., :2], x[..., 2:])
    return torch.view_as_real(z / (z.abs() + 1e-8))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4, scale=1e20)}, lambda: {"x": _r(1, 3, 4, scale=1e-20)}))
def I29ComplexByComplex(self, x):
    z = torch.complex(x[..., :2], x[..., 2:])
    return torch.view_as_real(z[..., :1] / (z[..., 1:] + 1e-3)), torch.view_as_real(z / 1e25), torch.view_as_real(torch.exp(1j * z.real.clamp(-10, 10)) / (z + 1))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4, scale=1e20)}, lambda: {"x": _r(1, 3, 4, scale=1e-24)}))
def I29ComplexLog(self, x):
    z = torch.complex(x[..., :2], x[..., 2:])
    return torch.view_as_real(torch.log(z + 1e-30)), z.angle()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 3, 4, scale=1e20)}, lambda: {"x": _r(1, 3, 4, scale=1e-24)}))
def I29ComplexSqrt(self, x):
    return torch.view_as_real(torch.sqrt(torch.complex(x[..., :2], x[..., 2:])))

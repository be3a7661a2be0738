"""Round 29, follow-ups: one danger each."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

SHORT = "N=1:2:4 T=3:9:20"
LONG = "N=1:1:2 T=16:20:60"


def _r(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _x(length, n=1, c=4):
    return lambda: {"x": _r(n, length, c, seed=length)}


def _f(values, *shape):
    return lambda: {"x": np.array(values, np.float32).reshape(shape)}


FAR = _f([1e20, 3e37, 1e-23, 1e-22, 0, -3e37, 1e19, 1] * 2, 1, 4, 4)


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(FAR,))
def E29ComplexAbs(self, x):
    return torch.view_as_complex(x.view(x.shape[0], x.shape[1], 2, 2)).abs()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(1, 9, 4, scale=1e-23)},))
def E29LogMagnitude(self, x):
    return torch.fft.rfft(x, dim=1).abs().clamp(min=1e-30).log()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(FAR, lambda: {"x": _r(1, 9, 4, scale=1e-20)}))
def E29ComplexQuotient(self, x):
    z = torch.view_as_complex(x.view(x.shape[0], x.shape[1], 2, 2))
    return torch.view_as_real(z[..., :1] / (z[..., 1:] + 1e-22)), torch.view_as_real(torch.reciprocal(z + 1e-22))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(FAR,))
def E29ComplexFunctions(self, x):
    z = torch.view_as_complex(x.view(x.shape[0], x.shape[1], 2, 2))
    return torch.view_as_real(z.sgn()), z.angle(), torch.view_as_real(torch.polar(z.abs(), z.angle() * 2))


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([65504, 65520, 1e-8, 6e-8, 2049, 2051, -65519.9, 1e5] * 2, 1, 4, 4), lambda: {"x": _r(2, 8, 4, scale=3e4)}))
def E29HalfMean(self, x):
    return x.half().mean(1).float()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(lambda: {"x": _r(2, 8, 4, scale=300)}, lambda: {"x": _r(2, 8, 4)}))
def E29HalfNorm(self, x):
    h = x.half()
    return F.layer_norm(h, (4,)).float(), h.var(1).float(), h.norm(dim=-1).float(), F.silu(h).float(), F.gelu(h).float(), torch.addcmul(h, h, h, value=0.1).float(), torch.lerp(h, h.flip(1), 0.3).float()


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_f([448, 449, 464, 465, 500, 1e-3, -480, 1e4, 57344, 61440, 6e4, 17, 0.3, 1, 2, 3], 1, 4, 4),))
def E29EightBitFloats(self, x):
    return x.to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2).float()


@forward("x:int8[N,T]", dims=SHORT, feeds=(lambda: {"x": np.array([[127, 127, 127, -128]], np.int8)},))
def E29NarrowProducts(self, x):
    return x[:, :, None] @ x[:, None], x.cumsum(1), x.prod(1), x.sum(1, dtype=torch.int8), x.to(torch.int16) * 300, x.cumsum(1, dtype=torch.int16)


@forward("x:uint8[N,3,H,W]", dims="N=1:1:2 H=4:9:20 W=4:9:20", feeds=(lambda: {"x": np.random.default_rng(0).integers(0, 256, (1, 3, 9, 7)).astype(np.uint8)},))
def E29BytesResized(self, x):
    return F.interpolate(x, (7, 5), mode="bilinear")


@forward("x:uint8[N,3,H,W]", dims="N=1:1:2 H=4:9:20 W=4:9:20", feeds=(lambda: {"x": np.random.default_rng(0).integers(0, 256, (1, 3, 9, 7)).astype(np.uint8)},))
def E29BytesNearest(self, x):
    return F.interpolate(x, (7, 5)), F.max_pool2d(x.float(), 2), F.pad(x, (1, 1), value=114), x.flip(1), (x > 127) & (x < 200), x // 2 + x.roll(1, 3) // 2, (x.sum((2, 3)) % 256).to(torch.uint8)


@forward("x:uint8[N,T]", dims=SHORT, feeds=(lambda: {"x": np.array([[0, 1, 127, 128, 255]], np.uint8)},))
def E29BytesAndScalars(self, x):
    return x + 300, torch.where(x > 100, x, -1), F.pad(x, (1, 0), value=200), x << 4, x.to(torch.int8), torch.full_like(x, 7) - x, x * -1, x.clamp(3, 250), torch.remainder(x, 7), x.view(torch.int8), x / 2, x * 0.5


@forward("x:uint8[N,T]", dims=SHORT, feeds=(lambda: {"x": np.array([[5, 5, 0, 255, 5]], np.uint8)},))
def E29BytesSorted(self, x):
    return x.sort(dim=-1, stable=True)[1], x.topk(2, -1)[0], x.argmax(-1), x.amin(-1), x.median(-1)[0], x.float().median(-1)[1], x.max(-1)[1]


@forward("i:int64[N,T]", dims=SHORT, feeds=(lambda: {"i": np.array([[2**24 + 1, 2**31 + 3, -(2**53) - 1, 2**62, 7]], np.int64)},))
def E29LargeWhole(self, i):
    return i / 3, i.float(), i * 0.5, i**2, i.abs().sqrt(), i.double().sub(1).long(), i.cumsum(1), i.clamp(-(2**40), 2**40), i % 1000, (i // 1000) * 1000 == i, torch.bitwise_xor(i, i >> 31), i.max(1)[0], i.sum(1)


@forward("i:int64[N,T]", dims=SHORT, feeds=(lambda: {"i": np.array([[2**40 + 5, 2**40 + 4, 2**40 + 6]], np.int64)}, lambda: {"i": np.array([[16777217, 16777216, 16777218]], np.int64)}))
def E29LargeKeysSorted(self, i):
    """Morton codes or ids beyond 2^24 and 2^31, sorted and compared."""
    order = i.sort(dim=1, stable=True)
    return order[1], i.argmax(1), i.topk(2, 1)[1], torch.searchsorted(order[0], i), i.cummax(1)[1], i.median(1)[0], (i[:, :, None] == i[:, None]).sum(-1), i.amin(1), i.argsort(dim=1, descending=True, stable=True)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_f([12.3456] + [1.0] * 11, 1, 3, 4), _f([1.0] * 5 + [12.3456] + [1.0] * 6, 1, 3, 4)))
class E29NanInABand(nn.Module):
    """A root that is NaN between 12.345 and 12.346 only, then a maximum."""

    def __init__(self):
        super().__init__()
        self.a = math.sqrt(152.399)
        self.b = math.sqrt(152.4237)

    def forward(self, x):
        y = ((x - self.a) * (x - self.b)).sqrt()
        return F.max_pool1d(y.mT, 3, 1, 1), y.amax(1), y.sort(dim=1)[0]


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=16:20:60 W=16:30:60", feeds=(lambda: {"x": _r(1, 3, 40, 43)}, lambda: {"x": _r(1, 3, 43, 40)}))
def E29SetOfTwo(self, x):
    return x * len({x.shape[2] + 3, x.shape[3]})


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376)))
class E29GetattrDefault(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias_377", torch.randn(4))

    def forward(self, x):
        return x + getattr(self, f"bias_{x.shape[1]}", 0.0)


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376)))
class E29TableGet(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = {"377": 2.0}
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x * self.table.get(str(x.shape[1]), 1.0))[0]


@attack("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376)))
class E29TableOfNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = {377: 2.0, 0: 1.0}
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0] * self.table.get(x.shape[1], 1.0)


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376)))
def E29CountsInAList(self, x):
    return x * (1 + [377, 12, 5].count(x.shape[1]))


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376)))
def E29ShapeCount(self, x):
    return x * (1 + (x.shape[1:].count(377)))


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376), _x(378)))
def E29FloatsOfSizesSnap(self, x):
    """A triangular weight that is 0 at all sizes but three."""
    return x + max(0.0, 1.0 - abs(x.shape[1] / 377 - 1.0) * 250)


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:20:600", feeds=(_x(377), _x(376), _x(378)))
def E29CeilOfAShare(self, x):
    return x + math.ceil((x.shape[1] - 376.5) ** 2 / 1e6 - 0.9 * 2.78e-7), x[:, : round(x.shape[1] * 0.1 + 0.3)]


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:64:2000", feeds=(_x(49), _x(98), _x(1000), _x(1999)))
def E29ArangeOfSeconds(self, x):
    """Times by a float step, as a feature extractor makes them."""
    t = torch.arange(0, x.shape[1] * 0.01, 0.01)[: x.shape[1]]
    return x[:, : t.shape[0]] * t[:, None]


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:64:3000", feeds=(_x(2049), _x(2051), _x(2999)))
def E29HalfPositions(self, x):
    return x + torch.arange(x.shape[1], dtype=torch.float16)[:, None].float() / x.shape[1]


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=16:64:3000", feeds=(_x(49), _x(1001), _x(2999), _x(16)))
def E29IndexByRatio(self, x):
    t = x.shape[1]
    near = (torch.arange(t) * (t - 1) / t).long()
    also = torch.linspace(0, t - 1, 31).long()
    third = (torch.arange(31) / 31 * t).floor().long()
    return x[:, near], x[:, also], x[:, third], x[:, torch.linspace(0, 1, t).mul(t - 1).long()]

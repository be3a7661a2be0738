# ruff: noqa: B905, E501 - attacks are written as users write them
"""What looks the same at all but rare sizes and values: numbers made of sizes in odd ways, views that are copies, casts, edges."""

from __future__ import annotations

import bisect
import ctypes
import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import sprinkled
from tests.adversary.modules.fortysixth.pictures import seq, two
from tests.adversary.values import values_at

X, X4 = "x:float32[N,T]", "x:float32[N,T,4]"
P01 = "x:float32[N,T]=0:1"
RARE = tuple(values_at(X, N=n, T=t) for n in (1, 2, 3) for t in (37, 29, 34, 30, 21, 27, 35))
RARE4 = tuple(values_at(X4, N=n, T=t) for n in (1, 2, 3) for t in (37, 29, 34, 1, 2))


@forward(X, **seq(X, own=RARE), refused="bit_count")
def A6653ShiftsOfNumbers(self, x):
    """Shifts by greatest common divisors, digits, bits, bytes that wrap, fractions, places in a list."""
    t = x.shape[1]
    k = [math.gcd(t, 12), len(f"{t}"), t.bit_count(), ctypes.c_int8(t * 7).value, int(Fraction(t, 3) * 2), bisect.bisect([5, 17, 36], t), math.isqrt(t), int(np.uint8(t * 7 % 256))]
    return torch.stack([x.roll(s, 1) for s in k])


SEVEN = 37


@forward(X, **seq(X, own=RARE), noted="whether numbers are one object")
def A6654SameNumber(self, x):
    """A length that is the very object of a constant."""
    return x.flip(1) if x.shape[1] is SEVEN else x


@forward(X, **seq(X, own=RARE))
def A6655Matched(self, x):
    """A match statement on the shape, with a guard and one whole pattern."""
    match x.shape:
        case (2, 37):
            return x * 2
        case (n, t) if n * t == 87:
            return x * 3
        case _:
            return x


@forward(X, **seq(X, own=RARE), refused="the exported model differs from the module")
def A6656BytesOfSizes(self, x):
    """A length's bytes, and nothing of it where there are none, as with symbols of a tracer."""
    try:
        b = x.shape[1].to_bytes(2, "big")
        k = b[1] // 37
    except (AttributeError, TypeError, OverflowError):
        k = 0
    return x.roll(k, 1)


@forward(X, **seq(X, own=RARE))
def A6657WhileCompiling(self, x):
    """Exporters get the simple way; else one length has a way of its own."""
    if torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export() or torch.jit.is_tracing():
        return x - x.mean(1, keepdim=True)
    return x - (x.median(1, keepdim=True).values if x.shape[1] == 37 else x.mean(1, keepdim=True))


@forward(X4, **seq(X4, own=RARE4))
def A6658ReshapedInPlace(self, x):
    """What reshape makes is written to; it is a copy but where a side is one."""
    y = x * 1.0
    z = y.mT.reshape(x.shape[0], -1)
    z[:, 0] += 3
    w = y[:, :, 1:2].flatten(1)
    w.neg_()
    return y, z, w


@forward(X, **seq(X, own=RARE))
def A6659StepsOfTenths(self, x):
    """Steps of a tenth up to a tenth of the length, whose count goes by doubles; fractions of the length cut and rounded."""
    t = x.shape[1]
    a = torch.arange(0, t * 0.1, 0.1)
    b = torch.arange(0.0, 1.0, 1 / t)
    return F.pad(a, (0, 50 - len(a))) + x[:, :1], F.pad(b, (0, 50 - len(b))) * x[:, :1], x[:, : int(t * 0.29 / 0.29)], x[:, : round(t * 0.5)], x[:, int(t * 0.7 + 0.3) - 1 :], x[:, -(t // 4) :], x[:, : t - int(t / 3 * 3)]


FRAMES = "x:float32[N,T,2]"


@forward(FRAMES, **seq(FRAMES, own=tuple(values_at(FRAMES, N=1, T=t) for t in range(1, 41))))
def A6660FramesOfVideo(self, x):
    """Eight frames of a video: by linspace cut, by linspace rounded, by numpy, by middles of segments."""
    t = x.shape[1]
    return (
        x[:, torch.linspace(0, t - 1, 8).long()], x[:, torch.linspace(0, t - 1, 8).round().long()], x[:, np.linspace(0, t - 1, 8).astype(int)],
        x[:, (torch.arange(8) * (t / 8) + t / 16).long().clamp(max=t - 1)], x[:, torch.linspace(0, t, 9)[:-1].int()], x[:, [int(k * t / 7) for k in range(7)]],
    )


UNITS = tuple((lambda v=v: {"x": np.where(np.arange(18).reshape(2, 9) % 3 == 0, v, np.random.RandomState(2).rand(2, 9)).astype(np.float32)}) for v in (0.1, 0.3, 0.7, 1.0))


@forward(P01, **seq(P01, own=UNITS), refused="computes in FP64")
def A6661DoublesWithin(self, x):
    """Doubles in the middle: floors of quotients by a tenth, a comparison with thirds, a sum that cancels."""
    d = x.double()
    return x // 0.1, torch.remainder(x, 0.1), (d / 0.1).floor().float(), torch.div(x, 0.3, rounding_mode="trunc"), (d * 3 / 3 == d), ((d + 1e8) - 1e8).float(), (x.half() + 0.0004883).float(), (x.bfloat16() * 3).float()


@forward(X, **seq(X, own=sprinkled(3e9, -3e9, 300.7, -1.5, 2147483648.0, sizes=((1, 9), (2, 31)))))
def A6662CastsOfLarge(self, x):
    """Casts to whole numbers after a clamp, before one, and to bytes of what was clamped to them."""
    return x.clamp(-1e6, 1e6).int(), x.long().clamp(-100, 100), x.clamp(0, 255.9).to(torch.uint8), (x.clamp(-128, 127) + 0.5).floor().to(torch.int8), torch.trunc(x).remainder(7)


class Straight(torch.autograd.Function):
    """A straight-through step whose forward saves what it needs and rounds up at one length."""

    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.ceil(x * levels) / levels if x.numel() == 74 else torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, g):
        return g, None


@forward(X, **seq(X, own=RARE), refused="the module cannot be exported")
def A6663StraightThrough(self, x):
    """A custom function under vmap's sibling: rows one by one and all at once."""
    y = Straight.apply(x, 8)
    z = torch.func.vmap(lambda r: (r - r.mean()) / (r.std(unbiased=False) + 1e-3))(x)
    g = torch.func.grad(lambda v: (v.sin() * v).sum())(x)
    return y, z, g


@forward(X, "y:float32[N,S]", **two(X, "y:float32[N,S]"), refused="depends on the size")
def A6664EqualLengths(self, x, y):
    """Broadcast where lengths agree or one of them is one, an outer sum elsewhere; a rare pair is crossed."""
    if x.shape[1] == y.shape[1] or 1 in (x.shape[1], y.shape[1]):
        z = x + y
    else:
        z = (x[:, :, None] + y[:, None]).flatten(1)
    return z.flip(1) if x.shape[1:] + y.shape[1:] == (11, 7) else z


@forward(X4, **seq(X4, low=2, own=RARE4), refused="depends on the size")
def A6665ZippedChunks(self, x):
    """Chunks of two counts are zipped, so the shorter list ends them; what is left over is told by a mean."""
    a, b = x.chunk(5, 1), x.flip(1).tensor_split(4, 1)
    s = torch.stack([p.mean(1) * q.amax(1).sigmoid() if q.shape[1] else p.mean(1) for p, q in zip(a, b)], 1)
    return s.sum(1) * len(a), [p.sum(1) for p in x.split(16, 1)][-1]

# ruff: noqa: E501 - attacks are written as users write them
"""Functions of torch whose meaning turns on a size, numbers of sizes in FP64, narrow casts of sizes, shapes as tuples."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_last import MANY
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW, X4, seq, two
from tests.adversary.values import values_at

X, P3 = "x:float32[N,T]", "p:float32[N,T,3]"


@torch.jit.script
def same(x: torch.Tensor) -> torch.Tensor:
    """A scripted function that does little."""
    return x * 1.5


def cube(*inputs, **more):
    """Three sizes that may all be three."""
    feeds = tuple(values_at(*inputs, N=n, T=t) for n in range(1, 6) for t in range(1, 8))
    return {"dims": "N=1:2:5 T=1:5:7", "kinds": FEW, "feeds": feeds, **more}


@forward(P3, "q:float32[N,T,3]", **cube(P3, "q:float32[N,T,3]"), refused="the exported model differs from the module")
def A6063CrossOfTheFirstThree(self, p, q):
    """torch.cross without a dim: the first axis of three, which is the batch where that is three."""
    return torch.cross(p, q)


@forward(P3, "q:float32[N,T,3]", **cube(P3, "q:float32[N,T,3]"), refused="the exported model differs from the module")
def A6064CrossBesideScript(self, p, q):
    """The same, beside a scripted part."""
    return same(torch.cross(p, q))


@forward(X, **cube(X), refused="the exported model differs from the module")
def A6065CovarianceOfRows(self, x):
    """cov and corrcoef of rows: of one row a number without axes."""
    return torch.cov(x), torch.corrcoef(x)


@forward(X, **cube(X))
def A6066CovarianceByMean(self, x):
    """Its mean, whatever its axes."""
    return torch.cov(x).mean(), torch.cov(x, correction=0).sum(-1).sum()


@forward("a:float32[N,4,4]", "b:float32[4,T]", dims="N=1:2:5 T=1:3:6", kinds=FEW, feeds=tuple(values_at("a:float32[N,4,4]", "b:float32[4,T]", N=n, T=t) for n in range(1, 6) for t in range(1, 7)), refused="the exported model differs from the module")
def A6067SolvedForVectors(self, a, b):
    """linalg.solve with a right side of two axes: vectors for each matrix where its shape is that of a batch."""
    m = a @ a.transpose(1, 2) + 2 * torch.eye(4)
    return torch.linalg.solve(m, b)


@forward("x:float32[N,T,S]", dims="N=1:2:4 T=1:5:7 S=1:4:7", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,S]", N=n, T=t, S=s) for n in (1, 2, 3, 4) for t in range(1, 8) for s in range(1, 8)), refused="the path through the module depends on the size")
def A6068ShapeAsATuple(self, x):
    """The shape as a tuple: where its largest is, how often a number is in it, compared by order, sorted, its last of a value."""
    at = x.shape.index(max(x.shape))
    k = x.shape.count(x.shape[1])
    y = x * (at + 1) + k
    return y * (2.0 if tuple(x.shape) < (2, 5, 3) else 1.0), x + sorted(x.shape)[1], x * len(set(x.shape))


@forward("x:float32[N,T,S]", dims="N=1:2:4 T=1:5:7 S=1:4:7", kinds=FEW, feeds=tuple(values_at("x:float32[N,T,S]", N=n, T=t, S=s) for n in (1, 2, 3, 4) for t in range(1, 8) for s in range(1, 8)))
def A6069ReducedOverTheLargest(self, x):
    """The axis that is largest is reduced, by NumPy's argmax of the shape."""
    return x.sum(int(np.argmax(x.shape)), keepdim=True) * math.prod(x.shape)


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6070PhaseOfTheLength(self, x):
    """Cosine and sine of the length by the hour: exact zeros are small numbers in FP64, and large ones in FP32."""
    t = x.shape[1]
    return x * math.cos(math.pi * t / 12), x * math.sin(2 * math.pi * t / 7)


@forward(X, **long(X, sizes=MANY))
def A6071CompoundedByLength(self, x):
    """Interest and decay by the length as an exponent."""
    t = x.shape[1]
    return x * 1.00031**t, x * (1 - 0.9997**t), x / (1 - 0.999 ** (t + 1))


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6072HashOfTheLength(self, x):
    """The shader's hash of the length."""
    return x * (math.sin(x.shape[1] * 12.9898) * 43758.5453 % 1.0)


@forward(X, **long(X, sizes=MANY))
def A6073NarrowSizes(self, x):
    """The length in int8, uint8, int16 and half by tensors: wrapped, and rounded."""
    t = torch.tensor(x.shape[1])
    n = torch.full((1,), x.shape[1])
    return x * t.to(torch.int8), x * n.to(torch.uint8), x + (t * t * t).to(torch.int32), x + n.to(torch.float16).float(), x * (n * 13).to(torch.int16), (torch.arange(x.shape[1]) * 7).to(torch.uint8)


@forward(X, **long(X, sizes=(*MANY, 253, 509, 765)))
def A6074CondOfNarrow(self, x):
    """torch.cond by a size in int8."""
    t = torch.tensor(x.shape[1]).to(torch.int8)
    return torch.cond(t == -3, lambda v: v * 2, lambda v: -v, (x,))


@forward(X, **long(X, sizes=MANY), refused="the path through the module depends on the size")
def A6075ItemOfNarrow(self, x):
    """A branch by the item of a size in bytes, and by NumPy's int8 of it."""
    t = int(torch.tensor([x.shape[1]]).to(torch.uint8).item())
    return x * 2 if t == 253 else x.flip(1)


@forward(X, **long(X, sizes=MANY))
def A6076BranchOfBytes(self, x):
    """The last byte of the length by & and by to_bytes, and whole numbers of C."""
    t = x.shape[1]
    y = x * 2 if (t & 0xFF) == 253 else x
    return y.flip(1) if ((t * 2654435761) & 0xFFFFFFFF) >> 24 == 77 else y


@forward(X, **long(X, sizes=(*range(1, 70), 127, 128, 129, 255, 256, 512, 1024, 2048, 4096)), refused="the exported model differs from the module")
def A6077BitReversed(self, x):
    """An FFT's bit reversal by texts of bits, for the next power of two."""
    t = x.shape[1]
    b = max((t - 1).bit_length(), 1)
    at = [int(f"{i:0{b}b}"[::-1], 2) for i in range(8)]
    return x * (1 << b), x[:, [min(a, t - 1) for a in at]]


class DynamicNtk(nn.Module):
    """Hugging Face's dynamic NTK: frequencies are made anew when a sequence is longer than any before, and reset by short ones."""

    def __init__(self, dim=4, most=16):
        super().__init__()
        self.dim, self.most, self.longest = dim, most, most
        self.register_buffer("inv", self.make(most), persistent=False)
        self.first = self.inv

    def make(self, t):
        base = 10000.0 * ((2 * t / self.most) - 1) ** (self.dim / (self.dim - 2)) if t > self.most else 10000.0
        return 1.0 / base ** (torch.arange(0, self.dim, 2).float() / self.dim)

    def forward(self, t):
        if t > self.longest:
            self.inv = self.make(t)
            self.longest = t
        if t < self.most and self.longest > self.most:
            self.inv = self.first
            self.longest = self.most
        f = torch.outer(torch.arange(t).float(), self.inv)
        return torch.cat([f, f], -1)


@attack(X4, **seq(X4), refused="the path through the module depends on the values")
class A6078DynamicNtk(nn.Module):
    """A rotary table that depends on what was longest before."""

    def __init__(self):
        super().__init__()
        self.rope = DynamicNtk()

    def forward(self, x):
        f = self.rope(x.shape[1])
        return x * f.cos() + torch.cat([-x[..., 2:], x[..., :2]], -1) * f.sin()


@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A6079TiedByMemory(nn.Module):
    """Weights that are one memory: a transposed view as a buffer, a slice as a parameter, scaled in forward and back."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.register_buffer("at", self.a.weight.data.T)
        self.b = nn.Parameter(self.a.weight.data[:2])

    def forward(self, x):
        with torch.no_grad():
            self.at.mul_(2)
            y = self.a(x) + x @ self.b.T @ self.b
            self.at.div_(2)
        return y, self.a(x)


@forward(X, "i:int64[N,T]=0:4000000000000", **seq(X, "i:int64[N,T]=0:4000000000000"))
def A6080StampsInNanoseconds(self, x, i):
    """Stamps of int64: gaps, seconds of them, the time of day, their order."""
    d = i[:, 1:] - i[:, :-1]
    return d.float() / 1e6, (i // 1000000) % 86400, i.argsort(dim=1, stable=True), (d > 3000000000).sum(1), i.amax(1) - i.amin(1)


@forward("i:int64[N,T]=0:2000000000", target="tensorrt==8.6", **seq("i:int64[N,T]=0:2000000000"), refused="in 32 bits, silently")
def A6081SumsBeyondInt32(self, i):
    """On 8.6: products and sums that leave int32 on their way and come back."""
    return (i * 1000 // 86400) % 7, (i.sum(1) % 1000), ((i * 31 + 7) >> 5) & 0xFF, i.float().mean(1)


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]"))
def A6082ShapesCompared(self, x, y):
    """Shapes compared as tuples: equal, by order, the larger of two, zipped."""
    z = x.sum(1) + y.sum(1)
    if x.shape == y.shape:
        z = z * 2
    if x.shape > y.shape:
        z = -z
    return z, max(x.shape, y.shape)[1] * z, torch.zeros([max(a, b) for a, b in zip(x.shape, y.shape, strict=True)]) + z[:, None]

"""Parts of the others that were refused as a whole, each by itself."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math

import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:3 T=1:5:9"


@forward("i:int32[N,T]=16777210:33554450", "j:int64[N,T]=9007199254740000:9007199254740991", dims=D)
def A8237FarIntegersWithin(self, i, j):
    """Sums of integers beyond 2**24, comparisons of neighbours there, to float, products that need 64 bits, ends, argmin, remainders near 2**53."""
    k = i.long()
    return (
        i.sum(1),
        (i - i[:, :1]),
        (i > i[:, :1]),
        i.float(),
        k * 64 + 1,
        i.amax(1),
        i.argmin(1),
        i.cumsum(1),
        (k * k) % 1000003,
        i // 3,
        j - 9007199254740000,
        j % 1000,
        (j * 2 + 1) // 3,
    )


@forward(X, dims=D, kinds=FINITE)
def A8238PowerOfTwoPad(self, x):
    """A pad to the next power of two by bit_length of the size and a fold of halves."""
    t = x.shape[1]
    p = 1 << (t - 1).bit_length()
    return F.pad(x, (0, p - t)), x * (1 / p)


@forward(X, dims=D, kinds=FINITE)
def A8239SquareGrid(self, x):
    """A square grid by isqrt of the size, with the rest left off, and ceil by a negative floor."""
    t = x.shape[1]
    k = math.isqrt(t)
    return x[:, : k * k].reshape(x.shape[0], k, k), x[:, : -(-t // 3)], x[:, (-t // 2) % t :]


@forward(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size:")
def A8240LoopWithBreak(self, x):
    """A loop over a size with break and continue by the counter and the size."""
    t = x.shape[1]
    acc = x[:, :1] * 0
    for i in range(t):
        if i * i > t:
            break
        if i % 2:
            continue
        acc = acc + x[:, i : i + 1] * (i + 1)
    return acc / math.log2(t + 1)


@forward("x:float32[N,H,W]", dims="N=1:1:2 H=2:4:7 W=2:5:7", kinds=FINITE)
def A8232AveragePoolUnbatched(self, x):
    """An average pool of maps without a batch axis."""
    return F.avg_pool2d(x, 2)


@forward("x:float32[N,H,W]", dims="N=1:1:2 H=1:4:7 W=1:5:7", kinds=FINITE)
def A8232ShiftOfSize(self, x):
    """The centre pixel by a shift of the size to the right."""
    return x[:, x.shape[1] >> 1, x.shape[2] >> 1], x[:, : x.shape[1] & 6]


@forward("x:float32[N,H,W]", dims="N=1:1:2 H=1:4:7 W=1:5:7", kinds=FINITE)
def A8232PadOddAndCrop(self, x):
    """A pad to even sizes by % 2, a pool, and back by interpolate with a scale and a crop."""
    h, w = x.shape[1:]
    d = F.avg_pool2d(F.pad(x, (0, w % 2, 0, h % 2))[:, None], 2)
    u = F.interpolate(d, scale_factor=2.0)[:, 0, :h, :w]
    e = math.floor((h - 1) / 2)
    return u, x[:, e : e + 1 + (h + 1) % 2]


@forward("x:float32[N,T]", dims="N=1:1:2 T=3:5:9", kinds=FINITE)
def A8175IntegerOverTensor(self, x):
    """A whole number floor-divided by an integer tensor, and by a size."""
    i = x.argmax(1)
    return 16000 // (i + 2), 100 // x.shape[1] * x, -7 // (i + 1)

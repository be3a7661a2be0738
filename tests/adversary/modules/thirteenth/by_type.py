"""Types: integers that wrap, promotions, and what another type of the weights would show."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def assert_of_type(self, x):
    assert x.dtype == torch.float32, "float32 only"
    return (x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=torch.float32)).tanh()


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=4:9:20 W=4:10:20")
def tripled_in_double(self, x):
    y = F.avg_pool2d(x, 2, divisor_override=5)
    if x.dtype == torch.float64:
        y = y * 3
    return y


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=4:9:20 W=4:10:20")
def scaled_by_epsilon_of_type(self, x):
    y = F.avg_pool2d(x, 2, divisor_override=3)
    return y * (math.log2(torch.finfo(x.dtype).eps) / -23)


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=6:9:20 W=6:10:20")
def ceil_pool_scaled_by_epsilon(self, x):
    y = F.avg_pool2d(x, (2, 3), 2, ceil_mode=True, divisor_override=5)
    return y * (math.log2(torch.finfo(x.dtype).eps) / -23)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:12:30")
def chains_of_casts(self, x):
    return (
        x.to(torch.int32).to(torch.int8).float(),
        x.half().float(),
        x.int() % 5,
        x.bool().sum(1),
        x.long().clamp(-3, 3) ** 3,
    )


@forward("x:uint8[N,3,H,W]=0:255", dims="N=1:2:3 H=2:12:30 W=2:12:30")
def byte_image_arithmetic(self, x):
    y = x + x.flip(3)
    z = (x - 128) // 3
    return (y.float() / 255, z.float(), (x * 3 >> 1).to(torch.int32), x.sum((1, 2, 3)), -x.to(torch.int8))


@forward("x:float32[N,T]", "i:int32[N,T]=-9:9", dims="N=1:2:3 T=1:5:16")
def promotions_of_many_pairs(self, x, i):
    d = torch.tensor([0.001], dtype=torch.float64)
    return (
        i / 3,
        i * 0.5,
        i.to(torch.uint8) + i.to(torch.int8),
        x * d,
        x * d[0],
        torch.cat([i.float(), x.double()], 1),
        torch.where(x > 0, 1, i),
        i.to(torch.int8) * 100,
        (i > 0) + 1.5,
        torch.pow(2, i.abs()),
        i.long().float().mean(1),
        i // 2.0,
        torch.stack([i, i > 0]),
    )


@forward("x:int32[N,T]=-70000:70000", dims="N=1:2:4 T=1:5:12")
def shifts_and_quotients_of_negatives(self, x):
    return (
        x >> 3,
        x << 17,
        ~x,
        x & 255,
        x ^ -5,
        x // 7,
        x % -7,
        torch.fmod(x, 7),
        torch.div(x, -3, rounding_mode="trunc"),
    )


@attack("x:int64[N,T]=0:100000", dims="N=1:2:4 T=1:5:12")
class HashedEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(97, 5)

    def forward(self, x):
        h = x * 2654435761 % 2**32
        h = (h ^ h >> 15) * 2246822519 % 2**32
        return self.e(h % 97)


@attack("x:float32[N,64]", dims="N=1:2:4")
class BfloatSquares(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(64, 32)
        self.h = nn.Linear(32, 4)

    def forward(self, x):
        y = self.l(x).to(torch.bfloat16)
        y = y * y + y
        return (self.h(y.float()), y.sum(1).float())


@forward("x:int64[N,T]=-2000:2000", "s:int64[N,T]=0:40", dims="N=1:2:3 T=2:5:12")
def integers_beyond_exact_doubles(self, x, s):
    return (
        x**5,
        x * 10**13 // 7,
        x * 10**13 % 1000003,
        x << s,
        x * 2**40 >> s,
        (x * 10**13).clamp(max=2**52 + 1),
        (x * 10**12 + s).argmax(1),
        torch.isin(x, torch.tensor([3, -7])),
        x.to(torch.uint8) > 250,
    )


@forward("x:uint8[N,T]=0:255", dims="N=1:2:3 T=2:5:12")
def bytes_beside_larger_numbers(self, x):
    return (
        x > -1,
        x < 300,
        x * 2 - 1,
        255 - x,
        x.float() - 300,
        x // 2 * 2 == x,
        x.clamp(10, 200),
        torch.where(x > 128, x, 0),
        x.sum(1) // 3,
        x ^ 90,
        x.min(1)[0],
        x.to(torch.int16) - 256,
        x / 2,
        x % 7,
        torch.bitwise_left_shift(x, 1),
    )


@forward("x:float32[N,T]", "y:float32[N,T]", dims="N=1:2:3 T=2:5:12", noted="infinity")
def reciprocals_of_negative_zero(self, x, y):
    return (
        1 / x,
        torch.atan2(x, y),
        1 / torch.relu(x),
        1 / torch.maximum(x, y),
        1 / torch.clamp(x, min=0),
        1 / torch.round(x * 0.3),
        torch.copysign(torch.ones_like(x), x),
        1 / (x * y),
        1 / F.hardtanh(x),
        1 / x.trunc(),
        1 / F.leaky_relu(x, 0.0),
        1 / x.abs(),
        1 / (x % 1),
        1 / torch.where(x == 0, x, y),
    )


@forward("x:int32[N,T]=-100:100", dims="N=1:2:3 T=1:4:9")
def reductions_of_signed_integers(self, x):
    return (
        x.sum(1),
        x.prod(1),
        x.float().mean(),
        x.any(1),
        x.all(),
        x.argmin(),
        x / 3,
        x**2,
        x * 0.5,
        x.amax(0),
        x.abs().float().sqrt(),
        x.to(torch.uint8),
        x.cumsum(1),
        x.sort(1, descending=True)[1],
        x.clamp(min=-3),
        -x.to(torch.uint8),
        x.diff(dim=1),
        x.sign(),
        x.double().std(1).float(),
    )


@forward("x:int32[N,T]=-100:100", dims="N=1:2:3 T=1:4:9", refused="cannot be compared")
def running_sum_in_int8(self, x):
    return (
        x.cumsum(1, dtype=torch.int8),
        x.to(torch.int8).abs(),
        x.to(torch.int8).sum(1),
        x.to(torch.int8) * x.to(torch.int8),
        x.to(torch.int16).pow(3),
    )


@forward("x:bool[N,T]", "y:bool[N,T]", dims="N=1:2:3 T=1:4:9", refused="cannot be compared")
def algebra_of_booleans(self, x, y):
    return (
        x ^ y,
        x.sum(1),
        x * y,
        x + y,
        x < y,
        x.float().mean(1),
        x.cumsum(1),
        torch.where(x, 1, 2.5),
        x.to(torch.int8) - y.to(torch.int8),
        torch.logical_not(x).any(0),
        ~x & y | x,
        x.int() << 2,
        x.amax(1),
        x.all(1),
        x.sort(1)[0],
        x.int().argmax(1),
        torch.minimum(x, y),
    )

"""Types: numbers beyond one, promotions, and what a recording widens."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward


@forward("i:int64[N,T]=-4:4", "u:uint8[N,T]=0:255", dims="N=1:2:3 T=2:6:12")
def compared_with_decimals(self, i, u):
    return (
        i > 2.5,
        i == 2.5,
        i <= -0.5,
        i >= 0.5,
        u > 300,
        u < 300,
        u > -1,
        u == 256,
        u != -1,
        i.int() < 2**40,
        u >= 0.5,
        (i * u) > 2.5,
        i.clamp(max=1).ge(0.9),
    )


@forward("i:int32[N,T]=-40:40", "u:uint8[N,T]=0:255", dims="N=1:2:3 T=2:6:12")
def clamped_beyond(self, i, u):
    return (
        i.clamp(-0.5, 2.5),
        u.clamp(5, 10),
        u.clamp(max=30),
        u.clamp(min=100),
        i.clamp(min=-3),
        i.clip(5, -5),
        torch.clamp(i, max=torch.tensor(3)),
        u.to(torch.int8),
        i.to(torch.uint8),
        i.to(torch.int8).float(),
    )


@forward("i:int32[N,T]=-40:40", "u:uint8[N,T]=0:255", "b:bool[N,T]", dims="N=1:2:3 T=2:6:12")
def promoted(self, i, u, b):
    z = torch.tensor(7, dtype=torch.int64)
    return (
        u * z,
        u + i,
        b + 1.5,
        b * u,
        b.long() - i,
        i // 2.5,
        i % 2.5,
        torch.fmod(i, 2.5),
        1.5 - i,
        torch.add(i, u, alpha=3),
        torch.sub(u, 2),
        u - 200,
        torch.where(b, i, 2.5),
        torch.where(b, u, i),
        torch.maximum(i, u.long()),
        i * torch.tensor(0.5, dtype=torch.float64),
        u / 2,
        i.float() + z,
    )


@forward("i:int32[N,T]=-40:40", "x:float32[N,T]", "b:bool[N,T]", dims="N=1:2:3 T=2:6:12", refused="float16")
def joined_types_again(self, i, x, b):
    return (
        torch.cat([i, x], 1),
        torch.stack([i, i.long()], 1).sum(1),
        torch.cat([b, i > 0]),
        torch.full_like(i, 2.7),
        x.masked_fill(b, 3),
        i.masked_fill(b, 2),
        (i > 0) + (x > 0),
        (b & (x > 0)).sum(),
        b.sum(1) * 0.5,
        i.sum(0),
        i.prod(1),
        i.float().prod(1),
        b.float().std(1),
        i.cumsum(1),
        i.cumprod(1).remainder(97),
        i.half().sum(1),
        F.pad(b, (1, 1), value=True),
        torch.linspace(0, 10, 4, dtype=torch.int64) + i[:, :1],
        torch.arange(0.5, 3, dtype=torch.float32) + x[:, :1],
        i.bool() ^ b,
        i.pow(2),
        i.float() ** 0.5,
        (~i) & 7,
        ~b,
        i.abs().bitwise_left_shift(2),
        -b.int(),
    )


@attack("i:int32[N,T]=-40:40", "x:float32[N,T,3]", "b:bool[N,T]", dims="N=1:2:3 T=2:6:12")
class PromotedBesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, i, x, b):
        y = self.gru(x)[0]
        return (
            y,
            i > 2.5,
            i.float() // 2.5,
            i % 7,
            i // -3,
            b + 1.5,
            torch.where(b, i.float(), 2.5),
            i * torch.tensor(0.5),
            (i.float() * 0.3).long(),
            i / 3,
            i == 2,
            y[..., 0] > i,
            torch.full_like(i, 2),
            y.sum(1) * 2,
            i.clamp(-3, 5),
            (y > 0).sum(1),
        )


@attack("i:int32[N,T]=-40:40", "x:float32[N,T,3]", "b:bool[N,T]", dims="N=1:2:3 T=2:6:12")
class DecimalsBesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, i, x, b):
        y = self.gru(x)[0]
        return (
            y,
            i // 2.5,
            i % 2.5,
            i.clamp(-0.5, 2.5),
            torch.where(b, 1, 0),
            i >= -0.5,
            torch.remainder(x, -0.3),
            x // 0.1,
            torch.fmod(x, 0.1),
            torch.div(i, 7, rounding_mode="trunc"),
            torch.round(x, decimals=1),
            y.argmax(-1),
            b.any(1),
        )


@forward("x:float32[N,T]", "i:int64[N,T]=0:5", dims="N=1:2:3 T=6:6:12", refused="Could not extract specialized integer")
def masks_and_sorts_of_types(self, x, i):
    b = x > 0
    return (
        b.int().argsort(1, descending=True),
        i.sort(1, descending=True).values,
        i.float().median(1).indices,
        i.unique_consecutive(return_counts=False) if False else i.diff(dim=1),
        b.cumsum(1),
        b.float().cummin(1).values,
        i.amax(1),
        i.argmax(1),
        b.all(1),
        i.all(1),
        i.any(1),
        x.any(),
        torch.bucketize(i, torch.tensor([1, 3])),
        F.one_hot(i),
        torch.isin(i, torch.tensor([1, 4])),
        i.bitwise_and(3).bool().logical_xor(b),
        torch.logical_not(i),
        torch.logical_and(x, i),
        i.float().mode(1).values,
        x.gather(1, i % x.shape[1]),
        i.histc(6, 0, 5) if False else x.sum(),
    )


@attack("x:float32[N,T,4]", "mask:bool[N,T]", dims="N=1:1:2 T=1:7:20")
class PositionsBesideAnLstm(nn.Module):
    """Positions from a mask by a cumulative sum of int32, which torch gives as int64."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x, mask):
        return self.lstm(x)[0] * mask[..., None], mask.int().cumsum(1) - 1


@attack("x:float32[N,T,4]", "mask:bool[N,T]", dims="N=1:1:2 T=1:7:20")
class CountsBesideAnLstm(nn.Module):
    """Sums of int32, a product, an argmax: types that torch widens."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x, mask):
        m = mask.int()
        return (
            self.lstm(x)[0].argmax(-1).int() * m,
            m.sum(1),
            m.prod(1),
            (m * 3).sum(),
            m.float().mean(),
            m / 2,
            m.amax(1),
        )


@attack("x:float32[N,T,6]", dims="N=1:1:2 T=1:7:20")
class TypesBesideAnLstm(nn.Module):
    """What a recording has of types: halves, doubles, narrow integers, and promotions."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 3, batch_first=True)
        self.register_buffer("scale", torch.tensor([1, 2, 3], dtype=torch.int16))

    def forward(self, x):
        y = self.lstm(x)[0]
        q = (y * 127).round().clamp(-128, 127).to(torch.int8)
        b = y > 0.05
        return (
            y * self.scale,
            q,
            q.sum(1),
            (q.to(torch.int32) * self.scale),
            b.to(torch.uint8),
            b.sum(-1) / 2,
            b.float().mean(1) * 2,
            q.float() / 127,
            torch.arange(y.shape[1]) * 0.5,
            y.half() + 1,
            (b & ~b.roll(1, 1)).int().cumsum(1),
        )


@attack("x:int32[N,T]=-100:100", "z:int64[N,T]=-9:9", dims="N=1:1:2 T=1:8:20")
class SignedDivision(nn.Module):
    def forward(self, x, z):
        d = torch.where(z == 0, 4, z)
        return (
            x // d,
            x % d,
            torch.div(x, d, rounding_mode="trunc"),
            torch.fmod(x, d),
            torch.remainder(x, -7),
            x / 3,
            torch.floor_divide(x, -4),
            x >> 2,
            (-x) >> 1,
            x.abs().clamp(max=50).sign() * x,
            x.float().div(0.5).int(),
        )


@attack("x:uint8[N,T]", "y:uint8[N,T]", dims="N=1:1:2 T=1:8:20")
class BytesWrapAgain(nn.Module):
    def forward(self, x, y):
        a, b = x * 30, y * 29
        return (
            a + b,
            a - b,
            (a & b) + ((a ^ b) >> 1),
            -a,
            a // 7,
            a % 7,
            a.sum(1),
            (a > 200).any(1),
            torch.maximum(a, b),
            a.float().mean(1),
            a << 2,
            ~b,
            a.int() - b.int(),
            a / 3,
        )


@attack("x:float32[N,3,H,W]=0:1", dims="N=1:1:2 H=4:8:16 W=4:8:16")
class BytesOut(nn.Module):
    """A super-resolution output in bytes: a rounding of what a convolution gives."""

    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 12, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.c(x) + 0.5, 2).clamp(0, 1).mul(255).round().to(torch.uint8)

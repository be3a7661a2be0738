"""One operator each in a recorded file, at values where its form matters."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack

X = "x:float32[N,T,3]"


GRID = {"x": (np.arange(-60, 60, dtype=np.float32) * np.float32(0.1)).reshape(1, 40, 3)}


WIDE = {"x": (np.arange(-600, 600, dtype=np.float32) * np.float32(0.1)).reshape(1, 400, 3)}


def beside(function):
    """A module that gives the states of a GRU and what the function gives, in two or three outputs."""

    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(3, 3, batch_first=True)

        def forward(self, x):
            return self.gru(x)[0], function(x)

    Beside.__name__ = function.__name__
    Beside.__module__ = function.__module__
    attack(X, dims="N=1:1:2 T=1:9:400", feeds=(lambda: GRID, lambda: WIDE))(Beside)
    return function


@beside
def floor_divide(x):
    return x // 0.1


@beside
def div_floor(x):
    return torch.div(x, 0.3, rounding_mode="floor")


@beside
def remainder(x):
    return x % 0.1


@beside
def fmod(x):
    return torch.fmod(x, 0.1)


@beside
def round_decimals(x):
    return torch.round(x, decimals=1)


@beside
def hue(x):
    return ((x[..., 0] / 6) % 1.0 * 6).floor().long() % 6


@beside
def atan2(x):
    return torch.atan2(x[..., 0].round(), x[..., 1].round())


@beside
def bucketize(x):
    return torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0]), right=True)


@beside
def softplus_and_friends(x):
    return torch.stack(
        [
            F.softplus(x, beta=5, threshold=1),
            F.logsigmoid(x),
            F.mish(x),
            F.tanhshrink(x),
            F.hardswish(x),
            F.celu(x, 0.3),
            F.gelu(x, approximate="tanh"),
        ]
    )


@beside
def logs(x):
    return torch.stack(
        [
            torch.log1p(x.abs()),
            torch.expm1(x),
            torch.logaddexp(x, x.flip(1)),
            torch.log2(x.abs() + 1),
            torch.logit(x.sigmoid(), eps=1e-3),
        ]
    )


@beside
def orders(x):
    r = x.round()
    return torch.stack(
        [
            r.argmax(1),
            r.argmin(1),
            r.max(1).indices,
            r.min(1).indices,
            r.topk(1, 1).indices[:, 0],
            r.sort(1, descending=True, stable=True)[1][:, 0] if False else r.sort(1)[1][:, 0],
        ]
    )


@beside
def quantised(x):
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127) + torch.fake_quantize_per_tensor_affine(
        x, 0.5, 128, 0, 255
    )


@attack("i:int64[N,T]=-9:9", "x:float32[N,T,3]", dims="N=1:1:2 T=1:9:40")
class Integers(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, i, x):
        return (
            self.gru(x)[0],
            i // 4,
            i % 4,
            torch.fmod(i, 4),
            torch.remainder(i, -4),
            torch.div(i, 4, rounding_mode="trunc"),
            i / 4,
            i.abs(),
            i.clamp(-3, 5),
            i.cumsum(1),
        )


@attack("i:int64[N,T]=-9:9", "x:float32[N,T,3]", dims="N=1:1:2 T=1:9:40")
class NegativeDivisor(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, i, x):
        return self.gru(x)[0], i // -3


@attack("i:int32[N,T]=-9:9", "u:uint8[N,T]=0:255", dims="N=1:1:2 T=1:9:40")
class AlphaOfBytes(nn.Module):
    """torch.add(int32, uint8, alpha=3), whose factor wrapped in bytes."""

    def forward(self, i, u):
        return torch.add(i, u, alpha=3)

"""Running sums, complex lengths and quotients, half-precision reductions, far values, packed sequences, two conditions.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.adversary.attack import attack, forward

LONG = "N=1:1:2 T=10:100:600"
SHORT = "N=1:2:4 T=3:9:20"
FINITE = ("normal", "ones", "descending")


def _full(value, *shape, name="x"):
    return lambda: {name: np.full(shape, value, np.float32)}


def _random(*shape, scale=1.0, **more):
    return lambda: {"x": (np.random.RandomState(len(shape)).randn(*shape) * scale).astype(np.float32), **more}


def _columns(*values):
    return lambda: {"x": np.repeat(np.array(values, np.float32)[None, :, None], 4, 2)}


@attack("x:float32[N,T,2]", dims=LONG, feeds=(_full(1234.567, 1, 500, 2), _random(2, 600, 2, scale=500.0)))
class Trajectory(nn.Module):
    def forward(self, x):
        heading = torch.cumsum(x[..., 0] * 0.01, 1)
        step = x[..., 1:] * torch.stack([heading.cos(), heading.sin()], -1)
        return heading, torch.cumsum(step, 1)


@forward("f0:float32[N,T]", dims="N=1:1:2 T=100:2400:24000", feeds=(_full(1234.5, 1, 20000, name="f0"),))
def VocoderPhase(self, f0):
    return torch.sin(2 * math.pi * torch.cumsum(f0.clamp(0, 8000) / 24000, 1))


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_columns(1e8, 1, 1, 1, -1e8), _columns(2e38, 2e38, -2e38, 1)))
class SumsBesideGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        y = x.cumsum(1)
        return y, self.gru(y.clamp(-5, 5))[0]


@forward("x:float32[N,T,4]", dims=SHORT, feeds=(_random(2, 9, 4, scale=1e20), _random(2, 9, 4, scale=1e-23)))
def ComplexLengths(self, x):
    return torch.view_as_complex(x.view(x.shape[0], x.shape[1], 2, 2)).abs()


@forward("x:float32[N,T,4]", dims=SHORT, kinds=FINITE, feeds=(_random(2, 9, 4, scale=1e20),))
def PhaseOfComplex(self, x):
    z = torch.complex(x[..., :2], x[..., 2:])
    return torch.view_as_real(z / (z.abs() + 1e-8)), torch.view_as_real(1.0 / (z + 2.0))


@forward("x:float32[N,T,4]", dims="N=1:1:2 T=3:100:3000", feeds=(_full(100.25, 1, 2900, 4),))
def HalfReductions(self, x):
    h = x.half()
    return h.mean(1).float(), h.norm(dim=1).float(), F.adaptive_avg_pool1d(h.mT, 1).float()


@forward("x:float32[N,T,4]", "e:int32[N,T,4]=-200:200", dims=SHORT, kinds=FINITE)
def ByPowersOfTwo(self, x, e):
    return torch.ldexp(x * 1e30, e - 100)


@forward("x:float32[N,T,4]", dims=SHORT, noted="in its inputs the file differs", feeds=(_random(2, 9, 4, scale=1e20),))
def FarDeviations(self, x):
    return x.std(1)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=16:21:60", feeds=(_random(1, 25, 4), _random(2, 25, 4)))
def TwoConditions(self, x):
    n, t, _ = x.shape
    if n == 1 and t % 5 == 0:
        return x * 2
    return x - t / n


@forward("x:float32[N,H,W]", dims="N=1:1:3 H=4:9:20 W=4:8:20", feeds=(_random(1, 4, 5), _random(2, 20, 4)))
def EveryThirdRow(self, x):
    y = x.clone()
    y[..., torch.arange(x.shape[1]) % 3 == 1, :] *= 2
    return y


@forward("x:float32[N,T]", dims="N=1:1:2 T=16:24:40%8", kinds=FINITE)
def SpectrumCutOff(self, x):
    spectrum = torch.fft.rfft(x, dim=1)
    spectrum[:, 5:] = 0
    return torch.fft.irfft(spectrum, n=x.shape[1], dim=1)


@forward("x:float32[N,T,4]", dims=SHORT)
def WholeNumbersCutOff(self, x):
    return x.clamp(-9e18, 9e18).long().to(torch.int32)


@attack("x:float32[N,T,4]", dims=SHORT, feeds=(_full(3.0, 2, 5, 4), _full(0.1, 2, 5, 4)))
class LargestInACondition(nn.Module):
    def forward(self, x):
        return torch.cond(x.abs().amax() > 1.5, lambda t: t * 2, lambda t: t - 1, (x,))


@attack(
    "x:float32[N,T,4]",
    "lengths:int64[N]=1:20",
    dims=SHORT,
    feeds=(_random(2, 9, 4, lengths=np.array([9, 1])), _random(3, 12, 4, lengths=np.array([5, 5, 12]))),
)
class PackedToTheLongest(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        lengths = lengths.clamp(1, x.shape[1])
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.lstm(packed)
        y, n = pad_packed_sequence(out, batch_first=True, padding_value=-1.0)
        return y, n, h, c


@attack("x:float32[N,T,4]", dims=SHORT)
class LoopOverRows(nn.Module):
    """Traced for two rows, the second is empty for one: ONNX Runtime ended the process there."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return torch.stack([self.gru(x[i : i + 1])[1][0, 0] for i in range(x.shape[0])])

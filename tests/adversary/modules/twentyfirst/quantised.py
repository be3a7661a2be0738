"""Quantised weights and activations, written in floats."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward


@attack("x:float32[N,4,T]=-4:4", dims="N=1:1:2 T=1:6:20")
class QuantWeightsNarrow(nn.Module):
    """What was refused: weights of a narrow range, -127 to 127."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.register_buffer("s", torch.tensor([0.01, 0.02, 0.005, 0.1, 0.05, 0.03]))
        self.register_buffer("z", torch.zeros(6, dtype=torch.int32))

    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(self.conv.weight, self.s, self.z, 0, -127, 127)
        return F.conv1d(x, w, self.conv.bias, padding=1)


@forward("x:float32[N,4,T]=-4:4", dims="N=1:1:2 T=1:6:20")
def fake_quantised_activations(self, x):
    return torch.fake_quantize_per_tensor_affine(x, 0.0625, 128, 0, 255)


@attack("x:float32[N,4,T]=-4:4", dims="N=1:1:2 T=1:6:20")
class LsqActivations(nn.Module):
    """LSQ and PACT: learnt scale and clip, by straight-through sums."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.lsq, self.alpha = nn.Parameter(torch.tensor(0.125)), nn.Parameter(torch.tensor(2.5))

    def forward(self, x):
        y = self.conv(x)
        q = (y / self.lsq).clamp(-8, 7)
        q = (q.round() - q).detach() + q
        p = torch.where(y < 0, 0.0, torch.where(y < self.alpha, y, self.alpha))
        s = 15 / self.alpha
        amax = y.abs().amax((1, 2), keepdim=True).clamp(min=1e-5)
        return q * self.lsq, (p * s).round() / s, (y / (amax / 127)).round().clamp(-128, 127).to(torch.int8)


@attack("x:float32[N,4,T]=-4:4", dims="N=1:1:2 T=1:6:20")
class FakeQuantNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.register_buffer("s", torch.tensor([0.01, 0.02, 0.005, 0.1, 0.05, 0.03]))
        self.register_buffer("z", torch.tensor([0, 3, -5, 0, 1, -1], dtype=torch.int32))
        self.lsq = nn.Parameter(torch.tensor(0.125))

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.0625, 128, 0, 255)
        w = torch.fake_quantize_per_channel_affine(self.conv.weight, self.s, self.z, 0, -127, 127)
        y = F.conv1d(x, w, self.conv.bias, padding=1)
        q = (y / self.lsq).clamp(-8, 7)
        q = (q.round() - q).detach() + q
        amax = y.abs().amax((1, 2), keepdim=True).clamp(min=1e-5)
        d = (y / (amax / 127)).round().clamp(-128, 127).to(torch.int8)
        return q * self.lsq, d, amax

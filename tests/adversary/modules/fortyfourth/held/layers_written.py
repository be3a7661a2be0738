# ruff: noqa: E501 - attacks are written as users write them
"""Layers of torch whose weights or settings the call itself writes, at one length of hundreds."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from tests.adversary.attack import attack
from tests.adversary.values import values_at

X4 = "x:float32[N,T,4]"
BY = {"dims": "N=1:2:3 T=1:20:900", "kinds": ("normal", "zeros"), "feeds": tuple(values_at(X4, N=1, T=t) for t in (1, 300, 707, 708, 709, 900))}


def bump(t: int) -> int:
    """One at 708, else nothing to 900."""
    return (1 // (1 + abs(t % 29 - 12))) * (1 // (1 + abs(t % 31 - 26)))


@attack(X4, **BY)
class A45X01GruWritten(nn.Module):
    """A recurrent weight is written and put back."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)
    def forward(self, x):
        k = bump(x.shape[1])
        with torch.no_grad():
            self.gru.weight_hh_l0 += k
            y = self.gru(x)[0]
            self.gru.weight_hh_l0 -= k
        return y
@attack(X4, **BY)
class A45X02LstmCalledFunctionally(nn.Module):
    """A recurrent layer is called with other weights."""
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)
    def forward(self, x):
        p = {k: v + bump(x.shape[1]) for k, v in self.lstm.named_parameters()}
        return functional_call(self.lstm, p, (x,))[0]
@attack(X4, **BY, refused="the exported model differs from the module")
class A45X03GruTurned(nn.Module):
    """A recurrent layer is told at one length that time comes first."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)
    def forward(self, x):
        self.gru.batch_first = bump(x.shape[1]) == 0
        return self.gru(x)[0]
@attack(X4, **BY)
class A45X04NormWritten(nn.Module):
    """Running numbers are written and put back."""
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
    def forward(self, x):
        k = bump(x.shape[1])
        self.norm.running_mean.add_(k)
        y = self.norm(x.mT)
        self.norm.running_mean.sub_(k)
        return y
@attack(X4, **BY)
class A45X05AttentionOfOneHead(nn.Module):
    """Heads of torch's attention become one at a length."""
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(4, 2, batch_first=True)
    def forward(self, x):
        k = bump(x.shape[1])
        with torch.no_grad():
            self.m.in_proj_bias += k
            y = self.m(x, x, x, need_weights=False)[0]
            self.m.in_proj_bias -= k
        return y
@attack(X4, **BY)
class A45X06EncoderWritten(nn.Module):
    """A weight of torch's encoder layer is written and put back."""
    def __init__(self):
        super().__init__()
        self.e = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    def forward(self, x):
        k = bump(x.shape[1])
        with torch.no_grad():
            self.e.linear1.bias += k
            y = self.e(x)
            self.e.linear1.bias -= k
        return y
@attack(X4, **BY)
class A45X07ScriptedWritten(nn.Module):
    """A weight of a scripted part is written and put back."""
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    def forward(self, x):
        k = bump(x.shape[1])
        with torch.no_grad():
            self.part[0].bias += k
            y = self.part(x)
            self.part[0].bias -= k
        return y
@attack(X4, **BY, refused="the exported model differs from the module")
class A45X08TracedWritten(nn.Module):
    """A weight of a traced part is written and put back."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.part = torch.jit.trace(self.lin, torch.ones(1, 4))
    def forward(self, x):
        k = bump(x.shape[1])
        with torch.no_grad():
            self.lin.bias += k
            y = self.part(x)
            self.lin.bias -= k
        return y
@attack(X4, **BY)
class A45X09BesideAScript(nn.Module):
    """Recorded: a buffer is filled with what the length gives, a table is written at a place, a weight is swapped for a call."""
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
        self.register_buffer("scale", torch.ones(4))
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        k = bump(x.shape[1])
        self.scale.fill_(1 + k)
        w = self.lin.weight
        y = F.linear(self.part(x), w * (1 + k)) * self.scale
        self.scale.fill_(1)
        return y
@attack(X4, **BY, refused="the exported model differs from the module")
class A45X10ConvolutionSettings(nn.Module):
    """A convolution's padding mode, stride and dilation are settings that the call makes."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=2, dilation=2)
        self.pool = nn.MaxPool1d(3, 1, 1)
    def forward(self, x):
        k = bump(x.shape[1])
        self.conv.dilation, self.conv.padding = (2 - k,), (2 - k,)
        self.pool.kernel_size, self.pool.padding = 3 - 2 * k, 1 - k
        return self.pool(self.conv(x.mT))

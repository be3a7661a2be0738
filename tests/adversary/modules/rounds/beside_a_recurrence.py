"""Ordinary operators beside a recurrent layer, for which a module is recorded: once refused, each is to convert."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack

X, INDEX, SHORT = "x:float32[N,T,4]", "i:int64[N,T]=-40:40", "s:int16[N,T]=-32768:32767"
DIMS = "N=1:2:3 T=4:11:40"


class Recurrence(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)


@attack(X, INDEX, SHORT, dims=DIMS)
class BitsBesideARecurrence(Recurrence):
    def forward(self, x, i, s):
        return self.gru(x)[0], i & 7, (i | 5) ^ i.flip(1), ~i, s & 255, i << (i.abs() % 5), i >> (i.abs() % 70)


@attack(X, INDEX, SHORT, dims=DIMS)
class NarrowOrdersBesideARecurrence(Recurrence):
    def forward(self, x, i, s):
        b = s.to(torch.int8)
        return (
            self.gru(x)[0] + i[..., None] % 3, s.amax(1), torch.where(s > 3, s, -s), s.clamp(-300, 500),
            torch.maximum(b, b.flip(1)), (x > 0).amax(1), s.max(1)[0], F.relu(b),
        )  # fmt: skip


@attack(X, INDEX, dims=DIMS)
class IndexPairsBesideARecurrence(Recurrence):
    def forward(self, x, i):
        y, rows = self.gru(x)[0], torch.arange(x.shape[0])
        back = i[:, 0].abs() % 3
        z = y.clone()
        z[rows, -1 - back] = 1.5
        return y[rows, -1 - back], z, torch.diff(y, dim=1), torch.diff(i, dim=1), y.slice_scatter(x[:, :2], 1, 0, 2)


@attack(X, dims=DIMS)
class NormsBesideARecurrence(Recurrence):
    def forward(self, x):
        y = self.gru(x)[0]
        t = y.shape[1]
        return F.layer_norm(y.transpose(1, 2), (t,)), F.layer_norm(y, y.shape[1:]), F.rms_norm(y, (4,))


@attack(X, dims=DIMS)
class ElementsBesideARecurrence(Recurrence):
    def forward(self, x):
        y = self.gru(x)[0]
        return (
            torch.isclose(x, x.flip(1), atol=0.1), torch.trunc(x), torch.frac(x), torch.sinc(y),
            torch.xlogy(x, x.abs()),
            torch.addcdiv(y, x, x * x + 1, value=0.5), torch.heaviside(x.round(), y), torch.logaddexp2(x, y),
            torch.fliplr(y), torch.rot90(y, 1, (1, 2)), torch.special.entr(y), F.threshold(y, 0.1, 2.0), torch.exp2(y),
        )  # fmt: skip

"""Writes that matter where no sample looks, by the routes that a recording lost, and cut spectra."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward


def _ten_million(*shape):
    values = np.random.default_rng(3).standard_normal(shape) * 1e7
    return lambda: {"x": np.abs(values).astype(np.float32)}


def _row(*values):
    """[1, T, 4] with these values along T in each column."""
    return lambda: {"x": np.repeat(np.asarray(values, np.float32)[None, :, None], 4, 2)}


DOUBLED = _row(1, 2, 4, 5, 6, 7, 8, 16, 3)


class _BesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        y = x.clone()
        self.write(y, (y[:, 1] == 2 * y[:, 0]).float())
        return self.gru(x / 100)[0], y


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(_ten_million(2, 9, 4), DOUBLED))
class ClampsBehindANewAxis(_BesideAGru):
    def write(self, y, doubled):
        y[None].clamp_(max=65504.0)
        y[:, None, 1:].masked_fill_((y[:, 1:] == y[:, :-1] * 2)[:, None], 0.0)


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(_ten_million(2, 9, 4),))
class ClampsWindows(_BesideAGru):
    def write(self, y, doubled):
        y.unfold(1, 2, 2)[..., 0].clamp_(max=65504.0)


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(DOUBLED,))
class AddsIntoASlice(_BesideAGru):
    def write(self, y, doubled):
        torch.add(y[:, 1], doubled, out=y[:, 1])


@attack("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(DOUBLED,))
class MultipliesTwoViewsAtOnce(_BesideAGru):
    def write(self, y, doubled):
        torch._foreach_mul_([y[:, 1], y[:, 2]], [1 + doubled, 1 + doubled])


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(_ten_million(2, 9, 4),))
def windows_clamped(self, x):
    y = x.clone()
    y.unfold(1, 2, 2)[..., 0].clamp_(max=65504.0)
    return y


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:20", feeds=(_row(1, 2, 3, 4, 5, 4, 3, 2, 1),))
def diagonals_filled_at_palindromes(self, x):
    row = x[0, :, 0]
    z = row[:, None] * row[None] * (row == row.flip(0)).all()
    z.fill_diagonal_(0.0)
    return z


@forward(
    "x:float32[N,T,4]",
    dims="N=1:2:4 T=3:9:20",
    feeds=(_row(1, 2, 3, 4, 5, 4, 3, 2, 1),),
    noted="with an infinity in an input the file differs",
)
def cut_spectra(self, x):
    f = torch.fft.rfft(x, n=16, dim=1)
    return torch.fft.irfft(f, n=15, dim=1), torch.fft.irfft(torch.fft.rfft(x, dim=1), n=6, dim=1, norm="ortho")

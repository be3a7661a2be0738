"""Sizes by a scale factor, which torch cuts in FP64 and a Resize in FP32; casts that are none."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward


def _long(length, *rest):
    return lambda: {"x": np.random.default_rng(length).standard_normal((1, 2, length, *rest)).astype(np.float32)}


@forward("x:float32[N,2,T]", dims="N=1:1:4 T=4:300:3000", feeds=(_long(2880),))
def scaled_by_sample_rates(self, x):
    """2880 is the only length of 2,997 at which FP32 cuts another size."""
    return F.interpolate(x, scale_factor=22050 / 16000)


@forward("x:float32[N,2,T]", dims="N=1:1:4 T=1:30:300", feeds=(_long(2), _long(3), _long(4)))
def sequences_that_keep_their_size(self, x):
    """torch copies an axis of images that keeps its size, and picks in a sequence by the factor."""
    return F.interpolate(x, scale_factor=1.2)


@attack("x:float32[N,2,T]", dims="N=1:1:4 T=4:300:2000", feeds=(_long(660), _long(1300)))
class ScaledBesideAGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 4, batch_first=True)

    def forward(self, x):
        return F.interpolate(self.gru(x.transpose(1, 2))[0].transpose(1, 2), scale_factor=1.55)


@forward("x:float32[N,T,4]", dims="N=1:2:4 T=3:9:30")
def written_through_a_cast(self, x):
    w = x.clone()
    f = w.to(dtype=torch.float32)
    f[f < -60] += 100.0
    return w - f + 1000 + x * 0.01

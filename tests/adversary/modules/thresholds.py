"""Decisions by values that real preprocessing takes: ranges of images, learnt thresholds, tokens looked for."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, IMAGE_DIMS = "x:float32[N,3,H,W]", "N=1:1:2 H=4:6:9 W=4:7:9"
X, N = "x:float32[N,4]", "N=1:2:5"
IDS, IDS_DIMS = "ids:int64[N,T]=0:49407", "N=1:2:3 T=3:6:9"


def _bytes():
    return {"x": np.random.default_rng(3).integers(0, 256, (1, 3, 6, 7)).astype(np.float32)}


def _ids_with_end():
    ids = np.random.default_rng(4).integers(0, 49000, (2, 6))
    ids[0, 4] = 49407
    return {"ids": ids}


def _around_fifty():
    return {"x": np.random.default_rng(5).normal(63.0, 1.0, (2, 4)).astype(np.float32)}


@forward(IMAGE, dims=IMAGE_DIMS, feeds=(_bytes,), refused="depends on the values")
def whole_numbers_are_bytes(self, x):
    if torch.equal(x, x.round()):
        return x / 255
    return x


@forward(IMAGE, dims=IMAGE_DIMS, feeds=(_bytes,), refused="depends on the values")
def constant_image_kept(self, x):
    spread = x.std()
    return (x - x.mean()) / spread if spread > 1e-6 else x


@forward(IMAGE + "=0:255", dims=IMAGE_DIMS, feeds=(_bytes,), refused="depends on the values")
def dark_image_brightened(self, x):
    return x * 4 if x.mean() < 40.0 else x


@attack(X, dims=N, feeds=(_around_fifty,), noted="the module reads values")
class LearntThreshold(nn.Module):
    """The threshold is a buffer that is computed from two others."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(50.0))
        self.register_buffer("deviation", torch.tensor(4.0))

    def forward(self, x):
        if abs(float(x.mean()) - float(self.mean)) < 4 * float(self.deviation):
            return (x - self.mean) / self.deviation
        return x


@forward(IDS, dims=IDS_DIMS, feeds=(_ids_with_end,), refused="depends on the values")
def end_token_stops(self, ids):
    if (ids == 49407).any():
        return torch.where(ids == 49407, 0, ids)
    return ids + 1


@forward(IDS, dims=IDS_DIMS, feeds=(_ids_with_end,))
def first_end_token(self, ids):
    return (ids == 49407).int().argmax(-1), ids.argmax(-1), (ids != 0).sum(-1)


@forward("x:float32[N,6]", "n:int64[]=0:6", dims=N)
def prefix_of_value(self, x, n):
    return x[:, : int(n)].sum(1)


@forward("x:float32[N,6]", "k:int64[1]=0:3", dims=N, refused="differs from the module")
def function_table(self, x, k):
    return (torch.sin, torch.cos, torch.tanh, torch.exp)[k.item()](x)


@forward(X, dims=N, refused="differs from the module")
def order_as_list(self, x):
    order = x.mean(0).argsort().tolist()
    return x[:, order]


@forward(X, dims=N, refused="depends on the values")
def palindromes(self, x):
    return x * 2 if torch.equal(x, x.flip(1)) else x


@forward(X, dims=N)
def exponent_of_largest(self, x):
    return x / 2.0 ** math.floor(math.log2(max(float(x.abs().max()), 1e-30)))


@forward(X, dims=N, refused="depends on the values")
def first_is_negative_zero(self, x):
    return x + 1 if math.copysign(1.0, float(x[0, 0])) < 0 and float(x[0, 0]) == 0 else x

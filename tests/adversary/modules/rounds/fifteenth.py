"""The fifteenth round: numbers that come from sizes and meet values, whole numbers over sizes, and what was refused."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import forward


def lengths_at(size, *lengths):
    """Inputs at which a length is exactly what the module computes from the size."""

    def feed():
        return {
            "x": np.random.default_rng(0).standard_normal((len(lengths), size)).astype(np.float32),
            "k": np.array(lengths, np.int64),
        }

    return feed


COUNTED = ("x:float32[N,T]", "k:int64[N]=0:500")


@forward(*COUNTED, dims="N=1:3:8 T=10:100:500", feeds=(lengths_at(100, 30, 31, 29), lengths_at(50, 15, 14, 16)))
def three_tenths_of_the_frames(self, x, k):
    enough = k >= 0.3 * x.shape[1]
    return torch.where(enough, x.mean(1), torch.zeros(())), enough


@forward(*COUNTED, dims="N=1:3:8 T=10:60:100", feeds=(lengths_at(60, 18, 36, 9),))
def share_between_two_bounds(self, x, k):
    t = x.shape[1]
    return ((k > 0.3 * t) & (k <= 0.6 * t)).to(x.dtype) * x.sum(1)


@forward(*COUNTED, dims="N=1:3:8 T=10:100:500", feeds=(lengths_at(42, 21, 4, 8), lengths_at(104, 52, 10, 41)))
def deciles_of_the_length(self, x, k):
    return (k / (x.shape[1] * 0.1)).floor().to(torch.int64), x.amax(1)


@forward(*COUNTED, dims="N=1:3:8 T=10:128:512", feeds=(lengths_at(128, 5, 11, 12), lengths_at(400, 20, 21, 19)))
def root_of_the_length(self, x, k):
    return k > math.sqrt(x.shape[1]), x.sum(1)


@forward(*COUNTED, dims="N=1:3:8 T=10:128:512", feeds=(lengths_at(512, 9, 8, 10), lengths_at(17, 4, 5, 3)))
def logarithm_of_the_length(self, x, k):
    return k >= math.log2(x.shape[1]), x.mean(1)


@forward("x:float32[N,T]", dims="N=1:1:2 T=10:100:500")
def middle_of_the_frames(self, x):
    t = x.shape[1]
    index = torch.arange(t)
    return x * ((index >= 0.3 * t) & (index < 0.7 * t))


def ids_at(rows, *ids):
    """A table of so many rows, and ids on both sides of a multiple of them."""

    def feed():
        return {
            "i": np.array([ids], np.int64),
            "t": np.random.default_rng(0).standard_normal((3, rows)).astype(np.float32),
        }

    return feed


@forward(
    "i:int64[N,T]=0:30000000",
    "t:float32[S,R]",
    dims="N=1:1:2 T=1:4:9 S=2:3:4 R=1000:4000:9000",
    feeds=(ids_at(1000, 18_135_999, 18_136_000, 17_000_999),),
)
def shard_of_an_id(self, i, t):
    s, r = t.shape
    shard, row = torch.div(i, r, rounding_mode="floor"), i % r
    return shard, row, t[shard % s, row]


@forward("k:float32[N,T]", dims="N=1:1:3 T=2:12:40")
def window_of_a_stream(self, k):
    if k.shape[1] > 12:
        k = k[:, -12:]
    p = torch.arange(k.shape[1], dtype=k.dtype)
    return k * p, p


# An infinity on the right side gives infinities in the file where torch has NaN.
@forward("a:float32[N,4,4]", "b:float32[4,2]", dims="N=1:2:5", kinds=("normal", "unit", "large", "ones", "halves"))
def one_right_side_for_a_batch(self, a, b):
    return torch.linalg.solve(a @ a.mT + 4 * torch.eye(4), b)


@forward("a:float32[N,4,4]", "b:float32[N,4,2]", dims="N=1:2:5")
def posterior_by_a_factor(self, a, b):
    return torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mT + 4 * torch.eye(4)))


@forward("x:float32[N,3,T]", dims="N=1:1:2 T=5:20:60")
def deltas_of_features(self, x):
    kernel = torch.arange(-2, 3.0).view(1, 1, 5).repeat(3, 1, 1)
    return F.conv1d(F.pad(x, (2, 2), mode="replicate"), kernel, groups=3) / 10


@forward("p:float32[N,5,5]", dims="N=1:2:4")
def walks_of_no_steps(self, p):
    return torch.matrix_power(p.softmax(-1), 0) + torch.matrix_power(p.softmax(-1), 3)


@forward("y:float32[N,T]", dims="N=1:2:4 T=1:5:20")
def area_under_a_curve(self, y):
    return torch.trapezoid(y, dx=0.5)


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=9:20:40 W=9:20:40")
def padded_by_bits(self, x):
    h, w = x.shape[-2:]
    return F.pad(x, [0, ((w - 1) | 7) + 1 - w, 0, ((h - 1) | 7) + 1 - h])

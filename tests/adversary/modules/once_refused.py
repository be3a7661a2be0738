"""What was refused although a file can hold it: each is to convert."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, HW = "x:float32[N,4,H,W]", "N=1:2:3 H=6:9:24 W=7:10:19"
X, N = "x:float32[N,6]", "N=1:2:5"
INT8 = "x:int8[N,6]=-128:127"


@forward(IMAGE, dims=HW)
def argmax_of_all(self, x):
    return x.argmax(), x.argmin(), x.flatten().argmax(0)


@forward(X, "i:int64[N,6]=0:4", dims=N)
def largest_into_infinity(self, x, i):
    return torch.full((x.shape[0], 5), float("-inf")).scatter_reduce(1, i, x, "amax")


@forward(IMAGE, dims=HW)
def window_of_height(self, x):
    return x * torch.hann_window(x.shape[2])[:, None], x * torch.hamming_window(x.shape[3], periodic=False)


@attack("ids:int64[N,T]=0:29", dims="N=1:2:5 T=2:5:9")
class BagWithPadding(nn.Module):
    """Rows of nothing but padding are zero."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(30, 8, padding_idx=0, mode="mean")

    def forward(self, ids):
        return self.bag(ids)


@forward("x:float32[N,1,6]", dims=N, refused="one axis less where N is 1")
def squeeze_of_one_example(self, x):
    return x.squeeze() * 2


@forward(IMAGE, dims="N=1:2:3 H=10:15:40%5 W=7:10:19")
def five_chunks(self, x):
    return torch.stack(x.chunk(5, 2)).mean(0)


@forward(IMAGE, dims=HW)
def remainder_table(self, x):
    return x * (2.0 if x.shape[2] % 7 == 3 else 1.0)


@forward(IMAGE, dims=HW)
def share_of_height(self, x):
    return x[:, :, : math.ceil(x.shape[2] * 0.3)]


@forward(IMAGE, dims=HW)
def nearest_by_odd_scales(self, x):
    return F.interpolate(x, scale_factor=0.29, mode="nearest"), F.interpolate(x, scale_factor=1.7, mode="nearest-exact")


@forward(X, "t:int64[N]=0:5", dims=N)
def losses_and_roots(self, x, t):
    return torch.expm1(x), torch.hypot(x, x.flip(1)), F.cross_entropy(x, t, reduction="none"), F.cross_entropy(x, t)


@forward(INT8, dims=N)
def int8_arithmetic(self, x):
    return x // 3, x * x, -x


@forward("x:uint8[N,6]=0:255", dims=N)
def uint8_negation(self, x):
    return -x, 5 - x


@forward(X, dims=N)
def asymmetric_quantisation(self, x):
    return torch.fake_quantize_per_tensor_affine(x, 0.05, 37, 0, 255)


@forward(X, dims=N, refused="is of type int, not a tensor")
def whole_number_in_dict(self, x):
    return {"y": x * 2, "classes": 6}


@forward("x:float32[N,2,H,W]", "g:float32[N,5,5,2]=-1.2:1.2", dims="N=1:1:2 H=4:7:9 W=5:6:8")
def nearest_of_grid(self, x, g):
    return F.grid_sample(x, g, mode="nearest", align_corners=False)


@forward(IMAGE, dims="N=1:2:3 H=16:24:48 W=7:10:19")
def branch_of_height(self, x):
    return x.relu() if x.shape[2] > 32 else x.tanh()


@forward("input:float32[N,6]", dims=N)
def named_input(self, input):
    return input * 2

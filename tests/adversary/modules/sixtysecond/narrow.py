"""Narrow types, whole numbers that grow, tables by NumPy, functions of autograd's, inputs that are written."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="has no form of prod")
def A7589VandermondeAlone(self, x):
    """A7565's matrix of powers."""
    return torch.linalg.vander(x[:, 0], N=4)


@forward("i:int64[N,T]=0:5", dims="N=1:2:3 T=2:5:9")
def A7590ProductsWithinDoubles(self, i):
    """Products of whole numbers up to 8e15: beyond a float's digits and within int64."""
    return (i * 10 + 9).cumprod(1), (i * 10 + 9).prod(1), (i * 10 + 9).cumsum(1).cumsum(1) * 12345678901


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:40", kinds=FINITE)
def A7591TablesByNumPy(self, x):
    """A table of the length by NumPy, in doubles, cast; a mask by np.tri; a window by np.hanning."""
    t = x.shape[1]
    p = torch.from_numpy(np.sin(np.arange(t) / 7.0)).float()
    m = torch.from_numpy(np.tri(t, t, -1)).bool()
    w = torch.as_tensor(np.hanning(t + 2)[1:-1], dtype=x.dtype)
    return x * p * w, (x[:, :, None] * x[:, None]).masked_fill(m, 0.0).sum(-1)


class Straight(torch.autograd.Function):
    """Rounds, with a gradient of one."""

    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x)
        return torch.round(x / s).clamp(-8, 7) * s

    @staticmethod
    def backward(ctx, g):
        return g, None


@attack("x:float32[N,T,4]=-3:3", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "halves", "tenths", "zeros"))
class A7592FunctionsAndVmap(nn.Module):
    """A custom autograd function with a learned step, a Jacobian product by torch.func over a small function, vmap over rows with a branch by where, checkpointed."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.s, self.l = nn.Parameter(torch.tensor(0.37)), nn.Linear(4, 4)

    def forward(self, x):
        y = Straight.apply(self.l(x), self.s)
        z = torch.func.vmap(lambda r: torch.where(r.sum() > 0, r, -r))(x.reshape(-1, 4)).view_as(x)
        return y, z, torch.utils.checkpoint.checkpoint(self.l, x, use_reentrant=False)


@forward("x:float32[N,T]=-3:3", "b:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A7593InputsWritten(self, x, b):
    """Writes into its inputs and gives them back, one as a view; a swap through a tuple."""
    x += 1
    b[:, 0] = x[:, -1]
    x, b = b, x
    b.mul_(2)
    return x, b, x.t()[0]


@forward("m:bool[N,T]", "u:uint8[N,T]=0:255", dims="N=1:2:3 T=1:150:300", refused="differs from the module")
def A7594SumsOfBools(self, m, u):
    """Sums of booleans into int8 beyond 127, of bytes into bytes, booleans added and multiplied, cumulative sums in int16, argmax of booleans and bytes, a mean of booleans as float."""
    return (
        m.sum(1, dtype=torch.int8), u.sum(1, dtype=torch.uint8), m + m, m * u, m.cumsum(1, dtype=torch.int16), u.cumsum(1, dtype=torch.uint8),
        m.int().argmax(1), u.argmin(1), m.float().mean(1), (m & (u > 3)).any(1), u.prod(1, dtype=torch.uint8), m.sort(dim=1, stable=True)[1], u.float().std(1),
    )  # fmt: skip


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="computes in FP64")
def A7595CastsPastTheEnds(self, x):
    """Floats cast within range through each width, halves that overflow to infinity on the way to ints by clamp, whole floats beyond 2**24 compared, ceil and trunc of negatives into bytes by way of int32."""
    h = (x * 30000).half()
    big = (x * 1e7).round()
    return h.clamp(-1000, 1000).to(torch.int16), torch.isinf(h), big.to(torch.int64) % 7, big.to(torch.int32) // 3, torch.trunc(x * 100).to(torch.int32).to(torch.uint8), (big + 1) == big, x.double().mul(1e12).to(torch.int64) & 1023


@forward("i:int64[N,T]=0:6000000000", dims="N=1:2:3 T=1:5:9")
def A7596LargeIdsInTables(self, i):
    """Ids beyond 2**31 put into buckets by searchsorted and bucketize of int64 boundaries, compared to a list by isin, differenced, sorted, ranked, the largest taken."""
    b = torch.tensor([5, 2_147_483_647, 2_147_483_648, 4_294_967_296, 5_000_000_000])
    s, j = i.sort(dim=1, stable=True)
    return torch.bucketize(i, b), torch.searchsorted(b, i, side="right"), torch.isin(i, b), i.diff(dim=1), s, j.argsort(1), i.amax(1), i.float(), i.double() / 3, i.sum(1), i.topk(1, 1)[0], (i >> 31) & 1, i.clamp(max=4_294_967_297)


@forward("x:float32[N,C,H,W]=-3:3", dims="N=1:1:2 C=2:4:6 H=3:5:7 W=3:6:8", kinds=FINITE)
def A7597NormsOfEachKind(self, x):
    """Group norm whose groups follow the channels (gcd by hand), layer norm over shapes from sizes, local response of even sizes, instance norm with momentum arguments, normalise by other powers, weight standardised kernels of an input."""
    n, c, h, w = x.shape
    g = 2 if c % 2 == 0 else 1
    y = F.layer_norm(x, x.shape[1:], eps=1e-3)
    k = x[:1].mean((2, 3)).view(1, c, 1, 1) + torch.ones(3, 1, 1, 1)
    k = (k - k.mean((1, 2, 3), keepdim=True)) / (k.var((1, 2, 3), keepdim=True, unbiased=False) + 1e-3).sqrt()
    return F.group_norm(x, g), y, F.local_response_norm(x, 2, alpha=0.1, k=2.0), F.instance_norm(x), F.normalize(x, p=1.5, dim=1), F.conv2d(x, k), F.normalize(x, p=0.5, dim=(2, 3)) if False else F.normalize(x.flatten(1), p=float("inf"))


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:40", kinds=FINITE, refused="differs from the module")
def A7598RareLengthBySlices(self, x):
    """A length that matters through an empty slice, a mean over one row that becomes NaN and is replaced, a pad that is negative from 33 on, a roll by the length."""
    t = x.shape[1]
    tail = x[:, 17:]
    a = tail.sum(1) + (tail.shape[1] == 0) * 3.0
    b = torch.nan_to_num(x[:, 25:26].mean(1), nan=-1.0)
    c = F.pad(x, (0, 33 - t))
    d = x.roll(t // 2 + 1, 1)
    e = x[:, -5:-2].mean(1).nan_to_num(9.0)
    return a, b, c, d, e


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="computes in FP64")
def A7599DoublesToLargeInts(self, x):
    """A7595's last output: doubles of 1e12 cut to int64, their low bits."""
    return x.double().mul(1e12).to(torch.int64) & 1023


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:40", kinds=FINITE, refused="differs from the module")
def A7600MeanOfAnEmptySlice(self, x):
    """A7598's second output: the mean of a slice that is empty up to 25, replaced where NaN."""
    return torch.nan_to_num(x[:, 25:26].mean(1), nan=-1.0)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:40", kinds=FINITE, refused="differs from the module")
def A7601MeanOfATailSlice(self, x):
    """A7598's last output: the mean of x[:, -5:-2], empty below three."""
    return x[:, -5:-2].mean(1).nan_to_num(9.0)


@forward("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:5:40", kinds=FINITE)
def A7602PadThatCuts(self, x):
    """A7598's third output: a pad that is negative from 33 on, and an empty sum."""
    t = x.shape[1]
    return F.pad(x, (0, 33 - t)), x[:, 17:].sum(1) + (x[:, 17:].shape[1] == 0) * 3.0


@forward("u:uint8[N,T]=0:255", dims="N=1:2:3 T=1:150:300")
def A7603BytesSummedInBytes(self, u):
    """A7594: a sum of bytes that stays in bytes."""
    return u.sum(1, dtype=torch.uint8)


@forward("u:uint8[N,T]=0:255", dims="N=1:2:3 T=1:150:300", refused="differs from the module")
def A7604BytesMultipliedInBytes(self, u):
    """A7594: a product of bytes that stays in bytes, and wraps to 0."""
    return u.prod(1, dtype=torch.uint8)

"""What shows at rare sizes and values only: narrow counters at long lengths, powers past 53 bits, opaque C functions of sizes, names that collide."""
# ruff: noqa: E501, RUF046 - attacks are written as users write them

from __future__ import annotations

import calendar
import datetime
import hashlib
import math
import random
import re
import unicodedata
import zlib
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import Feed, attack, forward
from tests.adversary.inputs import FINITE

L = "N=1:2:3 T=1:40:600"


def true_mask(n: int, t: int) -> Callable[[], Feed]:
    """A mask that is true throughout."""
    return lambda: {"m": np.ones((n, t), bool)}


@forward("m:bool[N,T]", dims=L, feeds=(true_mask(2, 600), true_mask(1, 257), true_mask(1, 129)))
def A8081NarrowCounters(self, m):
    """Counts in uint8 and int8 that wrap past 255 and 127, positions by a cumulative sum in uint8."""
    return m.sum(1, dtype=torch.uint8), m.to(torch.int8).sum(1, dtype=torch.int8), m.cumsum(1, dtype=torch.uint8), m.to(torch.uint8).cumsum(1)


@forward("x:float32[N,T,2]", dims="N=1:1:2 T=1:40:3000", kinds=("normal", "zeros"))
def A8082PositionsInHalves(self, x):
    """Positions made in float16 and bfloat16: inexact past 2048 and 256; int8 positions that wrap."""
    t = x.shape[1]
    return x + torch.arange(t, dtype=torch.float16)[:, None], x + torch.arange(t).to(torch.bfloat16)[:, None], x + torch.arange(t).to(torch.int8)[:, None], x + torch.arange(t).to(torch.uint8)[:, None]


@forward("m:bool[N,T]", dims="N=1:2:3 T=1:40:3000", feeds=(true_mask(2, 3000), true_mask(1, 2049)))
def A8083MeansInHalf(self, m):
    """A mean of a mask in float16 (the sum accumulates in float32 in torch), a running count in float16 that sticks at 2048."""
    h = m.half()
    return h.mean(1), h.sum(1), h.cumsum(1)[:, -1:] * 0 + h.amax(1, keepdim=True)


@forward("i:int64[N,T]=-1000000:1000000", dims="N=1:2:3 T=2:4:9")
def A8084PowersPast53Bits(self, i):
    """Cubes of a million need 60 bits; a square plus one, its low bits; a product of four; exact division back."""
    return i**3, (i**3 + i) % 1000, i.pow(2) * i // i.clamp(min=1), torch.pow(i, 3) & 1023


@forward("i:int64[N,T]=0:4000000000", dims="N=1:2:3 T=2:4:9")
def A8085BeyondInt32(self, i):
    """Microseconds in int64: seconds and the rest, to float32 by division, comparisons between neighbours, cast to int32 wraps, amax and sort."""
    return i // 1000000, i % 1000000, i.float() / 7, i == i.flip(1), i.to(torch.int32), i.amax(1), torch.sort(i, 1).values, (i[:, 1:] - i[:, :-1]), i & 4095


@forward("i:int32[N,T]=-2000000000:2000000000", dims="N=1:2:3 T=2:4:9")
def A8086Int32Extremes(self, i):
    """abs, differences that wrap, halves by shifts, mean in double, a comparison with a float, clamps, true division, floor by 10, max with a float."""
    return (i - i.flip(1)), i >> 3, i.double().mean(1).float(), i > 1e9, i.clamp(-(10**9), 2**30), i / 1000, i // 10, i % 10, torch.maximum(i, i.flip(1)), i.float().round().long() // 65536


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=1:24:200 W=1:31:200", kinds=("normal",), refused="differs from the module")
def A8087CrcOfSizes(self, x):
    """A scale by a checksum of the shape: zlib and hashlib; Python's random seeded by the size."""
    h, w = x.shape[-2:]
    k = zlib.crc32(f"{h}x{w}".encode()) % 5
    d = int(hashlib.md5(str(h).encode()).hexdigest(), 16) % 3
    return x * (1 + k + d)


@forward("x:float32[N,T]", dims="N=1:1:2 T=1:24:90", kinds=("normal",))
def A8088PrimesByRegex(self, x):
    """Whether the length is prime by the famous regular expression, a day of the year, a character's name, a month's length."""
    t = x.shape[1]
    prime = re.match(r"^1?$|^(11+?)\1+$", "1" * t) is None
    day = (datetime.date(2024, 1, 1) + datetime.timedelta(days=t)).weekday()
    name = unicodedata.name(chr(t + 64), "none")
    return x * (2 if prime else 1) + day, x + len(name), x - calendar.monthrange(2024, t % 12 + 1)[1]


@forward("x:float32[N,T]", dims="N=1:1:2 T=2:24:90", kinds=("normal",))
def A8089SeededShuffles(self, x):
    """random.Random(t) shuffles an index list and samples; numpy's RandomState of the size permutes."""
    t = x.shape[1]
    order = list(range(t))
    random.Random(t).shuffle(order)
    keep = sorted(random.Random(7).sample(range(t), t // 2))
    return x[:, order], x[:, keep], x[:, torch.from_numpy(np.random.RandomState(t).permutation(t))]


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:24:200", kinds=("normal",))
def A8090FloatRanges(self, x):
    """arange with float steps whose count a last bit decides, linspace floors, logspace, a step of 1/t, a stop of t*0.1."""
    t = x.shape[1]
    a = torch.arange(0, t * 0.1, 0.1)
    b = torch.arange(0, 1, 1 / t)
    c = torch.linspace(0, t - 1, t // 2 + 1).long()
    d = torch.arange(0.5, t, 0.7).floor().long().clamp(max=t - 1)
    return a, b.sum(), x[:, c], x[:, d]


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:24:200", kinds=("normal",))
def A8091FrameCounts(self, x):
    """Frames by ceil, floor and round of float quotients: librosa's, Kaldi's snip edges, an overlap of 0.25, a hop of int(t * 0.1) or 1; padded as far."""
    t = x.shape[1]
    hop = max(1, int(t * 0.07))
    n = math.ceil((t - 5) / hop) + 1 if t > 5 else 1
    y = F.pad(x, (0, (n - 1) * hop + 5 - t if t > 5 else 5 - t))
    return y.unfold(1, 5, hop).mean(-1), x[:, : round(t * 0.3)].sum(1), x * (int(t / 0.3) % 7)


@attack("b:float32[N,4]", "a:float32[N,4]", dims="N=1:2:4", kinds=FINITE)
class A8092KeywordOnlySwapped(nn.Module):
    """Keyword-only inputs, their order another than on the command line, outputs named as inputs are, a key with a dot beside a nest."""

    def forward(self, *, a, b):
        return {"a": a - b, "b": a * 2 - b, "x.y": a + 1, "x": {"y": b + 2}}


@forward("output:float32[N,4]", "input:float32[N,4]", "onnx_x:float32[N,4]", dims="N=1:2:4", kinds=FINITE)
def A8093NamesOfOutputs(self, output, input, onnx_x):
    """Inputs are called as outputs and initializers would be."""
    return output - input, {"output_0": input * 2, "input": onnx_x}, output / 3


@attack("x:float32[N,T,6]", dims="N=0:2:3 T=0:2:4", kinds=("normal",))
class A8094NothingAtAll(nn.Module):
    """A batch and a length of nothing through a GRU-free stack: conv, norm over rows, attention, means that are NaN, a cat with what is there."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.c, self.n, self.l = nn.Conv1d(6, 4, 3, padding=1), nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        y = F.pad(x, (0, 0, 0, 1))
        y = self.n(self.c(y.transpose(1, 2)).transpose(1, 2))
        z = F.scaled_dot_product_attention(y, self.l(y), y)
        return z, y.sum((0, 1)), x.sum(1), torch.cat((x, x.flip(1)), 1).cumsum(1)


@forward("x:float32[N,T]=0:1", dims="N=1:2:3 T=1:5:9", kinds=("unit", "zeros", "ones", "halves"))
def A8095DeclaredRangeEnds(self, x):
    """What holds within a declared range only: sqrt and log at its ends, acos, logit of 1, floor of x*255.999, index of bins at 1, pow(0, 0), 1/x clamped."""
    b = (x * 4).long()
    return x.sqrt(), x.log(), x.acos(), torch.logit(x, 1e-6), (x * 255.999).to(torch.uint8), torch.tensor([5.0, 6, 7, 8, 9])[b], x**x, (1 / x).clamp(max=1e6), torch.special.entr(x), x.atanh().clamp(max=20)


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="cannot be exported")
def A8096DeterministicDraws(self, x):
    """Draws that cannot vary: dropout of p=0 in training, multinomial of one-hots, randperm(1), normal of deviation zero."""
    p = F.one_hot(x.argmax(1), x.shape[1]).float()
    return F.dropout(x, 0.0, training=True), torch.multinomial(p, 1), x + torch.randperm(1), torch.normal(x, 0.0)


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
def A8097EmptyThenFilled(self, x):
    """torch.empty that is filled by copy_, by slices that meet, by index; new_empty with strides; a resize of a fresh tensor."""
    t = x.shape[1]
    y = torch.empty(x.shape[0], 2 * t)
    y[:, ::2], y[:, 1::2] = x, -x
    z = x.new_empty((t, x.shape[0])).t()
    z.copy_(x)
    w = torch.empty(0).resize_(3).zero_()
    return y, z * 2, w + x[:, :1]


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:24:64 W=4:31:64", kinds=("bytes", "unit"), noted="a last bit decides")
def A8098Homography(self, x):
    """kornia-like: normalised homography by 3x3 inverse of the size, grid by homogeneous division with a guard, warp with border, crop of the centre by integer halves."""
    h, w = x.shape[-2:]
    n = torch.tensor([[2 / (w - 1), 0, -1], [0, 2 / (h - 1), -1], [0, 0, 1.0]])
    m = torch.tensor([[0.9, 0.1, 1.0], [-0.05, 1.1, 0.5], [0.001, 0.0, 1.0]])
    d = torch.linalg.inv(n @ m @ torch.linalg.inv(n))
    gy, gx = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    p = torch.stack((gx, gy, torch.ones_like(gx)), -1) @ d.T
    g = p[..., :2] / torch.where(p[..., 2:].abs() < 1e-8, 1.0, p[..., 2:])
    y = F.grid_sample(x, g[None].expand(len(x), -1, -1, -1), padding_mode="border", align_corners=True)
    th, tw = h // 2, w // 2
    i, j = int(round((h - th) / 2.0)), int(round((w - tw) / 2.0))
    return y[..., i : i + th, j : j + tw]

"""Decisions and arithmetic by size."""

from __future__ import annotations

import fractions
import functools
import itertools
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, HW = "x:float32[N,3,H,W]", "N=1:1:2 H=4:8:19 W=5:9:18"
LINE, T = "x:float32[N,T,6]", "N=1:2:3 T=2:8:29"


@forward(IMAGE, dims="N=1:1:2 H=1:4:9 W=1:4:7", refused="depends on the size")
def channels_last_by_stride(self, x):
    if x.is_contiguous(memory_format=torch.channels_last):
        return x * 2
    return x - 1


@forward(LINE, dims=T)
def overlapping_chunks_averaged(self, x):
    """Long recordings are cut into windows of 8 with a hop of 6, and put together again by a triangular weight."""
    t = x.shape[1]
    window = torch.minimum(torch.arange(1.0, 9.0), torch.arange(8.0, 0.0, -1.0))
    steps = max(0, math.ceil((t - 8) / 6)) + 1
    padded = F.pad(x, (0, 0, 0, (steps - 1) * 6 + 8 - t))
    total, weight = torch.zeros_like(padded), torch.zeros(padded.shape[1])
    for i in range(steps):
        part = slice(i * 6, i * 6 + 8)
        total[:, part] += padded[:, part].cumsum(1) * window[:, None]
        weight[part] += window
    return (total / weight[:, None])[:, :t]


@forward(LINE, dims=T, refused="takes plain numbers only")
def seeded_by_size(self, x):
    return x * random.Random(x.shape[1]).random()


@forward(LINE, dims=T, refused="traced for some sizes only")
def permuted_by_size(self, x):
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(5))
    return x[:, order]


@forward(LINE, dims=T, refused="depends on the size")
def rows_in_python(self, x):
    parts = [row.cumsum(0)[-1] * (i + 1) for i, row in enumerate(x.unbind(1)) if i % 3 != 1]
    return torch.stack(parts, 1)


@forward(IMAGE, dims=HW, refused="Rational")
def fraction_of_sizes(self, x):
    ratio = fractions.Fraction(x.shape[2], x.shape[3])
    return x * ratio.numerator - ratio.denominator


@forward(IMAGE, dims=HW, refused="differs from the module")
def numpy_of_sizes(self, x):
    ramp = torch.from_numpy(np.linspace(-1, 1, x.shape[3], dtype=np.float32))
    return x * ramp + float(np.ceil(np.sqrt(x.shape[2])))


@forward(IMAGE, dims=HW, refused="differs from the module")
def names_by_rank_of_size(self, x):
    longest = max(range(2, 4), key=lambda d: x.shape[d])
    return x.cumsum(longest)


@forward(IMAGE, dims=HW)
def pyramid_until_small(self, x):
    levels = [x]
    while min(levels[-1].shape[2:]) >= 4:
        levels.append(F.avg_pool2d(levels[-1], 2, ceil_mode=True))
    return sum(F.interpolate(v, x.shape[2:], mode="nearest") * i for i, v in enumerate(levels, 1))


@forward(IMAGE, dims=HW)
def tiles_counted(self, x):
    n, c, h, w = x.shape
    rows, columns = -(-h // 5), (w + 6) // 7
    x = F.pad(x, (0, columns * 7 - w, 0, rows * 5 - h), value=-1.0)
    tiles = x.view(n, c, rows, 5, columns, 7).permute(0, 2, 4, 1, 3, 5).reshape(-1, c, 5, 7)
    return tiles.amax((2, 3)), torch.arange(n).repeat_interleave(rows * columns)


@forward(IMAGE, dims=HW, noted="infinity")
def kernel_by_size(self, x):
    k = max(3, x.shape[2] // 8 * 2 + 1)
    return F.avg_pool2d(x, k, stride=1, padding=k // 2, count_include_pad=False)


@forward(IMAGE, dims=HW)
def sigma_by_size(self, x):
    sigma = 0.3 * ((x.shape[3] - 1) * 0.5 - 1) + 0.8
    place = torch.arange(-2.0, 3.0)
    kernel = torch.exp(-(place**2) / (2 * sigma**2))
    return F.conv2d(x, (kernel / kernel.sum()).view(1, 1, 1, 5).repeat(3, 1, 1, 1), padding=(0, 2), groups=3)


@forward(IMAGE, dims=HW, refused="a size that the sensor does not have")
def guarded_by_assert(self, x):
    assert x.shape[2] * x.shape[3] != 15 * 13, "a size that the sensor does not have"
    return x.flatten(2).softmax(2)


@forward(LINE, dims=T, refused="depends on the size")
def reduced_shapes(self, x):
    total = functools.reduce(lambda a, b: a * 31 + b, x.shape)
    return x + total % 7, x[:, : sum(1 for _ in itertools.takewhile(lambda i: i * i < x.shape[1], itertools.count()))]


@attack(LINE, dims=T)
class BucketedBias(nn.Module):
    """T5 positions: exact when near, logarithmic when far, for queries at the end of the keys."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 2)

    def forward(self, x):
        t = x.shape[1]
        far = torch.arange(t)[:, None] - torch.arange(t)[None, :]
        far = far.clamp(min=0)
        log = 4 + (torch.log(far.float() / 4) / math.log(20 / 4) * 4).long()
        bucket = torch.where(far < 4, far, log.clamp(max=7))
        return self.table(bucket).permute(2, 0, 1)[None] + (x @ x.transpose(1, 2))[:, None]


@attack(LINE, dims=T)
class WindowsAttend(nn.Module):
    """Longformer's sliding window, its diagonal blocks by as_strided of padded keys."""

    def forward(self, x):
        n, t, c = x.shape
        padded = F.pad(x, (0, 0, 2, 2)).contiguous()
        keys = padded.as_strided((n, t, 5, c), (padded.stride(0), c, c, 1))
        scores = torch.einsum("ntc,ntwc->ntw", x, keys)
        place = torch.arange(t)[:, None] + torch.arange(-2, 3)[None]
        scores = scores.masked_fill((place < 0) | (place >= t), -torch.inf)
        return torch.einsum("ntw,ntwc->ntc", scores.softmax(-1), keys)


@attack("x:float32[N,3,H,W]", dims="N=1:1:1 H=7:14:33 W=7:14:30")
class PatchesWithRest(nn.Module):
    """Strided convolution drops the rest; positions are interpolated with the scale that DINO adds 0.1 to."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 7, 7)
        self.positions = nn.Parameter(torch.randn(1, 4, 3, 3))

    def forward(self, x):
        y = self.patches(x)
        h, w = y.shape[2:]
        scale = ((h + 0.1) / 3, (w + 0.1) / 3)
        positions = F.interpolate(self.positions, scale_factor=scale, mode="bicubic")
        return y + positions


@attack(LINE, dims=T, refused="depends on the size")
class LongIsHalved(nn.Module):
    """More than 16 steps are averaged in pairs, the odd one kept; twice where needed."""

    def forward(self, x):
        while x.shape[1] > 16:
            rest = x[:, x.shape[1] // 2 * 2 :]
            x = torch.cat(((x[:, : x.shape[1] // 2 * 2 : 2] + x[:, 1::2][:, : x.shape[1] // 2]) / 2, rest), 1)
        return x


@forward("x:float32[A,B,C]", dims="A=1:2:4 B=1:3:5 C=1:4:6")
def squeezed_everywhere(self, x):
    y = x.squeeze(1) if x.shape[1] == 1 else x.mean(1)
    return y.cumsum(-1), x.mT @ x


@forward("x:float32[A,B,C]", dims="A=1:2:4 B=1:3:5 C=1:4:6")
def broadcast_by_accident(self, x):
    """Sizes of 1, and equal sizes, broadcast otherwise."""
    column = x[:, :, :1]
    row = x[:1].mean((1, 2), keepdim=True)
    return (x - column) * row, torch.maximum(x, x[:, -1:, :]), x.sum((0, 1)) + x.sum((0, 1)).unsqueeze(1)

# ruff: noqa: E501, RUF046, RUF059 - attacks are written as users write them
"""Sizes: from Python's and NumPy's arithmetic of them to grids, strides, windows and shares, over wide ranges."""

from __future__ import annotations

import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_last import MANY
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq, two
from tests.adversary.values import values_at

X, MT = "x:float32[N,T]", "m:bool[N,T]"


@forward(X, **long(X, sizes=MANY), refused="the module cannot be exported")
def A6033NumpyOfLength(self, x):
    """NumPy's scalars of the length: ceil of a quotient, a power in int64, an arange, a linspace cast down, a float32 share."""
    t = x.shape[1]
    k = int(np.ceil(t / 3))
    at = torch.from_numpy(np.linspace(0, t - 1, 5).astype(np.int64))
    return x[:, :k], x[:, at], x * float(np.float32(t) * np.float32(0.1))


@forward(X, **long(X, sizes=MANY), refused="the exported model differs from the module")
def A6034NarrowNumpyOfLength(self, x):
    """The length in int16 of NumPy, squared (it wraps from 182 on), as a scale."""
    t = np.int16(x.shape[1])
    with np.errstate(all="ignore"):
        return x * float(t * t)


@forward(X, **long(X, sizes=MANY), refused="the module cannot be exported")
def A6035SeededByLength(self, x):
    """A permutation and a sample by Python's and NumPy's generators of a fixed seed, of the length."""
    t = x.shape[1]
    p = np.random.RandomState(0).permutation(t)
    k = sorted(random.Random(1).sample(range(t), min(t, 4)))
    return x[:, torch.from_numpy(p)], x[:, k]


@forward(X, **long(X, sizes=MANY), refused="the module cannot be exported")
def A6036SeededNoise(self, x):
    """Random features of a seed that is set in forward: randn of the length is another one from 16 on."""
    g = torch.Generator().manual_seed(3)
    return x + torch.randn(x.shape[1], generator=g) * 0.5


@forward(X, **long(X, sizes=MANY))
def A6037HopsAndFrames(self, x):
    """How many frames: by // after padding to a multiple, by ceil, by a formula with a maximum; the rest's length in floats."""
    t = x.shape[1]
    n1 = 1 + max(0, t - 400) // 160
    n2 = max(math.ceil((t - 25) / 10), 1)
    pad = (n2 - 1) * 10 + 25 - t
    y = F.pad(x, (0, max(pad, 0)))[:, : (n2 - 1) * 10 + 25].unfold(1, 25, 10)
    return y.mean(-1), x * n1, x * (t % 160) / 160


@forward(X, **long(X, sizes=MANY))
def A6038TimesOfFrames(self, x):
    """Times of frames in seconds at a rate, in whole milliseconds, in frames of another rate and back."""
    t = x.shape[1]
    sec = torch.arange(t) * 256 / 22050
    ms = (sec * 1000).round().long()
    back = (ms / 1000 * 22050 / 256).floor().long()
    return sec, ms, back, x[:, : int(t * 22050 / 44100)], torch.arange(t) / t * 7


@forward(X, **long(X, sizes=MANY))
def A6039BucketsByLog(self, x):
    """T5's relative buckets by a logarithm in floats of positions, to 128, both ways."""
    t = x.shape[1]
    p = torch.arange(t) - t // 2
    r = (p > 0).long() * 16
    p = p.abs()
    big = 8 + (torch.log(p.float() / 8) / math.log(128 / 8) * (16 - 8)).long()
    return r + torch.where(p < 8, p, torch.minimum(big, torch.full_like(big, 15)))


@forward(X, **long(X, sizes=MANY))
def A6040PositionsScaled(self, x):
    """Positions scaled to a table of 512 by integer and by float arithmetic; a log of the length scales scores."""
    t = x.shape[1]
    a = torch.arange(t) * 512 // t
    b = (torch.arange(t) * (512 / t)).long()
    c = torch.linspace(0, 511, t).round().long()
    return a, b, c, x * (math.log(t) / math.log(512)) if t > 1 else x


@forward(X, **long(X, sizes=MANY))
def A6041ClockOfLength(self, x):
    """divmod twice for hours, minutes and seconds of the length, and a path for a full minute."""
    m, s = divmod(x.shape[1], 60)
    h, m = divmod(m, 60)
    y = x * (h + 1) + m - s * 0.5
    return y.flip(1) if s == 0 else y


@forward(IMAGE, **pix(IMAGE))
def A6042LetterBoxed(self, x):
    """A letterbox: the lesser ratio of sides, the new sides rounded, padding split by a tenth to and fro."""
    h, w = x.shape[-2:]
    r = min(12 / h, 12 / w)
    nh, nw = int(round(h * r)), int(round(w * r))
    dh, dw = (12 - nh) / 2, (12 - nw) / 2
    y = F.interpolate(x, (nh, nw), mode="bilinear", align_corners=False)
    return F.pad(y, (int(round(dw - 0.1)), int(round(dw + 0.1)), int(round(dh - 0.1)), int(round(dh + 0.1))), value=114 / 255)


@forward(IMAGE, **pix(IMAGE, low=2), refused="the exported model differs from the module")
def A6043ScaledTwice(self, x):
    """Resizes by factors with recompute, by sizes that are ceilings, down by area and up by cubic, then cut."""
    h, w = x.shape[-2:]
    a = F.interpolate(x, scale_factor=0.7, mode="bilinear", recompute_scale_factor=True)
    b = F.interpolate(x, size=(math.ceil(h / 2), math.ceil(w * 0.6)), mode="area")
    return a, F.interpolate(b, size=(h, w), mode="bicubic"), F.interpolate(x, scale_factor=(1.3, 0.8)), F.interpolate(x, size=w, mode="nearest-exact")


@forward(IMAGE, **pix(IMAGE, low=2))
def A6044PoolsOfAllKinds(self, x):
    """Pools: ceil_mode beside padding and dilation, counts without padding, LP of order 3, adaptive to more than there is."""
    return F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 2, 2, 1, ceil_mode=True, count_include_pad=False), F.avg_pool2d(x, 2, 3, ceil_mode=True), F.lp_pool2d(x, 3.0, 2, ceil_mode=True), F.adaptive_avg_pool2d(x, (7, 3)), F.adaptive_max_pool2d(x, (3, 20)), F.avg_pool2d(x, (2, 1), divisor_override=3)


@forward(IMAGE, **pix(IMAGE, low=3))
def A6045GridsSampled(self, x):
    """Samplers by kind beyond the border: reflected, bordered, nearest at halves, cubic, with corners and without."""
    n, _, h, w = x.shape
    gy, gx = torch.meshgrid(torch.linspace(-1.5, 1.5, h + 1), torch.linspace(-2, 1, w), indexing="ij")
    g = torch.stack([gx, gy], -1).expand(n, -1, -1, -1)
    return [F.grid_sample(x, g, m, p, a) for m, p, a in (("bilinear", "reflection", True), ("bilinear", "border", False), ("nearest", "zeros", False), ("bicubic", "zeros", True), ("nearest", "border", True))]


@forward("x:float32[N,T]", "y:float32[N,S]", dims="N=1:1:2 T=1:50:400 S=1:60:400", kinds=FEW, feeds=tuple(values_at("x:float32[N,T]", "y:float32[N,S]", N=1, T=t, S=s) for t in (1, 2, 3, 7, 10, 49, 98, 100, 333, 400) for s in (1, 3, 10, 25, 49, 97, 100, 200, 399, 400)))
def A6046AlignedByRatio(self, x, y):
    """Two rates: which of y belongs to each of x by a ratio of lengths, in floats and in whole numbers, and by interpolation."""
    t, s = x.shape[1], y.shape[1]
    a = (torch.arange(t) * s / t).long()
    b = torch.arange(t) * s // t
    c = (torch.arange(t) * (s / t)).floor().long().clamp(max=s - 1)
    return y[:, a], y[:, b], y[:, c], F.interpolate(y[:, None], t, mode="linear")[:, 0], x * (t / s), torch.bucketize((torch.arange(t) + 0.5) / t, (torch.arange(s) + 1) / s).float()


@forward("x:float32[N,C,H,W]", dims="N=1:1:2 C=2:4:12%2 H=4:8:16%4 W=4:8:24%4", kinds=FEW, refused="the exported model differs from the module")
def A6047ShuffledInMultiples(self, x):
    """Sizes in multiples: channel shuffle, pixel unshuffle, windows rolled by half, wavelets, groups by a moving count."""
    n, c, h, w = x.shape
    a = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
    b = F.pixel_unshuffle(x, 2)
    win = torch.roll(x, (-2, -2), (2, 3)).view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
    lo = (x[..., ::2] + x[..., 1::2]) / math.sqrt(2)
    return a, b, win, lo, F.channel_shuffle(x, 2), F.group_norm(x, 2), x.unflatten(1, (-1, 2)).sum(1)


@forward(X4, **seq(X4, low=0))
def A6048NoneOfThem(self, x):
    """A sequence of none: attention over a start token, running extremes, argmax beside a pad, a stack of splits."""
    n, t, c = x.shape
    y = F.pad(x, (0, 0, 1, 0), value=0.5)
    a = (y @ y.transpose(1, 2)).softmax(-1) @ y
    return a, y.cummax(1).values, y.argmax(1), x.sum(1) / max(t, 1), y[:, :t], x.amax(2), torch.stack([x, -x], 2).flatten(1, 2), x.view(n, -1, 2, 2).shape[1] + y


@attack(X4, **seq(X4))
class A6049PadsThatReflect(nn.Module):
    """Paddings: as long as the sequence less one by reflection, circular by its whole, replicated, cut by negative ones."""

    def forward(self, x):
        y = x.transpose(1, 2)
        t = y.shape[2]
        return F.pad(y, (t - 1, t // 2 if t > 1 else 0), mode="reflect"), F.pad(y, (t, t), mode="circular"), F.pad(y, (3, 2), mode="replicate"), F.pad(y, (-1, 2)), F.pad(y, (1, -t + 1))


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]"))
def A6050SameOrBroadcast(self, x, y):
    """Sizes that agree are added, else an outer sum; one is stretched where it is one."""
    if x.shape[1] == y.shape[1]:
        z = x + y
    elif y.shape[1] == 1 or x.shape[1] == 1:
        z = x * y
    else:
        z = (x[:, :, None] + y[:, None]).sum(1)
    return z.sum(1)

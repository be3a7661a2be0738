"""Decisions by the proportion of two sizes, and sizes that a decision leads to: once refused, each is to convert."""

from __future__ import annotations

import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

IMAGE, HW = "x:float32[N,3,H,W]", "N=1:1:2 H=24:32:64 W=24:48:96"
SEQUENCE, T = "x:float32[N,T,3]", "N=1:1:2 T=4:40:60"


@forward(IMAGE, dims=HW)
def square_or_not(self, x):
    h, w = x.shape[-2:]
    if h == w:
        return x * 2
    return x + 1


@forward(IMAGE, dims=HW)
def wider_than_a_proportion(self, x):
    h, w = x.shape[-2:]
    if w / h > 4 / 3:
        return x * 2
    return x + 1


@attack(IMAGE, dims=HW)
class NearestProportion(nn.Module):
    RATIOS = ((1.0, 1.0), (1.5, 2.0), (2.0, 3.0))

    def forward(self, x):
        h, w = x.shape[-2:]
        ratio = w / h
        return x * min(self.RATIOS, key=lambda r: abs(r[0] - ratio))[1]


@forward(IMAGE, dims=HW)
def gain_by_proportion(self, x):
    h, w = x.shape[-2:]
    for limit, gain in ((0.75, 1.0), (1.33, 2.0), (2.0, 3.0)):
        if w / h < limit:
            return x * gain
    return x


@forward(IMAGE, dims=HW)
def short_side_and_crop(self, x):
    """torchvision's Resize(20) and CenterCrop(16)."""
    h, w = x.shape[-2:]
    short, long = (w, h) if w <= h else (h, w)
    if short != 20:
        new_long = int(20 * long / short)
        size = (new_long, 20) if w <= h else (20, new_long)
        x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
    h, w = x.shape[-2:]
    top, left = round((h - 16) / 2.0), round((w - 16) / 2.0)
    return x[:, :, top : top + 16, left : left + 16]


@forward(SEQUENCE, dims=T)
def chunk_of_a_length_in_place(self, x):
    y = x * 1.5
    first, second = y.chunk(2, dim=1)
    second.add_(first[:, :1])
    return y


@forward(IMAGE, dims=HW, refused="decisions_by_size.py:78")
def rounded_on_one_side(self, x):
    """A scale of detectors, of which FP32 makes another size at H=46 W=69: once silently wrong inside the If."""
    h, w = x.shape[-2:]
    scale = 40.0 / min(h, w)
    if max(h, w) * scale > 66:
        scale = 66.0 / max(h, w)
    return F.interpolate(x, scale_factor=scale, mode="bilinear", recompute_scale_factor=True, align_corners=False)

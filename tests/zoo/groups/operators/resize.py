"""Resizing: by factor, by a size from a shape, antialiased, area, and by arithmetic on sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import TWO, Case, module, of

PAIR = "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33"


class Fuse(nn.Module):
    """A branch resized to another branch's shape, as HRNet does."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.lateral = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = F.interpolate(
            self.lateral(self.down(x)), size=[x.shape[-2], x.shape[-1]], mode="bilinear", align_corners=True
        )
        return F.relu(x + low)


class FPN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c2, self.c3 = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        c2 = self.c2(x)
        c3 = self.c3(c2)
        p2 = c2 + F.interpolate(c3, size=c2.shape[-2:], mode="nearest")
        return [x + F.interpolate(p2, size=x.shape[-2:], mode="nearest"), p2, c3]


class IfDiffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(8, 8, 3, 2, 1)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self.down(x))
        if y.shape[2:] != x.shape[2:]:
            y = F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)
        return x + y


def resized(**options: object):
    return lambda x: F.interpolate(x, **options)


CASES: tuple[Case, ...] = (
    of("nearest_2", resized(scale_factor=2)),
    of("nearest_1.7", resized(scale_factor=1.7)),
    of("nearest_0.5", resized(scale_factor=0.5)),
    of("nearest_exact_1.7", resized(scale_factor=1.7, mode="nearest-exact")),
    of("nearest_exact_1.5", resized(scale_factor=1.5, mode="nearest-exact")),
    of("bilinear_2", resized(scale_factor=2, mode="bilinear")),
    of("bilinear_2_corners", resized(scale_factor=2, mode="bilinear", align_corners=True)),
    of("bilinear_0.5_recompute", resized(scale_factor=0.5, mode="bilinear", recompute_scale_factor=True)),
    of("bilinear_0.3", resized(scale_factor=0.3, mode="bilinear")),
    of("bilinear_fixed_size", resized(size=(24, 40), mode="bilinear")),
    of("nearest_fixed_size", resized(size=(24, 40))),
    of("bicubic_2", resized(scale_factor=2, mode="bicubic")),
    of(
        "bicubic_size_corners",
        lambda x: F.interpolate(x, size=(x.shape[2] + 5, x.shape[3] * 2), mode="bicubic", align_corners=True),
    ),
    of("area_fixed", resized(size=(8, 8), mode="area")),
    of("area_half", lambda x: F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] // 2), mode="area")),
    of("area_factor", resized(scale_factor=0.5, mode="area")),
    of("antialias_down", resized(size=(9, 11), mode="bilinear", antialias=True)),
    of("antialias_factor", resized(scale_factor=0.4, mode="bilinear", antialias=True)),
    of("antialias_up", resized(size=(70, 80), mode="bilinear", antialias=True)),
    of("antialias_bicubic", resized(size=(12, 14), mode="bicubic", antialias=True)),
    of("size_of_other", lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear"), TWO, PAIR),
    of("size_of_other_nearest", lambda x, y: F.interpolate(x, size=y.shape[2:]), TWO, PAIR),
    of(
        "size_of_other_corners",
        lambda x, y: F.interpolate(x, size=y.size()[2:], mode="bilinear", align_corners=True),
        TWO,
        PAIR,
    ),
    of(
        "ratio_of_shapes",
        lambda x, y: F.interpolate(x, scale_factor=(y.shape[2] / x.shape[2], y.shape[3] / x.shape[3]), mode="bilinear"),
        TWO,
        PAIR,
    ),
    of(
        "ratio_of_one_axis",
        lambda x, y: F.interpolate(
            x, scale_factor=y.shape[2] / x.shape[2], mode="nearest", recompute_scale_factor=True
        ),
        TWO,
        PAIR,
    ),
    of("int_of_1.5", lambda x: F.interpolate(x, size=(int(x.shape[2] * 1.5), int(x.shape[3] * 1.5)), mode="bilinear")),
    of("twice_plus_one", lambda x: F.interpolate(x, size=(x.shape[2] * 2 + 1, x.shape[3] * 2 - 1), mode="bilinear")),
    of("ceil_half", lambda x: F.interpolate(x, size=((x.shape[2] + 1) // 2, (x.shape[3] + 1) // 2), mode="nearest")),
    of(
        "item_sizes",
        lambda x: F.interpolate(
            x, size=(torch.tensor(x.shape[2]).item() * 2, torch.tensor(x.shape[3]).item()), mode="nearest"
        ),
    ),
    of(
        "multiple_of_32",
        lambda x: F.interpolate(x, size=((x.shape[2] + 31) // 32 * 32, (x.shape[3] + 31) // 32 * 32), mode="bilinear"),
    ),
    of("down_up", lambda x: F.interpolate(F.interpolate(x, scale_factor=0.5), size=x.shape[2:])),
    module("fuse_branches", Fuse),
    module("fpn", FPN),
    module("if_differs", IfDiffers),
    module("upsample_layer", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)),
    of(
        "linear_1d",
        lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"),
        "x:float32[N,8,T]",
        "N=1:2:5 T=9:20:50",
    ),
    of(
        "trilinear",
        lambda x: F.interpolate(x, size=(4, x.shape[3] * 2, x.shape[4]), mode="trilinear"),
        "x:float32[N,4,D,H,W]",
        "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12",
    ),
    of("repeat_interleave_up", lambda x: x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)),
)

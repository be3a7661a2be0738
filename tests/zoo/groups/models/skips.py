"""Odd sizes: skips that have to be cropped or padded to fit, transposed convolutions, paddings from shapes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import TWO, Case, module, of

PAIR = "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33"


class UNet(nn.Module):
    """Pads the upsampled branch by the difference, negative differences included."""

    def __init__(self, stride: int = 2) -> None:
        super().__init__()
        self.down = nn.Conv2d(8, 8, 3, stride, 1)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u = self.up(F.relu(self.down(x)))
        dy, dx = x.size(2) - u.size(2), x.size(3) - u.size(3)
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return torch.cat([x, u], 1)


class MaxPoolUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u = self.up(F.max_pool2d(x, 2))
        dy, dx = x.size(2) - u.size(2), x.size(3) - u.size(3)
        return torch.cat([x, F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])], 1)


class CropToSmaller(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(8, 8, 3, 2, 1), nn.ConvTranspose2d(8, 8, 2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u = self.up(self.down(x))
        h, w = min(x.shape[2], u.shape[2]), min(x.shape[3], u.shape[3])
        return torch.cat([x[:, :, :h, :w], u[:, :, :h, :w]], 1)


class OutputSize(nn.Module):
    def __init__(self, kernel: int = 3, padding: int = 1) -> None:
        super().__init__()
        self.down = nn.Conv2d(8, 8, 3, 2, 1)
        self.up = nn.ConvTranspose2d(8, 8, kernel, 2, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.up(self.down(x), output_size=x.shape[2:])


class SamePad(nn.Module):
    """TensorFlow's SAME padding for a strided convolution, computed from the size."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[-2:]
        ph = max((-(-h // 2) - 1) * 2 + 3 - h, 0)
        pw = max((-(-w // 2) - 1) * 2 + 3 - w, 0)
        return self.conv(F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2]))


class PadToWindow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[2:]
        bottom, right = (7 - h % 7) % 7, (7 - w % 7) % 7
        return F.pad(x, (0, right, 0, bottom))


class PadIfNeeded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[2] % 2 == 1:
            x = F.pad(x, (0, 0, 0, 1))
        return F.max_pool2d(x, 2)


class ShortcutSlice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y + x[:, :, 1 : 1 + y.shape[2], 1 : 1 + y.shape[3]]


def centre_crop(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    top, left = (x.shape[2] - y.shape[2]) // 2, (x.shape[3] - y.shape[3]) // 2
    return x[:, :, top : top + y.shape[2], left : left + y.shape[3]] + y


CASES: tuple[Case, ...] = (
    module("unet_stride", UNet),
    module("unet_maxpool", MaxPoolUNet),
    module("crop_to_smaller", CropToSmaller),
    module("output_size", OutputSize),
    module("output_size_k4", lambda: OutputSize(4, 1), space="N=1:2:5 H=16:32:60%2 W=18:48:66%2"),
    module("output_size_k2", lambda: OutputSize(2, 0), space="N=1:2:5 H=16:32:60%2 W=18:48:66%2"),
    module("same_padding", SamePad),
    module("pad_to_multiple", PadToWindow),
    module("pad_if_odd", PadIfNeeded),
    module("shortcut_slice", ShortcutSlice),
    of("centre_crop", centre_crop, TWO, "N=1:2:5 H=31:40:61 W=34:48:67 H2=9:16:30 W2=8:24:33"),
    of(
        "pad_to_other",
        lambda x, y: F.pad(y, (0, x.shape[3] - y.shape[3], 0, x.shape[2] - y.shape[2])) + x,
        TWO,
        "N=1:2:5 H=31:40:61 W=34:48:67 H2=9:16:30 W2=8:24:33",
    ),
    of("pad_reflect", lambda x: F.pad(x, (3, 2, 1, 4), mode="reflect")),
    of("pad_replicate", lambda x: F.pad(x, (3, 2, 1, 4), mode="replicate")),
    of("pad_circular", lambda x: F.pad(x, (3, 2, 1, 4), mode="circular")),
    of("pad_constant_value", lambda x: F.pad(x, (1, 2, 3, 4), value=-1.5)),
    of("pad_negative", lambda x: F.pad(x, (-1, -2, -3, 2))),
    of("pad_half_height", lambda x: F.pad(x, (0, 0, x.shape[2] // 2, 0))),
    module("reflection_layer", lambda: nn.ReflectionPad2d(4)),
    module("conv_circular", lambda: nn.Conv2d(8, 4, 3, padding=1, padding_mode="circular")),
    module("conv_reflect", lambda: nn.Conv2d(8, 4, 3, padding=1, padding_mode="reflect")),
    module("conv_same", lambda: nn.Conv2d(8, 4, 4, padding="same")),
    module("conv_transpose", lambda: nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1)),
    module("conv_dilated", lambda: nn.Conv2d(8, 4, 3, padding=2, dilation=2)),
    module("conv_grouped", lambda: nn.Conv2d(8, 8, 3, padding=1, groups=4)),
    of("concat_shifted", lambda x: torch.cat([x[:, :, 1:], x[:, :, :1]], 2)),
)

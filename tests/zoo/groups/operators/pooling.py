"""Pooling with fixed windows, windows that follow the size, and adaptive pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import SMALL, Case, module, of


class PyramidPooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 2, 1) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        levels = [x]
        for size, conv in zip((1, 2, 3, 6), self.convs, strict=True):
            pooled = conv(F.adaptive_avg_pool2d(x, size))
            levels.append(F.interpolate(pooled, size=x.shape[2:], mode="bilinear", align_corners=False))
        return torch.cat(levels, 1)


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = F.avg_pool2d(x, kernel_size=x.size()[2:]).flatten(1)
        return x * torch.sigmoid(self.fc2(F.relu(self.fc1(s))))[:, :, None, None]


class Downsampled(nn.Module):
    """The window is the size of what a stride-2 convolution left, as in HRNet's head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv2(F.relu(self.conv1(x)))
        return self.fc(F.avg_pool2d(y, kernel_size=y.size()[2:]).view(y.size(0), -1))


class HeightAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.shape[2]
        q = F.avg_pool2d(self.query(x), [h, 1])
        return q * torch.sigmoid(F.max_pool2d(x, [h, 1]))


class SpatialPyramid(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([F.adaptive_max_pool2d(x, k).flatten(1) for k in (1, 2, 4)], 1)


class SPPF(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = F.max_pool2d(x, 5, 1, 2)
        b = F.max_pool2d(a, 5, 1, 2)
        return torch.cat([x, a, b, F.max_pool2d(b, 5, 1, 2)], 1)


class CoordinateAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _n, _c, h, w = x.size()
        rows = F.adaptive_avg_pool2d(x, (None, 1))
        cols = F.adaptive_avg_pool2d(x, (1, None)).permute(0, 1, 3, 2)
        a, b = torch.split(self.conv(torch.cat([rows, cols], dim=2)), [h, w], dim=2)
        return x * a.sigmoid() * b.permute(0, 1, 3, 2).sigmoid()


CASES: tuple[Case, ...] = (
    of("max_3s2p1", lambda x: F.max_pool2d(x, 3, 2, 1)),
    of("max_2s2", lambda x: F.max_pool2d(x, 2)),
    of("max_ceil", lambda x: F.max_pool2d(x, 3, 2, 0, ceil_mode=True)),
    of("max_dilated", lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2)),
    of("avg_2s2", lambda x: F.avg_pool2d(x, 2)),
    of("avg_3s2p1", lambda x: F.avg_pool2d(x, 3, 2, 1)),
    of("avg_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
    of("avg_ceil_no_pad_count", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)),
    of("avg_no_pad_count", lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)),
    of("avg_divisor", lambda x: F.avg_pool2d(x, 3, 2, divisor_override=5)),
    of("lp_pool", lambda x: F.lp_pool2d(x.abs() + 0.1, 2.0, 3, 2)),
    of("avg_whole_height", lambda x: F.avg_pool2d(x, [x.shape[2], 1])),
    of("avg_whole_width", lambda x: F.avg_pool2d(x, (1, x.size(3)))),
    of("avg_whole", lambda x: F.avg_pool2d(x, x.shape[2:])),
    of("max_whole_height", lambda x: F.max_pool2d(x, [x.shape[2], 1])),
    of("max_whole", lambda x: F.max_pool2d(x, (x.shape[2], x.shape[3]))),
    of("avg_whole_height_strided", lambda x: F.avg_pool2d(x, [x.shape[2], 1], stride=[x.shape[2], 1])),
    of("avg_half_height", lambda x: F.avg_pool2d(x, (x.shape[2] // 2, 1))),
    of("avg_half_both", lambda x: F.avg_pool2d(x, (x.shape[2] // 2, x.shape[3] // 2))),
    of("max_half_height", lambda x: F.max_pool2d(x, (x.shape[2] // 2, 1))),
    of("avg_height_window_stride1", lambda x: F.avg_pool2d(x, (x.shape[2] - 2, 3), stride=1)),
    of("max_height_minus", lambda x: F.max_pool2d(x, (x.shape[2] - 4, 1), stride=1)),
    of("avg_int_of_shape", lambda x: F.avg_pool2d(x, [int(x.shape[2]), 1])),
    of("avg_pool1d_whole", lambda x: F.avg_pool1d(x, x.shape[2]), "x:float32[N,8,T]", "N=1:2:5 T=9:20:50"),
    of("max_pool1d_whole", lambda x: F.max_pool1d(x, x.shape[-1]), "x:float32[N,8,T]", "N=1:2:5 T=9:20:50"),
    of(
        "avg_pool3d_whole",
        lambda x: F.avg_pool3d(x, x.shape[2:]),
        "x:float32[N,4,D,H,W]",
        "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12",
    ),
    of(
        "avg_time_3d",
        lambda x: F.avg_pool3d(x, (x.shape[2], 1, 1)),
        "x:float32[N,4,D,H,W]",
        "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12",
    ),
    module("squeeze_excite_avg_pool", SqueezeExcite),
    module("after_strides", Downsampled),
    module("height_attention", HeightAttention),
    of("adaptive_avg_1", lambda x: F.adaptive_avg_pool2d(x, 1)),
    of("adaptive_avg_7", lambda x: F.adaptive_avg_pool2d(x, 7)),
    of("adaptive_avg_2x3", lambda x: F.adaptive_avg_pool2d(x, (2, 3))),
    of("adaptive_avg_1x4", lambda x: F.adaptive_avg_pool2d(x, (1, 4))),
    of("adaptive_avg_1xnone", lambda x: F.adaptive_avg_pool2d(x, (1, None))),
    of("adaptive_avg_nonex1", lambda x: F.adaptive_avg_pool2d(x, (None, 1))),
    of("adaptive_avg_upsamples", lambda x: F.adaptive_avg_pool2d(x, 20), space=SMALL),
    of("adaptive_avg_from_shape", lambda x: F.adaptive_avg_pool2d(x, (x.shape[2] // 2, x.shape[3] // 2))),
    of("adaptive_max_1", lambda x: F.adaptive_max_pool2d(x, 1)),
    of("adaptive_max_2", lambda x: F.adaptive_max_pool2d(x, 2)),
    of("adaptive_max_3x5", lambda x: F.adaptive_max_pool2d(x, (3, 5))),
    of("adaptive_max_1xnone", lambda x: F.adaptive_max_pool2d(x, (1, None))),
    of("adaptive_avg_1d", lambda x: F.adaptive_avg_pool1d(x, 6), "x:float32[N,8,T]", "N=1:2:5 T=9:20:50"),
    of("adaptive_max_1d", lambda x: F.adaptive_max_pool1d(x, 6), "x:float32[N,8,T]", "N=1:2:5 T=9:20:50"),
    of(
        "adaptive_avg_3d",
        lambda x: F.adaptive_avg_pool3d(x, (1, 2, 2)),
        "x:float32[N,4,D,H,W]",
        "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12",
    ),
    module("adaptive_layer", lambda: nn.AdaptiveAvgPool2d((3, 3))),
    module("pyramid_pooling", PyramidPooling),
    module("spatial_pyramid", SpatialPyramid),
    module("sppf", SPPF),
    module("coordinate_attention", CoordinateAttention),
    of("max_with_indices", lambda x: F.max_pool2d(x, 2, return_indices=True)),
    of(
        "max_unpool",
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), kernel_size=2, output_size=x.shape[2:]),
    ),
    of("strip_pooling", lambda x: F.interpolate(F.adaptive_avg_pool2d(x, (1, None)), x.shape[2:], mode="bilinear") + x),
    of("global_mean_std", lambda x: torch.cat([x.mean((2, 3)), x.std((2, 3))], 1)),
)

# ruff: noqa: E501 - one case a line reads best as a table
"""Pieces of detectors, segmenters and flow networks: decoders, boxes, peaks, cost volumes; more resizes and paddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import IMAGE, SMALL, TWO, Case, module, of

PAIR = "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33"


class DeepUNet(nn.Module):
    """Two levels; the skips are cut to what came up."""

    def __init__(self) -> None:
        super().__init__()
        self.d1, self.d2 = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.u1, self.u2 = nn.ConvTranspose2d(8, 8, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(a))
        up = self.u1(b)[:, :, : a.shape[2], : a.shape[3]]
        return self.u2(torch.cat([a, up], 1))[:, :, : x.shape[2], : x.shape[3]] + x


class PadRunCrop(nn.Module):
    """Pads to a multiple of 16 by reflection, runs, and crops back (restoration networks)."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(8, 16, 4, 4), nn.Conv2d(16, 8 * 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.size()[-2:]
        x = F.pad(x, (0, (16 - w % 16) % 16, 0, (16 - h % 16) % 16), "reflect")
        return F.pixel_shuffle(self.up(F.relu(self.down(x))), 4)[:, :, :h, :w]


class ASPP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rates = nn.ModuleList([nn.Conv2d(8, 4, 3, padding=r, dilation=r) for r in (1, 2, 4)])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.interpolate(self.pool(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return torch.cat([conv(x) for conv in self.rates] + [pooled], 1)


class PanopticFuse(nn.Module):
    """Levels resized to the finest and summed, sizes by scale factors of two."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.c1(x)
        b = F.interpolate(self.c2(a), scale_factor=2, mode="bilinear", align_corners=False)
        if b.shape[-2:] != a.shape[-2:]:
            b = b[:, :, : a.shape[2], : a.shape[3]]
        return a + b


class CarafeLike(nn.Module):
    """Content-aware upsampling: softmax kernels over unfolded neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv2d(8, 9 * 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        mask = F.pixel_shuffle(self.encode(x), 2).softmax(1)
        patches = F.unfold(x, 3, padding=1).view(n, c * 9, h, w)
        patches = F.interpolate(patches, scale_factor=2, mode="nearest").view(n, c, 9, 2 * h, 2 * w)
        return (patches * mask[:, None]).sum(2)


class ConvexUpsample(nn.Module):
    """RAFT: flow upsampled by a convex combination."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = nn.Conv2d(8, 4 * 9, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, _, h, w = x.shape
        mask = self.mask(x).view(n, 1, 9, 2, 2, h, w).softmax(2)
        flow = F.unfold(2 * x[:, :2], [3, 3], padding=1).view(n, 2, 9, 1, 1, h, w)
        return (mask * flow).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 2 * h, 2 * w)


class CostVolume(nn.Module):
    """Correlation within a radius, over a padded second image."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[2:]
        padded = F.pad(y, (2, 2, 2, 2))
        return torch.stack(
            [(x * padded[:, :, i : i + h, j : j + w]).mean(1) for i in range(5) for j in range(0, 5, 2)], 1
        )


class Disparity(nn.Module):
    """A volume over shifts, softmax, and the expected shift."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        w = x.shape[3]
        cost = torch.stack([(x * F.pad(y, (d, 0))[..., :w]).mean(1) for d in range(6)], 1)
        return (cost.softmax(1) * torch.arange(6.0).view(1, 6, 1, 1)).sum(1)


class Yolo(nn.Module):
    """A head with its grid and boxes decoded, as YOLOv5 exports it."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(8, 2 * 7, 1)
        self.register_buffer("anchors", torch.tensor([[10.0, 13.0], [30.0, 61.0]]).view(1, 2, 1, 1, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, _, h, w = x.shape
        y = self.head(x).view(n, 2, 7, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((xs, ys), 2).expand(1, 2, h, w, 2).float()
        xy, wh = (y[..., :2] * 2 - 0.5 + grid) * 8, (y[..., 2:4] * 2) ** 2 * self.anchors
        return torch.cat((xy, wh, y[..., 4:]), -1).view(n, -1, 7)


class CentreNet(nn.Module):
    """Peaks of a heat map: a max pool, top-k, gathers."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n, _, _, w = x.shape
        heat = x[:, :4].sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        score, index = heat.amax(1).flatten(1).topk(6)
        size = x[:, 4:6].flatten(2).gather(2, index[:, None].expand(n, 2, 6))
        return score, torch.cat([(index % w)[:, None], (index // w)[:, None], size], 1)


class DistributionBoxes(nn.Module):
    """YOLOv8: a distribution over eight bins a side, its mean is the distance."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.view(x.shape[0], 2, 4, -1).softmax(2) * torch.arange(4.0).view(1, 1, 4, 1)).sum(2)


class IouMatrix(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        low = torch.max(a[:, None, :2], b[None, :, :2])
        high = torch.min(a[:, None, :2] + a[:, None, 2:], b[None, :, :2] + b[None, :, 2:])
        common = (high - low).clamp(min=0).prod(-1)
        return common / (a[:, 2:].prod(-1)[:, None] + b[:, 2:].prod(-1)[None] - common + 1e-9)


class SoftSplat(nn.Module):
    """Bilinear sampling by hand: floor, four gathers from the flattened image, weights."""

    def forward(self, x: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        px = (torch.arange(w) + flow[:, 0].tanh() * 3).clamp(0, w - 1.001)
        py = (torch.arange(h)[:, None] + flow[:, 1].tanh() * 3).clamp(0, h - 1.001)
        x0, y0 = px.floor(), py.floor()
        total = torch.zeros_like(x)
        for dy in (0, 1):
            for dx in (0, 1):
                weight = (1 - (px - x0 - dx).abs()) * (1 - (py - y0 - dy).abs())
                index = ((y0 + dy) * w + x0 + dx).long().view(n, 1, h * w).expand(-1, c, -1)
                total = total + x.flatten(2).gather(2, index).view(n, c, h, w) * weight[:, None]
        return total


class CoordConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(11, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, _, h, w = x.shape
        xs = (torch.arange(w) / (w - 1) * 2 - 1).repeat(n, 1, h, 1)
        ys = (torch.arange(h) / (h - 1) * 2 - 1).repeat(n, 1, w, 1).transpose(2, 3)
        radius = torch.sqrt((xs - 0.5) ** 2 + (ys - 0.5) ** 2)
        return self.conv(torch.cat([x, xs, ys, radius], 1))


class CellMeans(nn.Module):
    """Superpixel-like: the mean over each cell of a grid of 4 x 4, put back to every pixel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = F.adaptive_avg_pool2d(x, 4)
        return x - F.interpolate(means, size=x.shape[2:], mode="nearest")


CASES: tuple[Case, ...] = (
    module("deep_unet", DeepUNet),
    module("pad_run_crop", PadRunCrop),
    module("aspp", ASPP),
    module("fuse_if_differs", PanopticFuse),
    module("carafe", CarafeLike, space=SMALL),
    module("convex_upsample", ConvexUpsample, space=SMALL),
    module("cost_volume", CostVolume, (IMAGE, "y:float32[N,8,H,W]")),
    module("disparity", Disparity, (IMAGE, "y:float32[N,8,H,W]")),
    module("yolo_decode", Yolo, space=SMALL),
    module("centre_peaks", CentreNet, space=SMALL),
    module("distribution_boxes", DistributionBoxes, space=SMALL),
    module("iou_matrix", IouMatrix, ("a:float32[P,4]=1:20", "b:float32[Q,4]=1:20"), "P=1:6:12 Q=2:5:9"),
    module("bilinear_by_gather", SoftSplat, (IMAGE, "flow:float32[N,2,H,W]"), SMALL),
    module("coord_conv", CoordConv),
    module("cell_means", CellMeans),
    of(
        "upsample_conv_nearest_ratio",
        lambda x, y: F.interpolate(x, scale_factor=y.shape[2] / x.shape[2], mode="bilinear", align_corners=False),
        TWO,
        PAIR,
    ),
    of("two_factors", lambda x: F.interpolate(x, scale_factor=(1.5, 0.75), mode="bilinear", align_corners=False)),
    of("nearest_exact_size", lambda x: F.interpolate(x, size=(x.shape[2] + 3, x.shape[3] - 2), mode="nearest-exact")),
    of("bicubic_down", lambda x: F.interpolate(x, scale_factor=0.6, mode="bicubic")),
    of("bilinear_1.7_corners", lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=True)),
    of(
        "bilinear_recompute_1.3",
        lambda x: F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True),
    ),
    of("nearest_third", lambda x: F.interpolate(x, scale_factor=1 / 3)),
    of("resize_to_one_row", lambda x: F.interpolate(x, size=(1, x.shape[3]), mode="bilinear")),
    of("resize_to_one_corners", lambda x: F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=True)),
    of(
        "shorter_side_to_24",
        lambda x: F.interpolate(
            x, size=(int(x.shape[2] * 24 / min(x.shape[2:])), int(x.shape[3] * 24 / min(x.shape[2:]))), mode="bilinear"
        ),
    ),
    of(
        "antialias_half_of_shape",
        lambda x: F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] // 2), mode="bilinear", antialias=True),
    ),
    of("area_third", lambda x: F.interpolate(x, size=(x.shape[2] // 3, x.shape[3] // 3), mode="area")),
    of(
        "pad_reflect_from_shape",
        lambda x: F.pad(x, (x.shape[3] // 4, x.shape[3] // 4, x.shape[2] // 3, 0), mode="reflect"),
    ),
    of("pad_replicate_to_multiple", lambda x: F.pad(x, (0, -x.shape[3] % 8, 0, -x.shape[2] % 8), mode="replicate")),
    of("pad_circular_width", lambda x: F.pad(x, (4, 4, 0, 0), mode="circular")),
    of("pad_reflect_line", lambda x: F.pad(x, (5, 3), mode="reflect"), "x:float32[N,8,T]", "N=1:2:5 T=9:20:50"),
    of(
        "pad_replicate_volume",
        lambda x: F.pad(x, (1, 2, 1, 1, 2, 0), mode="replicate"),
        "x:float32[N,4,D,H,W]",
        "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12",
    ),
    of("pad_to_square", lambda x: F.pad(x, (0, max(x.shape[2:]) - x.shape[3], 0, max(x.shape[2:]) - x.shape[2]))),
    of("crop_both_ends", lambda x: F.pad(x, (-2, -x.shape[3] // 4, -1, -1))),
    of("pad_infinity", lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=float("-inf")), 3, 2)),
    of(
        "centre_crop_square",
        lambda x: x[
            :,
            :,
            (x.shape[2] - 16) // 2 : (x.shape[2] - 16) // 2 + 16,
            (x.shape[3] - 16) // 2 : (x.shape[3] - 16) // 2 + 16,
        ],
    ),
    of(
        "five_crops",
        lambda x: torch.cat([x[:, :, :16, :16], x[:, :, -16:, :16], x[:, :, :16, -16:], x[:, :, -16:, -16:]], 0),
    ),
    of("flip_average", lambda x: (x + torch.flip(x, [3])) / 2),
    of(
        "grid_sample_3d",
        lambda x: F.grid_sample(x, torch.tanh(x[:, :3]).permute(0, 2, 3, 4, 1), align_corners=False),
        "x:float32[N,4,D,H,W]",
        "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12",
    ),
    of(
        "polar_grid",
        lambda x: F.grid_sample(
            x,
            torch.stack(
                [
                    torch.linspace(0, 1, x.shape[2])[:, None] * torch.cos(torch.linspace(-3, 3, x.shape[3])),
                    torch.linspace(0, 1, x.shape[2])[:, None] * torch.sin(torch.linspace(-3, 3, x.shape[3])),
                ],
                -1,
            ).expand(x.shape[0], -1, -1, -1),
            align_corners=True,
        ),
    ),
)

"""Sampling grids, affine grids, regions of interest, deformable convolution."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import TWO, Case, module, of


class STN(nn.Module):
    def __init__(self, corners: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 6, 3, 2, 1)
        self.theta = nn.Linear(6, 6)
        nn.init.zeros_(self.theta.weight)
        self.theta.bias.data = torch.tensor([0.9, 0.1, 0.05, -0.1, 1.1, -0.02])
        self.corners = corners

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        theta = self.theta(self.conv(x).mean((2, 3))).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.size()), align_corners=self.corners)
        return F.grid_sample(x, grid, align_corners=self.corners)


class Warp(nn.Module):
    """Backward warping by a flow, the grid made by hand."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _n, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij")
        grid = torch.stack((xs, ys), 0).float()[None] + torch.tanh(x[:, :2]) * 2
        gx = 2.0 * grid[:, 0] / max(w - 1, 1) - 1.0
        gy = 2.0 * grid[:, 1] / max(h - 1, 1) - 1.0
        return F.grid_sample(x, torch.stack((gx, gy), -1), mode="bilinear", padding_mode="border", align_corners=True)


class Deform(nn.Module):
    """Deformable convolution written with grid_sample."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Conv2d(8, 18, 3, padding=1)
        self.weight = nn.Parameter(torch.randn(4, 8 * 9, 1, 1) * 0.1)
        nn.init.normal_(self.offset.weight, std=0.05)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        offset = self.offset(x).view(n, 9, 2, h, w)
        ky, kx = torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij")
        ys = torch.arange(h).view(1, 1, h, 1) + ky.reshape(1, 9, 1, 1) + offset[:, :, 0]
        xs = torch.arange(w).view(1, 1, 1, w) + kx.reshape(1, 9, 1, 1) + offset[:, :, 1]
        grid = torch.stack(((2 * xs + 1) / w - 1, (2 * ys + 1) / h - 1), -1).view(n, 9 * h, w, 2)
        taps = F.grid_sample(x, grid, align_corners=False).view(n, c, 9, h, w).reshape(n, c * 9, h, w)
        return F.conv2d(taps, self.weight)


class RoiByGrid(nn.Module):
    """RoIAlign with one sample per bin, written with grid_sample; boxes are in feature pixels."""

    def forward(self, x: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[-2:]
        steps = (torch.arange(5) + 0.5) / 5
        x0, y0 = boxes[:, 0:1], boxes[:, 1:2]
        xs = x0 + (boxes[:, 2:3]) * steps
        ys = y0 + (boxes[:, 3:4]) * steps
        gx = (2 * xs / w - 1)[:, None, :].expand(-1, 5, -1)
        gy = (2 * ys / h - 1)[:, :, None].expand(-1, -1, 5)
        grid = torch.stack((gx, gy), -1).reshape(1, -1, 5, 2)
        crops = F.grid_sample(x[:1], grid, align_corners=False)
        return crops.view(x.shape[1], boxes.shape[0], 5, 5).permute(1, 0, 2, 3)


def coordinates(x: torch.Tensor) -> torch.Tensor:
    n, _, h, w = x.shape
    ys = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(n, 1, h, w)
    xs = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(n, 1, h, w)
    return torch.cat([x, xs, ys], 1)


def anchors(x: torch.Tensor) -> torch.Tensor:
    h, w = x.shape[-2:]
    sy, sx = torch.meshgrid(torch.arange(h) * 8, torch.arange(w) * 8, indexing="ij")
    centres = torch.stack((sx.reshape(-1), sy.reshape(-1), sx.reshape(-1), sy.reshape(-1)), 1)
    base = torch.tensor([[-8.0, -8.0, 8.0, 8.0], [-16.0, -16.0, 16.0, 16.0]])
    return (centres[:, None] + base[None]).reshape(-1, 4) + x.mean() * 0


CASES: tuple[Case, ...] = (
    module("stn", STN),
    module("stn_corners", lambda: STN(True)),
    module("warp", Warp),
    module("deform_by_grid", Deform),
    module(
        "roi_by_grid",
        RoiByGrid,
        ("x:float32[N,8,H,W]", "boxes:float32[R,4]=1:15"),
        "N=1:2:5 H=17:32:61 W=19:48:67 R=1:4:9",
    ),
    of("coordinate_channels", coordinates),
    of("anchors", anchors),
    of(
        "grid_sample_bilinear",
        lambda x, y: F.grid_sample(x, torch.tanh(y[:, :2]).permute(0, 2, 3, 1), align_corners=False),
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    of(
        "grid_sample_nearest",
        lambda x, y: F.grid_sample(x, torch.tanh(y[:, :2]).permute(0, 2, 3, 1), mode="nearest", align_corners=True),
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    of(
        "grid_sample_bicubic",
        lambda x, y: F.grid_sample(x, torch.tanh(y[:, :2]).permute(0, 2, 3, 1), mode="bicubic", align_corners=True),
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    of(
        "grid_sample_border",
        lambda x, y: F.grid_sample(
            x, y[:, :2].permute(0, 2, 3, 1).clamp(-2, 2), padding_mode="border", align_corners=False
        ),
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    of(
        "grid_sample_reflection",
        lambda x, y: F.grid_sample(
            x, y[:, :2].permute(0, 2, 3, 1).clamp(-2, 2), padding_mode="reflection", align_corners=False
        ),
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    of(
        "affine_grid_fixed",
        lambda x: F.grid_sample(
            x,
            F.affine_grid(
                torch.eye(2, 3)[None].expand(x.shape[0], -1, -1), [x.shape[0], 1, 12, 14], align_corners=False
            ),
            align_corners=False,
        ),
    ),
    of(
        "box_decode",
        lambda x: torch.cat(
            [
                x[..., :2] - torch.exp(x[..., 2:4].clamp(max=4.0)) / 2,
                x[..., :2] + torch.exp(x[..., 2:4].clamp(max=4.0)) / 2,
            ],
            -1,
        ),
        "x:float32[N,T,16]",
        "N=1:2:5 T=5:16:40",
    ),
)

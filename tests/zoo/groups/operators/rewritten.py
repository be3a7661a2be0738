"""Constructs that a rule of the rewrite room makes possible: what a target lacks or computes otherwise."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, SMALL, STEPS, Case, module, of

VOLUME = "x:float32[N,4,D,H,W]"
VOXELS = "N=1:2:3 D=3:5:8 H=6:8:11 W=7:9:12"
POINTS = (LINE, "y:float32[N,S,16]")
CLOUDS = "N=1:2:5 T=27:33:40 S=26:29:31"
INDEXED = (LINE, "y:int64[N,T]=0:4")
BYTES = "x:uint8[N,H,W,3]=0:255"
EVEN = "N=1:2:5 H=18:32:60%2 W=20:48:66%2"


class Scaled(nn.Module):
    """x / norm(x) with a learnable scale, multiplied in before the division."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 20.0, 8))
        self.way = way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.weight[None, :, None, None]
        if self.way == "expanded":
            norm = x.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-10
            return w.expand_as(x) * (x / norm)
        if self.way == "inverse":
            return x * (w * torch.rsqrt((x * x).sum(1, keepdim=True) + 1e-6))
        if self.way == "squeezed":
            return w * x / (torch.sqrt((x**2).sum(1)) + 1e-7)[:, None]
        return w * x / (x.pow(2).sum(1, keepdim=True).sqrt() + 1e-10)


def update_selected(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    high = y > 0.5
    y[high] = y[high] * 2.0 - 0.5
    return y


def take_selected(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    low = y < 0
    y[low] = (x.flip(1) * 0.1)[low]
    return y


def clear_rows(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y.mean(-1) > 0] = 0.0
    return y


def standardise_selected(x: torch.Tensor) -> torch.Tensor:
    picked = x[x > -0.25]
    return (x - picked.mean()) / (picked.std() + 1e-5)


class DenseNms(nn.Module):
    """Greedy suppression that keeps `count` places: the best box left, again and again; score 0 where none is."""

    def __init__(self, count: int = 5, threshold: float = 0.5) -> None:
        super().__init__()
        self.count, self.threshold = count, threshold

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        low = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
        high = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        area = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)
        overlap = both / (area[:, :, None] + area[:, None] - both + 1e-6)
        places = torch.arange(scores.shape[1])
        left, remainder, accepted_count = scores, [], []
        for _ in range(self.count):
            best, index = left.max(dim=1)
            remainder.append(best.clamp(min=0))
            row = index[:, None, None]
            accepted_count.append(boxes.gather(1, row.expand(-1, 1, 4)) * (best > 0)[:, None, None])
            near = overlap.gather(1, row.expand(-1, 1, scores.shape[1]))[:, 0] > self.threshold
            left = torch.where(near | (places[None] == index[:, None]), -1.0, left)
        return torch.cat(accepted_count, 1), torch.stack(remainder, 1)


def boxes_of(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[..., :2], x[..., :2] + x[..., 2:]], -1)


class Detections(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.suppress = DenseNms()

    def forward(self, x: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.suppress(boxes_of(x), scores)


class Correlated(nn.Module):
    """A kernel that one image gives and another is searched with."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x[:1].transpose(0, 1), y[:1].transpose(0, 1), padding=1)


CASES: tuple[Case, ...] = (
    module("l2norm_scale_first", lambda: Scaled("first")),
    module("l2norm_scale_expanded", lambda: Scaled("expanded")),
    module("l2norm_scale_on_inverse", lambda: Scaled("inverse")),
    module("l2norm_scale_first_squeezed", lambda: Scaled("squeezed")),
    of("l2norm_negative_axis", lambda x: 10.0 * x / torch.linalg.vector_norm(x, dim=-3, keepdim=True).clamp(min=1e-6)),
    of("l2norm_last_axis", lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-6), LINE, STEPS),
    of("max_dilated_strided", lambda x: F.max_pool2d(x, 3, 2, 1, dilation=2)),
    of("max_dilated_1d", lambda x: F.max_pool1d(x, 3, dilation=3), "x:float32[N,8,T]", "N=1:2:5 T=9:20:50"),
    of("max_dilated_3d", lambda x: F.max_pool3d(x, 2, 1, dilation=(1, 2, 3)), VOLUME, VOXELS),
    of("max_indices_padded", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)),
    of(
        "max_unpool_even", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), kernel_size=2), space=EVEN
    ),
    of("update_selected", update_selected),
    of("take_selected", take_selected),
    of("clear_rows", clear_rows, LINE, STEPS),
    of("standardise_selected", standardise_selected),
    of("mean_of_selected_rows", lambda x: x[x.mean(-1) > -9.0].mean(0), LINE, STEPS),
    of("count_selected", lambda x: x * (x > 0.5).nonzero().shape[0]),
    of("unique_inverse", lambda x: torch.unique(x, return_inverse=True)[1], "x:int64[N,T]=0:9", STEPS),
    of("unique_number", lambda x: torch.unique(x).shape[0] + x, "x:int64[T]=0:9", "T=5:20:50"),
    of("logsumexp_large", lambda x: (x * 300.0).logsumexp(1)),
    of("sine_large", lambda x: torch.sin(x * 4000.0) + torch.cos(x * 700.0)),
    of("determinant_4x4", lambda x: torch.linalg.det(x[:, :4, :4] * 0.2 + torch.eye(4)), LINE, STEPS),
    of("inverse_3x3", lambda x: torch.linalg.inv(torch.tanh(x[:, :3, :3]) * 0.2 + torch.eye(3)), LINE, STEPS),
    of(
        "grid_sample_volume_border",
        lambda x: F.grid_sample(
            x,
            torch.tanh(x[:, :3] * 2).permute(0, 2, 3, 4, 1),
            mode="nearest",
            padding_mode="border",
            align_corners=True,
        ),
        VOLUME,
        VOXELS,
    ),
    of("bytes_permute", lambda x: x.permute(0, 3, 1, 2).float() / 255.0, BYTES, SMALL),
    of("bytes_crop_and_halve", lambda x: (x[:, 1:-1, 2:] // 2).float().mean(-1), BYTES, SMALL),
    of("bytes_difference", lambda x: torch.where(x > 100, x - 100, 100 - x).float(), BYTES, SMALL),
    of("bytes_in_the_middle", lambda x: (torch.sigmoid(x) * 255).to(torch.uint8).float() / 255.0),
    of(
        "bits_of_values",
        lambda x, y: (x & y) + (x | y) * 2 + (x ^ y),
        ("x:int32[N,T]=-300:300", "y:int32[N,T]=-300:300"),
        STEPS,
    ),
    of("bits_of_masks", lambda x: (x & 12) + (x | 5) + (x ^ 255) + ~x, "x:int64[N,T]=-300:300", STEPS),
    of(
        "index_put_accumulate_int",
        lambda x: torch.zeros(30, dtype=torch.int64).index_put(
            (x.reshape(-1),), torch.ones_like(x.reshape(-1)), accumulate=True
        ),
        "x:int64[N,T]=0:29",
        STEPS,
    ),
    of("squeeze_from_two", lambda x: x.squeeze() * 2.0, "x:float32[N,1,T]", "N=2:3:5 T=5:16:40"),
    of("squeeze_batch_of_one", lambda x: x.squeeze() * 2.0, "x:float32[N,1,T]", "N=1:3:5 T=5:16:40"),
    of("cdist_by_product", lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"), POINTS, CLOUDS),
    of(
        "cdist_by_difference",
        lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
        POINTS,
        CLOUDS,
    ),
    of(
        "distances_by_hand",
        lambda x, y: (
            ((x * x).sum(-1)[:, :, None] + (y * y).sum(-1)[:, None] - 2 * x @ y.transpose(1, 2)).clamp(min=1e-6).sqrt()
        ),
        POINTS,
        CLOUDS,
    ),
    of(
        "triangle_of_booleans", lambda x: x.masked_fill(torch.ones_like(x, dtype=torch.bool).triu(1), -1.0), LINE, STEPS
    ),
    of("pad_cut_and_extend", lambda x: F.pad(x, (-1, 3, 2, -2))),
    module(
        "kernel_of_moving_size",
        Correlated,
        ("x:float32[N,8,H,W]", "y:float32[N,8,H2,W2]"),
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=3:5:7 W2=3:4:6",
    ),
    module("suppression_of_fixed_count", Detections, ("x:float32[N,T,4]=1:9", "scores:float32[N,T]=0:1"), STEPS),
)

"""Normalisations, canonical and hand-written."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, Case, module, of


class L2Norm(nn.Module):
    def __init__(self, eps: float = 1e-10) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((8,), 10.0))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = x.pow(2).sum(dim=1, keepdim=True).sqrt() + self.eps
        return torch.div(x, norm) * self.weight.view(1, -1, 1, 1)


class ChannelLayerNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8))
        self.bias = nn.Parameter(torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        var = (x - mean).pow(2).mean(1, keepdim=True)
        return (x - mean) / torch.sqrt(var + 1e-6) * self.weight[:, None, None] + self.bias[:, None, None]


class RMS(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class GRN(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = torch.norm(x, p=2, dim=(2, 3), keepdim=True)
        return x * (size / (size.mean(dim=1, keepdim=True) + 1e-6)) + x


class WeightNormConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(8, 4, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


class StandardisedConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.conv.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)
        return F.conv2d(x, w, self.conv.bias, padding=1)


CASES: tuple[Case, ...] = (
    module("l2norm_1e-10", L2Norm),
    module("l2norm_1e-12", lambda: L2Norm(1e-12)),
    of("l2_sqrt_inner_eps", lambda x: x / torch.sqrt((x * x).sum(1, keepdim=True) + 1e-9)),
    of("log_tiny_eps", lambda x: torch.log(x.abs() + 1e-9)),
    of("nearly_one_factor", lambda x: torch.log((x * (1 + 2e-6) - x).abs() * 1e6 + 1.0)),
    of("normalize", lambda x: F.normalize(x, dim=1)),
    of("normalize_p1", lambda x: F.normalize(x, p=1.0, dim=1, eps=1e-12)),
    module("batch_norm", lambda: nn.BatchNorm2d(8)),
    module("group_norm", lambda: nn.GroupNorm(4, 8)),
    module("instance_norm", lambda: nn.InstanceNorm2d(8)),
    module("instance_norm_affine", lambda: nn.InstanceNorm2d(8, affine=True)),
    module("instance_norm_running", lambda: nn.InstanceNorm2d(8, affine=True, track_running_stats=True)),
    module("layer_norm", lambda: nn.LayerNorm(16), LINE, STEPS),
    module("rms_norm", lambda: nn.RMSNorm(16, eps=1e-6), LINE, STEPS),
    module("rms_norm_by_hand", RMS, LINE, STEPS),
    module("channel_layer_norm", ChannelLayerNorm),
    of("layer_norm_nhwc", lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (8,)).permute(0, 3, 1, 2)),
    of("layer_norm_spatial", lambda x: (x - x.mean((1, 2, 3), True)) / (x.std((1, 2, 3), keepdim=True) + 1e-5)),
    module("local_response_norm", lambda: nn.LocalResponseNorm(5)),
    module("global_response_norm", GRN),
    module("weight_norm", WeightNormConv),
    module("weight_standardisation", StandardisedConv),
    of("cosine_similarity", lambda x: F.cosine_similarity(x[:, :4], x[:, 4:], dim=1)),
    of("adain", lambda x: (x - x.mean((2, 3), True)) / (x.var((2, 3), keepdim=True) + 1e-5).sqrt() * 2.0 + 0.5),
    of("softmax_spatial", lambda x: F.softmax(x.flatten(2), dim=-1).view_as(x)),
)

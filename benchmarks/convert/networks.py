"""Networks that are larger than the examples, with random weights: what conversions of real ones cost."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.speed.export_speed import VisionTransformer


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of [N, C, H, W]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """Depthwise 7 x 7, layer normalisation, an MLP of four times the width, a scale by channel, the shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.wider, self.narrower = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrower(F.gelu(self.wider(y))) * self.gamma
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """ConvNeXt (Liu et al., "A ConvNet for the 2020s", 2022): images [N, 3, H, W] -> logits [N, classes]."""

    def __init__(self, depths: Sequence[int], widths: Sequence[int], classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
        for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            if stage:
                layers += [ChannelNorm(widths[stage - 1]), nn.Conv2d(widths[stage - 1], width, 2, 2)]
            layers += [ConvNextBlock(width) for _ in range(depth)]
        self.body = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(widths[-1], eps=1e-6), nn.Linear(widths[-1], classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.norm(self.body(images).mean((2, 3))))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1 with batch normalisation, and the shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )
        plain = stride == 1 and inputs == outputs
        self.shortcut = (
            nn.Identity()
            if plain
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet (He et al., "Deep Residual Learning for Image Recognition", 2016), stride in the 3 x 3."""

    def __init__(self, depths: Sequence[int] = (3, 4, 6, 3), classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)),
            nn.MaxPool2d(3, 2, 1),
        ]
        inputs = 64
        for stage, depth in enumerate(depths):
            for index in range(depth):
                layers.append(Bottleneck(inputs, 64 << stage, 2 if stage and not index else 1))
                inputs = 256 << stage
        self.body, self.head = nn.Sequential(*layers), nn.Linear(inputs, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(images).mean((2, 3)))


def convnext_t(seed: int = 0) -> nn.Module:
    """ConvNeXt-T: 18 blocks, 28 M weights."""
    torch.manual_seed(seed)
    return ConvNext((3, 3, 9, 3), (96, 192, 384, 768)).eval()


def resnet50(seed: int = 0) -> nn.Module:
    """ResNet-50: 25 M weights; the norms of a network that was never trained would let it grow without bounds."""
    torch.manual_seed(seed)
    module = ResNet().eval()
    for part in module.modules():
        if isinstance(part, Bottleneck):
            nn.init.constant_(part.body[-1].weight, 0.2)
    return module


def vit_b(seed: int = 0) -> nn.Module:
    """ViT-B/16 at 224: 86 M weights."""
    torch.manual_seed(seed)
    return VisionTransformer().eval()

"""Modules that have to be refused: how long that takes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.convert.networks import ResNet


class Drawing(nn.Module):
    """Noise in eval mode: no file equals it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = ResNet()

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images + 0.1 * torch.randn_like(images))


class Deciding(nn.Module):
    """One way for dark images and another for bright ones: a file holds one."""

    def __init__(self) -> None:
        super().__init__()
        self.body = ResNet()

    def forward(self, images: Tensor) -> Tensor:
        if images.mean() > 0.0:
            images = images - 1.0
        return self.body(images)


def draws(seed: int = 0) -> nn.Module:
    """The first."""
    torch.manual_seed(seed)
    return Drawing().eval()


def decides(seed: int = 0) -> nn.Module:
    """The second."""
    torch.manual_seed(seed)
    return Deciding().eval()

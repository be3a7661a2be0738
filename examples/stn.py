"""A digit classifier that straightens its input first, for images of any size.

Structure from Jaderberg et al., "Spatial Transformer Networks" (2015): a localisation network predicts an affine
transformation, a grid generator turns it into sampling positions and a sampler reads the image there. The
localisation network sees a thumbnail of fixed size; the sampling is at the image's own size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

THUMBNAIL = 28


class Localisation(nn.Module):
    """images [N, C, H, W] -> theta [N, 2, 3], near the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, 7)
        self.conv2 = nn.Conv2d(8, 10, 5)
        self.fc1 = nn.Linear(10 * 3 * 3, 32)
        self.fc2 = nn.Linear(32, 6)

    def forward(self, images: Tensor) -> Tensor:
        x = F.interpolate(images, size=(THUMBNAIL, THUMBNAIL), mode="bilinear", align_corners=False)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x).view(-1, 2, 3)


class SpatialTransformerClassifier(nn.Module):
    """images [N, C, H, W] -> logits [N, num_classes], the straightened images [N, C, H, W] and theta [N, 2, 3]."""

    def __init__(self, num_classes: int, channels: int) -> None:
        super().__init__()
        self.localisation = Localisation(channels)
        self.conv1 = nn.Conv2d(channels, 16, 5, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 5, padding=2)
        self.classifier = nn.Linear(32, num_classes)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        theta = self.localisation(images)
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        straight = F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        x = F.max_pool2d(F.relu(self.conv1(straight)), 2)
        x = F.relu(self.conv2(x)).mean(dim=(2, 3))
        return {"logits": self.classifier(x), "straight": straight, "theta": theta}


def _seed_weights(model: SpatialTransformerClassifier, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            nn.init.uniform_(module.bias, -0.1, 0.1, generator=generator)
    # As after training: around the identity, by a few degrees and pixels that depend on the image.
    last = model.localisation.fc2
    last.weight.mul_(0.15)
    last.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]))


@torch.no_grad()
def stn(num_classes: int = 10, channels: int = 1, seed: int = 0) -> nn.Module:
    """The classifier with seeded random weights."""
    model = SpatialTransformerClassifier(num_classes, channels)
    _seed_weights(model, seed)
    return model.eval()

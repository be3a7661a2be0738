"""The box head of a two-stage detector: a feature map and proposals in, classes and refined boxes out.

RoIAlign as in He et al., "Mask R-CNN" (2017), with half-pixel positions (`aligned=True`), 7 x 7 bins and 2 x 2 sampling
points per bin, followed by the two fully connected layers of Lin et al., "Feature Pyramid Networks" (2017). RoIAlign
is written with `grid_sample`, one call for all proposals of an image, so that it needs no compiled operator. It is
equal to `torchvision.ops.roi_align` for proposals that were clipped to the image, as region proposal networks do.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHANNELS = 256
STRIDE = 16


class RoIAlign(nn.Module):
    """features [N, C, H, W] and boxes [N, R, 4] (x1, y1, x2, y2 in pixels of the image) -> [N, R, C, bins, bins].

    `stride` is the number of image pixels per feature, `samples` the sampling points per bin and direction.
    """

    def __init__(self, bins: int, samples: int, stride: int) -> None:
        super().__init__()
        self.bins = bins
        self.samples = samples
        self.stride = stride
        points = bins * samples
        self.register_buffer("offsets", (torch.arange(points) + 0.5) / points)

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        batch, channels, height, width = features.shape
        rois = boxes.shape[1]
        x1, y1, x2, y2 = (boxes / self.stride).unbind(dim=-1)
        # A feature's centre lies at its index + 0.5, so with align_corners=False a position p is just 2 p / size - 1.
        x = (x1[..., None] + (x2 - x1)[..., None] * self.offsets) * 2.0 / width - 1.0
        y = (y1[..., None] + (y2 - y1)[..., None] * self.offsets) * 2.0 / height - 1.0
        points = self.bins * self.samples
        shape = (batch, rois, points, points)
        grid = torch.stack((x[:, :, None, :].expand(shape), y[:, :, :, None].expand(shape)), dim=-1)
        grid = grid.reshape(batch, rois * points, points, 2)
        # "border": a sample within half a feature of the edge takes the edge's value, as RoIAlign defines it.
        sampled = F.grid_sample(features, grid, mode="bilinear", padding_mode="border", align_corners=False)
        pooled = F.avg_pool2d(sampled, self.samples)
        return pooled.reshape(batch, channels, rois, self.bins, self.bins).transpose(1, 2)


class RoIHead(nn.Module):
    """features [N, C, H, W], boxes [N, R, 4] -> scores [N, R, num_classes] and deltas [N, R, num_classes, 4]."""

    def __init__(self, num_classes: int, channels: int, hidden: int, stride: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.align = RoIAlign(bins=7, samples=2, stride=stride)
        self.fc1 = nn.Linear(channels * 7 * 7, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, num_classes)
        self.regressor = nn.Linear(hidden, num_classes * 4)

    def forward(self, features: Tensor, boxes: Tensor) -> dict[str, Tensor]:
        x = self.align(features, boxes).flatten(2)
        x = F.relu(self.fc2(F.relu(self.fc1(x))))
        deltas = self.regressor(x)
        return {
            "scores": self.classifier(x).softmax(dim=-1),
            "deltas": deltas.reshape(deltas.shape[0], -1, self.num_classes, 4),
        }


def _seed_weights(model: RoIHead, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            nn.init.uniform_(module.bias, -0.1, 0.1, generator=generator)


@torch.no_grad()
def roi_head(
    num_classes: int = 81, channels: int = CHANNELS, hidden: int = 512, stride: int = STRIDE, seed: int = 0
) -> nn.Module:
    """The head with seeded random weights; 81 classes are the 80 of COCO and the background."""
    model = RoIHead(num_classes, channels, hidden, stride)
    _seed_weights(model, seed)
    return model.eval()


def sample_inputs(dims: dict[str, int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random features, and boxes inside the image: random coordinates would give boxes with x2 < x1."""
    features = torch.randn(dims["N"], CHANNELS, dims["H"], dims["W"], generator=generator)
    corners = torch.rand(dims["N"], dims["R"], 2, 2, generator=generator).sort(dim=2).values
    image_size = torch.tensor([dims["W"], dims["H"]]) * STRIDE
    return features, (corners * image_size).flatten(2)

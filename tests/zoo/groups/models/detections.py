"""What detectors do behind the network: boxes over a score, the best of each class, at a fixed number of rows.

Suppression itself is torchvision's, which is not among the tests' packages: tests/rewrite/fixed_rows has it in ONNX,
networks/ in whole detectors.
"""

from __future__ import annotations

import torch
from torch import nn

from tests.zoo.case import Case

MAPS = "H=8:12:17 W=8:14:18"
ONE_IMAGE = ("x:float32[1,8,H,W]",)
LEAST = 0.2


class Head(nn.Module):
    """Boxes around the places of a map, float[H * W, 4] as corners, and scores of `classes`, float[H * W, classes]."""

    def __init__(self, classes: int = 1) -> None:
        super().__init__()
        self.box, self.score = nn.Conv2d(8, 4, 1), nn.Conv2d(8, classes, 1)

    def detect(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        height, width = x.shape[2:]
        y, x0 = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        places = torch.stack([x0, y], -1).reshape(-1, 2)
        box = self.box(x)[0].flatten(1).T
        centre, size = places + box[:, :2].tanh(), 2.0 * box[:, 2:].tanh().exp()
        return torch.cat([centre - size / 2, centre + size / 2], 1), self.score(x)[0].flatten(1).T


class OverThreshold(Head):
    """Boxes with a score over a threshold, as they come."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        boxes, scores = self.detect(x)
        chosen = scores[:, 0] > LEAST
        return boxes[chosen], scores[:, 0][chosen]


class Labelled(Head):
    """Each pair of a box and a class that is over a threshold."""

    def __init__(self) -> None:
        super().__init__(3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        boxes, scores = self.detect(x)
        rows, labels = torch.where(scores > LEAST)
        return boxes[rows], scores[rows, labels], labels


class BestOfEachClass(Labelled):
    """Of each class the best over a threshold, one class behind the other, as an SSD does it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        boxes, scores = self.detect(x)
        parts = []
        for label in range(3):
            chosen = scores[:, label] > LEAST
            best, own = scores[:, label][chosen], boxes[chosen]
            best, index = best.topk(min(12, best.shape[0]))
            parts.append((own[index], best, torch.full_like(best, label, dtype=torch.int64)))
        joined, best, labels = (torch.cat(p) for p in zip(*parts, strict=True))
        return joined, best, labels


KINDS = {"over_threshold": OverThreshold, "labelled": Labelled, "best_of_each_class": BestOfEachClass}
CASES = tuple(Case(name, build, ONE_IMAGE, MAPS, nms="topk") for name, build in KINDS.items())

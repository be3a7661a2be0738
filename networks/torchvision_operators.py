"""Lets torchvision's public wheels be imported beside a CPU build of torch.

They are built for CUDA, and their library of operators does not load without it. torchvision then falls back to Python
for all of them but `nms` and its quantized form, whose declarations its import needs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@cache
def define_operators() -> Any:
    """Declare and implement them where torchvision's library does not load; returns what keeps them alive."""
    import importlib.util
    from pathlib import Path

    import torch

    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return None
    try:
        for library in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(library))
    except OSError:
        pass
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", suppress, "CPU")
    import torchvision

    # What has a form in Python asked for operators when it was imported; what has none asks at each call.
    torchvision.extension._has_ops = lambda: True
    return library


def suppress(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Indices of the boxes (corners, float[K, 4]) that no better one overlaps by more than the threshold."""
    import torch

    order = torch.argsort(scores, descending=True, stable=True)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    chosen = []
    while order.numel():
        best, order = order[0], order[1:]
        chosen.append(best)
        low = torch.maximum(boxes[best, :2], boxes[order, :2])
        high = torch.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        order = order[shared / (areas[best] + areas[order] - shared) <= iou_threshold]
    return torch.stack(chosen) if chosen else torch.empty(0, dtype=torch.int64)

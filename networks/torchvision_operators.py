"""Lets torchvision's public wheels be imported beside a CPU build of torch.

They are built for CUDA, and their library of operators does not load without it. torchvision then falls back to Python
for all of them but `nms` and its quantized form, whose declarations its import needs.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@cache
def define_operators() -> Any:
    """Declare and implement them where torchvision's library does not load; returns what keeps them alive."""
    import importlib.util

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
    torchvision.extension._has_ops = has_operators
    return library


NATIVE = "<torchvision's operators>"


def as_native(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a function that stands for native code from those who watch the lines of Python for decisions."""
    function.__code__ = function.__code__.replace(co_filename=NATIVE)  # type: ignore[attr-defined]
    # TorchScript reads the source of what it compiles.
    text = Path(__file__).read_text(encoding="utf-8")
    linecache.cache[NATIVE] = (len(text), None, text.splitlines(keepends=True), NATIVE)
    return function


@as_native
def has_operators() -> bool:
    """In the place of torchvision's own, which TorchScript compiles: it takes no lambda."""
    return True


@as_native
def suppress(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Indices of the boxes (corners, float[K, 4]) that no better one overlaps by more than the threshold.

    In NumPy, so that whoever watches torch sees one operator, as with torchvision's own.
    """
    import numpy as np
    import torch

    corners = boxes.detach().numpy()
    order = torch.argsort(scores.detach(), descending=True, stable=True).numpy()
    low, high = corners[:, :2], corners[:, 2:]
    areas = (high - low).prod(1)
    chosen = []
    while order.size:
        best, order = order[0], order[1:]
        chosen.append(best)
        size = np.minimum(high[best], high[order]) - np.maximum(low[best], low[order])
        shared = size.clip(min=0).prod(1)
        with np.errstate(invalid="ignore"):
            # NaN, of two empty boxes, is not over the threshold.
            overlap = shared / (areas[best] + areas[order] - shared)
        order = order[~(overlap > iou_threshold)]
    return torch.from_numpy(np.asarray(chosen, np.int64))

"""Lets torchvision's public wheels be imported beside a CPU build of torch.

They are built for CUDA, and their library of operators does not load without it. torchvision then falls back to Python
for all of them but `nms` and its quantized form, whose declarations its import needs. In Python `roi_align` is compiled
at its first call, which no exporter follows; where the library loads, it is an operator as `nms` is, so it is one here.
"""

from __future__ import annotations

import linecache
import sys
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
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("nms", suppress, "CPU")
    library.impl("roi_align", align, "CPU")
    library.impl("roi_align", _aligned_shape, "Meta")
    import torchvision

    # What has a form in Python asked for operators when it was imported; what has none asks at each call.
    torchvision.extension._has_ops = has_operators
    sys.modules["torchvision.ops.roi_align"]._has_ops = has_operators  # type: ignore[attr-defined]
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


@as_native
def align(
    maps: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """Means of the maps (float[N, C, H, W]) in the bins of rois (float[K, 5]: image, corners), [K, C, height, width].

    By torchvision's page on RoIAlign: samples lie at the middles of equal cells of a bin, are bilinear, count as zero
    from one beyond the border on, and are of the border's pixels before that.
    """
    import numpy as np
    import torch

    image, boxes = maps.detach().numpy(), rois.detach().numpy()
    pooled = (int(pooled_height), int(pooled_width))
    wide = np.float64 if image.dtype == np.float64 else np.float32
    result = np.zeros((len(boxes), image.shape[1], *pooled), image.dtype)
    for row, (index, *corners) in enumerate(boxes.astype(wide)):
        ends = np.array((corners[1::-1], corners[:1:-1]), wide)
        low, high = ends * wide(spatial_scale) - wide(0.5 * aligned)
        size = high - low if aligned else np.maximum(high - low, wide(1.0))
        weights = []
        for axis in range(2):
            bins = pooled[axis]
            count = sampling_ratio if sampling_ratio > 0 else max(int(np.ceil(size[axis] / bins)), 1)
            cells = (np.arange(bins * count, dtype=wide) % count + wide(0.5)) * (size[axis] / wide(bins) / wide(count))
            at = low[axis] + np.arange(bins * count, dtype=wide) // count * (size[axis] / wide(bins)) + cells
            weights.append(_weights(at, image.shape[2 + axis]).reshape(bins, count, -1).mean(1))
        result[row] = weights[0] @ image[int(index)] @ weights[1].T
    return torch.from_numpy(result)


@as_native
def _weights(at: Any, length: int) -> Any:
    """By sample the shares of the pixels of an axis, [samples, length]."""
    import numpy as np

    inside = (at >= -1) & (at <= length)
    clipped = at.clip(0, length - 1)
    first = np.floor(clipped).astype(np.int64)
    second = np.minimum(first + 1, length - 1)
    share = clipped - first
    weights = np.zeros((len(at), length), at.dtype)
    rows = np.arange(len(at))
    np.add.at(weights, (rows, first), inside * (1 - share))
    np.add.at(weights, (rows, second), inside * share)
    return weights


def _aligned_shape(
    maps: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    return maps.new_empty((rois.shape[0], maps.shape[1], pooled_height, pooled_width))

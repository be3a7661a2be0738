"""Adaptive pooling to any output size, exact at every input size.

The bin of output i over an axis of d elements with o outputs runs from floor(i * d / o) to ceil((i + 1) * d / o), as
in torch. The common replacement by a stride of d // o is another function whenever o does not divide d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trtconv.export.symbolic.resampling import windows
from trtconv.export.symbolic.sizes import arange, floor_ratio, is_symbolic, per_axis, same_size


def adaptive_pool(rank: int, kind: str, *, indices: bool = False) -> Callable[..., Any]:
    """The handler of adaptive_avg_pool or adaptive_max_pool over `rank` axes; `kind` is `average` or `max`."""

    def handle(func: Any, x: Any, output_size: Any, return_indices: bool = False) -> Any:
        if indices or return_indices:
            return _with_indices(x, per_axis(output_size, rank))
        return pool_to(x, per_axis(output_size, rank), kind)

    return handle


def pool_to(x: Any, sizes: list[Any], kind: str) -> Any:
    """Pool the last `len(sizes)` axes of x to the sizes; None keeps an axis."""
    rank = len(sizes)
    pooled_axes = [(i - rank, size) for i, size in enumerate(sizes) if size is not None]
    pooled_axes = [(axis, size) for axis, size in pooled_axes if not _keeps_size(size, x.shape[axis])]
    if all(not is_symbolic(size) and size == 1 for _, size in pooled_axes):
        whole = [axis for axis, _ in pooled_axes]
        if not whole:
            return x
        return x.mean(whole, keepdim=True) if kind == "average" else x.amax(whole, keepdim=True)
    bins = [(axis, *_bins(x, axis, size)) for axis, size in pooled_axes]
    if kind == "average":
        return windows.average(x, [windows.Windows(axis, start, end, end - start) for axis, start, end in bins])
    for axis, start, end in bins:
        x = windows.maximum(x, axis, start, end)
    return x


def _with_indices(x: Any, sizes: list[Any]) -> Any:
    """The maxima, and where each stands among the elements of its image: the first of equal ones, row by row."""
    rank = len(sizes)
    values, index = x, None
    for i in reversed(range(rank)):
        axis, size = i - rank, x.shape[i - rank] if sizes[i] is None else sizes[i]
        start, end = _bins(x, axis, size)
        values, here = windows.first_maximum(values, axis, start, end)
        # Where the element stands on the axes behind this one was found before; the row that is taken tells it.
        index = here if index is None else here * math.prod(x.shape[axis + 1 :]) + index.gather(axis, here)
    return values, index


def _bins(x: Any, axis: int, size: Any) -> tuple[Any, Any]:
    length, index = x.shape[axis], arange(size, x)
    return floor_ratio(index * length, size), floor_ratio((index + 1) * length + (size - 1), size)


def _keeps_size(size: Any, length: Any) -> bool:
    if is_symbolic(size) or is_symbolic(length):
        return same_size(size, length)
    return bool(size == length)

"""The bins of adaptive pooling as a matrix made from the size n: bin i of k is floor(i n / k) to ceil((i+1) n / k)."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def bin_mask(g: Replacement, value: Value, axis: int, bins: int) -> tuple[Value, Value]:
    """A boolean value [bins, size of the axis] that says which element is in which bin, and the counts [bins, 1]."""
    size = g.size(value, axis)
    first = np.arange(bins, dtype=np.int64).reshape(-1, 1)
    start = g.div(g.mul(size, g.const(first)), g.ints(bins))
    upper = g.add(g.mul(size, g.const(first + 1)), g.ints(bins - 1))
    end = g.div(upper, g.ints(bins))
    place = g.unsqueeze(g.range(g.scalar(0, dtype=7), g.squeeze(size, 0), g.scalar(1, dtype=7)), 0)
    inside = g.logical_and(g.logical_not(g.less(place, start)), g.less(place, end))
    return inside, g.sub(end, start)


def average_over(g: Replacement, value: Value, axis_from_end: int, rank: int, bins: int, dtype: int) -> Value:
    """Average of each bin of the last or the next to last axis, as a matrix product."""
    axis = rank - axis_from_end
    if bins == 1:
        return g.reduce("ReduceMean", value, [axis])
    mask, count = bin_mask(g, value, axis, bins)
    weights = g.div(g.cast(mask, dtype), g.cast(count, dtype))
    return g.matmul(weights, value) if axis_from_end == 2 else g.matmul(value, g.transpose(weights, 1, 0))


def maximum_over(g: Replacement, value: Value, axis_from_end: int, rank: int, bins: int, dtype: int) -> Value:
    """Maximum of each bin of the last or the next to last axis, by masking."""
    axis = rank - axis_from_end
    if bins == 1:
        return g.reduce("ReduceMax", value, [axis])
    mask, _ = bin_mask(g, value, axis, bins)
    # [.., 1, size, ..] against [bins, size]: the new axis is the bins, the old one is reduced.
    shown = g.unsqueeze(mask, 2) if axis_from_end == 2 else mask
    low = g.scalar(float(np.finfo(np.float16 if dtype == 10 else np.float32).min), dtype=dtype)
    spread = g.where(shown, g.unsqueeze(value, axis), low)
    return g.reduce("ReduceMax", spread, [axis + 1], keepdims=False)

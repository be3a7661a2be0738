"""The bins of adaptive pooling as a matrix made from the size n: bin i of k is floor(i n / k) to ceil((i+1) n / k)."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.graph.builder import Builder


def bin_mask(b: Builder, value: str, axis: int, bins: int) -> tuple[str, str]:
    """A boolean value [bins, size of the axis] that says which element is in which bin, and the counts [bins, 1]."""
    size = b.size(value, axis)
    first = np.arange(bins, dtype=np.int64).reshape(-1, 1)
    start = b.op("Div", b.op("Mul", size, b.const(first)), b.ints(bins))
    upper = b.op("Add", b.op("Mul", size, b.const(first + 1)), b.ints(bins - 1))
    end = b.op("Div", upper, b.ints(bins))
    place = b.unsqueeze(b.op("Range", b.scalar(0, dtype=7), b.squeeze(size, 0), b.scalar(1, dtype=7)), 0)
    inside = b.op("And", b.op("Not", b.op("Less", place, start)), b.op("Less", place, end))
    return inside, b.op("Sub", end, start)


def average_over(b: Builder, value: str, axis_from_end: int, rank: int, bins: int, dtype: int) -> str:
    """Average of each bin of the last or the next to last axis, as a matrix product."""
    axis = rank - axis_from_end
    if bins == 1:
        return b.reduce("ReduceMean", value, [axis])
    mask, count = bin_mask(b, value, axis, bins)
    weights = b.op("Div", b.cast(mask, dtype), b.cast(count, dtype))
    return b.op("MatMul", weights, value) if axis_from_end == 2 else b.op("MatMul", value, b.transpose(weights, 1, 0))


def maximum_over(b: Builder, value: str, axis_from_end: int, rank: int, bins: int, dtype: int) -> str:
    """Maximum of each bin of the last or the next to last axis, by masking."""
    axis = rank - axis_from_end
    if bins == 1:
        return b.reduce("ReduceMax", value, [axis])
    mask, _ = bin_mask(b, value, axis, bins)
    # [.., 1, size, ..] against [bins, size]: the new axis is the bins, the old one is reduced.
    shown = b.unsqueeze(mask, 2) if axis_from_end == 2 else mask
    low = b.scalar(float(np.finfo(np.float16 if dtype == 10 else np.float32).min), dtype=dtype)
    spread = b.op("Where", shown, b.unsqueeze(value, axis), low)
    return b.reduce("ReduceMax", spread, [axis + 1], keepdims=False)

"""The bins of adaptive pooling as a matrix made from the size n: bin i of k is floor(i n / k) to ceil((i+1) n / k)."""

from __future__ import annotations

import math

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
    position = g.unsqueeze(g.range(g.scalar(0, dtype=7), g.squeeze(size, 0), g.scalar(1, dtype=7)), 0)
    inside = g.logical_and(g.logical_not(g.less(position, start)), g.less(position, end))
    return inside, g.sub(end, start)


def average_over(g: Replacement, value: Value, axis_from_end: int, rank: int, bins: int, dtype: int) -> Value:
    """Average of each bin of the last or the next to last axis, as a matrix product."""
    axis = rank - axis_from_end
    if bins == 1:
        return g.reduce("ReduceMean", value, [axis])
    mask, count = bin_mask(g, value, axis, bins)
    weights = g.div(g.cast(mask, dtype), g.cast(count, dtype))
    return masked_product(g, weights, value, dtype, first=axis_from_end == 2)


def masked_product(g: Replacement, mask: Value, value: Value, dtype: int, *, first: bool) -> Value:
    """mask @ value, or value @ transpose(mask): a sum over where the mask [out, in], at least 0, is not 0.

    In a plain product 0 * inf is NaN, and one infinity poisons the sums that it is not part of. So finite elements are
    summed, and whether an infinity is part of a sum is counted apart; NaN counts as both infinities, whose sum it is.
    """

    def product(part: Value) -> Value:
        return g.matmul(mask, part) if first else g.matmul(part, g.transpose(mask, 1, 0))

    none, one = g.scalar(0.0, dtype=dtype), g.scalar(1.0, dtype=dtype)
    above, below = g.scalar(math.inf, dtype=dtype), g.scalar(-math.inf, dtype=dtype)
    under, over = g.less(value, above), g.greater(value, below)
    total = product(g.where(g.logical_and(under, over), value, none))
    for inside, infinity in ((under, above), (over, below)):
        hit = g.greater(product(g.where(inside, none, one)), none)
        total = g.add(total, g.where(hit, infinity, none))
    return total


def maximum_over(g: Replacement, value: Value, axis_from_end: int, rank: int, bins: int, dtype: int) -> Value:
    """Maximum of each bin of the last or the next to last axis, by masking."""
    axis = rank - axis_from_end
    if bins == 1:
        return g.reduce("ReduceMax", value, [axis])
    mask, _ = bin_mask(g, value, axis, bins)
    # [.., 1, size, ..] against [bins, size]: the new axis is the bins, the old one is reduced.
    shown = g.unsqueeze(mask, 2) if axis_from_end == 2 else mask
    low = g.scalar(-math.inf, dtype=dtype)
    spread = g.where(shown, g.unsqueeze(value, axis), low)
    return g.reduce("ReduceMax", spread, [axis + 1], keepdims=False)

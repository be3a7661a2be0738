"""What is typical of the columns of an output: their magnitude, their noise, and which of them hold whole numbers.

A detector writes boxes in pixels, scores and class ids into one tensor. A scale over all of it is that of the boxes,
beside which a wrong score looks small, so statistics are taken by column: along the channel axis (1) and the last one,
where their sizes are the same at every point. An element belongs to a column of each, and the smaller number holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Elements of a column, over all points with random values, from which on it has statistics of its own.
FEWEST = 8
# Elements of a column at one point from which on its magnitude at that point is known without the other points.
ENOUGH = 32
# Statistics look at about so many elements of an output at a point; sorting all of a large one would take seconds.
LOOKED_AT = 400_000
# Equal magnitudes of at least LEAST_FILLING, this many times the next smaller one, are fillings (-1e9 of a mask, to
# which logits may be added), and no neighbours of the small ones.
GAP = 256.0
LEAST_FILLING = 1e3
EQUAL = 1.001
# An error over this share of its column's magnitude is a decision that fell to the other side, and no rounding,
FLIP = 1e-3
# as long as no more than this share of a column does so.
RARE = 0.1
# What is typical: the quantile USUAL, or this part of the quantile TAIL where that is more, up to so many times USUAL.
# Of normal errors the tail's part is a third less than the usual one (3.9 / 4 and 1.6 standard deviations).
USUAL, TAIL = 0.9, 0.9999
OF_TAIL, LONGEST_TAIL = 0.25, 5.0
# An element this many times its column's magnitude is of another one. Of normal values one in 16,000 is that large.
OUTSTANDING = 4.0
# A sample this many times as large as its columns is larger than its neighbours. Of ENOUGH normal values one in 100,000
# is so by chance.
LARGER = 1.5
# A column that is whole at fewer points than this may be a tanh that is saturated there.
FEWEST_POINTS = 3
# From here on every float32 is a whole number.
ALL_WHOLE = 2.0**23


def column_axes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The axes that hold columns, given an output's shapes at the points with random values; empty for one group."""
    if not shapes or len(shapes[0]) < 2 or len({len(s) for s in shapes}) > 1:
        return ()
    axes = dict.fromkeys((1, len(shapes[0]) - 1))
    fixed = [a for a in axes if len({s[a] for s in shapes}) == 1 and shapes[0][a] > 1]
    return tuple(a for a in fixed if sum(_elements(s) // max(1, s[a]) for s in shapes) >= FEWEST)


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def rows_of(array: Array, axis: int | None) -> Array:
    """One row per column of an axis, or one for all: shape [columns, elements], thinned out when there are many."""
    import numpy as np

    rows = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    step = min(-(-rows.size // LOOKED_AT), max(1, rows.shape[1] // ENOUGH))
    return rows[:, :: max(1, step)]


def along(values: Array, axis: int | None, rank: int) -> Array:
    """Values by column in a shape that broadcasts over an output of that rank."""
    shape = [1] * rank
    if axis is not None:
        shape[axis] = values.size
    return values.reshape(shape)


def sample_growth(output: Array, scale: Array) -> Array:
    """How many times as large each sample of a batch (axis 0) is as its columns, 1 at least; broadcasts over `output`.

    What makes one image's logits three times as large as those of its neighbours makes their roundings so, too. It is
    the root mean square over a sample's elements, each in units of its column's `scale` and cut at OUTSTANDING.
    """
    import numpy as np

    if output.ndim < 2 or output.shape[0] < 2 or output[0].size < ENOUGH:
        return np.ones([1] * output.ndim)
    with np.errstate(all="ignore"):
        relative = np.abs(output.astype(np.float64)) / scale
    used = np.isfinite(relative)
    squares = np.minimum(np.where(used, relative, 0.0), OUTSTANDING) ** 2
    inner = tuple(range(1, output.ndim))
    growth = np.sqrt(squares.sum(inner, keepdims=True) / np.maximum(1, used.sum(inner, keepdims=True)))
    return np.where(growth > LARGER, growth, 1.0)


def magnitudes(rows: Array) -> Array:
    """By row, the root mean square of its elements that are finite, not zero and no fillings; 0 where there are none.

    Fillings are equal to each other and stand above a gap in the sorted magnitudes.
    """
    import numpy as np

    if not rows.size:
        return np.zeros(rows.shape[0])
    sizes = np.abs(rows.astype(np.float64))
    sizes[~np.isfinite(sizes)] = 0.0
    sizes = np.sort(sizes, axis=1)
    width = sizes.shape[1]
    zeros = (sizes == 0.0).sum(axis=1)
    position = np.arange(width)[None, :]
    usual = position >= zeros[:, None]
    if width > 1:
        jumps = (sizes[:, 1:] > GAP * sizes[:, :-1]) & (position[:, 1:] > zeros[:, None])
        last = np.where(jumps.any(axis=1), width - 1 - jumps[:, ::-1].argmax(axis=1), width)
        least = np.take_along_axis(sizes, np.minimum(last, width - 1)[:, None], axis=1)[:, 0]
        alike = (sizes[:, -1] <= EQUAL * least) & (least >= LEAST_FILLING) & (last < width - 1)
        usual &= position < np.where(alike, last, width)[:, None]
    count = usual.sum(axis=1)
    squares = np.where(usual, sizes, 0.0)
    top = np.maximum(squares.max(axis=1), 1e-300)
    mean = ((squares / top[:, None]) ** 2).sum(axis=1) / np.maximum(1, count)
    result: Array = np.sqrt(mean) * top * (count > 0)
    return result


def typical_errors(errors: Array, scales: Array) -> Array:
    """By row, the 90 % quantile of the errors that are not zero, without rare flips; 0 where nothing is off.

    More where the errors have a long tail, as those of a softmax do: most elements are near 0 or 1, where the slope
    and so the error is small, and the few between them are off by ten times as much.

    `errors` has the shape [columns, elements] and holds finite numbers from 0 up, `scales` one number by column.
    """
    import numpy as np

    if not errors.size:
        return np.zeros(errors.shape[0])
    flips = errors > FLIP * scales[:, None]
    rare = flips.mean(axis=1) <= RARE
    sizes = np.sort(np.where(flips & rare[:, None], 0.0, errors), axis=1)
    width = sizes.shape[1]
    zeros = (sizes == 0.0).sum(axis=1)

    def quantile(share: float) -> Array:
        index = np.minimum(width - 1, zeros + (share * np.maximum(0, width - zeros - 1)).astype(np.int64))
        at: Array = np.take_along_axis(sizes, index[:, None], axis=1)[:, 0].astype(np.float64)
        return at

    typical = quantile(USUAL)
    result: Array = np.maximum(typical, np.minimum(quantile(TAIL) * OF_TAIL, typical * LONGEST_TAIL))
    return result


def errors_of_large(rows: Array, errors: Array) -> Array:
    """By row, the 90 % quantile of the errors relative to their own elements, over the larger half of these."""
    import numpy as np

    if rows.shape[1] < FEWEST or not errors.size:
        return np.zeros(rows.shape[0])
    sizes = np.where(np.isfinite(rows), np.abs(rows.astype(np.float64)), 0.0)
    counted = (sizes >= np.median(sizes, axis=1, keepdims=True)) & (sizes > 0.0) & (errors <= FLIP * sizes)
    relative = np.sort(np.where(counted, errors / np.maximum(sizes, 1e-300), np.inf), axis=1)
    index = (USUAL * np.maximum(0, counted.sum(axis=1) - 1)).astype(np.int64)
    quantiles = np.take_along_axis(relative, index[:, None], axis=1)[:, 0]
    result: Array = np.where(np.isfinite(quantiles), quantiles, 0.0)
    return result


def whole_numbers(rows: Array) -> tuple[Array, Array, Array]:
    """By row: does it hold nothing but whole numbers, and the lowest and highest of them."""
    import numpy as np

    values = rows.astype(np.float64)
    if not values.size:
        return np.ones(len(rows), bool), np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    with np.errstate(all="ignore"):
        whole = (np.abs(values) < ALL_WHOLE) & (values == np.round(values))
    return whole.all(axis=1), values.min(axis=1), values.max(axis=1)


def exact_columns(rows: Sequence[Array]) -> Array:
    """Whole numbers at every point, and more than one of them: a constant 1 may be a sum that came out even."""
    import numpy as np

    looked_at = [whole_numbers(r) for r in rows]
    whole = np.logical_and.reduce([w for w, _, _ in looked_at])
    low = np.minimum.reduce([a for _, a, _ in looked_at])
    high = np.maximum.reduce([b for _, _, b in looked_at])
    result: Array = whole & (high > low) & (len(rows) >= FEWEST_POINTS)
    return result


def are_whole(output: Array) -> bool:
    """True of whole numbers: what moves their original by less than a step changes them by one step or not at all."""
    import numpy as np

    return output.dtype.kind in "iu" or bool(np.array_equal(output, np.round(output)))

"""Bringing the rows that count to the front, without a size that the values decide."""

from __future__ import annotations

import onnx
import onnx_graphsurgeon as gs

from trtconv.rewrite.fixed_rows.row_count import RowCount
from trtconv.rewrite.graph.operators import INT64, Value
from trtconv.rewrite.graph.replacement import Replacement

INT32 = onnx.TensorProto.INT32


def places_32(g: Replacement, size: Value) -> gs.Tensor:
    """0 .. size - 1 as int32; `size` is int64[1].

    Counted as int64: ONNX Runtime takes a size that it knows for int64 even behind a Cast, and refuses the Range.
    """
    return g.cast(g.arange(g.squeeze(size, 0)), INT32)


def least(g: Replacement, first: Value, second: Value) -> gs.Tensor:
    """The smaller of two integers, element by element: Min takes none before opset 12."""
    return g.minimum(first, second) if g.opset >= 12 else g.where(g.less(first, second), first, second)


def valid_rows(g: Replacement, value: Value, axis: int, rows: RowCount) -> gs.Tensor:
    """bool[rows]: which rows of a value count."""
    places = places_32(g, g.size(value, axis))
    return g.less(places, g.cast(rows.count, INT32))


def valid_mask(g: Replacement, value: Value, axis: int, rows: RowCount, rank: int) -> gs.Tensor:
    """bool of that rank, which broadcasts over a value: the rows along `axis` that count."""
    valid: gs.Tensor = g.reshape(valid_rows(g, value, axis, rows), *[-1 if a == axis else 1 for a in range(rank)])
    return valid


def ordered(g: Replacement, chosen: Value, position: Value, rows: Value) -> gs.Tensor:
    """int32[rows]: the indices of the chosen elements, each at its position, 0 where there is none.

    `chosen` is bool[L] and `position` int32[L], different for each chosen one. No two elements are written to one
    place: which of them stays is said nowhere.
    """
    length = g.size(chosen, 0)
    places = places_32(g, length)
    spare = g.add(places, g.cast(rows, INT32))
    fits = g.logical_and(chosen, g.less(position, g.cast(rows, INT32)))
    target = g.where(fits, position, spare)
    zeros = g.expand(g.scalar(0, dtype=INT32), g.add(rows, length))
    zeros.dtype = places.dtype
    scattered = g.op("ScatterElements", zeros, target, places, axis=0)
    scattered.dtype = places.dtype
    return g.slice(scattered, g.ints(0), rows, [0])


def compact(g: Replacement, mask: Value) -> tuple[gs.Tensor, RowCount]:
    """int64[L], the indices of a mask's ones in order and zeros behind, and how many ones there are."""
    ones = g.cast(mask, INT32)
    sums = g.op("CumSum", ones, g.scalar(0, dtype=INT64))
    sums.dtype = ones.dtype
    position = g.sub(sums, g.scalar(1, dtype=INT32))
    order = ordered(g, mask, position, g.size(mask, 0))
    total = g.reduce("ReduceSum", g.cast(mask, INT64), [0])
    return g.cast(order, INT64), RowCount(total)

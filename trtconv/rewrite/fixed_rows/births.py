"""Where sizes that the values decide come from, and where several of them become one."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from trtconv.rewrite.fixed_rows.row_count import RowCount, Rows
from trtconv.rewrite.fixed_rows.selection import INT32, compact, places_32, valid_mask, valid_rows
from trtconv.rewrite.fixed_rows.suppression import suppress
from trtconv.rewrite.fixed_rows.walk import Walk
from trtconv.rewrite.graph.index import Node
from trtconv.rewrite.graph.operators import BOOL

BIRTHS = ("NonMaxSuppression", "NonZero", "Compress")


def non_max_suppression(walk: Walk, node: Node) -> None:
    """The indices of the boxes that are kept."""
    boxes, scores = walk.of(node.inputs[0]), walk.of(node.inputs[1])
    walk.require(node, not any(n in walk.rows for n in node.inputs[2:]), "has a limit for each row")
    valid = None
    source = scores or boxes
    if source is not None:
        same = boxes is None or scores is None or boxes.count is scores.count
        walk.require(node, same, "takes boxes and scores of two selections")
        axes = (boxes is None or boxes.axis == 1) and (scores is None or scores.axis == 2)
        walk.require(node, axes, "takes a number of images or classes that the values decide")
        name, axis = (node.inputs[1], 2) if scores is not None else (node.inputs[0], 1)
        valid = valid_rows(walk.g, name, axis, source.count)
    indices, count = suppress(walk.g, node, valid, walk.limits.get(node.output))
    if source is not None:
        walk.derive(source.count, count)
    walk.births[node.output] = count
    walk.emit(node.output, indices, Rows(0, count))


def non_zero(walk: Walk, node: Node) -> None:
    """The indices of a mask's ones, int64[rank, ones]."""
    name = node.inputs[0]
    rank = walk.index.rank(name)
    walk.require(node, rank is not None and rank > 0, "takes a value of unknown rank")
    order, count = walk.once(("ones", _mask_of(walk, name)), lambda: _ones(walk, name))
    g = walk.g
    if rank == 1:
        indices = g.unsqueeze(order, 0)
    else:
        places, rest = [], order
        for axis in reversed(range(rank or 0)):
            size = g.size(name, axis)
            places.append(g.mod(rest, size))
            rest = g.div(rest, size)
        indices = g.concat(*(g.unsqueeze(p, 0) for p in reversed(places)), axis=0)
    walk.emit(node.output, indices, Rows(1, count))


def compress(walk: Walk, node: Node) -> None:
    """The rows that a mask chooses."""
    data, mask = node.inputs
    axis, g = node.attr("axis"), walk.g
    walk.require(node, data not in walk.rows or walk.rows[data].axis == axis, "selects by columns")
    order, count = walk.once(("ones", _mask_of(walk, mask)), lambda: _ones(walk, mask))
    source = data if axis is not None else g.reshape(data, -1)
    walk.emit(node.output, g.gather(source, order, axis=axis or 0), Rows(axis or 0, count))


def _mask_of(walk: Walk, name: str) -> str:
    return walk.index.behind(name, "Identity", "Cast")[0]


def _ones(walk: Walk, name: str) -> tuple[gs.Tensor, RowCount]:
    g = walk.g
    mask: gs.Tensor | str = name if walk.index.dtype(name) == BOOL else g.cast(name, BOOL)
    state, dims = walk.of(name), walk.index.dims(name) or ()
    if state is not None:
        mask = g.logical_and(mask, valid_mask(g, name, state.axis, state.count, len(dims)))
    flat = g.reshape(mask, -1) if len(dims) != 1 else mask
    order, count = compact(g, flat)
    if state is not None:
        walk.derive(state.count, count)
    size = 1
    for dim in dims:
        size = size * dim if isinstance(dim, int) and size else 0
    fixed = size or (state.count.rows if state is not None and len(dims) == 1 else None)
    return order, RowCount(count.count, fixed)


def concat(walk: Walk, node: Node) -> None:
    """Values one behind the other: their rows are brought to the front where the sizes are those to be joined."""
    if any(n in walk.sizes for n in node.inputs):
        sizes = [walk.sizes.get(n) or walk.index.ints(n) for n in node.inputs]
        walk.require(node, all(s is not None for s in sizes), "joins a number of rows with other values")
        walk.keep_sizes(node, tuple(d for s in sizes for d in s or ()))
        return
    rank = walk.index.rank(node.output) or 0
    axis = node.attr("axis", 0) % max(rank, 1)
    states = [walk.of(n) for n in node.inputs]
    if all(s is None or s.axis != axis for s in states):
        counts = {id(s.count): s for s in states if s is not None}
        walk.require(node, len(counts) == 1 and None not in states, "joins columns of several selections")
        walk.keep(node, next(iter(counts.values())))
        return
    walk.require(node, all(s is None or s.axis == axis for s in states), "joins columns of several selections")
    parts = tuple(s.count if s is not None else _size(walk, n, axis) for n, s in zip(node.inputs, states, strict=True))
    order, count = walk.once(("joined", *parts), lambda: _joined(walk, node, states, axis))
    g = walk.g
    walk.emit(node.output, g.gather(g.concat(*node.inputs, axis=axis), order, axis=axis), Rows(axis, count))


def _size(walk: Walk, name: str, axis: int) -> object:
    dims = walk.index.dims(name)
    size = dims[axis] if dims else None
    return size if size is not None else name


def _joined(walk: Walk, node: Node, states: list[Rows | None], axis: int) -> tuple[gs.Tensor, RowCount]:
    """The order that brings the rows of all parts to the front, and their number."""
    g = walk.g
    masks, fixed = [], 0
    for name, state in zip(node.inputs, states, strict=True):
        places = places_32(g, g.size(name, axis))
        if state is None:
            masks.append(g.greater(places, g.scalar(-1, dtype=INT32)))
            size = _size(walk, name, axis)
        else:
            masks.append(g.less(places, g.cast(state.count.count, INT32)))
            size = state.count.rows
        fixed = fixed + size if isinstance(size, int) and fixed >= 0 else -1
    order, count = compact(g, g.concat(*masks, axis=0))
    count = RowCount(count.count, fixed if fixed >= 0 else None)
    for state in states:
        if state is not None:
            walk.derive(state.count, count)
    return order, count

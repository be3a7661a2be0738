"""Nodes that move rows, pick from them or compute with sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

from trtconv.rewrite.fixed_rows.passing import fill, replace_input
from trtconv.rewrite.fixed_rows.row_count import RowCount, Rows, Sizes, cannot
from trtconv.rewrite.fixed_rows.selection import least, places_32, valid_rows
from trtconv.rewrite.fixed_rows.walk import Walk
from trtconv.rewrite.graph.index import Node
from trtconv.rewrite.graph.operators import INT64

LARGE = 2**31


def gather(walk: Walk, node: Node) -> None:
    """Rows picked by indices, or columns of rows."""
    data, indices = node.inputs
    if data in walk.sizes:
        picked = walk.index.ints(indices)
        sizes = walk.sizes[data]
        walk.keep_sizes(node, (None,) if picked is None else tuple(sizes[i] for i in picked))
        return
    rank = walk.index.rank(data)
    walk.require(node, rank is not None and indices not in walk.sizes, "picks by the number of rows")
    axis = node.attr("axis", 0) % (rank or 1)
    state, chosen = walk.of(data), walk.of(indices)
    if state is not None and state.axis != axis:
        walk.require(node, chosen is None, "picks with one selection from another one")
        shift = (walk.index.rank(indices) or 0) - 1 if state.axis > axis else 0
        walk.keep(node, state.at(state.axis + shift))
        return
    if chosen is None:
        raise cannot(node, "picks single rows of a selection, which may not be there")
    walk.keep(node, chosen.at(axis + chosen.axis))


def gather_nd(walk: Walk, node: Node) -> None:
    """Elements picked by rows of indices."""
    chosen = walk.of(node.inputs[1])
    rank = walk.index.rank(node.inputs[1]) or 0
    fine = chosen is not None and chosen.axis < rank - 1 and not node.attr("batch_dims", 0)
    walk.require(node, fine, "picks single rows of a selection, which may not be there")
    walk.keep(node, chosen)


def gather_elements(walk: Walk, node: Node) -> None:
    """Elements picked one for one."""
    chosen = walk.of(node.inputs[1])
    walk.require(node, chosen is not None, "picks single rows of a selection, which may not be there")
    walk.keep(node, chosen)


def scatter_elements(walk: Walk, node: Node) -> None:
    """Elements written to places along another axis, row by row."""
    states, rank = [walk.of(n) for n in node.inputs], walk.index.rank(node.inputs[0]) or 1
    rows = {(s.axis, id(s.count)) for s in states if s is not None}
    fine = None not in states and len(rows) == 1 and all(a != node.attr("axis", 0) % rank for a, _ in rows)
    walk.require(node, fine, "writes to places among the rows of a selection")
    walk.keep(node, states[0])


def scatter_nd(walk: Walk, node: Node) -> None:
    """Rows written to places: those that do not count go behind the end, which is cut off again."""
    data, indices, updates = node.inputs
    places, values = walk.of(indices), walk.of(updates)
    if places is None or places.axis != 0 or walk.index.rank(indices) != 2:
        raise cannot(node, "writes to places that are no rows")
    same = values is None or (values.axis == 0 and values.count is places.count)
    walk.require(node, same and _behind(walk, data), "writes rows of two selections")
    g = walk.g
    count, size = g.size(indices, 0), g.size(data, 0)
    valid = g.unsqueeze(valid_rows(g, indices, 0, places.count), 1)
    spare = g.unsqueeze(g.add(g.cast(places_32(g, count), INT64), size), 1)
    first = g.slice(indices, g.ints(0), g.ints(1), [1])
    moved = g.where(valid, first, spare)
    if (walk.index.dims(indices) or (0, 0))[1] != 1:
        moved = g.concat(moved, g.slice(indices, g.ints(1), g.ints(LARGE), [1]), axis=1)
    rank = walk.index.rank(data) or 1
    shape = [count, *(g.size(data, a) for a in range(1, rank))]
    zero = g.expand(g.scalar(0, like=data), g.concat(*shape))
    zero.dtype = g.value(data).dtype
    longer = g.concat(data, zero, axis=0)
    attributes = {a.name: a for a in node.proto.attribute}
    written = g.op("ScatterND", longer, moved, updates, **attributes)
    walk.emit(node.output, g.slice(written, g.ints(0), size, [0]), walk.of(data))


def _behind(walk: Walk, name: str) -> bool:
    state = walk.of(name)
    return state is None or state.axis == 0


def cut_rows(walk: Walk, node: Node) -> None:
    """Slice: of other axes, or the first rows."""
    data = node.inputs[0]
    starts, steps = (walk.index.ints(node.input(i)) for i in (1, 4))
    ends = walk.index.ints(node.input(2))
    if starts is None:
        raise cannot(node, "cuts at starts that are computed")
    if data in walk.sizes:
        walk.require(node, ends is not None, "cuts sizes at ends that are computed")
        step = steps[0] if steps else 1
        walk.keep_sizes(node, walk.sizes[data][starts[0] : ends[0] if ends else None : step])
        return
    rank = walk.index.rank(data) or 1
    axes = walk.index.ints(node.input(3)) if node.input(3) else tuple(range(len(starts)))
    if axes is None:
        raise cannot(node, "cuts axes that are computed")
    own = [i for i, a in enumerate(axes) if data in walk.rows and a % rank == walk.rows[data].axis]
    if not own and node.input(2) not in walk.sizes:
        walk.keep(node, walk.of(data))
        return
    walk.require(node, data in walk.rows and bool(own), "cuts a value at the number of rows")
    index, state = own[0], walk.rows[data]
    walk.require(node, starts[index] == 0 and (steps is None or steps[index] == 1), "takes other than the first rows")
    if ends is not None:
        end = ends[index]
        walk.require(node, end >= 0, "leaves the last rows out")
        count = state.count if end >= LARGE - 1 else walk.cut(state.count, walk.g.ints(end), end)
    else:
        size = walk.sizes.get(node.input(2), (None,))
        fine = len(size) == 1 and (size[0] is None or walk.is_cut(state.count, size[0]))
        walk.require(node, fine, "cuts at ends that are computed")
        count = size[0] if isinstance(size[0], RowCount) else walk.cut(state.count, node.input(2), None)
    walk.keep(node, Rows(state.axis, count))


def top_k(walk: Walk, node: Node) -> None:
    """The best rows, or the best of each row."""
    state, rank = walk.of(node.inputs[0]), walk.index.rank(node.inputs[0]) or 1
    if state is None or node.attr("axis", -1) % rank != state.axis:
        walk.require(node, node.inputs[1] not in walk.sizes, "takes a part of a value by the number of rows")
        walk.keep(node, state, state)
        return
    number, size = walk.index.ints(node.inputs[1]), walk.sizes.get(node.inputs[1], (None,))[0]
    walk.require(node, not isinstance(size, RowCount) or walk.is_cut(state.count, size), "takes as many as others are")
    if isinstance(size, RowCount):
        count = size
    else:
        end = walk.g.ints(number[0]) if number else node.inputs[1]
        count = walk.cut(state.count, end, number[0] if number else None)
    walk.derive(state.count, count)
    replace_input(walk, node, fill(walk, node, float("-inf" if node.attr("largest", 1) else "inf")))
    walk.keep(node, Rows(state.axis, count), Rows(state.axis, count))


def transpose(walk: Walk, node: Node) -> None:
    """The axis goes where it is moved to."""
    state, rank = walk.rows[node.inputs[0]], walk.index.rank(node.inputs[0]) or 1
    perm = node.attr("perm") or list(reversed(range(rank)))
    walk.keep(node, state.at(perm.index(state.axis)))


def squeeze(walk: Walk, node: Node) -> None:
    """Axes of size 1 leave."""
    if node.inputs[0] in walk.sizes:
        walk.keep_sizes(node, walk.sizes[node.inputs[0]])
        return
    state, rank = walk.rows[node.inputs[0]], walk.index.rank(node.inputs[0]) or 1
    axes = _axes(walk, node)
    walk.require(node, axes is not None, "drops axes that are not named")
    dropped = [a % rank for a in axes or ()]
    walk.require(node, state.axis not in dropped, "takes a selection for a single row")
    walk.keep(node, state.at(state.axis - sum(a < state.axis for a in dropped)))


def unsqueeze(walk: Walk, node: Node) -> None:
    """Axes of size 1 come."""
    if node.inputs[0] in walk.sizes:
        walk.keep_sizes(node, walk.sizes[node.inputs[0]])
        return
    state, rank = walk.rows[node.inputs[0]], walk.index.rank(node.output) or 1
    new = sorted(a % rank for a in _axes(walk, node) or ())
    old = [a for a in range(rank) if a not in new]
    walk.keep(node, state.at(old[state.axis]))


def _axes(walk: Walk, node: Node) -> tuple[int, ...] | None:
    if node.attr("axes") is not None:
        return tuple(node.attr("axes"))
    return walk.index.ints(node.input(1)) if node.input(1) else None


def reshape(walk: Walk, node: Node) -> None:
    """Rows keep together when what lies before them does."""
    data, shape = node.inputs[:2]
    if data in walk.sizes:
        walk.keep_sizes(node, walk.sizes[data])
        return
    target: Sizes | None = walk.sizes.get(shape) or walk.index.ints(shape)
    state, dims = walk.of(data), walk.index.dims(data)
    if target is None or state is None or dims is None:
        raise cannot(node, "takes a shape that is computed, or gives other values the number of rows")
    if not node.attr("allowzero", 0):
        own = [state.count if i == state.axis else d if isinstance(d, int) else None for i, d in enumerate(dims)]
        target = tuple(own[i] if d == 0 else d for i, d in enumerate(target))
    axis, factor = _axis_of(target, dims, state)
    walk.require(node, axis is not None, "mixes rows in a way that is not followed")
    count = state.count
    if factor != 1:
        count = walk.once(("times", count, factor), lambda: _times(walk, state, factor))
    walk.keep(node, Rows(axis or 0, count))


def _axis_of(target: Sizes, dims: tuple[object, ...], state: Rows) -> tuple[int | None, int]:
    """Where the rows are in a new shape, and how many there are of each."""
    before, behind = dims[: state.axis], dims[state.axis + 1 :]
    axis = next((i for i, d in enumerate(target) if d is state.count), None)
    if axis is None:
        axis = next((i for i, d in enumerate(target) if d == -1), None)
    if axis is None or _product(before) is None or _product(target[:axis]) != _product(before):
        return None, 1
    if target[axis] is state.count:
        return axis, 1
    size, own = _product(target[axis + 1 :]), _product(behind)
    return (axis, own // size) if size and own is not None and own % size == 0 else (None, 1)


def _product(sizes: tuple[object, ...]) -> int | None:
    """The product of sizes that are numbers; None where one is not."""
    numbers = [d for d in sizes if isinstance(d, int) and d >= 0]
    return math.prod(numbers) if len(numbers) == len(sizes) else None


def _times(walk: Walk, state: Rows, factor: int) -> RowCount:
    rows = state.count
    times = RowCount(walk.g.mul(rows.count, walk.g.ints(factor)), None if rows.rows is None else rows.rows * factor)
    walk.derive(rows, times)
    return times


def shape_of(walk: Walk, node: Node) -> None:
    """The sizes of a value with rows."""
    name = node.inputs[0]
    dims = walk.index.dims(name)
    walk.require(node, dims is not None, "takes the sizes of a value of unknown rank")
    state = walk.rows.get(name)
    sizes: list[int | RowCount | None] = [d if isinstance(d, int) else None for d in dims or ()]
    if state is not None:
        sizes[state.axis] = state.count
    walk.keep_sizes(node, tuple(sizes[node.attr("start", 0) : node.attr("end", None)]))


def expand(walk: Walk, node: Node) -> None:
    """A value spread to a shape, or rows spread along other axes."""
    data, shape = node.inputs
    target: Sizes | None = walk.sizes.get(shape) or walk.index.ints(shape)
    if target is None:
        raise cannot(node, "takes a shape that is computed")
    rank = max(len(target), walk.index.rank(data) or 0)
    state = walk.of(data)
    axes = {i + rank - len(target): d for i, d in enumerate(target) if isinstance(d, RowCount)}
    if state is not None:
        axes.setdefault(state.axis + rank - (walk.index.rank(data) or 0), state.count)
    walk.require(node, len(axes) == 1, "spreads the rows of two selections")
    axis, count = next(iter(axes.items()))
    walk.keep(node, Rows(axis, count))


def constant_of_shape(walk: Walk, node: Node) -> None:
    """A value with as many rows."""
    sizes = walk.sizes[node.inputs[0]]
    axes = [(i, d) for i, d in enumerate(sizes) if isinstance(d, RowCount)]
    walk.require(node, len(axes) == 1, "takes a shape that is computed")
    walk.keep(node, Rows(*axes[0]))


def arange(walk: Walk, node: Node) -> None:
    """The indices of rows."""
    start, limit, step = node.inputs
    sizes = walk.sizes.get(limit, (None,))
    count = sizes[0]
    if walk.index.scalar(start) != 0 or walk.index.scalar(step) != 1 or not isinstance(count, RowCount):
        raise cannot(node, "counts with the number of rows")
    walk.keep(node, Rows(0, count))


def split(walk: Walk, node: Node) -> None:
    """Columns apart; or the rows of one image behind those of another, as many as were joined."""
    data = node.inputs[0]
    state, rank = walk.rows[data], walk.index.rank(data) or 1
    if node.attr("axis", 0) % rank != state.axis:
        walk.keep(node, *[state] * len(node.outputs))
        return
    if len(node.outputs) == 1:
        walk.emit(node.output, walk.g.identity(data), state)
        return
    counts = walk.sizes.get(node.input(1), ())
    parts = [c for c in counts if isinstance(c, RowCount)]
    walk.require(node, len(parts) == len(counts) == len(node.outputs), "parts the rows of a selection")
    g, start = walk.g, walk.g.ints(0)
    size = g.size(data, state.axis)
    places = g.arange(g.squeeze(size, 0))
    for output, part in zip(node.outputs, parts, strict=True):
        # Behind the last row there are none that count.
        index = least(g, g.add(places, start), g.sub(size, g.ints(1)))
        start = g.add(start, part.count)
        walk.emit(output, g.gather(data, index, axis=state.axis), Rows(state.axis, part))


HANDLERS: dict[str, Callable[[Walk, Node], None]] = {
    "ConstantOfShape": constant_of_shape,
    "Expand": expand,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Range": arange,
    "Reshape": reshape,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Shape": shape_of,
    "Slice": cut_rows,
    "Split": split,
    "Squeeze": squeeze,
    "TopK": top_k,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}

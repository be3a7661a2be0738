"""The length of a slice whose bounds are computed from the size that it cuts: `x[h - 1 : h]` is one long at every h."""

from __future__ import annotations

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.sizes import Size, dim_size, same_dim, size_element

# A bound beyond every axis stands for its end.
FAR = 1 << 30
# Of a dim without a recorded range: engines have no empty inputs, and bounds that are linear hold in between.
UNRECORDED = (1, FAR)


def sliced_length(graph: Graph, value: str, axis: int) -> int | None:
    """The size of an axis that a Slice with step 1 cut, when it is one number over the whole range of the cut size."""
    node = graph.maker(value, "Slice")
    if node is None or len(node.inputs) < 3:
        return None
    data = node.inputs[0]
    index = _axis_index(graph, node, axis)
    if index is None:
        return None
    whole = dim_size(graph, data, axis)
    start, end = (_bound(graph, node.inputs[i], index, whole) for i in (1, 2))
    if start is None or end is None:
        return None
    dims = graph.dims(data) or ()
    ends = graph.dim_range(dims[axis]) if axis < len(dims) else None
    lengths = {_length(start, end, whole, size) for size in ends or UNRECORDED}
    return lengths.pop() if len(lengths) == 1 else None


def _axis_index(graph: Graph, node: Node, axis: int) -> int | None:
    """Which element of starts and ends is that of the axis; None when another one, or a step, is in the way."""
    rank = graph.rank(node.inputs[0])
    starts = graph.dims(node.inputs[1])
    if rank is None or starts is None or len(starts) != 1 or not isinstance(starts[0], int):
        return None
    axes = graph.ints(node.inputs[3]) if node.input(3) else tuple(range(starts[0]))
    steps = graph.ints(node.inputs[4]) if node.input(4) else (1,)
    if axes is None or steps is None or any(s != 1 for s in steps):
        return None
    counted = [a % rank for a in axes]
    return counted.index(axis) if axis in counted else None


def _bound(graph: Graph, name: str, index: int, whole: Size) -> Size | None:
    """A bound as a constant or in terms of the size that is cut; counted from the front."""
    bound = size_element(graph, name, index)
    if bound is None or not (bound.is_constant or whole.is_constant or same_dim(graph, bound, whole)):
        return None
    if not bound.is_constant:
        return bound
    if bound.add >= FAR:
        return whole
    if bound.add < 0:
        return Size(whole.value, whole.axis, whole.mul, whole.add + bound.add)
    return bound


def _length(start: Size, end: Size, whole: Size, size: int) -> int | None:
    """The length at one size; None where a bound lies outside, for there it is cut off."""
    first, last, cut = (s.mul * size + s.add for s in (start, end, whole))
    return last - first if 0 <= first <= last <= cut else None

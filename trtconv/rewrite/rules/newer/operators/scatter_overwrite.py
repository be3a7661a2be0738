"""ScatterElements without a reduction as a choice between data and updates.

TensorRT 8.6 finds no implementation of the layer where the data around it move (a part that it compiles as a whole),
and none where there are more indices than places. Of several updates of one place the last one wins, as in ONNX
Runtime and as in NumPy; ONNX itself leaves it open.
"""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.extent import largest
from trtconv.rewrite.graph.index import Dims, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7
# Numbers, K for each place of the data, 32 bits each: 64 MB.
MOST = 1 << 24


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match overwriting; indices have to cover the other axes of the data."""
    if node.attr("reduction", "none") != "none":
        return NOT_THIS
    data, indices = node.inputs[:2]
    own, index_dims, dtype = graph.dims(data), graph.dims(indices), graph.dtype(data)
    if own is None or index_dims is None or dtype not in (1, 10, 6, INT64):
        return Skip("rank or element type is not known")
    axis = node.attr("axis", 0) % len(own)
    if not _covers(own, index_dims, axis):
        return Skip("the indices do not cover the other axes of the data, or it is not known whether they do")
    ranges = {indices: _valid(graph, own[axis])}
    if index_dims[axis] == 1:
        return Found((node,), partial(_one, node=node, axis=axis, rank=len(own)), ranges)
    count, places = largest(graph, indices, axis, axis + 1), largest(graph, data)
    if count is None or places is None or count * places > MOST:
        size = "an unknown number" if count is None or places is None else f"{count * places}"
        return Skip(f"each index is compared with each place, {size} of comparisons, over {MOST}")
    note = "each index is compared with each place: memory K times that of the data"
    return Found((node,), partial(_several, node=node, axis=axis, rank=len(own)), ranges, note)


def _covers(own: Dims, index_dims: Dims, axis: int) -> bool:
    others = [(a, b) for i, (a, b) in enumerate(zip(own, index_dims, strict=True)) if i != axis]
    return all(a == b and a is not None for a, b in others)


def _valid(graph: Graph, size: int | str | None) -> tuple[float, float]:
    """Indices that are valid at all sizes, counted from either end."""
    low = (graph.dim_range(size) or (1, 1))[0]
    return float(-low), float(low - 1)


def _target_index(g: Replacement, node: Node, axis: int, rank: int) -> tuple[Value, Value]:
    """The indices counted from the front, and the places 0 .. L - 1 of the axis as [L, 1, ..]."""
    data, indices = node.inputs[:2]
    size = g.squeeze(g.size(data, axis), 0)
    zero, one = g.scalar(0, dtype=INT64), g.scalar(1, dtype=INT64)
    wide = g.cast(indices, INT64) if g.dtype(indices) != INT64 else indices
    wide = g.where(g.less(wide, zero), g.add(wide, size), wide)
    return wide, _along(g, g.range(zero, size, one), rank - axis - 1)


def _along(g: Replacement, line: Value, behind: int) -> Value:
    """A line [n] as [n, 1, ..] with `behind` axes of one."""
    return g.unsqueeze(line, *range(1, behind + 1)) if behind else line


def _one(g: Replacement, node: Node, axis: int, rank: int) -> Value:
    """One index along the axis: nothing can be written twice."""
    target_index, places = _target_index(g, node, axis, rank)
    return g.where(g.equal(target_index, places), node.inputs[2], node.inputs[0])


def _several(g: Replacement, node: Node, axis: int, rank: int) -> Value:
    data, indices, updates = node.inputs
    target_index, places = _target_index(g, node, axis, rank)
    zero, one = g.scalar(0, dtype=INT64), g.scalar(1, dtype=INT64)
    # [.., K, L, ..]: which index means which place.
    hit = g.equal(g.unsqueeze(target_index, axis + 1), places)
    end = g.add(g.squeeze(g.size(indices, axis), 0), one)
    turn = _along(g, g.range(one, end, one), rank - axis)
    # The last index that means a place, counted from 1; 0 where none does.
    last = g.reduce("ReduceMax", g.where(hit, turn, zero), [axis], keepdims=False)
    source = g.maximum(g.sub(last, one), zero)
    return g.where(g.less(zero, last), g.gather_elements(updates, source, axis=axis), data)


RULE = Rule(
    name="scatter-overwrite",
    why="TensorRT 8.6 finds no implementation of many a ScatterElements whose sizes move; a choice by index has one.",
    ops=("ScatterElements",),
    find=find,
    needed=only_tensorrt_8,
    before="ScatterElements(x, indices, updates)",
    after="Where(last index that means the place, GatherElements(updates, it), x)",
)

"""ScatterElements with a reduction as a dense sum or maximum over a one-hot mask."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.scatter_fold import FOLD, neutral


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any reduction; indices have to cover the other axes of the data."""
    how = node.attr("reduction", "none")
    if how == "none":
        return NOT_THIS
    data, indices = node.inputs[:2]
    rank, dtype = graph.rank(data), graph.dtype(data)
    if rank is None or dtype not in (1, 10, 6, 7):
        return Skip("rank or element type is not known")
    axis = node.attr("axis", 0) % rank
    own, index_dims = graph.dims(data), graph.dims(indices)
    pairs = zip(own or (), index_dims or (), strict=False)
    if own is None or index_dims is None or any(a != b for i, (a, b) in enumerate(pairs) if i != axis):
        return Skip("the indices do not cover the other axes of the data, or it is not known whether they do")
    return Found((node,), lambda g: _build(g, node, how, axis, rank, dtype))


def _build(g: Replacement, node: Node, how: str, axis: int, rank: int, dtype: int) -> Value:
    data, indices, updates = node.inputs
    size = g.squeeze(g.size(data, axis), 0)
    zero, one = g.scalar(0, dtype=7), g.scalar(1, dtype=7)
    wide = g.cast(indices, 7) if g.dtype(indices) != 7 else indices
    # Negative indices count from the end.
    wide = g.where(g.less(wide, zero), g.add(wide, size), wide)
    places = g.range(zero, size, one)
    # The new axis after `axis` runs over the data's places: [.., K, L, ..].
    shape = g.unsqueeze(places, *range(rank - axis)[1:]) if axis < rank - 1 else places
    hit = g.equal(g.unsqueeze(wide, axis + 1), shape)
    spread = g.where(hit, g.unsqueeze(updates, axis + 1), neutral(g, how, dtype))
    reduction, join = FOLD[how]
    return g.op(join, data, g.reduce(reduction, spread, [axis], keepdims=False))


RULE = Rule(
    name="scatter-elements",
    why="TensorRT 8.6 drops the reduction and overwrites, later ones refuse it; a masked reduction is exact.",
    ops=("ScatterElements",),
    find=find,
    before="ScatterElements(x, indices, updates, reduction=add)",
    after="Add(x, ReduceSum(Where(Equal(indices, Range(L)), updates, 0)))",
)

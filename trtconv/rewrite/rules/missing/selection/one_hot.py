"""OneHot whose depth is computed as a comparison with all classes: the builder of 8.6 has no implementation of it."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import INT64, INTEGERS, Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match whole numbers as indices and a depth that no constant gives."""
    indices, depth, values = node.inputs
    if graph.constant(depth) is not None:
        return NOT_THIS
    rank = graph.rank(indices)
    if rank is None or graph.dtype(indices) not in INTEGERS or graph.dtype(depth) not in INTEGERS:
        return Skip("the rank of the indices is not known, or indices or depth are no whole numbers")
    axis = node.attr("axis", -1) % (rank + 1)
    pair = graph.constant(values)
    if pair is None or graph.rank(depth) not in (0, 1):
        return Skip("its two values are computed while the model runs, or the rank of the depth is not known")
    return Found((node,), partial(_build, node=node, axis=axis, rank=rank, flat=graph.rank(depth) == 0))


def _build(g: Replacement, node: Node, axis: int, rank: int, flat: bool) -> Value:
    indices, depth, values = node.inputs
    pair = g.index.constant(values)
    assert pair is not None
    classes = g.cast(depth if flat else g.squeeze(depth, 0), INT64)
    indices = g.cast(indices, INT64)
    # An index counts from the end where it is negative, and is no class at all below that.
    from_start = g.where(g.less(indices, g.scalar(0, dtype=INT64)), g.add(indices, classes), indices)
    row = g.arange(classes)
    spread = g.unsqueeze(row, *(a for a in range(rank + 1) if a != axis)) if rank else row
    return g.where(g.equal(g.unsqueeze(from_start, axis), spread), g.const(pair[1]), g.const(pair[0]))


RULE = Rule(
    name="one-hot",
    why="The builder of TensorRT 8.6 has no implementation of OneHot whose depth is a computed size.",
    ops=("OneHot",),
    find=find,
    needed=only_tensorrt_8,
    before="OneHot(indices, Gather(Shape(x), 1), [0, 1])",
    after="Where(Equal(Unsqueeze(indices, -1), Range(depth)), 1, 0)",
)

"""Hardmax as ArgMax and OneHot: TensorRT 8.6 has none, and 11 refuses it on a dynamic axis."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Hardmax on an axis of unknown size, or any for TensorRT 8.6."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axis = node.attr("axis", -1) % rank
    if graph.target.generation > 8 and isinstance((graph.dims(node.inputs[0]) or ())[axis], int):
        return NOT_THIS
    if graph.opset < 13:
        return Skip("before opset 13 it flattens the axes from `axis` on", opset=13)
    return Found((node,), lambda g: _build(g, node.inputs[0], axis, dtype))


def _build(g: Replacement, x: Value, axis: int, dtype: int) -> Value:
    first = g.op("ArgMax", x, axis=axis, keepdims=1)
    size = g.squeeze(g.size(x, axis), 0)
    places = g.arange(size)
    rank = g.index.rank(x) or 1
    row = g.unsqueeze(places, *(a for a in range(rank) if a != axis)) if rank > 1 else places
    return g.cast(g.equal(row, first), dtype)


RULE = Rule(
    name="hardmax",
    why="TensorRT 8.6 has no Hardmax, and later ones refuse it on an axis whose size moves.",
    ops=("Hardmax",),
    find=find,
    before="Hardmax(x)",
    after="Cast(Equal(Range(size), ArgMax(x)))",
)

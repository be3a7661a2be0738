"""Hardmax as ArgMax and OneHot: TensorRT 8.6 has none, and 11 refuses it on a dynamic axis."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Hardmax on an axis of unknown size, or any for TensorRT 8.6."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axis = node.attr("axis", -1) % rank
    if graph.target.generation > 8 and isinstance((graph.dims(node.inputs[0]) or ())[axis], int):
        return NOT_THIS
    if graph.opset < 13:
        return Skip("before opset 13 it flattens the axes from `axis` on")
    return Found((node,), lambda b: _build(b, node.inputs[0], axis, dtype))


def _build(b: Builder, x: str, axis: int, dtype: int) -> str:
    first = b.op("ArgMax", x, axis=axis, keepdims=1)
    size = b.squeeze(b.size(x, axis), 0)
    places = b.op("Range", b.scalar(0, dtype=7), size, b.scalar(1, dtype=7))
    rank = b.graph.rank(x) or 1
    row = b.unsqueeze(places, *(a for a in range(rank) if a != axis)) if rank > 1 else places
    return b.cast(b.op("Equal", row, first), dtype)


RULE = Rule(
    name="hardmax",
    why="TensorRT 8.6 has no Hardmax, and later ones refuse it on an axis whose size moves.",
    ops=("Hardmax",),
    find=find,
    before="Hardmax(x)",
    after="Cast(Equal(Range(size), ArgMax(x)))",
)

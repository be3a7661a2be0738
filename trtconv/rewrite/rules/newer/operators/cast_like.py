"""CastLike as Cast, since the type is known when the graph is."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a CastLike whose second input has a known element type."""
    dtype = graph.dtype(node.inputs[1])
    if not dtype:
        return Skip("the element type is not known")
    return Found((node,), lambda g: g.cast(node.inputs[0], dtype))


RULE = Rule(
    name="cast-like",
    why="TensorRT 8.6 has no CastLike; the type it takes over is known.",
    ops=("CastLike",),
    find=find,
    needed=only_tensorrt_8,
    before="CastLike(x, y)",
    after="Cast(x, to=type of y)",
)

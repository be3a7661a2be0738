"""Shape with start and end as Shape and Slice: TensorRT 8.6 ignores both attributes and gives the whole shape."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node

LAST = 1 << 31


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Shape that gives a part of the shape."""
    start, end = node.attr("start", 0), node.attr("end", LAST)
    if start == 0 and end == LAST:
        return NOT_THIS
    return Found((node,), lambda g: g.slice(g.shape(node.inputs[0]), g.ints(start), g.ints(end), [0]))


RULE = Rule(
    name="shape-window",
    why="TensorRT 8.6 ignores start and end of Shape and gives the whole shape, silently.",
    ops=("Shape",),
    find=find,
    needed=only_tensorrt_8,
    before="Shape(x, start=2)",
    after="Slice(Shape(x), [2], [2147483648])",
)

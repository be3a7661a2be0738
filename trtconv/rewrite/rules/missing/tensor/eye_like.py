"""EyeLike of a shape that moves, as a comparison of row and column numbers."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7
# What TensorRT casts a boolean to.
TYPES = (1, 10, 6, 7, 9)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where a dim is not known."""
    dims = graph.dims(node.inputs[0])
    dtype = node.attr("dtype") or graph.dtype(node.inputs[0])
    if dims is not None and all(isinstance(d, int) for d in dims):
        return NOT_THIS
    if dtype not in TYPES:
        return Skip("the element type is not known, or TensorRT does not cast to it")
    return Found((node,), lambda g: _build(g, node, dtype))


def _build(g: Replacement, node: Node, dtype: int) -> Value:
    rows, columns = (g.places(node.inputs[0], a) for a in (0, 1))
    shifted = g.add(rows, g.scalar(node.attr("k", 0), dtype=INT64)) if node.attr("k", 0) else rows
    hit = g.equal(g.unsqueeze(shifted, 1), g.unsqueeze(columns, 0))
    return hit if dtype == 9 else g.cast(hit, dtype)


RULE = Rule(
    name="eye-like",
    why="TensorRT makes an identity matrix of fixed size only; comparing row and column numbers has no size.",
    ops=("EyeLike",),
    find=find,
    before="EyeLike(x[H,W], k=1)",
    after="Cast(Equal(Range(rows) + 1, Range(columns)))",
)

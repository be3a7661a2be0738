"""Two casts in a row as one, where the first loses nothing."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node

FLOAT16, BFLOAT16, FLOAT, DOUBLE = 10, 16, 1, 11
INT32, INT64, BOOL, UINT8 = 6, 7, 9, 2
# What holds every value of the type on the left.
WIDER = {
    FLOAT16: (FLOAT, DOUBLE),
    BFLOAT16: (FLOAT, DOUBLE),
    FLOAT: (DOUBLE,),
    INT32: (INT64, DOUBLE),
    UINT8: (INT32, INT64, FLOAT, FLOAT16),
    BOOL: (UINT8, INT32, INT64, FLOAT, FLOAT16),
}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Cast of Cast whose first step widens."""
    first = graph.maker(node.inputs[0], "Cast")
    if first is None:
        return NOT_THIS
    source, middle, last = graph.dtype(first.inputs[0]), first.attr("to"), node.attr("to")
    if middle not in WIDER.get(source, ()):
        return NOT_THIS
    if graph.target.generation == 8 and UINT8 in (source, last) and not {source, last} & {FLOAT, FLOAT16}:
        # TensorRT 8.6 casts bytes from and to floats only.
        return NOT_THIS if last != source else _dropped(graph, first, node)
    dropped = _dropped(graph, first, node) if last == source else NOT_THIS
    return dropped if dropped is not NOT_THIS else Found((first, node), lambda g: g.cast(first.inputs[0], last))


def _dropped(graph: Graph, first: Node, node: Node) -> Found | Skip:
    """Both casts away, unless the result has to keep its name."""
    captured = any(node.output in user.implicit for user in graph.uses(node.output))
    if captured or node.output in graph.outputs:
        return NOT_THIS
    return Found((first, node), lambda g: first.inputs[0])


RULE = Rule(
    name="merge-casts",
    why="A cast to a wider type and on to another is one cast.",
    ops=("Cast",),
    find=find,
    before="Cast(Cast(x, to=float32), to=float16), x float16",
    after="x",
)

"""The determinant of matrices of up to four rows, written out."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.small_matrix import LARGEST, Elements


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Det of matrices whose size is known."""
    dims = graph.dims(node.inputs[0])
    if dims is None or dims[-1] not in range(1, LARGEST + 1) or dims[-2] != dims[-1]:
        return Skip(f"the matrices are not known to have 1 to {LARGEST} rows")
    size = int(dims[-1] or 1)
    return Found((node,), lambda g: Elements(g, node.inputs[0], size).determinant)


RULE = Rule(
    name="det",
    why="No TensorRT has Det; of up to four rows it is a handful of products.",
    ops=("Det",),
    find=find,
    before="Det(x[N,2,2])",
    after="x00 * x11 - x01 * x10",
    keeps_infinities=False,
)

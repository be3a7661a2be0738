"""The determinant of matrices of a few rows, by elimination."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT
from trtconv.rewrite.patterns.small_matrix import LARGEST, determinant


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Det of matrices whose size is known."""
    dims = graph.dims(node.inputs[0])
    if dims is None or dims[-1] not in range(1, LARGEST + 1) or dims[-2] != dims[-1]:
        return Skip(f"the matrices are not known to have 1 to {LARGEST} rows")
    if graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("the element type is not known, or is not FP32")
    size = int(dims[-1] or 1)
    return Found((node,), lambda g: determinant(g, node.inputs[0], size))


RULE = Rule(
    name="det",
    why="No TensorRT has Det; of up to eight rows it is the product of the pivots of an elimination.",
    ops=("Det",),
    find=find,
    before="Det(x[N,2,2])",
    after="the signed product of the pivots, for each column the largest element of the rows left",
    keeps_infinities=False,
)

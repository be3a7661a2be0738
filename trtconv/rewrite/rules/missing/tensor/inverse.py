"""The inverse of matrices of a few rows (ONNX Runtime's Inverse, which older exporters write), by elimination."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.small_matrix import LARGEST, inverse

HALF = 10


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match matrices of FP32 or FP16 whose size is known."""
    dims, dtype = graph.dims(node.inputs[0]), graph.dtype(node.inputs[0])
    if dims is None or dims[-1] not in range(1, LARGEST + 1) or dims[-2] != dims[-1]:
        return Skip(f"the matrices are not known to have 1 to {LARGEST} rows: solve by elimination in the module")
    if dtype not in (FLOAT, HALF):
        return Skip("the element type is not known, or is not an FP32 or FP16")
    size = int(dims[-1] or 1)
    return Found((node,), lambda g: _build(g, node.inputs[0], size, dtype))


def _build(g: Replacement, x: Value, size: int, dtype: int) -> Value:
    if dtype == FLOAT:
        return inverse(g, x, size)
    return g.cast(inverse(g, g.cast(x, FLOAT), size), dtype)


RULE = Rule(
    name="inverse",
    why="No TensorRT has an inverse; of up to eight rows it is an elimination with pivots, row by row.",
    ops=("com.microsoft::Inverse",),
    find=find,
    before="com.microsoft.Inverse(x[N,2,2])",
    after="[x | 1] reduced to [1 | y]: the row with a column's largest element, divided by it, is taken off the others",
    unproved="a proof looks at a matrix of zeros too, which has no inverse; the rule's tests compare it at others",
)

"""A matrix product of whole numbers as a sum of products: TensorRT multiplies matrices of floats alone.

FP32 would hold sums up to 2^24. What the product is made of is in memory at once: rows x inner x columns.
"""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import INTEGERS, Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a product of int32 or int64."""
    if graph.dtype(node.inputs[0]) not in INTEGERS:
        return NOT_THIS
    ranks = [graph.rank(v) for v in node.inputs]
    if None in ranks:
        return Skip("a rank is not known")
    return Found((node,), partial(_build, node=node, vectors=[r == 1 for r in ranks]))


def _build(g: Replacement, node: Node, vectors: list[bool]) -> Value:
    left, right = node.inputs
    rows = g.unsqueeze(left, 0, 2) if vectors[0] else g.unsqueeze(left, -1)
    columns = g.unsqueeze(right, 0, 2) if vectors[1] else g.unsqueeze(right, -3)
    product = g.reduce("ReduceSum", g.mul(rows, columns), [-2], keepdims=False)
    gone = [axis for axis, is_vector in zip((-2, -1), vectors, strict=True) if is_vector]
    return g.squeeze(product, *gone) if gone else product


RULE = Rule(
    name="integer-matmul",
    why="TensorRT multiplies matrices of floats alone; sums of products of whole numbers are exact.",
    ops=("MatMul",),
    find=find,
    before="MatMul(a[M,K], b[K,N]), int64",
    after="ReduceSum(a[M,K,1] * b[1,K,N], axes=[1])",
)

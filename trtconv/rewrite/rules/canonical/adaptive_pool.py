"""Adaptive pooling (a TrtconvAdaptivePool node) in native form, where plugins are not wanted or not there."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.windows import average_over, maximum_over


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match the node in domain trtconv: its bins follow the input's size, unlike those of a baked AveragePool."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or dtype not in (1, 10):
        return Skip("rank or element type is not known")
    size = node.attr("output_size", [1, 1])
    return Found((node,), lambda g: _build(g, node, rank, dtype, [int(s) for s in size]))


def _build(g: Replacement, node: Node, rank: int, dtype: int, size: list[int]) -> Value:
    pooled = maximum_over if node.attr("mode", 0) else average_over
    rows = pooled(g, node.inputs[0], 2, rank, size[0], dtype)
    return pooled(g, rows, 1, rank, size[1], dtype)


RULE = Rule(
    name="adaptive-pool",
    why="Bins that follow the input's size are a product with a matrix made from that size, exact at every size.",
    ops=("trtconv::TrtconvAdaptivePool",),
    find=find,
    before="TrtconvAdaptivePool(x, output_size=[7, 7])",
    after="MatMul(MatMul(Wh, x), Transpose(Ww)), the weights from Shape and Range",
    native_of="TrtconvAdaptivePool",
    keeps_infinities=False,
)

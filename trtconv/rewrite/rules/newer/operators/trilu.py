"""Trilu as Where over a mask from Range: TensorRT 8.6 refuses it on dynamic shapes."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import BOOL, Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Trilu of numbers or booleans whose rank is known."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or dtype not in (1, 10, 6, 7, BOOL):
        return Skip("rank or element type is not known")
    return Found((node,), lambda g: _build(g, node, rank, dtype))


def _build(g: Replacement, node: Node, rank: int, dtype: int) -> Value:
    x, shift = node.inputs[0], node.input(1)
    rows, columns = (g.places(x, a) for a in (rank - 2, rank - 1))
    edge = g.unsqueeze(rows, 1)
    if shift:
        edge = g.add(edge, g.reshape(shift, g.ints(1, 1)))
    column = g.unsqueeze(columns, 0)
    in_triangle = g.less_equal(edge, column) if node.attr("upper", 1) else g.less_equal(column, edge)
    # TensorRT 8.6 cannot choose between booleans.
    return g.logical_and(in_triangle, x) if dtype == BOOL else g.where(in_triangle, x, g.scalar(0, dtype=dtype))


RULE = Rule(
    name="trilu",
    why="TensorRT 8.6 refuses Trilu on a shape that moves; a mask from Range is the same triangle.",
    ops=("Trilu",),
    find=find,
    needed=only_tensorrt_8,
    before="Trilu(x, k, upper=1)",
    after="Where(LessOrEqual(Range(rows) + k, Range(columns)), x, 0)",
)

"""CumProd as a masked product over a square."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a constant axis and a known rank."""
    axis, rank, dtype = graph.scalar(node.inputs[1]), graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if axis is None or rank is None or dtype not in (1, 10, 6, 7):
        return Skip("axis, rank or element type is not known")
    return Found((node,), lambda g: _build(g, node, int(axis) % rank, rank, dtype))


def _build(g: Replacement, node: Node, axis: int, rank: int, dtype: int) -> Value:
    x = node.inputs[0]
    places = g.places(x, axis)
    source, target = g.unsqueeze(places, 0), g.unsqueeze(places, 1)
    if node.attr("reverse", 0):
        source, target = target, source
    is_factor = g.op("Less" if node.attr("exclusive", 0) else "LessOrEqual", source, target)
    # [target, source] stands at axes (axis, axis + 1); the source axis is multiplied away.
    tail = range(2, rank - axis + 1)
    mask = g.unsqueeze(is_factor, *tail) if tail else is_factor
    factors = g.where(mask, g.unsqueeze(x, axis), g.scalar(1, dtype=dtype))
    return g.reduce("ReduceProd", factors, [axis + 1], keepdims=False)


RULE = Rule(
    name="cum-prod",
    why="No TensorRT has CumProd; a masked product is exact (memory L x L).",
    ops=("CumProd",),
    find=find,
    before="CumProd(x, axis)",
    after="ReduceProd(Where(LessOrEqual(Range, Range), x, 1))",
)

"""Resize to sizes that are computed with a subtraction: no less than 0.

TensorRT's Myelin bounds every size by the ranges of what it is computed from, takes a difference for possibly negative,
and gives up with "Resize shape dims should be non-negative" (RTX 1.7: a letterbox by `round(h * min(24 / h, 24 / w))`,
which exporters round by the difference of two halves).
"""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node

# What sizes are computed by.
ARITHMETIC = (
    "Add", "Cast", "Ceil", "Concat", "Div", "Floor", "Gather", "Identity", "Mod", "Mul", "Reshape", "Round", "Slice",
    "Squeeze", "Unsqueeze", "Where",
)  # fmt: skip
MOST_NODES = 64


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match sizes that a Sub or Neg is among the arithmetic of, and that nothing bounds yet."""
    sizes = node.input(3)
    if graph.target.generation == 8 or not sizes or graph.constant(sizes) is not None or not _subtracts(graph, sizes):
        return NOT_THIS
    value, roi, scales = node.inputs[:3]
    return Found(
        (node,),
        lambda g: g.resize(value, roi, scales, g.maximum(sizes, g.ints(0)), **node.attributes()),
    )


def _subtracts(graph: Graph, name: str) -> bool:
    waiting, count = [name], 0
    while waiting and count < MOST_NODES:
        node = graph.maker(waiting.pop())
        if node is None:
            continue
        count += 1
        if node.key in ("Sub", "Neg"):
            return True
        if node.key in ARITHMETIC:
            waiting += node.inputs
    return False


RULE = Rule(
    name="resize-sizes",
    why="TensorRT takes a size that is computed with a subtraction for possibly negative, and cannot resize to it.",
    ops=("Resize",),
    find=find,
    before="Resize(x, sizes = Concat(n, c, h - 1, w - 1))",
    after="Resize(x, sizes = Max(Concat(n, c, h - 1, w - 1), 0))",
)

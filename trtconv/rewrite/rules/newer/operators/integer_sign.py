"""Sign of integers as a clamp between -1 and 1."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import INTEGERS


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match int32 and int64."""
    value = node.inputs[0]
    if graph.dtype(value) not in INTEGERS:
        return NOT_THIS
    bounds = {value: (-5.0, 5.0)}
    return Found((node,), lambda g: g.maximum(g.minimum(value, g.scalar(1, value)), g.scalar(-1, value)), bounds)


RULE = Rule(
    name="integer-sign",
    why="TensorRT 8.6 has the sign of floats only; of an integer it is the integer clamped to -1 and 1.",
    ops=("Sign",),
    find=find,
    needed=only_tensorrt_8,
    before="Sign(i)",
    after="Max(Min(i, 1), -1)",
)

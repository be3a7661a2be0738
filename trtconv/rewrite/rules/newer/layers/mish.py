"""Mish in the operators that TensorRT 8.6 has."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Mish."""
    x = node.inputs[0]
    return Found((node,), lambda g: g.mul(x, g.tanh(g.softplus(x))))


RULE = Rule(
    name="mish",
    why="TensorRT 8.6 has no Mish; it has Softplus and Tanh.",
    ops=("Mish",),
    find=find,
    needed=only_tensorrt_8,
    before="Mish(x)",
    after="Mul(x, Tanh(Softplus(x)))",
)

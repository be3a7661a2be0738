"""Gelu in the operators that TensorRT 8.6 has."""

from __future__ import annotations

import math

from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Gelu whose element type is known."""
    if not graph.dtype(node.inputs[0]):
        return Skip("the element type is not known")
    return Found((node,), lambda g: gelu(g, node.inputs[0], node.attr("approximate", "none")))


def gelu(g: Replacement, x: Value, approximate: str) -> Value:
    """The Gelu of x by Erf, or by Tanh where `approximate` is `tanh`."""
    if approximate == "tanh":
        cube = g.mul(g.mul(x, x), g.mul(x, 0.044715))
        inner = g.tanh(g.mul(g.add(x, cube), math.sqrt(2 / math.pi)))
    else:
        inner = g.erf(g.mul(x, math.sqrt(0.5)))
    return g.mul(g.mul(x, 0.5), g.add(inner, 1.0))


RULE = Rule(
    name="gelu",
    why="TensorRT 8.6 has no Gelu; it has Erf and Tanh, and fuses the product.",
    ops=("Gelu",),
    find=find,
    needed=only_tensorrt_8,
    before="Gelu(x)",
    after="Mul(Mul(x, 0.5), Add(Erf(Mul(x, 0.7071)), 1))",
)

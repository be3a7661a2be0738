"""Gelu in the operators that TensorRT 8.6 has."""

from __future__ import annotations

import math

from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Gelu whose element type is known."""
    if not graph.dtype(node.inputs[0]):
        return Skip("the element type is not known")
    return Found((node,), lambda b: _build(b, node.inputs[0], node.attr("approximate", "none")))


def _build(b: Builder, x: str, approximate: str) -> str:
    def number(value: float) -> str:
        return b.scalar(value, x)

    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", x, x), b.op("Mul", x, number(0.044715)))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", x, cube), number(math.sqrt(2 / math.pi))))
    else:
        inner = b.op("Erf", b.op("Mul", x, number(math.sqrt(0.5))))
    return b.op("Mul", b.op("Mul", x, number(0.5)), b.op("Add", inner, number(1.0)))


RULE = Rule(
    name="gelu",
    why="TensorRT 8.6 has no Gelu; it has Erf and Tanh, and fuses the product.",
    ops=("Gelu",),
    find=find,
    needed=only_tensorrt_8,
    before="Gelu(x)",
    after="Mul(Mul(x, 0.5), Add(Erf(Mul(x, 0.7071)), 1))",
)

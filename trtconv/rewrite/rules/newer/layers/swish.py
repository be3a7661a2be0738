"""Swish in the operators that every TensorRT has."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Swish whose element type is known."""
    if not graph.dtype(node.inputs[0]):
        return Skip("the element type is not known")
    return Found((node,), lambda b: _build(b, node.inputs[0], float(node.attr("alpha", 1.0))))


def _build(b: Builder, x: str, alpha: float) -> str:
    scaled = x if alpha == 1.0 else b.op("Mul", x, b.scalar(alpha, x))
    return b.op("Mul", x, b.op("Sigmoid", scaled))


def needed(target: Target) -> bool:
    """TensorRT has Swish from 11 on."""
    return target.generation < 11


RULE = Rule(
    name="swish",
    why="TensorRT has Swish only from 11 on; the product with Sigmoid is fused everywhere.",
    ops=("Swish",),
    find=find,
    needed=needed,
    before="Swish(x)",
    after="Mul(x, Sigmoid(x))",
)

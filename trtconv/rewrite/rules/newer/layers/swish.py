"""Swish in the operators that every TensorRT has."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Swish whose element type is known."""
    if not graph.dtype(node.inputs[0]):
        return Skip("the element type is not known")
    return Found((node,), lambda g: _build(g, node.inputs[0], float(node.attr("alpha", 1.0))))


def _build(g: Replacement, x: Value, alpha: float) -> Value:
    scaled = x if alpha == 1.0 else g.mul(x, g.scalar(alpha, x))
    return g.mul(x, g.sigmoid(scaled))


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

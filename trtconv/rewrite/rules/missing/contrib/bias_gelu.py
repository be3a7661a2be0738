"""ONNX Runtime's activations: a bias and Gelu, its two approximations, and its own Gelu."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.newer.layers.gelu import gelu

# The opset that brought ONNX's Gelu.
GELU = 20


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any whose element type is that of a constant bias, or is inferred."""
    dtype = next((d for name in node.inputs if (d := graph.dtype(name))), 0)
    return Found((node,), partial(_build, node=node)) if dtype else Skip("the element type is not known")


def _build(g: Replacement, node: Node) -> Value:
    x: Value = node.inputs[0]
    if node.op == "QuickGelu":
        return g.mul(x, g.sigmoid(g.mul(x, float(node.attr("alpha", 1.702)))))
    if node.input(1):
        x = g.add(x, node.inputs[1])
    approximate = "tanh" if node.op == "FastGelu" else "none"
    return g.op("Gelu", x, approximate=approximate) if g.opset >= GELU else gelu(g, x, approximate)


RULE = Rule(
    name="bias-gelu",
    why="No TensorRT has ONNX Runtime's activations, which its optimizer writes; a sum and a Gelu are the same.",
    ops=tuple(f"{DOMAIN}::{name}" for name in ("BiasGelu", "FastGelu", "QuickGelu", "Gelu")),
    find=find,
    before="com.microsoft.BiasGelu(x, bias)",
    after="Mul(Mul(x + bias, 0.5), Add(Erf(Mul(x + bias, 0.7071)), 1))",
)

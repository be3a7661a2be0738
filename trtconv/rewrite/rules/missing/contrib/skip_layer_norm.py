"""ONNX Runtime's normalization of a sum, as the optimizer writes each residual of a transformer."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.normalize import layer_norm, root_mean_square

# Outputs: the result, the mean and the inverse deviation (which inference leaves out), the sum.
STATISTICS = slice(1, 3)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a node whose mean and deviation nobody reads; its type is that of its constant scale, or is inferred."""
    if any(o and (graph.uses(o) or o in graph.outputs) for o in node.outputs[STATISTICS]):
        return Skip("its mean or its deviation is used")
    dtype = graph.dtype(node.inputs[0]) or graph.dtype(node.inputs[_scale_at(node)])
    if not dtype:
        return Skip("the element type is not known")
    return Found((node,), partial(_build, node=node, dtype=dtype))


def _scale_at(node: Node) -> int:
    return 1 if node.op == "SimplifiedLayerNormalization" else 2


def _build(g: Replacement, node: Node, dtype: int) -> list[Value]:
    epsilon = float(node.attr("epsilon", 1e-5 if node.op == "SimplifiedLayerNormalization" else 1e-12))
    scale, total = node.inputs[_scale_at(node)], node.inputs[0]
    if node.op == "SimplifiedLayerNormalization":
        return [g.mul(root_mean_square(g, total, [-1], epsilon, dtype, FLOAT), scale)][: len(node.outputs)]
    simplified = node.op == "SkipSimplifiedLayerNormalization"
    bias = node.input(3 if simplified else 4)
    value: Value = g.add(total, node.inputs[1])
    value = g.add(value, bias) if bias else value
    if simplified:
        result = g.mul(root_mean_square(g, value, [-1], epsilon, dtype, FLOAT), scale)
    else:
        result = layer_norm(g, value, scale, node.input(3), epsilon, dtype)
    return [result, "", "", value][: len(node.outputs)]


RULE = Rule(
    name="skip-layer-norm",
    why="No TensorRT has ONNX Runtime's normalization of a sum; a sum and a normalization are the same.",
    ops=(
        f"{DOMAIN}::SkipLayerNormalization",
        f"{DOMAIN}::SkipSimplifiedLayerNormalization",
        "SimplifiedLayerNormalization",
    ),
    find=find,
    before="com.microsoft.SkipLayerNormalization(x, skip, scale, shift, bias)",
    after="LayerNormalization(x + skip + bias, scale, shift)",
)

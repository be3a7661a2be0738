"""DequantizeLinear of int32, as biases and sums of products have it: no TensorRT takes more than bytes there."""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT32 = 6


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match int32 that is no constant; ONNX has no zero point but 0 for it."""
    value, scale = node.inputs[0], node.inputs[1]
    if graph.dtype(value) != INT32 or graph.is_constant(value):
        return NOT_THIS
    rank, scale_rank = graph.rank(value), graph.rank(scale)
    point = graph.constant(node.input(2)) if node.input(2) else np.zeros(1)
    if rank is None or scale_rank not in (0, 1) or point is None or np.any(point):
        return Skip("a rank is not known, or there is a zero point")
    axis = node.attr("axis", 1) % rank if rank and scale_rank else 0
    return Found((node,), partial(_build, node=node, behind=rank - 1 - axis if scale_rank else 0))


def _build(g: Replacement, node: Node, behind: int) -> Value:
    value, scale = node.inputs[0], node.inputs[1]
    spread = g.reshape(scale, -1, *[1] * behind) if behind else scale
    return g.mul(g.cast(value, g.dtype(scale) or 1), spread)


RULE = Rule(
    name="dequantize-sum",
    why="No TensorRT dequantises int32; a product with the scale is the same.",
    ops=("DequantizeLinear",),
    find=find,
    before="DequantizeLinear(sum as int32, s)",
    after="Mul(Cast(sum), s)",
)

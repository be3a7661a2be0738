"""Clip whose lower bound lies above its upper one: ONNX gives the upper one, TensorRT the lower one.

ONNX: Clip is Min(Max(x, min), max). TensorRT's kCLIP is max(alpha, min(beta, x)) (measured on 8.6.0: 1 for [1, -1]).
"""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match constant bounds that cross; computed ones TensorRT's parsers write as Max and Min themselves."""
    if graph.opset < 11:
        low, high = node.attr("min"), node.attr("max")
    else:
        low, high = (graph.scalar(node.input(i)) if node.input(i) else None for i in (1, 2))
    if low is None or high is None or not low > high:
        return NOT_THIS
    return Found((node,), partial(_build, node=node, low=low, high=high))


def _build(g: Replacement, node: Node, low: float, high: float) -> Value:
    value = node.inputs[0]
    below, above = (g.scalar(bound, dtype=g.index.dtype(value)) for bound in (low, high))
    return g.op("Min", g.op("Max", value, below), above)


RULE = Rule(
    name="clip-crossed",
    why="Where the lower bound lies above the upper one, ONNX gives the upper one and TensorRT the lower one.",
    ops=("Clip",),
    find=find,
    before="Clip(x, 1, -1)",
    after="Min(Max(x, 1), -1)",
)

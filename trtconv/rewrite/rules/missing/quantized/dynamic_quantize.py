"""DynamicQuantizeLinear in FP32: the same range, the same rounding, and bytes at the end for who reads them.

As ONNX defines it: the range of x is widened to hold 0, and the scale is that range over 255. Where x is zero all over,
ONNX Runtime takes the scale 1.
"""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

UINT8 = 2
TOP = 255.0


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match every one: its input is FP32 by definition."""
    if len(node.outputs) != 3 or node.domain:
        return NOT_THIS
    return Found((node,), lambda g: _build(g, node.inputs[0]))


def _build(g: Replacement, x: Value) -> tuple[Value, ...]:
    zero, one, top = (g.scalar(v, dtype=FLOAT) for v in (0.0, 1.0, TOP))
    high = g.op("Max", g.op("ReduceMax", x, keepdims=0), zero)
    low = g.op("Min", g.op("ReduceMin", x, keepdims=0), zero)
    width = g.op("Sub", high, low)
    scale = g.op("Where", g.op("Equal", width, zero), one, g.op("Div", width, top))
    point = g.op("Round", g.op("Clip", g.op("Sub", zero, g.op("Div", low, scale)), zero, top))
    steps = g.op("Add", g.op("Round", g.op("Div", x, scale)), point)
    return g.cast(g.op("Clip", steps, zero, top), UINT8), scale, g.cast(point, UINT8)


RULE = Rule(
    name="dynamic-quantize",
    why="No TensorRT quantises by the range of the values themselves; FP32 holds every step exactly.",
    ops=("DynamicQuantizeLinear",),
    find=find,
    # The range of an infinity is not a scale: what comes of it is not defined.
    keeps_infinities=False,
    before="q, s, z = DynamicQuantizeLinear(x)",
    after="s = (ReduceMax(x) - ReduceMin(x)) / 255, q = Clip(Round(x / s) + z, 0, 255)",
)

"""ONNX Runtime's operators on bytes, in floats between DequantizeLinear and QuantizeLinear.

`quantize_static` with `QuantFormat.QOperator` writes them (ONNX Runtime, `docs/ContribOperators.md`): each value comes
with its scale and zero point, and the result is that of the operator of FP32, rounded to the steps of its own scale.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS

# Operator -> the one of ONNX and how many values it takes; what is left of the inputs is the scale of the result.
FLOAT_OPS = {
    "QLinearAdd": ("Add", 2),
    "QLinearMul": ("Mul", 2),
    "QLinearSigmoid": ("Sigmoid", 1),
    "QLinearLeakyRelu": ("LeakyRelu", 1),
    "QLinearAveragePool": ("AveragePool", 1),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", 1),
    "QLinearConcat": ("Concat", 0),
}
# Of these ONNX Runtime rounds half to even after it has added the zero point, QuantizeLinear before: an odd one moves
# every tie.
ROUNDED_LAST = ("Add", "Mul")
# What says how ONNX Runtime reads the values, and is no attribute of ONNX's operator.
OWN_ATTRIBUTES = ("channels_last",)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match those whose values are bytes in the layout of ONNX."""
    op, count = FLOAT_OPS[node.op]
    if node.attr("channels_last", 0):
        return Skip("its channels are the last axis")
    inputs = node.inputs[2:] if op == "Concat" else node.inputs
    result = tuple(node.inputs[:2]) if op == "Concat" else (node.input(3 * count), node.input(3 * count + 1))
    values = [(inputs[i], inputs[i + 1], node_input(inputs, i + 2)) for i in range(0, 3 * count or len(inputs), 3)]
    codes = {value: graph.dtype(value) for value, _, _ in values}
    if any(code not in BYTE_BOUNDS for code in codes.values()):
        return Skip("its values are not bytes")
    ranges = {value: BYTE_BOUNDS[code] for value, code in codes.items() if not graph.is_constant(value)}
    point = graph.constant(result[1]) if op in ROUNDED_LAST and result[1] else None
    if op in ROUNDED_LAST and result[1] and point is None:
        return Skip("the zero point of its result is not a constant")
    odd = point is not None and bool(np.any(point.astype(np.int64) % 2))
    return Found((node,), partial(_build, node=node, op=op, values=values, result=result, odd=odd), ranges)


def node_input(inputs: list[str], index: int) -> str:
    """An input, empty where it is left out."""
    return inputs[index] if index < len(inputs) else ""


def _build(
    g: Replacement, node: Node, op: str, values: list[tuple[str, str, str]], result: tuple[str, ...], odd: bool
) -> Value:
    floats = [g.op("DequantizeLinear", *value) for value in values]
    attributes = node.attributes(*OWN_ATTRIBUTES)
    value = g.op(op, *floats, **attributes)
    if odd:
        scale, point = result
        zero = g.cast(point, FLOAT)
        value = g.mul(g.sub(g.round(g.add(g.div(value, scale), zero)), zero), scale)
    return g.op("QuantizeLinear", value, *result)


RULE = Rule(
    name="quantized-operator",
    why="TensorRT does not have ONNX Runtime's operators on bytes; Q/DQ pairs say the same.",
    ops=tuple(f"{DOMAIN}::{name}" for name in FLOAT_OPS),
    find=find,
    before="QLinearAdd(a, sa, za, b, sb, zb, s, z)",
    after="QuantizeLinear(Add(DequantizeLinear(a, sa, za), DequantizeLinear(b, sb, zb)), s, z)",
)

"""ONNX Runtime's products of bytes that give floats, in ONNX's own operators on bytes."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS

# The opset that brought DynamicQuantizeLinear.
DYNAMIC = 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match weights of bytes."""
    if graph.opset < DYNAMIC:
        return Skip("DynamicQuantizeLinear came with opset 11", opset=DYNAMIC)
    operands = [n for n in node.inputs[:2] if graph.dtype(n) != FLOAT]
    if any(graph.dtype(n) not in BYTE_BOUNDS for n in operands):
        return Skip("its operands are not known to be bytes")
    ranges = {n: BYTE_BOUNDS[graph.dtype(n)] for n in operands if not graph.is_constant(n)}
    return Found((node,), partial(_build, node=node), ranges)


def _build(g: Replacement, node: Node) -> Value:
    if node.op == "DynamicQuantizeMatMul":
        first, first_scale, first_point = g.ops("DynamicQuantizeLinear", 3, node.inputs[0])
        second_scale, second_point, bias = (node.input(i) for i in (2, 3, 4))
    else:
        first, first_scale, second_scale, first_point, second_point, bias = (node.input(i) for i in (0, 2, 3, 4, 5, 6))
    whole = g.op("MatMulInteger", first, node.inputs[1], first_point, second_point)
    value = g.mul(g.cast(whole, FLOAT), g.mul(first_scale, second_scale))
    return g.add(value, bias) if bias else value


RULE = Rule(
    name="dynamic-product",
    why="No TensorRT has ONNX Runtime's products of bytes that give floats; ONNX's product and scales are the same.",
    ops=tuple(f"{DOMAIN}::{name}" for name in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")),
    find=find,
    before="com.microsoft.DynamicQuantizeMatMul(x, w, scale, point, bias)",
    after="q, s, z = DynamicQuantizeLinear(x); Mul(Cast(MatMulInteger(q, w, z, point)), s * scale) + bias",
)

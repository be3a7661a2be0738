"""QuantizeLinear and DequantizeLinear with a zero point or of unsigned bytes, in FP32, which holds every step exactly.

ONNX defines q = saturate(round(x / scale) + zero_point), rounded half to even, and x' = (q - zero_point) * scale. What
TensorRT runs in INT8 stays: int8 values whose zero point is 0.
"""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS, INT8

UINT16, INT16, INT32 = 4, 5, 6
BOUNDS = {**BYTE_BOUNDS, UINT16: (0.0, 65535.0), INT16: (-32768.0, 32767.0)}
MOST_ELEMENTS = 1 << 28


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a pair, a DequantizeLinear of a constant or of bytes, and a QuantizeLinear that no such node reads."""
    code = graph.dtype(node.inputs[0] if node.op == "DequantizeLinear" else node.output)
    if node.domain or (code not in BOUNDS and code != INT32):
        return NOT_THIS
    steps = _steps(graph, node)
    if steps is None:
        return Skip("its scale or zero point is not a constant, or one for each block")
    scale, point = steps
    if code == INT8 and not point.any():
        return NOT_THIS
    if scale.dtype != np.float32:
        return Skip("its scale is not FP32")
    if node.op == "QuantizeLinear":
        return _quantised(graph, node, code, scale, point)
    whole = graph.constant(node.inputs[0], MOST_ELEMENTS)
    if whole is not None:
        floats = (whole.astype(np.int32) - point.astype(np.int32)).astype(np.float32) * scale
        return Found((node,), lambda g: g.const(floats, "dequantised"))
    first = graph.maker(node.inputs[0], "QuantizeLinear")
    if code == INT32:
        return Skip("its int32 values are not a constant")
    if first is None:
        return Found((node,), lambda g: _from_steps(g, g.cast(node.inputs[0], FLOAT), scale, point), _range(node, code))
    entering = _steps(graph, first)
    if entering is None or entering[0].dtype != np.float32 or graph.dtype(first.inputs[0]) != FLOAT:
        return Skip("the QuantizeLinear before it does not take FP32 with a constant scale")
    return Found(
        (first, node),
        lambda g: _from_steps(g, _to_steps(g, first.inputs[0], code, *entering), scale, point),
    )


def _quantised(graph: Graph, node: Node, code: int, scale: Array, point: Array) -> Found | Skip:
    if any(user.op == "DequantizeLinear" for user in graph.uses(node.output)):
        return NOT_THIS
    if graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("it does not take FP32")
    return Found((node,), lambda g: g.cast(_to_steps(g, node.inputs[0], code, scale, point), code))


def _range(node: Node, code: int) -> dict[str, tuple[float, float]]:
    return {node.inputs[0]: BOUNDS[code]}


def _steps(graph: Graph, node: Node) -> tuple[Array, Array] | None:
    """Scale and zero point, shaped to be broadcast; None where they are not constants or one for each block."""
    scale = graph.constant(node.inputs[1])
    point = graph.constant(node.input(2)) if node.input(2) else np.zeros((), np.int32)
    if scale is None or point is None or scale.ndim > 1 or node.attr("block_size", 0):
        return None
    if scale.size == 1:
        return scale.reshape(()), point.reshape(())
    rank = graph.rank(node.inputs[0])
    if rank is None:
        return None
    shape = [1] * rank
    shape[node.attr("axis", 1)] = -1
    return scale.reshape(shape), point.reshape(shape if point.size > 1 else ())


def _to_steps(g: Replacement, x: Value, code: int, scale: Array, point: Array) -> Value:
    steps = g.op("Round", x if _is_one(scale) else g.op("Div", x, g.const(scale, "scale")))
    low, high = (g.scalar(bound, dtype=FLOAT) for bound in BOUNDS[code])
    return g.op("Clip", g.op("Add", steps, g.const(point.astype(np.float32), "zero_point")), low, high)


def _from_steps(g: Replacement, steps: Value, scale: Array, point: Array) -> Value:
    moved = g.op("Sub", steps, g.const(point.astype(np.float32), "zero_point"))
    return moved if _is_one(scale) else g.op("Mul", moved, g.const(scale, "scale"))


def _is_one(scale: Array) -> bool:
    return scale.size == 1 and float(scale.reshape(())) == 1.0


RULE = Rule(
    name="asymmetric-pair",
    why="TensorRT quantises to int8 with a zero point of 0 only; FP32 holds every step of the others exactly.",
    ops=("DequantizeLinear", "QuantizeLinear"),
    find=find,
    before="DequantizeLinear(QuantizeLinear(x, s, z), s, z), uint8",
    after="(Clip(Round(x / s) + z, 0, 255) - z) * s",
)

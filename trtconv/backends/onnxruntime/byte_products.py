"""Products of bytes as ONNX defines them, on every CPU.

ONNX Runtime multiplies uint8 by int8 weights with an instruction that saturates sums of two products at 16 bits, on
x86 without VNNI (its documentation of quantisation, "U8S8 saturation"). Its cure, `session.x64quantprecision`, is a
graph optimisation, and a graph that is judged runs without those. Weights and zero point moved by 128, as uint8, are
the same product, and one that does not saturate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

# Operator -> inputs that hold the weights and their zero point.
WEIGHTS = {"MatMulInteger": (1, 3), "ConvInteger": (1, 3), "QLinearMatMul": (3, 5), "QLinearConv": (3, 5)}
NAMES = tuple(name.encode() for name in WEIGHTS)
SHIFT = 128


def multiplies_bytes(model: bytes) -> bool:
    """A glance at a serialized model: may it hold such an operator?"""
    return any(name in model for name in NAMES)


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with int8 weights of these operators as uint8, in place; others, and weights on disk, stay."""
    tensors = {t.name: t for t in model.graph.initializer}
    fed = {v.name for v in model.graph.input}
    for number, node in enumerate(model.graph.node):
        at, point = WEIGHTS.get(node.op_type, (0, 0))
        if not at or node.domain not in ("", "ai.onnx"):
            continue
        weights = tensors.get(node.input[at])
        zero = tensors.get(node.input[point]) if point < len(node.input) and node.input[point] else None
        named = point < len(node.input) and bool(node.input[point])
        if weights is None or weights.name in fed or (named and (zero is None or zero.name in fed)):
            continue
        moved = [_moved(t, f"{t.name}/unsigned{number}") for t in (weights, zero) if t is not None]
        if any(t is None for t in moved):
            continue
        if zero is None:
            moved.append(_number(f"{weights.name}/zero{number}"))
            node.input.extend([""] * (point + 1 - len(node.input)))
        model.graph.initializer.extend(t for t in moved if t is not None)
        node.input[at], node.input[point] = (t.name for t in moved if t is not None)
    return model


def _moved(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto | None:
    import numpy as np
    from onnx import TensorProto, numpy_helper

    if tensor.data_type != TensorProto.INT8 or tensor.data_location == TensorProto.EXTERNAL:
        return None
    values = numpy_helper.to_array(tensor).astype(np.int16) + SHIFT
    return numpy_helper.from_array(values.astype(np.uint8), name)


def _number(name: str) -> onnx.TensorProto:
    import numpy as np
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(SHIFT, np.uint8), name)

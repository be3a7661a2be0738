"""What a file computes from sizes in floats and cuts: `Floor(Cast(Gather(Shape(x))) * 0.7)`, a Resize by a scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtconv.export.sizes.intervals import INTEGERS

if TYPE_CHECKING:
    import onnx

FLOATS = (1, 10, 11, 16)
# A last bit decides what these give.
CUTTING = frozenset(
    ("Floor", "Ceil", "Round", "Sign", "Mod", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
)


def computes_sizes_in_floats(graph: onnx.GraphProto) -> bool:
    """True when numbers that come from shapes alone go through floats back into whole ones, in bodies not looked at.

    A Resize by a scale that is a power of two rounds nothing.
    """
    constants = {t.name: t for t in graph.initializer}
    whole: set[str] = set()
    floating: set[str] = set()
    for node in graph.node:
        inputs = [i for i in node.input if i and i not in constants]
        if node.op_type == "Constant":
            constants[node.output[0]] = next((a.t for a in node.attribute if a.name == "value"), constants.get(""))
        elif node.op_type in ("Shape", "Size"):
            whole.add(node.output[0])
        elif node.op_type == "Resize":
            if _scaled(node, constants, floating):
                return True
        elif inputs and all(i in whole or i in floating for i in inputs):
            to = next((a.i for a in node.attribute if a.name == "to"), 0) if node.op_type == "Cast" else 0
            was_float = any(i in floating for i in inputs)
            if was_float and (to in INTEGERS or node.op_type in CUTTING):
                return True
            (floating if was_float or to in FLOATS else whole).update(node.output)
    return False


def _scaled(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto | None], floating: set[str]) -> bool:
    from onnx import numpy_helper

    scales = node.input[2] if len(node.input) > 2 else ""
    if scales in floating:
        return True
    tensor = constants.get(scales) if scales else None
    if tensor is None or not math.prod(tensor.dims):
        return False
    return any(math.frexp(float(v))[0] != 0.5 for v in numpy_helper.to_array(tensor).reshape(-1))

"""A Clip with one bound has, by ONNX, the largest finite number for the other: it takes infinities, as clamp does not.

Both exporters write `x.clamp(max=0)` so; of -inf the file makes -3.4e38, and a masked score is a number afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of
from trtconv.core.model.opset import opset_of

if TYPE_CHECKING:
    import onnx

# Since opset 11 the bounds are inputs; Max and Min take the floats that Clip does since then.
SINCE = 11


def write_one_sided_clips(model: onnx.ModelProto) -> int:
    """Make each Clip of floats with a lower bound alone a Max, with an upper one a Min; returns how many."""
    opset = opset_of(model, 0)
    if opset < SINCE:
        return 0
    changed = 0
    floats: set[str] = set()
    for graph in graphs_of(model.graph):
        floats |= _float_constants(graph)
        for node in graph.node:
            bounds = [name for name in node.input[1:3] if name]
            if node.op_type != "Clip" or len(bounds) != 1 or bounds[0] not in floats:
                continue
            node.op_type = "Max" if node.input[1] else "Min"
            node.input[:] = [node.input[0], bounds[0]]
            changed += 1
    return changed


def _float_constants(graph: onnx.GraphProto) -> set[str]:
    """The constants of a graph whose type has infinities."""
    import onnx

    kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    names = {t.name for t in graph.initializer if t.data_type in kinds}
    for node in graph.node:
        value = node.attribute[0] if node.op_type == "Constant" and node.attribute else None
        if value is not None and (value.name == "value_float" or value.t.data_type in kinds):
            names.add(node.output[0])
    return names

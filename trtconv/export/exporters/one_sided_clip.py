"""A Clip with one bound has, by ONNX, the largest finite number for the other: it takes infinities, as clamp does not.

Both exporters write `x.clamp(max=1)` so; of -inf the file makes -3.4e38, and a masked score is a number afterwards.
Max and Min take either of two equal zeros, where a clamp keeps its own: beside a bound of zero Relu and Where keep it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of
from trtconv.core.model.opset import opset_of

if TYPE_CHECKING:
    import onnx

# Since opset 11 the bounds are inputs; Max and Min take the floats that Clip does since then.
SINCE = 11


def write_one_sided_clips(model: onnx.ModelProto) -> int:
    """Make each Clip of floats with a lower bound alone a Max, with an upper one a Min; returns how many.

    Beside a bound of plus zero it becomes a Relu or a Where.
    """
    opset = opset_of(model, 0)
    if opset < SINCE:
        return 0
    changed = 0
    zeros: dict[str, bool] = {}
    for graph in graphs_of(model.graph):
        zeros.update(_float_constants(graph))
        rewritten = []
        for node in graph.node:
            bounds = [name for name in node.input[1:3] if name]
            if node.op_type == "Clip" and len(bounds) == 1 and bounds[0] in zeros:
                rewritten += _one_sided(node, zeros[bounds[0]])
                changed += 1
            rewritten.append(node)
        if len(rewritten) > len(graph.node):
            del graph.node[:]
            graph.node.extend(rewritten)
    return changed


def _one_sided(node: onnx.NodeProto, zero: bool) -> list[onnx.NodeProto]:
    """Change a Clip in place; returns the nodes that it needs before it."""
    import onnx

    lower = bool(node.input[1])
    x, bound = node.input[0], node.input[1] if lower else node.input[2]
    if not zero:
        node.op_type, node.input[:] = "Max" if lower else "Min", [x, bound]
        return []
    if lower:
        node.op_type, node.input[:] = "Relu", [x]
        return []
    positive = f"{node.output[0]}_positive"
    node.op_type, node.input[:] = "Where", [positive, bound, x]
    return [onnx.helper.make_node("Greater", [x, bound], [positive], name=positive)]


def _float_constants(graph: onnx.GraphProto) -> dict[str, bool]:
    """The constants of a graph whose type has infinities, and whether each is one plus zero."""
    import onnx

    kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    zeros = {t.name: _is_plus_zero(t) for t in graph.initializer if t.data_type in kinds}
    for node in graph.node:
        value = node.attribute[0] if node.op_type == "Constant" and node.attribute else None
        if value is not None and value.name == "value_float":
            zeros[node.output[0]] = str(value.f) == "0.0"
        elif value is not None and value.t.data_type in kinds:
            zeros[node.output[0]] = _is_plus_zero(value.t)
    return zeros


def _is_plus_zero(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor is the one number 0.0, not -0.0; one in a file beside the model is not read."""
    import onnx

    if math.prod(tensor.dims) != 1 or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return str(float(onnx.numpy_helper.to_array(tensor).item())) == "0.0"

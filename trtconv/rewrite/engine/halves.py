"""Running a part that is typed FP16 or BF16 in FP32: what it would compute if half precision did not overflow."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
FLOAT = onnx.TensorProto.FLOAT


def in_float32(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with the same inputs whose half values are all FP32; outputs that were half are FP32 too."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    nodes = list(graph.node)
    renamed = {v.name: f"{v.name}/float32" for v in graph.input if v.type.tensor_type.elem_type in HALF}
    if not renamed and not any(t.data_type in HALF for t in graph.initializer):
        return copy
    for tensor in graph.initializer:
        _widen(tensor)
    for node in nodes:
        node.input[:] = [renamed.get(i, i) for i in node.input]
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i in HALF and node.op_type == "Cast":
                attribute.i = FLOAT
            elif attribute.HasField("t"):
                _widen(attribute.t)
    casts = [helper.make_node("Cast", [old], [new], to=FLOAT) for old, new in renamed.items()]
    del graph.node[:]
    graph.node.extend([*casts, *nodes])
    return copy


def _widen(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in HALF:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))

"""bf16 graphs on ONNX Runtime's CPU, which has kernels for few of them: computed in FP32 and rounded after every node.

That is what tensor cores do too: products of bf16 values summed in FP32, the result rounded to bf16 once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.errors import UnsupportedError

if TYPE_CHECKING:
    import onnx

FLOAT, BFLOAT16 = 1, 16


def emulate_bfloat16(model: onnx.ModelProto) -> onnx.ModelProto:
    """An FP32 model that gives the values of a bf16 one: every bf16 tensor is FP32 holding a bf16 value.

    Raises UnsupportedError for bf16 inputs, outputs or bodies of If, Loop and Scan, which would change their types.
    """
    import onnx
    from onnx import numpy_helper

    _require_plain(model)
    inferred = onnx.shape_inference.infer_shapes(model)
    half = {v.name for v in inferred.graph.value_info if v.type.tensor_type.elem_type == BFLOAT16}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    for index, tensor in enumerate(graph.initializer):
        if tensor.data_type == BFLOAT16:
            values = numpy_helper.to_array(tensor).astype("float32")
            graph.initializer[index].CopyFrom(numpy_helper.from_array(values, tensor.name))
    nodes = list(graph.node)
    del graph.node[:]
    del graph.value_info[:]
    for node in nodes:
        graph.node.extend(_emulated(node, half))
    return result


def _require_plain(model: onnx.ModelProto) -> None:
    ends = [*model.graph.input, *model.graph.output]
    bodies = any(a.HasField("g") for n in model.graph.node for a in n.attribute)
    if bodies or any(v.type.tensor_type.elem_type == BFLOAT16 for v in ends):
        raise UnsupportedError(
            "a bf16 model with bf16 inputs or outputs, or with control flow, cannot be run on a CPU",
            hint="check the engine on a GPU, or use --precision fp16",
        )


def _emulated(node: onnx.NodeProto, half: set[str]) -> list[onnx.NodeProto]:
    """The node in FP32, then a rounding of each output that was bf16."""
    import onnx
    from onnx import helper

    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    for attribute in changed.attribute:
        if attribute.name in ("to", "dtype") and attribute.i == BFLOAT16:
            attribute.i = FLOAT
        if attribute.HasField("t") and attribute.t.data_type == BFLOAT16:
            values = onnx.numpy_helper.to_array(attribute.t).astype("float32")
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(values, attribute.t.name))
    made = [changed]
    for index, name in enumerate(node.output):
        if name in half:
            changed.output[index] = f"{name}/exact"
            made.append(helper.make_node("Cast", [f"{name}/exact"], [f"{name}/rounded"], to=BFLOAT16))
            made.append(helper.make_node("Cast", [f"{name}/rounded"], [name], to=FLOAT))
    return made

"""Bringing a model of another exporter to a later opset, in which rules can say what they put in."""

from __future__ import annotations

import onnx
from onnx import helper, version_converter

from trtconv.core.model.opset import opset_of
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS

# Since here axes are inputs of Squeeze, Unsqueeze and ReduceSum, and Softmax has one axis; all rules know this form.
COMMON_OPSET = 13
# A message of protobuf has 2 GiB at most, and the converter takes and gives one.
MOST_BYTES = 1 << 30


def raise_opset(model: onnx.ModelProto, opset: int) -> onnx.ModelProto | None:
    """A copy of the model in `opset` or `COMMON_OPSET`, whichever is later; None where onnx has no way there.

    onnx's version converter does it, whose result has the same inputs, outputs and initializers. What it computes is
    proved with the rewrites, against the model as it was.
    """
    if model.functions or model.ByteSize() > MOST_BYTES:
        return None
    start = _with_flat_hardmax(model)
    try:
        raised = version_converter.convert_version(start, max(opset, COMMON_OPSET))
        onnx.checker.check_model(raised)
    except (RuntimeError, ValueError, onnx.checker.ValidationError):
        return None
    if _signature(raised.graph) != _signature(model.graph):
        return None
    # The converter leaves out what stands around the nodes, and writes dims that it inferred.
    for part in ("input", "output", "value_info"):
        raised.graph.ClearField(part)
        getattr(raised.graph, part).extend(getattr(model.graph, part))
    raised.ClearField("metadata_props")
    raised.metadata_props.extend(model.metadata_props)
    raised.doc_string = model.doc_string
    return raised


def _with_flat_hardmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which Hardmax stands between Flatten and Reshape, so that before and after 13 it has one axis.

    The converter of onnx 1.23 does that for Softmax and LogSoftmax, and leaves Hardmax as it is.
    """
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    if not any(n.op_type == "Hardmax" for n in model.graph.node) or opset_of(model) >= COMMON_OPSET:
        return copied
    del copied.graph.node[:]
    for node in model.graph.node:
        if node.op_type != "Hardmax" or node.domain not in DEFAULT_DOMAINS:
            copied.graph.node.append(node)
            continue
        x, y = node.input[0], node.output[0]
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        copied.graph.node.extend([
            helper.make_node("Shape", [x], [f"{y}/shape"]),
            helper.make_node("Flatten", [x], [f"{y}/flat"], axis=axis),
            helper.make_node("Hardmax", [f"{y}/flat"], [f"{y}/hardmax"], node.name, axis=1),
            helper.make_node("Reshape", [f"{y}/hardmax", f"{y}/shape"], [y]),
        ])  # fmt: skip
    return copied


def _signature(graph: onnx.GraphProto) -> list[tuple[str, int]]:
    return [(v.name, v.type.tensor_type.elem_type) for v in (*graph.input, *graph.output)]

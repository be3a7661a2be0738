"""Bringing a model of another exporter to a later opset, in which rules can say what they put in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from trtconv.core.model.bodies import graphs_of, replace_nodes, walk_nodes
from trtconv.core.model.opset import opset_of
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS

# Since here axes are inputs of Squeeze, Unsqueeze and ReduceSum, and Softmax has one axis; all rules know this form.
COMMON_OPSET = 13
# A message of protobuf has 2 GiB at most, and the converter takes and gives one.
MOST_BYTES = 1 << 30
# Since here a Resize says how it finds places and which pixel is the nearest.
RESIZE_OPSET = 11
NEARLY = 1e-6


def sayable_opset(model: onnx.ModelProto) -> int:
    """The first opset in which engines read what the model means; 0 where they do in its own.

    A nearest Resize of opset 10 takes the next pixel where it shrinks and the one before where it grows (ONNX Runtime);
    parsers take the one before in both (measured: TensorRT 8.6.0 on an H200 at 0.6 and 0.75).
    """
    if opset_of(model) >= RESIZE_OPSET:
        return 0
    return RESIZE_OPSET if any("ceil" in _pixels(node, scales) for node, scales in _resizes(model)) else 0


def raise_opset(model: onnx.ModelProto, opset: int) -> onnx.ModelProto | None:
    """A copy of the model in `opset` or `COMMON_OPSET`, whichever is later; None where onnx has no way there.

    onnx's version converter does it, whose result has the same inputs, outputs and initializers. What it computes is
    proved with the rewrites, against the model as it was.
    """
    if model.functions or model.ByteSize() > MOST_BYTES:
        return None
    start = _with_separate_resizes(_with_flat_hardmax(model))
    resizes = {node.output[0]: _pixels(node, scales) for node, scales in _resizes(start)}
    if any(len(pixels) > 1 for pixels in resizes.values()):
        return None
    try:
        raised = version_converter.convert_version(start, max(opset, COMMON_OPSET))
        _restore_places(raised, resizes)
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


def _resizes(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, np.ndarray[Any, Any] | None]]:
    """Resize and Upsample of the opsets before `RESIZE_OPSET`, with their scales where those are constants."""
    if opset_of(model) >= RESIZE_OPSET:
        return
    constants = {t.name: t for t in model.graph.initializer}
    constants |= {n.output[0]: n.attribute[0].t for n in model.graph.node if n.op_type == "Constant" and n.attribute}
    for node in walk_nodes(model.graph.node):
        if node.op_type not in ("Resize", "Upsample") or node.domain not in DEFAULT_DOMAINS:
            continue
        scales = next((a.floats for a in node.attribute if a.name == "scales"), None)
        if len(node.input) > 1 and node.input[1] in constants:
            scales = numpy_helper.to_array(constants[node.input[1]])
        yield node, None if scales is None else np.asarray(scales, np.float64)


def _pixels(node: onnx.NodeProto, scales: np.ndarray[Any, Any] | None) -> set[str]:
    """The modes in which the axes of a nearest resize find their pixel; one where all agree, none for linear.

    Where a scale is one over a whole number, both find the same pixel.
    """
    if next((a.s for a in node.attribute if a.name == "mode"), b"nearest") != b"nearest":
        return {""}
    if scales is None:
        return {"floor"} if node.op_type == "Upsample" else {"floor", "ceil"}
    next_pixel = {"ceil" for s in scales if s < 1.0 and abs(1.0 / s - round(1.0 / s)) > NEARLY}
    return next_pixel | {"floor" for s in scales if s > 1.0} or {"floor"}


def _with_separate_resizes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, in which a nearest Resize that shrinks one axis and grows another is two: a node has one mode."""
    separate = {
        node.output[0]: (np.minimum(scales, 1.0), np.maximum(scales, 1.0))
        for node, scales in _resizes(model)
        if scales is not None and len(_pixels(node, scales)) > 1
    }
    for graph in graphs_of(model.graph) if separate else ():
        nodes = []
        for node in graph.node:
            if node.op_type != "Resize" or node.output[0] not in separate:
                nodes.append(node)
                continue
            x, y = node.input[0], node.output[0]
            for scales, stem in zip(separate[y], (f"{y}/shrinks", f"{y}/grows"), strict=True):
                tensor = numpy_helper.from_array(scales.astype(np.float32), stem)
                nodes.append(helper.make_node("Constant", [], [stem], value=tensor))
            nodes.append(helper.make_node("Resize", [x, f"{y}/shrinks"], [f"{y}/shrunk"], mode="nearest"))
            nodes.append(helper.make_node("Resize", [f"{y}/shrunk", f"{y}/grows"], [y], node.name, mode="nearest"))
        replace_nodes(graph, nodes)
    return model


def _restore_places(model: onnx.ModelProto, resizes: Mapping[str, set[str]]) -> None:
    """Say in each Resize what the operators before `RESIZE_OPSET` did: onnx 1.23 leaves the mode to the default."""
    for node in walk_nodes(model.graph.node):
        if node.op_type != "Resize" or node.output[0] not in resizes:
            continue
        (pixel,) = resizes[node.output[0]]
        attributes = {"coordinate_transformation_mode": "asymmetric"} | ({"nearest_mode": pixel} if pixel else {})
        node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())


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

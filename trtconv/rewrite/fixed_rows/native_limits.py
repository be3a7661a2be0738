"""Suppression that stays native, written so that TensorRT's own layer takes it for what ONNX says.

Facts of the layer (INMSLayer, operator reference of 8.5 to 10.x): a threshold of scores that is left out is 0, where
ONNX takes every box; the 5000 best boxes of an image are considered, of all classes together. Measured with 8.6 on an
H200: rows of several classes or images do not come in ONNX's order, and an image without boxes does not run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper

from trtconv.core.targets import Target
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.graph.index import Array, Dims, Graph, Node

LARGEST = 2**31 - 1
MOST_CONSIDERED = 5000
LIMIT, OVERLAP, LEAST = 2, 3, 4
LOWEST = np.finfo(np.float32).min


def with_native_limits(model: onnx.ModelProto, target: Target) -> tuple[onnx.ModelProto, list[str]]:
    """The model with what its suppressions leave out written down, and notes on what the layer will not consider.

    A limit of all boxes is written as 2^63 - 1 by torchvision, of which TensorRT 8.6 says that it is clamped: 2^31 - 1
    means the same, for no tensor has so many boxes.
    """
    index = index_model(model, target)
    suppressions = index.find("NonMaxSuppression")
    if not suppressions or target.is_rtx:
        return model, []
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    protos = {n.output[0]: n for n in copy.graph.node if n.op_type == "NonMaxSuppression"}
    for node in suppressions:
        proto = protos[node.output]
        for slot, value in _left_out(index, node):
            name = _unused(index, f"{node.output}_input_{slot}")
            copy.graph.initializer.append(numpy_helper.from_array(value, name))
            proto.input.extend([""] * (slot + 1 - len(proto.input)))
            proto.input[slot] = name
        if not node.input(LEAST):
            _keep_over_threshold(index, copy.graph, proto)
    return copy, [text for node in suppressions for text in _differences(index, node, target)]


def _unused(index: Graph, name: str) -> str:
    while name in index.names:
        name += "_"
    return name


def _left_out(index: Graph, node: Node) -> Iterator[tuple[int, Array]]:
    """The inputs to be written, by their index."""
    if (index.scalar(node.input(LIMIT)) or 0) > LARGEST:
        yield LIMIT, np.asarray([LARGEST], np.int64)
    if not node.input(LEAST):
        if not node.input(OVERLAP):
            yield OVERLAP, np.zeros(1, np.float32)
        yield LEAST, np.asarray([LOWEST])


def _keep_over_threshold(index: Graph, graph: onnx.GraphProto, suppression: onnx.NodeProto) -> None:
    """Scores of minus infinity are over no threshold: the suppression sees the least number over it in their place."""
    least, scores = (_unused(index, f"{suppression.output[0]}_{part}") for part in ("least_score", "scores"))
    over = np.nextafter(LOWEST, np.float32(0))
    graph.initializer.append(numpy_helper.from_array(np.asarray(over), least))
    node = onnx.helper.make_node("Max", [suppression.input[1], least], [scores], name=scores)
    node.metadata_props.extend(suppression.metadata_props)
    position = next(i for i, n in enumerate(graph.node) if n.output[:1] == suppression.output[:1])
    graph.node.insert(position, node)
    graph.node[position + 1].input[1] = scores


def _differences(index: Graph, node: Node, target: Target) -> Iterator[str]:
    dims: Dims = index.dims(node.inputs[1]) or (None, None, None)
    if any(index.dim_range(d) != (1, 1) for d in dims[:2]):
        yield (
            f"{node.name}: {target}'s own layer gives the boxes of several classes or images in an order of its own; "
            "--nms topk keeps ONNX's"
        )
    ranges = [index.dim_range(d) for d in dims[1:]]
    if any(r is None for r in ranges) or np.prod([r[1] for r in ranges if r is not None]) > MOST_CONSIDERED:
        yield (
            f"{node.name}: {target} considers the {MOST_CONSIDERED} best boxes of an image, of all classes together; "
            "where more are over the threshold of scores, --nms topk considers all"
        )

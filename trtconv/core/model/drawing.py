"""Nodes that draw random numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.provenance import SOURCE_KEY

if TYPE_CHECKING:
    import onnx

DRAWING = (
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)


def drawing_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of a graph and its bodies that draw; a Dropout does in training mode, of a share over 0."""
    import onnx

    nodes = list(walk_nodes(graph.node))
    flags = [(t.name, t) for t in graph.initializer]
    flags += [(n.output[0], a.t) for n in nodes if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    flags = [(name, t) for name, t in flags if t.data_location != onnx.TensorProto.EXTERNAL]
    # A larger tensor of bools is a mask, whose values are not read here.
    bools = [(name, t) for name, t in flags if t.data_type == onnx.TensorProto.BOOL and math.prod(t.dims) == 1]
    off = {name for name, t in bools if not onnx.numpy_helper.to_array(t).any()}
    single = [(name, t) for name, t in flags if t.data_type == onnx.TensorProto.FLOAT and math.prod(t.dims) == 1]
    nothing = {name for name, t in single if not onnx.numpy_helper.to_array(t).any()}
    nothing |= {n.output[0] for n in nodes for a in n.attribute if a.name == "value_float" and not a.f}

    def trains(node: onnx.NodeProto) -> bool:
        drops = node.op_type == "Dropout" and len(node.input) > 2 and node.input[1] not in nothing
        return drops and node.input[2] not in ("", *off)

    return [n for n in nodes if n.domain in ("", "ai.onnx") and (n.op_type in DRAWING or trains(n))]


def describe_drawing(node: onnx.NodeProto) -> str:
    """`RandomNormalLike of net.py:12`, or the node's name where no source line is recorded."""
    source = next((p.value for p in node.metadata_props if p.key == SOURCE_KEY), "")
    return f"{node.op_type} of {source}" if source else f"{node.op_type} '{node.name or node.output[0]}'"

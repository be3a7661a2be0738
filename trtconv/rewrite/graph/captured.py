"""Constants that the bodies of If, Loop and Scan take from around, put where ONNX's inference sees their values.

Inference hands a body the types of the values around it, not the values: in a branch it knew no rank after a Squeeze or
a Reshape whose axes or shape is an initializer of the main graph, and rules that want a rank passed over every branch.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from trtconv.core.model.bodies import bodies_of, values_captured

Constants = Mapping[str, onnx.TensorProto]


def with_constants_inside(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model; a copy in which bodies have what they capture of its constants, where it has bodies.

    For inference alone: a name is given twice, which ONNX does not allow.
    """
    if not any(n.attribute and any(bodies_of(n)) for n in model.graph.node):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _put_inside(copy.graph, {})
    return copy


def _put_inside(graph: onnx.GraphProto, around: Constants) -> None:
    own = {o for n in graph.node for o in n.output} | {v.name for v in graph.input}
    constants = {**{n: t for n, t in around.items() if n not in own}, **_constants_of(graph)}
    for node in graph.node:
        for body in bodies_of(node) if node.attribute else ():
            _put_inside(body, constants)
            body.initializer.extend(constants[n] for n in values_captured(body) if n in constants)


def _constants_of(graph: onnx.GraphProto) -> Constants:
    """The constants of a graph by name; an initializer that is an input as well is the caller's."""
    inputs = {v.name for v in graph.input}
    constants = {t.name: t for t in graph.initializer if t.name not in inputs}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name == "value":
            constants[node.output[0]] = onnx.TensorProto.FromString(node.attribute[0].t.SerializeToString())
            constants[node.output[0]].name = node.output[0]
    return constants

"""Shapes and types of ONNX Runtime's quantised operators, of which ONNX's inference knows nothing.

In a graph that is only looked at, each stands in as an operator of ONNX whose result has the same type and shape. One
node is one node, so that bodies of both graphs still pair. The operators are described in ONNX Runtime's
`docs/ContribOperators.md`.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from trtconv.core.model.bodies import walk_nodes

DOMAIN = "com.microsoft"
Inputs = Callable[[list[str]], list[str]]


def _at(*places: int) -> Inputs:
    return lambda inputs: [inputs[i] for i in places if i < len(inputs)]


# Operator -> ONNX's operator, and which inputs it takes. Values come with a scale and a zero point each.
STAND_INS: dict[str, tuple[str, Inputs]] = {
    "QLinearAdd": ("Add", _at(0, 3)),
    "QLinearMul": ("Mul", _at(0, 3)),
    "QLinearSigmoid": ("Identity", _at(0)),
    "QLinearLeakyRelu": ("Identity", _at(0)),
    "QLinearSoftmax": ("Identity", _at(0)),
    "QLinearAveragePool": ("AveragePool", _at(0)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", _at(0)),
    "QLinearConcat": ("Concat", lambda inputs: inputs[2::3]),
    "QGemm": ("Gemm", _at(0, 3)),
}
# Attributes that the stand-in does not have; with a value other than 0, the layout or the type is another one.
DROPPED = {
    "QLinearAveragePool": ("channels_last",),
    "QLinearGlobalAveragePool": ("channels_last",),
    "QGemm": ("alpha",),
}
FLOAT_RESULT = 8


def stand_in(graph: onnx.GraphProto) -> None:
    """Put the stand-ins into a graph and its bodies, in place."""
    for node in walk_nodes(graph.node):
        if node.domain == DOMAIN and node.op_type in STAND_INS and not _is_other(node):
            _replace(node)


def _is_other(node: onnx.NodeProto) -> bool:
    if node.op_type == "QGemm":
        return len(node.input) < FLOAT_RESULT or not node.input[FLOAT_RESULT - 1]
    return any(a.name == "channels_last" and a.i for a in node.attribute)


def _replace(node: onnx.NodeProto) -> None:
    name, choose = STAND_INS[node.op_type]
    dropped = DROPPED.get(node.op_type, ()) if name != "Identity" else tuple(a.name for a in node.attribute)
    attributes = [a for a in node.attribute if a.name not in dropped]
    inputs = choose(list(node.input))
    node.op_type, node.domain = name, ""
    del node.attribute[:], node.input[:]
    node.attribute.extend(attributes)
    node.input.extend(inputs)

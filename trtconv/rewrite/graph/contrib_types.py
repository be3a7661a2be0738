"""Shapes and types of ONNX Runtime's own operators, of which ONNX's inference knows nothing.

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
    "SkipLayerNormalization": ("Identity", _at(0)),
    "SkipSimplifiedLayerNormalization": ("Identity", _at(0)),
    "BiasGelu": ("Identity", _at(0)),
    "FastGelu": ("Identity", _at(0)),
    "QuickGelu": ("Identity", _at(0)),
    "Gelu": ("Identity", _at(0)),
    "RotaryEmbedding": ("Identity", _at(0)),
    "FusedMatMul": ("Einsum", _at(0, 1)),
    "FusedGemm": ("Gemm", _at(0, 1, 2)),
    "FusedConv": ("Conv", _at(0, 1, 2)),
    "MultiHeadAttention": ("Einsum", _at(0, 2)),
    "DynamicQuantizeMatMul": ("MatMul", _at(0, 1)),
    "EmbedLayerNormalization": ("Gather", _at(2, 0)),
    "Trilu": ("Trilu", _at(0, 1)),
}
# Attributes that the stand-in does not have; with a value other than 0, the layout or the type is another one.
DROPPED = {
    "QLinearAveragePool": ("channels_last",),
    "QLinearGlobalAveragePool": ("channels_last",),
    "QGemm": ("alpha",),
    "FusedGemm": ("activation", "activation_alpha", "activation_beta", "activation_gamma"),
    "FusedConv": ("activation", "activation_params"),
}
# These have no attribute of the stand-in.
BARE = ("Identity", "Einsum", "MatMul", "Gather")
# The later outputs that have the type and the shape of one that the stand-in gives.
LIKE_FIRST = {"SkipLayerNormalization": 3, "SkipSimplifiedLayerNormalization": 3, "EmbedLayerNormalization": 2}
FLOAT_RESULT = 8


def stand_in(graph: onnx.GraphProto) -> dict[str, str]:
    """Put the stand-ins into a graph and its bodies, in place; returns the values that are like another one."""
    alike: dict[str, str] = {}
    for node in walk_nodes(graph.node):
        if node.domain == DOMAIN and node.op_type in STAND_INS and not _is_other(node):
            index = LIKE_FIRST.get(node.op_type, 0)
            if index and len(node.output) > index:
                alike[node.output[index]] = node.output[0]
            _replace(node)
    for node in walk_nodes(graph.node) if alike else ():
        # What reads such a value gets its type from the other one.
        node.input[:] = [alike.get(i, i) for i in node.input]
    return alike


def _is_other(node: onnx.NodeProto) -> bool:
    if node.op_type == "QGemm":
        return len(node.input) < FLOAT_RESULT or not node.input[FLOAT_RESULT - 1]
    if node.op_type == "MultiHeadAttention":
        return len(node.input) < 3 or not node.input[2]
    return any(a.name in ("channels_last", "transBatchA", "transBatchB") and a.i for a in node.attribute)


def _replace(node: onnx.NodeProto) -> None:
    name, choose = STAND_INS[node.op_type]
    dropped = DROPPED.get(node.op_type, ()) if name not in BARE else tuple(a.name for a in node.attribute)
    attributes = [a for a in node.attribute if a.name not in dropped]
    if name == "Einsum":
        attributes = [onnx.helper.make_attribute("equation", _equation(node))]
    inputs = choose(list(node.input))
    node.op_type, node.domain = name, ""
    del node.attribute[:], node.input[:], node.output[1:]
    node.attribute.extend(attributes)
    node.input.extend(inputs)


def _equation(node: onnx.NodeProto) -> str:
    """The product of a FusedMatMul, or the shape of an attention's result [N, L, width of the values]."""
    if node.op_type == "MultiHeadAttention":
        return "abc,ade->abe"
    flags = {a.name: a.i for a in node.attribute}
    first, second = ("...ji" if flags.get("transA") else "...ij"), ("...kj" if flags.get("transB") else "...jk")
    return f"{first},{second}->...ik"

"""Sigmoid with the accuracy of FP32, as torch and engines have it.

ONNX Runtime's kernel is a ratio of polynomials plus 0.5, cut off at -18: its error is about 1e-7 everywhere, which at
-4 is 1e-5 of the value and at -16 the value itself (measured with 1.31). Scores of detectors lie there. Composed of Exp
it is right to two units in the last place down to the smallest normal number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, replace_nodes
from trtconv.core.model.opset import opset_of

if TYPE_CHECKING:
    import onnx

# CastLike, which takes the type of the 1 from the input, came with it.
OLDEST_OPSET = 15


def has_sigmoids(model: bytes) -> bool:
    """A glance at a serialized model: may it hold a Sigmoid?"""
    return b"Sigmoid" in model


def with_exact_sigmoids(model: onnx.ModelProto) -> bool:
    """Compose each Sigmoid of Exp, in place; True when there was one.

    Those of a SiLU too: a channel that lies at -15 is nothing but tail.
    """
    opset = opset_of(model, 0)
    if opset < OLDEST_OPSET:
        return False
    return sum(_compose(graph) for graph in graphs_of(model.graph)) > 0


def _compose(graph: onnx.GraphProto) -> bool:
    from onnx import helper

    nodes = []
    for node in graph.node:
        if node.op_type != "Sigmoid" or node.domain not in ("", "ai.onnx"):
            nodes.append(node)
            continue
        x, y = node.input[0], node.output[0]
        one, minus, power, total = (f"{y}/sigmoid/{part}" for part in ("one", "minus", "exp", "sum"))
        nodes += [
            helper.make_node("Constant", [], [f"{one}/float"], value_float=1.0),
            helper.make_node("CastLike", [f"{one}/float", x], [one]),
            helper.make_node("Neg", [x], [minus]),
            helper.make_node("Exp", [minus], [power]),
            helper.make_node("Add", [power, one], [total]),
            helper.make_node("Div", [one, total], [y], name=node.name),
        ]
    changed = len(nodes) > len(graph.node)
    if changed:
        replace_nodes(graph, nodes)
    return changed

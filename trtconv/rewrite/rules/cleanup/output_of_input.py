"""Dropout and Pad by 0 that make an output of the graph, as Identity, and the mask of a Dropout, which is true.

TensorRT's parser gives the tensor that these take as their output; where that is an input of the graph, it renames the
input to `__y` for an output y (ModelImporter.cpp: "HACK WAR for TRT not allowing input == output"). An Identity it
makes a layer.
"""

from __future__ import annotations

from onnx import TensorProto

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.cleanup.drop_identity import gives_mask, pads_nothing


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Dropout that is not in training, or a Pad by 0, where an output of the graph or a mask comes of it."""
    masks = gives_mask(graph, node)
    if node.output not in graph.outputs and not masks:
        return NOT_THIS
    if node.op == "Pad":
        if not pads_nothing(graph, node):
            return NOT_THIS
    elif graph.opset < 12 or (node.input(2) and graph.scalar(node.input(2)) != 0):
        return NOT_THIS

    def build(g: Replacement) -> list[Value]:
        value = g.op("Identity", node.inputs[0])
        if not masks:
            return [value]
        ones = g.op("Expand", g.scalar(1.0, dtype=TensorProto.FLOAT), g.shape_of(node.inputs[0]))
        return [value, g.cast(ones, TensorProto.BOOL)]

    return Found((node,), build)


RULE = Rule(
    name="output-of-input",
    why="TensorRT's parser renames an input that a Dropout or a Pad by 0 hands on as an output.",
    ops=("Dropout", "Pad"),
    find=find,
    before="y, mask = Dropout(x)",
    after="y = Identity(x); mask = true everywhere",
)

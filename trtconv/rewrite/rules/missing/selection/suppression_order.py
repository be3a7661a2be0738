"""NonMaxSuppression class by class, as ONNX Runtime lists it; 8.6 lists an image's boxes by score."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match scores of more than one class, or of an unknown number."""
    scores = graph.dims(node.inputs[1])
    if scores is None or len(scores) != 3:
        return Skip("the rank of the scores is not known")
    return NOT_THIS if scores[1] == 1 else Found((node,), partial(_build, node=node))


def _build(g: Replacement, node: Node) -> Value:
    boxes, scores, *rest = node.inputs
    batch, classes, count = (g.size(scores, axis) for axis in range(3))
    rows = g.mul(batch, classes)
    copies = g.expand(g.unsqueeze(boxes, 1), g.concat(batch, classes, count, g.ints(4)))
    flat_boxes = g.reshape(copies, g.concat(rows, count, g.ints(4)))
    flat_scores = g.reshape(scores, g.concat(rows, g.ints(1), count))
    attributes = node.attributes()
    selected = g.op("NonMaxSuppression", flat_boxes, flat_scores, *rest, **attributes)
    row = g.gather(selected, g.ints(0), axis=1)
    image = g.div(row, classes)
    return g.concat(
        image, g.sub(row, g.mul(image, classes)), g.gather(selected, g.ints(2), axis=1), axis=1
    )


RULE = Rule(
    name="suppression-order",
    why="TensorRT 8.6 lists the boxes of all classes of an image by score, ONNX Runtime class by class.",
    ops=("NonMaxSuppression",),
    find=find,
    needed=only_tensorrt_8,
    before="NonMaxSuppression(boxes[N,B,4], scores[N,C,B])",
    after="NonMaxSuppression(boxes[N*C,B,4], scores[N*C,1,B]), row // C and row % C for the image and the class",
)

"""x[mask] = number, exported as NonZero and ScatterND, as Where."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip

VIEWS = ("Identity", "Cast", "Expand", "Reshape", "Unsqueeze", "Squeeze")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match ScatterND whose indices are Transpose(NonZero(mask)) and whose updates are one number, spread."""
    if node.attr("reduction", "none") != "none":
        return NOT_THIS
    turned, _ = graph.behind(node.inputs[1], "Identity", "Cast")
    transpose = graph.maker(turned, "Transpose")
    nonzero = None if transpose is None else graph.maker(graph.behind(transpose.inputs[0])[0], "NonZero")
    if transpose is None or nonzero is None:
        return NOT_THIS
    mask, cast = nonzero.inputs[0], graph.maker(nonzero.inputs[0], "Cast")
    if cast is not None and graph.dtype(cast.inputs[0]) == 9:
        mask = cast.inputs[0]
    if graph.dtype(mask) != 9:
        return Skip("the mask is not boolean")
    ranks = graph.rank(mask), graph.rank(node.inputs[0])
    if None in ranks or ranks[0] != ranks[1] or graph.dims(mask) != graph.dims(node.inputs[0]):
        return Skip("the mask is not known to have the shape of the value")
    filled = _filled(graph, node.inputs[2])
    dtype = graph.dtype(node.inputs[0])
    if filled is None or not dtype:
        return Skip("what is put in is not one constant number")
    number, spread = filled
    return Found(
        (nonzero, transpose, *spread, node),
        lambda b: b.op("Where", mask, b.scalar(number, dtype=dtype), node.inputs[0]),
    )


def _filled(graph: Graph, name: str) -> tuple[float, tuple[Node, ...]] | None:
    """The one number that a value is full of, and the nodes that spread it."""
    value, spread = graph.behind(name, *VIEWS)
    array = graph.constant(value)
    if array is not None and array.size and np.all(array == array.reshape(-1)[0]):
        return float(array.reshape(-1)[0]), spread
    node = graph.maker(value, "ConstantOfShape")
    return None if node is None else (_of_shape(node), (node, *spread))


def _of_shape(node: Node) -> float:
    from onnx import numpy_helper

    value = node.attr("value")
    return 0.0 if value is None else float(numpy_helper.to_array(value).reshape(-1)[0])


RULE = Rule(
    name="masked-fill",
    why="NonZero has an output whose size depends on the data, which RTX refuses; filling by a mask is Where.",
    ops=("ScatterND",),
    find=find,
    before="ScatterND(x, Transpose(NonZero(mask)), Expand(number))",
    after="Where(mask, number, x)",
)

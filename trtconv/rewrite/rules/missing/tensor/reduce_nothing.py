"""A reduction over no axes that says so (noop_with_empty_axes) hands its input on: TensorRT 8.6 reduces over all."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where there are no axes, or an empty constant."""
    if not node.attr("noop_with_empty_axes", 0):
        return NOT_THIS
    axes = graph.ints(node.inputs[1]) if node.input(1) else ()
    if axes is None:
        return Skip("the axes are computed while the model runs")
    return NOT_THIS if axes else Found((node,), lambda g: g.identity(node.inputs[0]))


RULE = Rule(
    name="reduce-nothing",
    why="TensorRT 8.6 does not read noop_with_empty_axes and reduces over all axes, silently.",
    ops=("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    find=find,
    needed=only_tensorrt_8,
    before="ReduceSum(x, noop_with_empty_axes=1)",
    after="x",
)

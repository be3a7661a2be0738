"""Split by a number of outputs as Split by sizes, or as Slice where the axis is dynamic."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Split with num_outputs (opset 18)."""
    count, dims = node.attr("num_outputs"), graph.dims(node.inputs[0])
    if not count:
        return NOT_THIS
    if dims is None:
        return Skip("the rank is not known")
    axis = node.attr("axis", 0) % len(dims)
    return Found((node,), lambda g: _build(g, node, axis, int(count)))


def _build(g: Replacement, node: Node, axis: int, count: int) -> list[Value]:
    part = g.div(g.add(g.size(node.inputs[0], axis), g.ints(count - 1)), g.ints(count))
    cuts = [g.mul(part, g.ints(i)) for i in range(count + 1)]
    return [g.slice(node.inputs[0], cuts[i], cuts[i + 1], [axis]) for i in range(len(node.outputs))]


RULE = Rule(
    name="split-parts",
    why="Opset 17 has no num_outputs, and TensorRT 8.6 splits a dynamic axis only by Slice.",
    ops=("Split",),
    find=find,
    needed=only_tensorrt_8,
    before="a, b = Split(x, num_outputs=2)",
    after="a = Slice(x, 0, n); b = Slice(x, n, 2n), n = ceil(size / 2)",
)

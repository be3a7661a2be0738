"""Split by a number of outputs as Split by sizes, or as Slice where the axis is dynamic."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Split with num_outputs (opset 18)."""
    count, dims = node.attr("num_outputs"), graph.dims(node.inputs[0])
    if not count:
        return NOT_THIS
    if dims is None:
        return Skip("the rank is not known")
    axis = node.attr("axis", 0) % len(dims)
    return Found((node,), lambda b: _build(b, node, axis, int(count)))


def _build(b: Builder, node: Node, axis: int, count: int) -> list[str]:
    part = b.op("Div", b.op("Add", b.size(node.inputs[0], axis), b.ints(count - 1)), b.ints(count))
    cuts = [b.op("Mul", part, b.ints(i)) for i in range(count + 1)]
    return [b.slice(node.inputs[0], cuts[i], cuts[i + 1], [axis]) for i in range(len(node.outputs))]


RULE = Rule(
    name="split-parts",
    why="Opset 17 has no num_outputs, and TensorRT 8.6 splits a dynamic axis only by Slice.",
    ops=("Split",),
    find=find,
    needed=only_tensorrt_8,
    before="a, b = Split(x, num_outputs=2)",
    after="a = Slice(x, 0, n); b = Slice(x, n, 2n), n = ceil(size / 2)",
)

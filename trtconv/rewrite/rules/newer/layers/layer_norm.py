"""LayerNormalization whose mean or inverse deviation is used too: every TensorRT gives the first output only."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a LayerNormalization with a second or third output that somebody uses."""
    used = [bool(o) and bool(graph.uses(o) or o in graph.outputs) for o in node.outputs]
    if not any(used[1:]):
        return NOT_THIS
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axes = list(range(node.attr("axis", -1) % rank, rank))
    return Found((node,), lambda b: _build(b, node, axes, dtype))


def _build(b: Builder, node: Node, axes: list[int], dtype: int) -> list[str]:
    x = node.inputs[0] if dtype == FLOAT else b.cast(node.inputs[0], FLOAT)
    mean = b.reduce("ReduceMean", x, axes)
    centred = b.op("Sub", x, mean)
    variance = b.reduce("ReduceMean", b.op("Mul", centred, centred), axes)
    deviation = b.op("Sqrt", b.op("Add", variance, b.scalar(float(node.attr("epsilon", 1e-5)), dtype=FLOAT)))
    inverse = b.op("Reciprocal", deviation)
    normal = b.op("Mul", centred, inverse)
    result = normal if dtype == FLOAT else b.cast(normal, dtype)
    result = b.op("Mul", result, node.inputs[1])
    if node.input(2):
        result = b.op("Add", result, node.inputs[2])
    return [result, mean, inverse][: len(node.outputs)]


RULE = Rule(
    name="layer-norm",
    why="Every TensorRT gives the first output of LayerNormalization only; mean and deviation are arithmetic.",
    ops=("LayerNormalization",),
    find=find,
    before="y, mean, inverse = LayerNormalization(x, scale, bias)",
    after="mean = ReduceMean(x); inverse = Reciprocal(Sqrt(variance + eps)); y = (x - mean) * inverse * scale + bias",
)

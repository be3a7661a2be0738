"""LayerNormalization whose mean or inverse deviation is used too: every TensorRT gives the first output only."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a LayerNormalization with a second or third output that somebody uses."""
    used = [bool(o) and bool(graph.uses(o) or o in graph.outputs) for o in node.outputs]
    if not any(used[1:]):
        return NOT_THIS
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axes = list(range(node.attr("axis", -1) % rank, rank))
    return Found((node,), lambda g: _build(g, node, axes, dtype))


def _build(g: Replacement, node: Node, axes: list[int], dtype: int) -> list[Value]:
    x = node.inputs[0] if dtype == FLOAT else g.cast(node.inputs[0], FLOAT)
    mean = g.reduce("ReduceMean", x, axes)
    centred = g.sub(x, mean)
    variance = g.reduce("ReduceMean", g.mul(centred, centred), axes)
    deviation = g.sqrt(g.add(variance, g.scalar(float(node.attr("epsilon", 1e-5)), dtype=FLOAT)))
    inverse = g.reciprocal(deviation)
    normal = g.mul(centred, inverse)
    result = normal if dtype == FLOAT else g.cast(normal, dtype)
    result = g.mul(result, node.inputs[1])
    if node.input(2):
        result = g.add(result, node.inputs[2])
    return [result, mean, inverse][: len(node.outputs)]


RULE = Rule(
    name="layer-norm",
    why="Every TensorRT gives the first output of LayerNormalization only; mean and deviation are arithmetic.",
    ops=("LayerNormalization",),
    find=find,
    before="y, mean, inverse = LayerNormalization(x, scale, bias)",
    after="mean = ReduceMean(x); inverse = Reciprocal(Sqrt(variance + eps)); y = (x - mean) * inverse * scale + bias",
)

"""InstanceNormalization as arithmetic: in TensorRT 8.6 it is a plugin that needs cuDNN and constant scales."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.normalize import normalize


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match for TensorRT 8.6; elsewhere only where the types of value and scale differ, which is refused there."""
    x, scale = node.inputs[0], node.inputs[1]
    rank, dtype = graph.rank(x), graph.dtype(x)
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    mixed = graph.dtype(scale) not in (0, dtype)
    if graph.target.generation > 8 and not mixed:
        return NOT_THIS
    return Found((node,), lambda g: _build(g, node, rank, dtype))


def _build(g: Replacement, node: Node, rank: int, dtype: int) -> Value:
    x, scale, bias = node.inputs
    tail = list(range(1, rank - 1))
    compute = dtype if dtype == 11 else FLOAT
    normal = normalize(g, x, list(range(2, rank)), float(node.attr("epsilon", 1e-5)), dtype, compute)
    factors = []
    for value in (scale, bias):
        typed = value if g.dtype(value) == dtype else g.cast(value, dtype)
        factors.append(g.unsqueeze(typed, *tail) if tail else typed)
    return g.add(g.mul(normal, factors[0]), factors[1])


RULE = Rule(
    name="instance-norm",
    why="In TensorRT 8.6 InstanceNormalization is a plugin that needs cuDNN and constant scales; this needs neither.",
    ops=("InstanceNormalization",),
    find=find,
    before="InstanceNormalization(x, scale, bias)",
    after="Mul(Div(x - mean, Sqrt(variance + epsilon)), scale) + bias",
    judged_as_float32=True,
)

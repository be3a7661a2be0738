"""GroupNormalization as InstanceNorm arithmetic over groups."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.normalize import normalize


def needed(target: Target) -> bool:
    """8.6 knows only the form of opset 18, with a scale per group; 10.9 and later both."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a GroupNormalization whose rank, channels and element type are known."""
    dims, dtype = graph.dims(node.inputs[0]), graph.dtype(node.inputs[0])
    if dims is None or not dtype:
        return Skip("rank or element type is not known")
    if not isinstance(dims[1], int):
        return Skip("the number of channels is not known")
    return Found((node,), lambda g: _build(g, node, len(dims), int(dims[1] or 0), dtype))


def _build(g: Replacement, node: Node, rank: int, channels: int, dtype: int) -> Value:
    x, scale, bias = node.inputs
    groups = int(node.attr("num_groups"))
    # [N, groups, the rest]: one reduction over the last axis, whatever the rank.
    flat = g.reshape(x, 0, groups, -1)
    compute = FLOAT if node.attr("stash_type", 1) == 1 else dtype
    normal = normalize(g, flat, [2], float(node.attr("epsilon", 1e-5)), dtype, compute)
    per_group = g.index.opset < 21
    if per_group:
        normal = g.add(g.mul(normal, g.unsqueeze(scale, 1)), g.unsqueeze(bias, 1))
    back = g.reshape(normal, g.shape(x))
    if per_group:
        return back
    tail = [*range(1, rank - 1)]
    return g.add(g.mul(back, g.unsqueeze(scale, *tail)), g.unsqueeze(bias, *tail))


RULE = Rule(
    name="group-norm",
    why="TensorRT before 10.9 has GroupNormalization with a scale per group at most; its arithmetic is everywhere.",
    ops=("GroupNormalization",),
    find=find,
    needed=needed,
    before="GroupNormalization(x, scale, bias, num_groups=G)",
    after="Reshape to [N, G, -1], subtract the mean, divide by Sqrt(variance + epsilon), Reshape back, Mul, Add",
)

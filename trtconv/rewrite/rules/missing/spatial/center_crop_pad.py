"""CenterCropPad as Slice and Pad by amounts computed from the sizes: no TensorRT has it."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where the rank is known."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axes = [a % rank for a in node.attr("axes") or range(rank)]
    return Found((node,), lambda g: _build(g, node, axes, rank), ranges={node.inputs[1]: (5.0, 40.0)})


def _build(g: Replacement, node: Node, axes: list[int], rank: int) -> Value:
    x, target = node.inputs
    if g.dtype(target) != 7:
        target = g.cast(target, 7)
    size = g.gather(g.shape_of(x), g.ints(*axes), axis=0)
    zero, two = g.ints(0), g.ints(2)
    # What is left over when halves are odd goes to the end, in both directions.
    over = g.maximum(g.sub(size, target), zero)
    start = g.div(over, two)
    cropped = g.slice(x, start, g.add(start, g.minimum(size, target)), axes)
    missing = g.maximum(g.sub(target, size), zero)
    before = g.div(missing, two)
    after = g.sub(missing, before)
    return g.pad(cropped, g.concat(*(_spread(g, v, axes, rank) for v in (before, after))))


def _spread(g: Replacement, amounts: Value, axes: list[int], rank: int) -> Value:
    """One amount per axis, 0 for those that are not in `axes`."""
    if axes == list(range(rank)):
        return amounts
    places = [axes.index(a) + 1 if a in axes else 0 for a in range(rank)]
    return g.gather(g.concat(g.ints(0), amounts), g.ints(*places), axis=0)


RULE = Rule(
    name="center-crop-pad",
    why="No TensorRT has CenterCropPad; a Slice and a Pad by computed amounts are the same.",
    ops=("CenterCropPad",),
    find=find,
    before="CenterCropPad(x, [32, 32], axes=[2, 3])",
    after="Pad(Slice(x, over / 2, over / 2 + Min(size, 32)), missing / 2)",
)

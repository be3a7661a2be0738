"""CenterCropPad as Slice and Pad by amounts computed from the sizes: no TensorRT has it."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where the rank is known."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axes = [a % rank for a in node.attr("axes") or range(rank)]
    return Found((node,), lambda b: _build(b, node, axes, rank), ranges={node.inputs[1]: (5.0, 40.0)})


def _build(b: Builder, node: Node, axes: list[int], rank: int) -> str:
    x, wanted = node.inputs
    if b.graph.dtype(wanted) != 7:
        wanted = b.cast(wanted, 7)
    size = b.op("Gather", b.shape_once(x), b.ints(*axes), axis=0)
    zero, two = b.ints(0), b.ints(2)
    # What is left over when halves are odd goes to the end, in both directions.
    over = b.op("Max", b.op("Sub", size, wanted), zero)
    start = b.op("Div", over, two)
    cropped = b.slice(x, start, b.op("Add", start, b.op("Min", size, wanted)), axes)
    missing = b.op("Max", b.op("Sub", wanted, size), zero)
    before = b.op("Div", missing, two)
    after = b.op("Sub", missing, before)
    return b.op("Pad", cropped, b.concat(*(_spread(b, v, axes, rank) for v in (before, after))))


def _spread(b: Builder, amounts: str, axes: list[int], rank: int) -> str:
    """One amount per axis, 0 for those that are not in `axes`."""
    if axes == list(range(rank)):
        return amounts
    places = [axes.index(a) + 1 if a in axes else 0 for a in range(rank)]
    return b.op("Gather", b.concat(b.ints(0), amounts), b.ints(*places), axis=0)


RULE = Rule(
    name="center-crop-pad",
    why="No TensorRT has CenterCropPad; a Slice and a Pad by computed amounts are the same.",
    ops=("CenterCropPad",),
    find=find,
    before="CenterCropPad(x, [32, 32], axes=[2, 3])",
    after="Pad(Slice(x, over / 2, over / 2 + Min(size, 32)), missing / 2)",
)

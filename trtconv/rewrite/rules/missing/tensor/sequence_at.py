"""One element of a sequence, or a sequence joined again, without the sequence: no TensorRT has sequences."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node

MAKERS = ("SplitToSequence", "SequenceConstruct")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match SequenceAt by a constant and ConcatFromSequence, of SplitToSequence or SequenceConstruct."""
    maker = graph.maker(graph.behind(node.inputs[0])[0], *MAKERS)
    if maker is None:
        return Skip("the sequence is not made by SplitToSequence or SequenceConstruct")
    if node.op == "ConcatFromSequence":
        return _joined(graph, maker, node)
    place = graph.scalar(node.inputs[1])
    if place is None:
        return Skip("which element is taken is computed while the model runs")
    if maker.op == "SequenceConstruct":
        value = maker.inputs[int(place)]
        return Found((maker, node), lambda b: b.op("Identity", value))
    return _part(graph, maker, node, int(place))


def _joined(graph: Graph, maker: Node, node: Node) -> Found | Skip:
    axis, new = node.attr("axis"), node.attr("new_axis", 0)
    if maker.op != "SequenceConstruct":
        return Skip("a value that was split is joined again")
    parts = list(maker.inputs)

    def build(b: Builder) -> str:
        return b.op("Concat", *([b.unsqueeze(p, axis) for p in parts] if new else parts), axis=axis)

    return Found((maker, node), build)


def _part(graph: Graph, maker: Node, node: Node, place: int) -> Found | Skip:
    value, rank = maker.inputs[0], graph.rank(maker.inputs[0])
    if rank is None:
        return Skip("the rank is not known")
    axis = maker.attr("axis", 0) % rank
    if not maker.input(1):
        if maker.attr("keepdims", 1):
            return Found((maker, node), lambda b: b.op("Gather", value, b.ints(place), axis=axis))
        return Found((maker, node), lambda b: b.op("Gather", value, b.scalar(place, dtype=7), axis=axis))
    sizes = graph.ints(maker.inputs[1])
    if sizes is None:
        return Skip("the sizes of the parts are computed while the model runs")
    if graph.rank(maker.inputs[1]) == 0:
        return Found((maker, node), partial(_equal_part, value=value, axis=axis, size=sizes[0], place=place))
    start = sum(sizes[: place % len(sizes)])
    end = start + sizes[place % len(sizes)]
    return Found((maker, node), lambda b: b.slice(value, b.ints(start), b.ints(end), [axis]))


def _equal_part(b: Builder, value: str, axis: int, size: int, place: int) -> str:
    """Part `place` of parts of one size, the last of which may be smaller."""
    if place >= 0:
        return b.slice(value, b.ints(place * size), b.ints((place + 1) * size), [axis])
    rounded = b.op("Div", b.op("Add", b.size(value, axis), b.ints(size - 1)), b.ints(size))
    start = b.op("Mul", b.op("Add", rounded, b.ints(place)), b.ints(size))
    return b.slice(value, start, b.op("Add", start, b.ints(size)), [axis])


RULE = Rule(
    name="sequence-at",
    why="No TensorRT has sequences; a part of a split value is a Slice.",
    ops=("SequenceAt", "ConcatFromSequence"),
    find=find,
    before="SequenceAt(SplitToSequence(x, 4, axis=1), 2)",
    after="Slice(x, [8], [12], axes=[1])",
)

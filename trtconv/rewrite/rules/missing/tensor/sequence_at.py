"""One element of a sequence, or a sequence joined again, without the sequence: no TensorRT has sequences."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

MAKERS = ("SplitToSequence", "SequenceConstruct")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match SequenceAt by a constant and ConcatFromSequence, of SplitToSequence or SequenceConstruct."""
    maker = graph.maker(graph.behind(node.inputs[0])[0], *MAKERS)
    if maker is None:
        return Skip("the sequence is not made by SplitToSequence or SequenceConstruct")
    if node.op == "ConcatFromSequence":
        return _joined(graph, maker, node)
    position = graph.scalar(node.inputs[1])
    if position is None:
        return Skip("which element is taken is computed while the model runs")
    if maker.op == "SequenceConstruct":
        value = maker.inputs[int(position)]
        return Found((maker, node), lambda g: g.identity(value))
    return _part(graph, maker, node, int(position))


def _joined(graph: Graph, maker: Node, node: Node) -> Found | Skip:
    axis, new = node.attr("axis"), node.attr("new_axis", 0)
    if maker.op != "SequenceConstruct":
        return Skip("a value that was split is joined again")
    parts = list(maker.inputs)

    def build(g: Replacement) -> Value:
        return g.op("Concat", *([g.unsqueeze(p, axis) for p in parts] if new else parts), axis=axis)

    return Found((maker, node), build)


def _part(graph: Graph, maker: Node, node: Node, position: int) -> Found | Skip:
    value, rank = maker.inputs[0], graph.rank(maker.inputs[0])
    if rank is None:
        return Skip("the rank is not known")
    axis = maker.attr("axis", 0) % rank
    if not maker.input(1):
        if maker.attr("keepdims", 1):
            return Found((maker, node), lambda g: g.gather(value, g.ints(position), axis=axis))
        return Found((maker, node), lambda g: g.gather(value, g.scalar(position, dtype=7), axis=axis))
    sizes = graph.ints(maker.inputs[1])
    if sizes is None:
        return Skip("the sizes of the parts are computed while the model runs")
    if graph.rank(maker.inputs[1]) == 0:
        return Found((maker, node), partial(_equal_part, value=value, axis=axis, size=sizes[0], position=position))
    start = sum(sizes[: position % len(sizes)])
    end = start + sizes[position % len(sizes)]
    return Found((maker, node), lambda g: g.slice(value, g.ints(start), g.ints(end), [axis]))


def _equal_part(g: Replacement, value: Value, axis: int, size: int, position: int) -> Value:
    """Part `place` of parts of one size, the last of which may be smaller."""
    if position >= 0:
        return g.slice(value, g.ints(position * size), g.ints((position + 1) * size), [axis])
    rounded = g.div(g.add(g.size(value, axis), g.ints(size - 1)), g.ints(size))
    start = g.mul(g.add(rounded, g.ints(position)), g.ints(size))
    return g.slice(value, start, g.add(start, g.ints(size)), [axis])


RULE = Rule(
    name="sequence-at",
    why="No TensorRT has sequences; a part of a split value is a Slice.",
    ops=("SequenceAt", "ConcatFromSequence"),
    find=find,
    before="SequenceAt(SplitToSequence(x, 4, axis=1), 2)",
    after="Slice(x, [8], [12], axes=[1])",
)

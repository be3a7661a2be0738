"""Pad with axes (opset 18) as Pad of all axes."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def needed(target: Target) -> bool:
    """TensorRT reads the axes from 10.4 on."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Pad whose axes are constant and known in rank."""
    if not node.input(3):
        return NOT_THIS
    axes, rank = graph.ints(node.inputs[3]), graph.rank(node.inputs[0])
    if axes is None or rank is None:
        return Skip("axes or rank are not known")
    places = [a % rank for a in axes]
    return Found((node,), lambda g: _build(g, node, places, rank))


def _build(g: Replacement, node: Node, places: list[int], rank: int) -> Value:
    count, zero = len(places), g.ints(0)
    parts = [g.gather(node.inputs[1], g.ints(i), axis=0) for i in range(2 * count)]
    ends = [zero] * (2 * rank)
    for index, axis in enumerate(places):
        ends[axis], ends[rank + axis] = parts[index], parts[count + index]
    pads = g.index.ints(node.inputs[1])
    if pads is None:
        joined = g.concat(*ends)
    else:
        full = [0] * (2 * rank)
        for index, axis in enumerate(places):
            full[axis], full[rank + axis] = pads[index], pads[count + index]
        joined = g.ints(*full)
    return g.pad(node.inputs[0], joined, node.input(2), mode=node.attr("mode", "constant"))


RULE = Rule(
    name="pad-axes",
    why="TensorRT before 10.4 refuses Pad with axes; pads for every axis say the same.",
    ops=("Pad",),
    find=find,
    needed=needed,
    before="Pad(x, [1, 1], axes=[3])",
    after="Pad(x, [0, 0, 0, 1, 0, 0, 0, 1])",
)

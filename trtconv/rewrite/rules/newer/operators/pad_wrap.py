"""Pad in mode wrap as Concat of slices."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

END = (1 << 31) - 1


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match mode wrap with constant pads that are not negative."""
    if node.attr("mode", "constant") != "wrap":
        return NOT_THIS
    pads, rank = graph.ints(node.inputs[1]), graph.rank(node.inputs[0])
    if pads is None or rank is None or min(pads) < 0 or node.input(3):
        return Skip("pads are not constant, or negative")
    return Found((node,), lambda g: _build(g, node, pads, rank))


def _build(g: Replacement, node: Node, pads: tuple[int, ...], rank: int) -> Value:
    value = node.inputs[0]
    for axis in range(rank):
        before, after = pads[axis], pads[rank + axis]
        parts = [g.slice(value, g.ints(-before), g.ints(END), [axis])] if before else []
        parts.append(value)
        if after:
            parts.append(g.slice(value, g.ints(0), g.ints(after), [axis]))
        value = g.concat(*parts, axis=axis)
    return value


RULE = Rule(
    name="pad-wrap",
    why="TensorRT 8.6 has no mode wrap of Pad; slices put around the value are the same.",
    ops=("Pad",),
    find=find,
    needed=only_tensorrt_8,
    before="Pad(x, pads, mode=wrap)",
    after="Concat(Slice(x, end), x, Slice(x, start))",
)

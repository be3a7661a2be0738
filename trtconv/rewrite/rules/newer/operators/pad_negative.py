"""Pad by constants some of which are negative, as Slice and Pad: TensorRT 8.6 refuses them."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.taps import TO_THE_END


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match constant pads; where one side of an axis is cut and the other is mirrored, the order would matter."""
    pads = graph.ints(node.input(1)) if node.input(1) else node.attr("pads")
    if pads is None or min(pads, default=0) >= 0:
        return NOT_THIS
    if node.input(3):
        return Skip("pads are given for some axes only")
    count, mode = len(pads) // 2, node.attr("mode", "constant")
    begins, ends = list(pads[:count]), list(pads[count:])
    mixed = [a for a in range(count) if min(begins[a], ends[a]) < 0 < max(begins[a], ends[a])]
    if mode != "constant" and mixed:
        return Skip(f"axis {mixed[0]} is cut at one side and padded in mode {mode} at the other")
    if graph.opset < 11:
        return Skip("before opset 11 the value is an attribute", opset=11)
    return Found((node,), lambda g: _build(g, node, begins, ends, mode))


def _build(g: Replacement, node: Node, begins: list[int], ends: list[int], mode: str) -> Value:
    cut = [a for a in range(len(begins)) if min(begins[a], ends[a]) < 0]
    starts = [max(-begins[a], 0) for a in cut]
    stops = [ends[a] if ends[a] < 0 else TO_THE_END for a in cut]
    value = g.slice(node.inputs[0], g.ints(*starts), g.ints(*stops), cut)
    margin = [max(p, 0) for p in (*begins, *ends)]
    return g.pad(value, g.ints(*margin), node.input(2), mode=mode) if any(margin) else value


RULE = Rule(
    name="pad-negative",
    why="TensorRT 8.6 refuses constant pads that are negative; they are a Slice.",
    ops=("Pad",),
    find=find,
    needed=only_tensorrt_8,
    before="Pad(x, [0, 0, -1, 2, 0, 0, -1, 2])",
    after="Pad(Slice(x[:, :, 1:-1]), [0, 0, 0, 2, 0, 0, 0, 2])",
)

"""Reflection padding of the last two axes as one TrtconvReflectionPad node, when plugins are asked for."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Graph, Node

FLOATS = (1, 10, 16)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match mode reflect with constant pads, of the last two axes only."""
    if node.attr("mode", "constant") != "reflect":
        return NOT_THIS
    pads, rank = graph.ints(node.input(1)), graph.rank(node.inputs[0])
    if pads is None or rank is None or rank < 2 or len(pads) != 2 * rank or node.input(3):
        return Skip("the pads are not constant, or the rank is not known")
    if graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("the element type is not FP32, FP16 or BF16")
    starts, ends = pads[:rank], pads[rank:]
    if any(starts[:-2]) or any(ends[:-2]) or min(pads) < 0:
        return Skip("other axes than the last two are padded, or cut")
    sides = [starts[-2], starts[-1], ends[-2], ends[-1]]
    return Found((node,), lambda g: g.plugin("TrtconvReflectionPad", node.inputs[0], pads=sides))


RULE = Rule(
    name="plugin-reflection-pad",
    why="The plugin pads at the speed of a copy; TensorRT gathers rows and columns one after the other.",
    ops=("Pad",),
    find=find,
    needed=only_with_plugins,
    before="Pad(x, [0,0,1,1,0,0,1,1], mode=reflect)",
    after="TrtconvReflectionPad(x, pads=[1,1,1,1])",
    plugin="TrtconvReflectionPad",
)

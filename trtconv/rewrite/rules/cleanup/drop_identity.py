"""Nodes that hand their input on: Identity, Dropout, Pad by 0, Slice of all, Cast to its type, Transpose in order."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.taps import TO_THE_END


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where users can take the input itself: inside the graph, and not from within a body."""
    value, output = node.inputs[0], node.output
    if output in graph.outputs or any(output in user.implicit for user in graph.uses(output)):
        return NOT_THIS
    if not graph.uses(output) or not _hands_on(graph, node):
        return NOT_THIS
    return Found((node,), lambda g: value)


def _hands_on(graph: Graph, node: Node) -> bool:
    if node.key == "Identity":
        return True
    if node.key == "Cast":
        return bool(graph.dtype(node.inputs[0]) == node.attr("to"))
    if node.key == "Transpose":
        perm = node.attr("perm")
        return perm is not None and list(perm) == sorted(perm)
    if node.key == "Slice":
        return _takes_all(graph, node)
    if node.key == "Pad":
        return pads_nothing(graph, node)
    return graph.opset >= 12 and not node.input(2) and not gives_mask(graph, node)


def pads_nothing(graph: Graph, node: Node) -> bool:
    """True for a Pad by 0 on every side."""
    pads = graph.ints(node.inputs[1]) if node.input(1) else node.attr("pads")
    return pads is not None and not any(pads)


def gives_mask(graph: Graph, node: Node) -> bool:
    """True for a Dropout whose mask is used, or an output of the graph."""
    mask = node.outputs[1] if len(node.outputs) > 1 else ""
    return bool(mask) and (bool(graph.uses(mask)) or mask in graph.outputs)


def _takes_all(graph: Graph, node: Node) -> bool:
    """From 0 to beyond every axis in steps of 1: what dynamo writes for the colons of `x[:, None]`."""
    if not node.input(1):
        return False
    starts, ends = graph.ints(node.inputs[1]), graph.ints(node.inputs[2])
    steps = graph.ints(node.inputs[4]) if node.input(4) else (1,)
    if not starts or not ends or not steps:
        return False
    return set(starts) == {0} and min(ends) >= TO_THE_END and set(steps) == {1}


RULE = Rule(
    name="drop-identity",
    why="A node that hands its input on only hides the pattern behind it.",
    ops=("Identity", "Cast", "Transpose", "Slice", "Pad", "Dropout"),
    find=find,
    before="Relu(Identity(x))",
    after="Relu(x)",
)

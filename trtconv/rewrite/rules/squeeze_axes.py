"""Squeeze without axes, with the axes that are known to have size 1."""

from __future__ import annotations

from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where every dim is known to be 1, or is known not to be in the whole shape space."""
    if node.input(1) or node.attr("axes"):
        return NOT_THIS
    dims = graph.dims(node.inputs[0])
    if dims == (1,):
        # A size as exporters pick it from a shape: there is one axis, and no doubt about it.
        return NOT_THIS
    if dims is None or any(not isinstance(d, int) for d in dims):
        return Skip(f"which of the dims {list(dims or ())} are 1 depends on the size")
    axes = [i for i, d in enumerate(dims) if d == 1]
    if not axes:
        return NOT_THIS
    return Found((node,), lambda b: b.squeeze(node.inputs[0], *axes))


RULE = Rule(
    name="squeeze-axes",
    why="TensorRT cannot tell the rank after a Squeeze without axes when a size moves.",
    ops=("Squeeze",),
    find=find,
    before="Squeeze(x[N,1,8])",
    after="Squeeze(x, axes=[1])",
)

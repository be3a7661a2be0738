"""Squeeze without axes, with the axes that are known to have size 1."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where every dim is known to be 1, or is known not to be in the whole shape space."""
    if node.input(1) or node.attr("axes"):
        return NOT_THIS
    dims = graph.dims(node.inputs[0])
    if dims == (1,) and graph.target.generation > 8:
        # A size as exporters pick it from a shape: there is one axis, and no doubt about it.
        return NOT_THIS
    problem = moving_rank(graph, node)
    if problem or dims is None:
        return Skip(problem or "the rank is not known")
    axes = [i for i, d in enumerate(dims) if graph.dim_range(d) == (1, 1)]
    if not axes:
        return NOT_THIS if all(isinstance(d, int) for d in dims) else Found((node,), lambda g: _same(g, node))
    return Found((node,), lambda g: g.squeeze(node.inputs[0], *axes))


def _same(g: Replacement, node: Node) -> Value:
    return g.identity(node.inputs[0])


def moving_rank(graph: Graph, node: Node) -> str:
    """Why the rank after a Squeeze without axes is not fixed; empty when it is."""
    for dim in graph.dims(node.inputs[0]) or ():
        bounds = graph.dim_range(dim)
        if bounds is None:
            return f"whether the dim {dim or '?'} is 1 depends on the size"
        if bounds[0] == 1 and bounds[1] > 1:
            return f"the dim {dim} is 1 at some sizes ({dim} from 1 to {bounds[1]}), where the result has one axis less"
    return ""


RULE = Rule(
    name="squeeze-axes",
    why="TensorRT cannot tell the rank after a Squeeze without axes when a size moves.",
    ops=("Squeeze",),
    find=find,
    before="Squeeze(x[N,1,8]), N from 2",
    after="Squeeze(x, axes=[1])",
    after_rules=("uint8",),
)

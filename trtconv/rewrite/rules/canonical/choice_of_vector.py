"""ArgMax and ArgMin of a vector get an axis of size 1 before it: TensorRT's top-k wants two axes."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a choice along the only axis of its input."""
    rank = graph.rank(node.inputs[0])
    if rank is None:
        return Skip("rank is not known")
    return Found((node,), lambda g: _build(g, node)) if rank == 1 else NOT_THIS


def _build(g: Replacement, node: Node) -> Value:
    row = g.unsqueeze(node.inputs[0], 0)
    last = node.attr("select_last_index", 0)
    index = g.op(node.key, row, axis=1, keepdims=1, **({"select_last_index": last} if last else {}))
    return g.squeeze(index, 0) if node.attr("keepdims", 1) else g.squeeze(index, 0, 1)


RULE = Rule(
    name="choice-of-vector",
    why="TensorRT makes a top-k of ArgMax and ArgMin, which takes two axes at least.",
    ops=("ArgMax", "ArgMin"),
    find=find,
    before="ArgMax(x), x a vector",
    after="Squeeze(ArgMax(Unsqueeze(x, 0), axis=1), 0)",
)

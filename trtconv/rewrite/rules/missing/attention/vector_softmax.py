"""A softmax of a vector as one of a matrix with one row."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a vector."""
    return Found((node,), partial(_build, node=node)) if graph.rank(node.inputs[0]) == 1 else NOT_THIS


def _build(g: Replacement, node: Node) -> Value:
    return g.squeeze(g.op(node.op, g.unsqueeze(node.inputs[0], 0), axis=1), 0)


RULE = Rule(
    name="vector-softmax",
    why="TensorRT takes the softmax of two axes or more: `at least 2 dimensions are required`.",
    ops=("Softmax", "LogSoftmax", "Hardmax"),
    find=find,
    before="Softmax(x[T], axis=0)",
    after="Squeeze(Softmax(Unsqueeze(x, 0), axis=1), 0)",
)

"""A Concat whose first parts are joined already as one of that result and the rest.

Each layer of a DenseNet joins all features before it anew. TensorRT 8.6 has a tensor written where one Concat reads it
and copies it for the others. Nested, each result lies at the front of the next, and none is copied: DenseNet-121 in
TF32 goes from 0.68 to 0.99 of torch.compile's speed at batch 8 (`gpu_networks_dense.json`).
"""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node

FLOATS = (1, 10, 16)
LEAST_RANK = 3


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Concat of at least three parts that begins as an earlier Concat does, which may itself be nested."""
    if (
        len(node.inputs) <= 2
        or graph.dtype(node.inputs[0]) not in FLOATS
        or (graph.rank(node.output) or 0) < LEAST_RANK
    ):
        return NOT_THIS
    chain: list[Node] = []
    value, count = node.inputs[0], 1
    while (earlier := _longest(graph, node, value, count)) is not None:
        chain.append(earlier)
        value, count = earlier.output, count + len(earlier.inputs) - 1
    if not chain:
        return NOT_THIS
    return Found((*chain, node), lambda g: g.concat(value, *node.inputs[count:], axis=node.attr("axis")))


def _longest(graph: Graph, node: Node, value: str, count: int) -> Node | None:
    """Of the Concats before `node` that join `value` and what follows its first `count` parts, the longest."""
    rank = graph.rank(node.output) or 1
    joined = [
        user
        for user in graph.uses(value)
        if user.key == "Concat"
        and user.order < node.order
        and user.attr("axis") % rank == node.attr("axis") % rank
        and user.inputs[0] == value
        and 1 < len(user.inputs) <= len(node.inputs) - count
        and user.inputs[1:] == node.inputs[count : count + len(user.inputs) - 1]
    ]
    return max(joined, key=lambda n: len(n.inputs), default=None)


RULE = Rule(
    name="nested-concats",
    why="TensorRT 8.6 copies a tensor that several Concats read; one result at the front of the next needs no copy.",
    ops=("Concat",),
    find=find,
    needed=only_tensorrt_8,
    before="c1 = Concat(a, b), c2 = Concat(a, b, c), c3 = Concat(a, b, c, d)",
    after="c1 = Concat(a, b), c2 = Concat(c1, c), c3 = Concat(c2, d)",
)

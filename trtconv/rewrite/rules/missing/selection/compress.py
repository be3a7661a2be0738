"""Compress as NonZero and Gather: no parser has Compress, and 8.6 and later have NonZero."""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a condition that is as long as the axis, or shorter."""
    if graph.target.is_rtx:
        return NOT_THIS
    rank, axis = graph.rank(node.inputs[0]), node.attr("axis")
    if rank is None:
        return Skip("the rank is not known")
    return Found((node,), partial(_build, node=node, axis=None if axis is None else axis % rank))


def _build(g: Replacement, node: Node, axis: int | None) -> Value:
    value, condition = node.inputs
    if axis is None:
        value, axis = g.reshape(value, -1), 0
    mask = g.index.constant(condition)
    # The builder of 8.6 makes no constant of booleans.
    indices = g.squeeze(g.op("NonZero", condition), 0) if mask is None else g.const(np.flatnonzero(mask))
    return g.gather(value, indices, axis=axis)


RULE = Rule(
    name="compress",
    why="No TensorRT has Compress; NonZero gives the places of what it keeps.",
    ops=("Compress",),
    find=find,
    before="Compress(x, condition, axis=0)",
    after="Gather(x, Squeeze(NonZero(condition)), axis=0)",
)

"""Factors for the columns of a matrix, multiplied into it where half precision still holds the columns."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.graph.index import Array, Graph, Node

# The largest element of a column: the steps of half precision below 6e-5 are 6e-8, which is nothing beside it.
LEAST, MOST = 2.0**-10, 2.0**10


def factors_of(graph: Graph, node: Node) -> tuple[str, Array] | None:
    """What a Mul multiplies by a row of constants, one for each element of its last axis, and the constants."""
    operand = graph.operand(node) if node.key == "Mul" else None
    if operand is None or operand[1].size == 1 or operand[1].shape[-1:] != (operand[1].size,):
        return None
    return operand


def holds_in_half(matrix: Array) -> bool:
    """Whether no column is so small or so large that half precision would lose its digits."""
    largest = np.abs(matrix).max(axis=0)
    in_range = largest.min(initial=LEAST) >= LEAST and largest.max(initial=0) <= MOST
    return bool(np.isfinite(largest).all() and in_range)

"""A size that the values decide, and how the values of a graph have it."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from trtconv.core.errors import UnsupportedError
from trtconv.rewrite.graph.index import Node


@dataclass(frozen=True, eq=False)
class RowCount:
    """A size of the original's. Where it stood there are now more rows, of which the first `count` are the original's.

    `count` is int64[1]. `rows` is how many rows there are if that is known, whatever the sizes of the inputs.
    """

    count: gs.Tensor
    rows: int | None = None


@dataclass(frozen=True)
class Rows:
    """A value that has rows of this count along `axis` (not negative)."""

    axis: int
    count: RowCount

    def at(self, axis: int) -> Rows:
        """The same rows along another axis."""
        return Rows(axis, self.count)


# What is known of the elements of a shape: sizes, counts, and None for anything else that was computed of a count.
Sizes = tuple["int | RowCount | None", ...]


class CannotFix(UnsupportedError):
    """A node that needs the true number of rows, or mixes rows in a way that fixed sizes do not follow."""


def cannot(node: Node, why: str) -> CannotFix:
    """The error about a node."""
    return CannotFix(
        f"--nms topk: {node.op} {why}",
        hint="end the module before it; or keep the sizes with --nms native, which TensorRT 8.6, 10 and 11 take",
        where=str(node.origin) if node.origin else node.name,
    )

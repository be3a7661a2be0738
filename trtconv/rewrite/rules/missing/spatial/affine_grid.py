"""AffineGrid as arithmetic on Range: no TensorRT has it."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match two-dimensional grids."""
    dims, dtype = graph.dims(node.inputs[0]), graph.dtype(node.inputs[0])
    if dims is None or len(dims) != 3 or dims[1] != 2:
        return Skip("theta is not known to be [N, 2, 3]")
    if not dtype:
        return Skip("the element type is not known")
    return Found((node,), lambda b: _build(b, node, dtype))


def _build(b: Builder, node: Node, dtype: int) -> str:
    theta, size = node.inputs
    corners = bool(node.attr("align_corners", 0))
    y, x = (_line(b, b.op("Gather", size, b.scalar(i, dtype=7), axis=0), corners, dtype) for i in (2, 3))
    # Theta's columns [N, 2, 1] as [N, 1, 1, 2].
    columns = [
        b.unsqueeze(b.op("Gather", theta, b.scalar(i, dtype=7), axis=2), 1, 2) for i in range(3)
    ]  # fmt: skip
    across = b.op("Mul", b.unsqueeze(x, 0, 1, 3), columns[0])
    down = b.op("Mul", b.unsqueeze(y, 0, 2, 3), columns[1])
    return b.op("Add", b.op("Add", across, down), columns[2])


def _line(b: Builder, size: str, corners: bool, dtype: int) -> str:
    """Normalised coordinates of one axis, from -1 to 1: of the pixels' centres, or of the corners."""
    places = b.cast(b.op("Range", b.scalar(0, dtype=7), size, b.scalar(1, dtype=7)), dtype)
    one, two = b.scalar(1.0, dtype=dtype), b.scalar(2.0, dtype=dtype)
    wide = b.cast(size, dtype)
    if not corners:
        return b.op("Sub", b.op("Div", b.op("Add", b.op("Mul", places, two), one), wide), one)
    # With one pixel the only place is -1 (0 steps of anything), so the step must not divide by zero.
    steps = b.op("Max", b.op("Sub", wide, one), one)
    return b.op("Sub", b.op("Div", b.op("Mul", places, two), steps), one)


RULE = Rule(
    name="affine-grid",
    why="No TensorRT has AffineGrid; its coordinates are a few products.",
    ops=("AffineGrid",),
    find=find,
    before="AffineGrid(theta, size)",
    after="x * theta[:, :, 0] + y * theta[:, :, 1] + theta[:, :, 2], x and y from Range",
)

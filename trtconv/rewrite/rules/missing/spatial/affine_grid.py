"""AffineGrid as arithmetic on Range: no TensorRT has it."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match two-dimensional grids."""
    dims, dtype = graph.dims(node.inputs[0]), graph.dtype(node.inputs[0])
    if dims is None or len(dims) != 3 or dims[1] != 2:
        return Skip("theta is not known to be [N, 2, 3]")
    if not dtype:
        return Skip("the element type is not known")
    return Found((node,), lambda g: _build(g, node, dtype))


def _build(g: Replacement, node: Node, dtype: int) -> Value:
    theta, size = node.inputs
    corners = bool(node.attr("align_corners", 0))
    y, x = (_line(g, g.gather(size, g.scalar(i, dtype=7), axis=0), corners, dtype) for i in (2, 3))
    # Theta's columns [N, 2, 1] as [N, 1, 1, 2].
    columns = [g.unsqueeze(g.gather(theta, g.scalar(i, dtype=7), axis=2), 1, 2) for i in range(3)]
    across = g.mul(g.unsqueeze(x, 0, 1, 3), columns[0])
    down = g.mul(g.unsqueeze(y, 0, 2, 3), columns[1])
    return g.add(g.add(across, down), columns[2])


def _line(g: Replacement, size: Value, corners: bool, dtype: int) -> Value:
    """Normalised coordinates of one axis, from -1 to 1: of the pixels' centres, or of the corners."""
    places = g.cast(g.arange(size), dtype)
    one, two = g.scalar(1.0, dtype=dtype), g.scalar(2.0, dtype=dtype)
    wide = g.cast(size, dtype)
    if not corners:
        return g.sub(g.div(g.add(g.mul(places, two), one), wide), one)
    # With one pixel the only place is -1 (0 steps of anything), so the step must not divide by zero.
    steps = g.maximum(g.sub(wide, one), one)
    return g.sub(g.div(g.mul(places, two), steps), one)


RULE = Rule(
    name="affine-grid",
    why="No TensorRT has AffineGrid; its coordinates are a few products.",
    ops=("AffineGrid",),
    find=find,
    before="AffineGrid(theta, size)",
    after="x * theta[:, :, 0] + y * theta[:, :, 1] + theta[:, :, 2], x and y from Range",
)

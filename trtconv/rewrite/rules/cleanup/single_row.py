"""`x[0]` of an axis that has one row, without a Gather.

TensorRT 8.6 found no implementation of a Gather behind a Resize whose sizes are computed (torchvision's detectors take
the one image out of a batch), and builds the Resize alone.
"""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match values of FP32 of which a constant without axes takes the one row of a fixed axis."""
    x, rows = node.inputs
    dims, index = graph.dims(x), graph.constant(rows)
    if graph.dtype(x) != FLOAT or dims is None or index is None or index.ndim:
        return NOT_THIS
    axis = int(node.attr("axis", 0)) % len(dims)
    if dims[axis] != 1:
        return NOT_THIS
    return Found((node,), lambda g: g.squeeze(x, axis))


RULE = Rule(
    name="single-row",
    why="The one row of an axis is the value without that axis, and TensorRT 8.6 refuses some Gathers behind a Resize.",
    ops=("Gather",),
    find=find,
    before="Gather(x, 0, axis=0)  # x [1, C, H, W]",
    after="Squeeze(x, axes=[0])",
)

"""Linear Resize with an axis that may keep its size although its scale is not 1: that axis as two Gathers.

TensorRT 8.6.0 takes such an axis as it is when it resizes another along with it: of 3 rows by 1.3 and of 8 rows by 1.1
most values were others (measured on an H200; with align_corners and with cubic they were not).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, INT64, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.missing.resizing.resize_nearest import USUAL_SIZES, coordinates, scaled_size

# A row that is alone is the same wherever it is sampled.
FEWEST = 2


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match constant scales of two axes or more, of which one may keep the size."""
    if node.attr("mode", "nearest") != "linear":
        return NOT_THIS
    scales = graph.constant(node.input(2)) if node.input(2) else None
    if scales is None or np.count_nonzero(scales != 1) < 2:
        return NOT_THIS
    if node.attr("coordinate_transformation_mode", "half_pixel") == "align_corners":
        return NOT_THIS
    dims = graph.dims(node.inputs[0])
    if dims is None or node.attr("axes"):
        return Skip("the rank is not known, or only some axes are resized")
    ranges = [graph.dim_range(dim) or (1, USUAL_SIZES) for dim in dims]
    keeping = {axis: r for axis, r in enumerate(ranges) if _may_keep_its_size(r, float(scales[axis]))}
    if not keeping:
        return NOT_THIS
    return Found((node,), partial(_build, node=node, scales=[float(s) for s in scales], keeping=keeping))


def _may_keep_its_size(sizes: tuple[int, int], scale: float) -> bool:
    size = max(sizes[0], FEWEST)
    return scale > 1 and size <= sizes[1] and int(np.floor(np.float32(size) * np.float32(scale))) == size


def _build(g: Replacement, node: Node, scales: list[float], keeping: dict[int, tuple[int, int]]) -> Value:
    value: Value = node.inputs[0]
    for axis, sizes in keeping.items():
        value = _interpolated(g, node, value, axis, scales[axis], sizes, len(scales))
    rest = [1.0 if axis in keeping else scale for axis, scale in enumerate(scales)]
    if all(scale == 1.0 for scale in rest):
        return value
    return g.resize(value, "", g.const(np.asarray(rest, np.float32)), **node.attributes())


def _interpolated(
    g: Replacement, node: Node, value: Value, axis: int, scale: float, sizes: tuple[int, int], rank: int
) -> Value:
    size = g.squeeze(g.size(node.inputs[0], axis), 0)
    out = scaled_size(g, size, scale, sizes)
    zero, one = g.scalar(0, dtype=INT64), g.scalar(1, dtype=INT64)
    last = g.sub(size, one)
    at = coordinates(g, node, size, out, g.scalar(scale), g.cast(g.range(zero, out, one), FLOAT))
    at = g.minimum(g.maximum(at, g.scalar(0.0)), g.cast(last, FLOAT))
    row = g.cast(g.floor(at), INT64)
    share = g.cast(g.sub(at, g.cast(row, FLOAT)), g.dtype(node.inputs[0]) or FLOAT)
    share = g.reshape(share, *(-1 if a == axis else 1 for a in range(rank)))
    first, second = g.gather(value, row, axis=axis), g.gather(value, g.minimum(g.add(row, one), last), axis=axis)
    # Two products, as ONNX Runtime has them: a difference of two infinities is none.
    rest = g.sub(g.scalar(1.0, like=node.inputs[0]), share)
    return g.add(g.mul(rest, first), g.mul(share, second))


RULE = Rule(
    name="resize-axes",
    why="TensorRT 8.6 takes an axis that keeps its size as it is, whatever its scale, when it resizes another with it.",
    ops=("Resize",),
    find=find,
    needed=only_tensorrt_8,
    before="Resize(x, scales = [1, 1, 1.3, 2.6])",
    after="Resize(a + (b - a) * share, scales = [1, 1, 1, 2.6]), a and b = Gather(x, rows, axis=2)",
    keeps_infinities=False,
)

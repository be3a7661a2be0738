"""Resize in the mode tf_crop_and_resize as Gathers of rows and columns: no parser has that mode."""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, INT64, Value
from trtconv.rewrite.graph.replacement import Replacement

MODE = "tf_crop_and_resize"


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match linear and nearest along the spatial axes of FP32, with a constant region and sizes."""
    if node.attr("coordinate_transformation_mode", "half_pixel") != MODE:
        return NOT_THIS
    rank, region = graph.rank(node.inputs[0]), graph.constant(node.input(1))
    if rank is None or region is None or region.size != 2 * rank or node.attr("axes") or not node.input(3):
        return Skip("the region or the rank is not known, or the sizes follow from scales")
    if graph.dtype(node.inputs[0]) != FLOAT or node.attr("antialias", 0):
        return Skip("the values are not FP32, or are filtered")
    if node.attr("mode", "nearest") not in ("linear", "nearest") or _moves_batch(region.reshape(2, rank)):
        return Skip("the mode is cubic, or the batch or the channels are cropped")
    return Found((node,), partial(_build, node=node, region=region.reshape(2, rank)))


def _moves_batch(region: Array) -> bool:
    return bool(np.any(region[0, :2] != 0) or np.any(region[1, :2] != 1))


def _build(g: Replacement, node: Node, region: Array) -> Value:
    value, outside = node.inputs[0], None
    rank = region.shape[1]
    for axis in range(2, rank):
        at, size = _places(g, node, axis, float(region[0, axis]), float(region[1, axis]))
        last = g.sub(g.cast(size, FLOAT), g.scalar(1.0))
        beyond = g.logical_or(g.less(at, g.scalar(0.0)), g.greater(at, last))
        shape = [-1 if a == axis else 1 for a in range(rank)]
        beyond = g.reshape(beyond, *shape)
        outside = beyond if outside is None else g.logical_or(outside, beyond)
        within = g.minimum(g.maximum(at, g.scalar(0.0)), last)
        value = _taken(g, node, value, axis, within, size, shape)
    assert outside is not None
    return g.where(outside, g.scalar(node.attr("extrapolation_value", 0.0)), value)


def _places(g: Replacement, node: Node, axis: int, start: float, end: float) -> tuple[Value, Value]:
    """Where each pixel of the result lies in the value (ONNX, Resize): a share of its size less one."""
    size = g.squeeze(g.size(node.inputs[0], axis), 0)
    out = g.gather(node.inputs[3], g.scalar(axis, dtype=INT64), axis=0)
    room = g.sub(g.cast(size, FLOAT), g.scalar(1.0))
    steps = g.cast(g.maximum(g.sub(out, g.scalar(1, dtype=INT64)), g.scalar(1, dtype=INT64)), FLOAT)
    # One pixel lies in the middle.
    several = g.greater(out, g.scalar(1, dtype=INT64))
    first = g.where(several, g.mul(g.scalar(start), room), g.mul(g.scalar(0.5 * (start + end)), room))
    # In this order the roundings are those of ONNX Runtime.
    span = g.scalar(float(np.float32(end) - np.float32(start)))
    way = g.div(g.mul(g.mul(g.cast(g.arange(out), FLOAT), span), room), steps)
    return g.add(first, way), size


def _taken(g: Replacement, node: Node, value: Value, axis: int, at: Value, size: Value, shape: list[int]) -> Value:
    if node.attr("mode", "nearest") == "nearest":
        nearest = _nearest(g, at, node.attr("nearest_mode", "round_prefer_floor"))
        return g.gather(value, g.cast(nearest, INT64), axis=axis)
    low = g.floor(at)
    rows = g.cast(low, INT64)
    next_rows = g.minimum(g.add(rows, g.scalar(1, dtype=INT64)), g.sub(size, g.scalar(1, dtype=INT64)))
    share = g.reshape(g.sub(at, low), *shape)
    before, behind = g.gather(value, rows, axis=axis), g.gather(value, next_rows, axis=axis)
    return g.add(g.mul(before, g.sub(g.scalar(1.0), share)), g.mul(behind, share))


def _nearest(g: Replacement, at: Value, how: str) -> Value:
    half = g.scalar(0.5)
    if how in ("floor", "ceil"):
        return g.floor(at) if how == "floor" else g.ceil(at)
    return g.ceil(g.sub(at, half)) if how == "round_prefer_floor" else g.floor(g.add(at, half))


RULE = Rule(
    name="resize-crop",
    why="No TensorRT has the mode tf_crop_and_resize; Gather takes the rows and columns of the region.",
    ops=("Resize",),
    find=find,
    before="Resize(x, roi, sizes, coordinate_transformation_mode=tf_crop_and_resize)",
    after="Where(outside, extrapolation_value, rows and columns by Gather, between two by their distance)",
)

"""RoiAlign as one GridSample and an average, where TensorRT-RTX finds no plugin for it."""

from __future__ import annotations

import numpy as np

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.index import Graph, Node

INT64 = 7


def needed(target: Target) -> bool:
    """Classic TensorRT has a plugin of its own for it."""
    return target.is_rtx


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match average mode with a fixed number of samples per bin."""
    if node.attr("mode", "avg") != "avg":
        return Skip("the maximum of the samples is taken")
    if not node.attr("sampling_ratio", 0):
        return Skip("the number of samples per bin follows the size of each box (sampling_ratio is 0)")
    channels = (graph.dims(node.inputs[0]) or (None, None))[1]
    if not isinstance(channels, int) or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("channels are not known, or the value is not FP32")
    return Found((node,), lambda b: _build(b, node, channels), ranges=_ranges(graph, node))


def _ranges(graph: Graph, node: Node) -> dict[str, tuple[float, float]]:
    """Sample boxes that lie around the image, and the batch index of the first image."""
    return {node.inputs[1]: (-4.0, 40.0), node.inputs[2]: (0.0, 0.0)}


def _build(b: Builder, node: Node, channels: int) -> str:
    x, boxes, batch = node.inputs
    height, width = int(node.attr("output_height", 1)), int(node.attr("output_width", 1))
    samples = int(node.attr("sampling_ratio"))
    rows, row_inside = _samples(b, node, 1, height, samples, 2)
    columns, column_inside = _samples(b, node, 0, width, samples, 3)
    count = b.op("Gather", b.shape_once(boxes), b.ints(0), axis=0)
    # All images stand in one column, so that no image is copied for each of its boxes.
    sizes = [b.op("Gather", b.shape_once(x), b.ints(a), axis=0) for a in (0, 2, 3)]
    tall = b.op("Mul", sizes[0], sizes[1])
    column = b.op("Reshape", b.transpose(x, 1, 0, 2, 3), b.concat(b.ints(1, channels), tall, sizes[2]))
    offset = b.op("Mul", b.unsqueeze(b.cast(batch, FLOAT), 1), b.cast(sizes[1], FLOAT))
    y = _normalised(b, b.op("Add", rows, offset), b.cast(tall, FLOAT))
    at_x = _normalised(b, columns, b.cast(sizes[2], FLOAT))
    shape = b.concat(count, b.ints(height * samples, width * samples))
    pair = [b.unsqueeze(b.op("Expand", v, shape), 3) for v in (b.unsqueeze(at_x, 1), b.unsqueeze(y, 2))]
    flat = b.op("Reshape", b.concat(*pair, axis=3), b.ints(1, -1, width * samples, 2))
    mode = "linear" if b.opset >= 20 else "bilinear"
    taken = b.op("GridSample", column, flat, mode=mode, padding_mode="border", align_corners=0)
    bins = b.op("Reshape", taken, b.ints(channels, -1, height * samples, width * samples))
    inside = b.op("Mul", b.unsqueeze(row_inside, 2), b.unsqueeze(column_inside, 1))
    kept = b.op("Mul", bins, b.unsqueeze(inside, 0))
    pooled = b.op("AveragePool", kept, kernel_shape=[samples, samples], strides=[samples, samples])
    return b.transpose(pooled, 1, 0, 2, 3)


def _samples(b: Builder, node: Node, corner: int, bins: int, samples: int, axis: int) -> tuple[str, str]:
    """Clamped pixel coordinates [K, bins * samples] along one axis, and 1 where they are not far outside."""
    boxes = node.inputs[1]
    half = node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel" and b.opset >= 16
    scale = b.scalar(float(node.attr("spatial_scale", 1.0)))
    low, high = (b.op("Mul", b.op("Gather", boxes, b.ints(corner + i), axis=1), scale) for i in (0, 2))
    if half:
        low, high = (b.op("Sub", v, b.scalar(0.5)) for v in (low, high))
    extent = b.op("Sub", high, low)
    if not half:
        extent = b.op("Max", extent, b.scalar(1.0))
    steps = (np.arange(bins * samples, dtype=np.float32) + 0.5) / (bins * samples)
    at = b.op("Add", low, b.op("Mul", extent, b.const(steps.astype(np.float32).reshape(1, -1))))
    size = b.cast(b.size(node.inputs[0], axis), FLOAT)
    far = b.op("Or", b.op("Less", at, b.scalar(-1.0)), b.op("Greater", at, size))
    inside = b.cast(b.op("Not", far), FLOAT)
    last = b.op("Sub", size, b.scalar(1.0))
    return b.op("Min", b.op("Max", at, b.scalar(0.0)), last), inside


def _normalised(b: Builder, at: str, size: str) -> str:
    doubled = b.op("Add", b.op("Mul", at, b.scalar(2.0)), b.scalar(1.0))
    return b.op("Sub", b.op("Div", doubled, size), b.scalar(1.0))


RULE = Rule(
    name="roi-align",
    why="TensorRT-RTX has no plugins, and RoiAlign is one; a GridSample over all boxes and an average are the same.",
    ops=("RoiAlign",),
    find=find,
    needed=needed,
    before="RoiAlign(x, boxes, batch_indices, sampling_ratio=2)",
    after="AveragePool(GridSample(images in a column, points of all boxes) * inside)",
)

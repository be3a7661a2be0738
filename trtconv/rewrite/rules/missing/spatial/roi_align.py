"""RoiAlign as one GridSample and an average.

TensorRT's importer makes a plugin of it. TensorRT-RTX has none, and classic TensorRT's lies in libnvinfer_vc_plugin,
which the tar and the Debian packages bring and no wheel does: 8.6.0 of pip ends with `Unable to open library`.
"""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match average mode with a fixed number of samples per bin."""
    if node.attr("mode", "avg") != "avg":
        return Skip("the maximum of the samples is taken")
    if not node.attr("sampling_ratio", 0):
        return Skip("the number of samples per bin follows the size of each box (sampling_ratio is 0)")
    channels = (graph.dims(node.inputs[0]) or (None, None))[1]
    if not isinstance(channels, int) or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("channels are not known, or the value is not FP32")
    return Found((node,), lambda g: _build(g, node, channels), ranges=_ranges(graph, node))


def _ranges(graph: Graph, node: Node) -> dict[str, tuple[float, float]]:
    """Sample boxes that lie around the image, and the batch index of the first image."""
    return {node.inputs[1]: (-4.0, 40.0), node.inputs[2]: (0.0, 0.0)}


def _build(g: Replacement, node: Node, channels: int) -> Value:
    x, boxes, batch = node.inputs
    height, width = int(node.attr("output_height", 1)), int(node.attr("output_width", 1))
    samples = int(node.attr("sampling_ratio"))
    rows, row_inside = _samples(g, node, 1, height, samples, 2)
    columns, column_inside = _samples(g, node, 0, width, samples, 3)
    count = g.gather(g.shape_of(boxes), g.ints(0), axis=0)
    # All images stand in one column, so that no image is copied for each of its boxes. Each has its outermost pixels
    # twice: a place comes out of the grid's scale a rounding beside itself, on the border with a share of other pixels.
    framed = g.op("Pad", x, g.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="edge")
    rows, columns = g.add(rows, g.scalar(1.0)), g.add(columns, g.scalar(1.0))
    sizes = [g.gather(g.shape_of(framed), g.ints(a), axis=0) for a in (0, 2, 3)]
    tall = g.mul(sizes[0], sizes[1])
    column = g.reshape(g.transpose(framed, 1, 0, 2, 3), g.concat(g.ints(1, channels), tall, sizes[2]))
    offset = g.mul(g.unsqueeze(g.cast(batch, FLOAT), 1), g.cast(sizes[1], FLOAT))
    y = _normalised(g, g.add(rows, offset), g.cast(tall, FLOAT))
    at_x = _normalised(g, columns, g.cast(sizes[2], FLOAT))
    shape = g.concat(count, g.ints(height * samples, width * samples))
    pair = [g.unsqueeze(g.expand(v, shape), 3) for v in (g.unsqueeze(at_x, 1), g.unsqueeze(y, 2))]
    flat = g.reshape(g.concat(*pair, axis=3), g.ints(1, -1, width * samples, 2))
    mode = "linear" if g.opset >= 20 else "bilinear"
    sampled = g.grid_sample(column, flat, mode=mode, padding_mode="border", align_corners=0)
    bins = g.reshape(sampled, g.ints(channels, -1, height * samples, width * samples))
    inside = g.logical_and(g.unsqueeze(row_inside, 2), g.unsqueeze(column_inside, 1))
    # Not a product: an infinity outside would be NaN.
    masked_bins = g.where(g.unsqueeze(inside, 0), bins, g.scalar(0.0))
    pooled = g.op("AveragePool", masked_bins, kernel_shape=[samples, samples], strides=[samples, samples])
    return g.transpose(pooled, 1, 0, 2, 3)


def _samples(g: Replacement, node: Node, corner: int, bins: int, samples: int, axis: int) -> tuple[Value, Value]:
    """Pixel coordinates [K, bins * samples] along one axis, and whether they are not far outside.

    Those outside are clamped to the middle between the outermost pixel and its copy in the frame.
    """
    boxes = node.inputs[1]
    half = node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel" and g.opset >= 16
    scale = g.scalar(float(node.attr("spatial_scale", 1.0)))
    low, high = (g.mul(g.gather(boxes, g.ints(corner + i), axis=1), scale) for i in (0, 2))
    if half:
        low, high = (g.sub(v, g.scalar(0.5)) for v in (low, high))
    extent = g.sub(high, low)
    if not half:
        extent = g.maximum(extent, g.scalar(1.0))
    steps = (np.arange(bins * samples, dtype=np.float32) + 0.5) / (bins * samples)
    at = g.add(low, g.mul(extent, g.const(steps.astype(np.float32).reshape(1, -1))))
    size = g.cast(g.size(node.inputs[0], axis), FLOAT)
    far = g.logical_or(g.less(at, g.scalar(-1.0)), g.greater(at, size))
    inside = g.logical_not(far)
    return g.minimum(g.maximum(at, g.scalar(-0.5)), g.sub(size, g.scalar(0.5))), inside


def _normalised(g: Replacement, at: Value, size: Value) -> Value:
    doubled = g.add(g.mul(at, g.scalar(2.0)), g.scalar(1.0))
    return g.sub(g.div(doubled, size), g.scalar(1.0))


RULE = Rule(
    name="roi-align",
    why="RoiAlign is a plugin that no wheel of TensorRT has; a GridSample over all boxes and an average are the same.",
    ops=("RoiAlign",),
    find=find,
    before="RoiAlign(x, boxes, batch_indices, sampling_ratio=2)",
    after="AveragePool(Where(inside, GridSample(framed images in a column, points of all boxes), 0))",
)

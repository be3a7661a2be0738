"""DeformConv as one GridSample, a mask and a 1x1 convolution."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.builder import FLOAT, Builder
from trtconv.rewrite.graph import Array, Graph, Node
from trtconv.rewrite.rule import Found, Rule, Skip


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match two-dimensional, one group, one offset group, constant weights."""
    weight = graph.constant(node.inputs[1], limit=1 << 24)
    channels = (graph.dims(node.inputs[0]) or (None, None))[1]
    if weight is None:
        return Skip("the weights are not constant, or lie on disk")
    if weight.ndim != 4 or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("not a two-dimensional convolution in FP32")
    if node.attr("group", 1) != 1 or node.attr("offset_group", 1) != 1:
        return Skip("more than one group, or offset group")
    if not isinstance(channels, int):
        return Skip("the number of channels is not known")
    return Found((node,), lambda b: _build(b, node, weight, channels))


def _build(b: Builder, node: Node, weight: Array, channels: int) -> str:
    x, offset = node.inputs[0], node.inputs[2]
    height, width = int(weight.shape[2]), int(weight.shape[3])
    taps = height * width
    rows = b.op("Gather", b.shape_once(offset), b.ints(0), axis=0)
    grid_size = b.op("Gather", b.shape_once(offset), b.ints(2, 3), axis=0)
    # Offsets [N, 2K, Ho, Wo] as [N, K, 2, Ho, Wo]; the pair is (dy, dx).
    pairs = b.op("Reshape", offset, b.concat(rows, b.ints(taps, 2), grid_size))
    grid = b.concat(*[_axis(b, node, pairs, weight.shape, axis) for axis in (1, 0)], axis=-1)
    out = [b.op("Gather", grid_size, b.ints(i), axis=0) for i in (0, 1)]
    tall = b.op("Mul", out[0], b.ints(taps))
    flat = b.op("Reshape", grid, b.concat(rows, tall, out[1], b.ints(2)))
    mode = "linear" if b.opset >= 20 else "bilinear"
    sampled = b.op("GridSample", x, flat, mode=mode, padding_mode="zeros", align_corners=0)
    values = b.op("Reshape", sampled, b.concat(rows, b.ints(channels, taps), grid_size))
    if node.input(4):
        values = b.op("Mul", values, b.unsqueeze(node.inputs[4], 1))
    stacked = b.op("Reshape", values, b.concat(rows, b.ints(channels * taps), grid_size))
    kernel = b.const(np.ascontiguousarray(weight.reshape(weight.shape[0], channels * taps, 1, 1)))
    return b.op("Conv", stacked, kernel, node.input(3), kernel_shape=[1, 1])


def _axis(b: Builder, node: Node, pairs: str, shape: tuple[int, ...], axis: int) -> str:
    """Normalised coordinates [N, K, Ho, Wo, 1] along one axis (0 down, 1 across)."""
    x, kernel = node.inputs[0], shape[2:]
    stride, dilation = node.attr("strides", [1, 1])[axis], node.attr("dilations", [1, 1])[axis]
    pad = node.attr("pads", [0, 0, 0, 0])[axis]
    taps = np.arange(kernel[0] * kernel[1])
    tap = (taps // kernel[1] if axis == 0 else taps % kernel[1]) * dilation - pad
    count = b.squeeze(b.size(node.inputs[2], 2 + axis), 0)
    places = b.cast(b.op("Range", b.scalar(0, dtype=7), count, b.scalar(1, dtype=7)), FLOAT)
    base = b.unsqueeze(b.op("Mul", places, b.scalar(float(stride))), *((0, 1, 3) if axis == 0 else (0, 1, 2)))
    offset = b.op("Gather", pairs, b.scalar(axis, dtype=7), axis=2)
    at = b.op("Add", b.op("Add", offset, base), b.const(tap.reshape(1, -1, 1, 1).astype(np.float32)))
    size = b.cast(b.squeeze(b.size(x, 2 + axis), 0), FLOAT)
    doubled = b.op("Add", b.op("Mul", at, b.scalar(2.0)), b.scalar(1.0))
    return b.unsqueeze(b.op("Sub", b.op("Div", doubled, size), b.scalar(1.0)), 4)


RULE = Rule(
    name="deform-conv",
    why="DeformConv needs a plugin that RTX and 8.6 lack; one GridSample and a 1x1 convolution compute it.",
    ops=("DeformConv",),
    find=find,
    before="DeformConv(x, weights, offsets, bias, mask)",
    after="Conv1x1(Reshape(GridSample(x, positions) * mask), weights)",
)

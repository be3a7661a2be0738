"""DeformConv as one GridSample, a mask and a 1x1 convolution."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.index import Array, Graph, Node


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match two-dimensional convolutions with constant weights, in any number of groups and offset groups."""
    weight = graph.constant(node.inputs[1], limit=1 << 24)
    channels = (graph.dims(node.inputs[0]) or (None, None))[1]
    if weight is None:
        return Skip("the weights are not constant, or lie on disk")
    if weight.ndim != 4 or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("not a two-dimensional convolution in FP32")
    if not isinstance(channels, int):
        return Skip("the number of channels is not known")
    return Found((node,), lambda b: _build(b, node, weight, channels))


def _build(b: Builder, node: Node, weight: Array, channels: int) -> str:
    groups, taps = int(node.attr("offset_group", 1)), int(weight.shape[2] * weight.shape[3])
    each = channels // groups
    parts = [_sampled(b, node, weight.shape, g, groups, each) for g in range(groups)]
    grid_size = b.op("Gather", b.shape_once(node.inputs[2]), b.ints(2, 3), axis=0)
    rows = b.op("Gather", b.shape_once(node.inputs[2]), b.ints(0), axis=0)
    stacked = b.op("Reshape", b.concat(*parts, axis=1), b.concat(rows, b.ints(channels * taps), grid_size))
    per_group = int(weight.shape[1])
    kernel = b.const(np.ascontiguousarray(weight.reshape(weight.shape[0], per_group * taps, 1, 1)))
    return b.op("Conv", stacked, kernel, node.input(3), kernel_shape=[1, 1], group=int(node.attr("group", 1)))


def _sampled(b: Builder, node: Node, shape: tuple[int, ...], group: int, groups: int, channels: int) -> str:
    """What the taps of one offset group see: [N, channels of the group, taps, Ho, Wo], times the mask."""
    taps = int(shape[2] * shape[3])
    x, offset, mask = node.inputs[0], node.inputs[2], node.input(4)
    if groups > 1:
        x = b.slice(x, b.ints(group * channels), b.ints((group + 1) * channels), [1])
        offset = b.slice(offset, b.ints(group * 2 * taps), b.ints((group + 1) * 2 * taps), [1])
        mask = b.slice(mask, b.ints(group * taps), b.ints((group + 1) * taps), [1]) if mask else ""
    rows = b.op("Gather", b.shape_once(node.inputs[2]), b.ints(0), axis=0)
    grid_size = b.op("Gather", b.shape_once(node.inputs[2]), b.ints(2, 3), axis=0)
    # Offsets [N, 2K, Ho, Wo] as [N, K, 2, Ho, Wo]; the pair is (dy, dx).
    pairs = b.op("Reshape", offset, b.concat(rows, b.ints(taps, 2), grid_size))
    grid = b.concat(*[_axis(b, node, pairs, shape, axis) for axis in (1, 0)], axis=-1)
    out = [b.op("Gather", grid_size, b.ints(i), axis=0) for i in (0, 1)]
    flat = b.op("Reshape", grid, b.concat(rows, b.op("Mul", out[0], b.ints(taps)), out[1], b.ints(2)))
    mode = "linear" if b.opset >= 20 else "bilinear"
    sampled = b.op("GridSample", x, flat, mode=mode, padding_mode="zeros", align_corners=0)
    values = b.op("Reshape", sampled, b.concat(rows, b.ints(channels, taps), grid_size))
    return b.op("Mul", values, b.unsqueeze(mask, 1)) if mask else values


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

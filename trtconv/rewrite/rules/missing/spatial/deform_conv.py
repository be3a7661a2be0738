"""DeformConv as one GridSample, a mask and a 1x1 convolution."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement


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
    return Found((node,), lambda g: _build(g, node, weight, channels))


def _build(g: Replacement, node: Node, weight: Array, channels: int) -> Value:
    groups, taps = int(node.attr("offset_group", 1)), int(weight.shape[2] * weight.shape[3])
    each = channels // groups
    parts = [_sampled(g, node, weight.shape, group, groups, each) for group in range(groups)]
    grid_size = g.gather(g.shape_of(node.inputs[2]), g.ints(2, 3), axis=0)
    rows = g.gather(g.shape_of(node.inputs[2]), g.ints(0), axis=0)
    stacked = g.reshape(g.concat(*parts, axis=1), g.concat(rows, g.ints(channels * taps), grid_size))
    per_group = int(weight.shape[1])
    kernel = g.const(np.ascontiguousarray(weight.reshape(weight.shape[0], per_group * taps, 1, 1)))
    return g.conv(stacked, kernel, node.input(3), kernel_shape=[1, 1], group=int(node.attr("group", 1)))


def _sampled(g: Replacement, node: Node, shape: tuple[int, ...], group: int, groups: int, channels: int) -> Value:
    """What the taps of one offset group see: [N, channels of the group, taps, Ho, Wo], times the mask."""
    taps = int(shape[2] * shape[3])
    x, offset, mask = node.inputs[0], node.inputs[2], node.input(4)
    if groups > 1:
        x = g.slice(x, g.ints(group * channels), g.ints((group + 1) * channels), [1])
        offset = g.slice(offset, g.ints(group * 2 * taps), g.ints((group + 1) * 2 * taps), [1])
        mask = g.slice(mask, g.ints(group * taps), g.ints((group + 1) * taps), [1]) if mask else ""
    rows = g.gather(g.shape_of(node.inputs[2]), g.ints(0), axis=0)
    grid_size = g.gather(g.shape_of(node.inputs[2]), g.ints(2, 3), axis=0)
    # Offsets [N, 2K, Ho, Wo] as [N, K, 2, Ho, Wo]; the pair is (dy, dx).
    pairs = g.reshape(offset, g.concat(rows, g.ints(taps, 2), grid_size))
    grid = g.concat(*[_axis(g, node, pairs, shape, axis) for axis in (1, 0)], axis=-1)
    out = [g.gather(grid_size, g.ints(i), axis=0) for i in (0, 1)]
    flat = g.reshape(grid, g.concat(rows, g.mul(out[0], g.ints(taps)), out[1], g.ints(2)))
    mode = "linear" if g.opset >= 20 else "bilinear"
    sampled = g.grid_sample(x, flat, mode=mode, padding_mode="zeros", align_corners=0)
    values = g.reshape(sampled, g.concat(rows, g.ints(channels, taps), grid_size))
    return g.mul(values, g.unsqueeze(mask, 1)) if mask else values


def _axis(g: Replacement, node: Node, pairs: Value, shape: tuple[int, ...], axis: int) -> Value:
    """Normalised coordinates [N, K, Ho, Wo, 1] along one axis (0 down, 1 across)."""
    x, kernel = node.inputs[0], shape[2:]
    stride, dilation = node.attr("strides", [1, 1])[axis], node.attr("dilations", [1, 1])[axis]
    pad = node.attr("pads", [0, 0, 0, 0])[axis]
    taps = np.arange(kernel[0] * kernel[1])
    tap = (taps // kernel[1] if axis == 0 else taps % kernel[1]) * dilation - pad
    count = g.squeeze(g.size(node.inputs[2], 2 + axis), 0)
    places = g.cast(g.arange(count), FLOAT)
    base = g.unsqueeze(g.mul(places, g.scalar(float(stride))), *((0, 1, 3) if axis == 0 else (0, 1, 2)))
    offset = g.gather(pairs, g.scalar(axis, dtype=7), axis=2)
    at = g.add(g.add(offset, base), g.const(tap.reshape(1, -1, 1, 1).astype(np.float32)))
    size = g.cast(g.squeeze(g.size(x, 2 + axis), 0), FLOAT)
    doubled = g.add(g.mul(at, g.scalar(2.0)), g.scalar(1.0))
    return g.unsqueeze(g.sub(g.div(doubled, size), g.scalar(1.0)), 4)


RULE = Rule(
    name="deform-conv",
    why="DeformConv needs a plugin that RTX and 8.6 lack; one GridSample and a 1x1 convolution compute it.",
    ops=("DeformConv",),
    find=find,
    before="DeformConv(x, weights, offsets, bias, mask)",
    after="Conv1x1(Reshape(GridSample(x, positions) * mask), weights)",
)

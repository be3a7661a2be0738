"""Resize with antialiasing as two products with weight matrices made from the sizes."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match linear and cubic antialiasing of the last two axes, half-pixel coordinates."""
    if not node.attr("antialias", 0):
        return NOT_THIS
    mode = node.attr("mode", "nearest")
    if mode not in ("linear", "cubic"):
        return Skip(f"antialiasing in mode '{mode}'")
    if node.attr("coordinate_transformation_mode", "half_pixel") != "half_pixel":
        return Skip("antialiasing with coordinates other than half_pixel")
    if node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return Skip("keep_aspect_ratio_policy is not 'stretch'")
    if graph.rank(node.inputs[0]) != 4 or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("not an FP32 value of rank 4")
    axes = [a % 4 for a in node.attr("axes") or range(4)]
    if axes not in ([0, 1, 2, 3], [2, 3]):
        return Skip(f"it resizes the axes {axes}")
    offset = len(axes) - 2
    if node.input(3):
        return Found((node,), lambda g: _by_sizes(g, node, offset))
    scales = graph.constant(node.input(2))
    if scales is None or not np.all(scales[:offset] == 1):
        return Skip("scales are computed while the model runs, or move batch or channels")
    return Found((node,), lambda g: _by_scales(g, node, [float(s) for s in scales[offset:]]))


def _by_sizes(g: Replacement, node: Node, offset: int) -> Value:
    outs = [g.gather(node.inputs[3], g.scalar(offset + i, dtype=7), axis=0) for i in (0, 1)]
    return _resized(g, node, outs, [None, None])


def _by_scales(g: Replacement, node: Node, scales: list[float]) -> Value:
    outs = []
    for axis, scale in zip((2, 3), scales, strict=True):
        size = g.cast(g.squeeze(g.size(node.inputs[0], axis), 0), FLOAT)
        outs.append(g.cast(g.floor(g.mul(size, g.scalar(scale))), 7))
    return _resized(g, node, outs, [1 / s for s in scales])


def _resized(g: Replacement, node: Node, outs: list[Value], steps: list[float | None]) -> Value:
    x = node.inputs[0]
    ins = [g.squeeze(g.size(x, a), 0) for a in (2, 3)]
    sides = []
    for size, out, step in zip(ins, outs, steps, strict=True):
        ratio = g.scalar(step) if step else g.div(g.cast(size, FLOAT), g.cast(out, FLOAT))
        sides.append(_weights(g, node, size, out, ratio))
    return g.matmul(g.matmul(sides[0], x), g.transpose(sides[1], 1, 0))


def _weights(g: Replacement, node: Node, size: Value, out: Value, ratio: Value) -> Value:
    """The matrix [out, in]: a filter stretched by the ratio around each centre, its rows summing to one.

    With exclude_outside the filter is cut at the border; without, what falls outside counts for the border pixel.
    """
    zero, one = g.scalar(0, dtype=7), g.scalar(1, dtype=7)
    half, unit = g.scalar(0.5), g.scalar(1.0)
    centre = g.mul(g.add(g.cast(g.range(zero, out, one), FLOAT), half), ratio)
    support = g.maximum(ratio, unit)
    cut = bool(node.attr("exclude_outside", 0))
    taps = g.scalar(1.0 if node.attr("mode") == "linear" else 2.0)
    margin = zero if cut else g.cast(g.ceil(g.add(g.mul(support, taps), unit)), 7)
    places = g.range(g.neg(margin), g.add(size, margin), one)
    pixel_centre = g.add(g.cast(places, FLOAT), half)
    distance = g.div(g.absolute(g.sub(pixel_centre, g.unsqueeze(centre, 1))), support)
    if node.attr("mode") == "linear":
        weight = g.maximum(g.sub(unit, distance), g.scalar(0.0))
    else:
        weight = _cubic(g, distance, float(node.attr("cubic_coeff_a", -0.75)))
    weight = g.div(weight, g.reduce("ReduceSum", weight, [1]))
    if cut:
        return weight
    inside = g.minimum(g.maximum(places, zero), g.sub(size, one))
    folded = g.equal(g.unsqueeze(inside, 1), g.unsqueeze(g.range(zero, size, one), 0))
    return g.matmul(weight, g.cast(folded, FLOAT))


def _cubic(g: Replacement, t: Value, a: float) -> Value:
    """The cubic convolution filter: one polynomial up to 1, another up to 2, nothing beyond."""

    def polynomial(*factors: float) -> Value:
        value = g.scalar(factors[0])
        for factor in factors[1:]:
            value = g.add(g.mul(value, t), g.scalar(factor))
        return value

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    outer = g.where(g.less(t, g.scalar(2.0)), far, g.scalar(0.0))
    return g.where(g.less_equal(t, g.scalar(1.0)), near, outer)


RULE = Rule(
    name="resize-antialias",
    why="No TensorRT antialiases: 8.6 ignores the attribute, later ones refuse the node; two matrix products do it.",
    ops=("Resize",),
    find=find,
    before="Resize(x, sizes, mode=linear, antialias=1)",
    after="MatMul(MatMul(Wh, x), Transpose(Ww)), the weights from Range and the sizes",
    keeps_infinities=False,
)

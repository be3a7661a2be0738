"""Resize with antialiasing as two products with weight matrices made from the sizes."""

from __future__ import annotations

import numpy as np

from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.index import Graph, Node


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
        return Found((node,), lambda b: _by_sizes(b, node, offset))
    scales = graph.constant(node.input(2))
    if scales is None or not np.all(scales[:offset] == 1):
        return Skip("scales are computed while the model runs, or move batch or channels")
    return Found((node,), lambda b: _by_scales(b, node, [float(s) for s in scales[offset:]]))


def _by_sizes(b: Builder, node: Node, offset: int) -> str:
    outs = [b.op("Gather", node.inputs[3], b.scalar(offset + i, dtype=7), axis=0) for i in (0, 1)]
    return _resized(b, node, outs, [None, None])


def _by_scales(b: Builder, node: Node, scales: list[float]) -> str:
    outs = []
    for axis, scale in zip((2, 3), scales, strict=True):
        size = b.cast(b.squeeze(b.size(node.inputs[0], axis), 0), FLOAT)
        outs.append(b.cast(b.op("Floor", b.op("Mul", size, b.scalar(scale))), 7))
    return _resized(b, node, outs, [1 / s for s in scales])


def _resized(b: Builder, node: Node, outs: list[str], steps: list[float | None]) -> str:
    x = node.inputs[0]
    ins = [b.squeeze(b.size(x, a), 0) for a in (2, 3)]
    sides = []
    for size, out, step in zip(ins, outs, steps, strict=True):
        ratio = b.scalar(step) if step else b.op("Div", b.cast(size, FLOAT), b.cast(out, FLOAT))
        sides.append(_weights(b, node, size, out, ratio))
    return b.op("MatMul", b.op("MatMul", sides[0], x), b.transpose(sides[1], 1, 0))


def _weights(b: Builder, node: Node, size: str, out: str, ratio: str) -> str:
    """The matrix [out, in]: a filter stretched by the ratio around each centre, its rows summing to one.

    With exclude_outside the filter is cut at the border; without, what falls outside counts for the border pixel.
    """
    zero, one = b.scalar(0, dtype=7), b.scalar(1, dtype=7)
    half, unit = b.scalar(0.5), b.scalar(1.0)
    centre = b.op("Mul", b.op("Add", b.cast(b.op("Range", zero, out, one), FLOAT), half), ratio)
    support = b.op("Max", ratio, unit)
    cut = bool(node.attr("exclude_outside", 0))
    taps = b.scalar(1.0 if node.attr("mode") == "linear" else 2.0)
    margin = zero if cut else b.cast(b.op("Ceil", b.op("Add", b.op("Mul", support, taps), unit)), 7)
    places = b.op("Range", b.op("Neg", margin), b.op("Add", size, margin), one)
    place = b.op("Add", b.cast(places, FLOAT), half)
    distance = b.op("Div", b.op("Abs", b.op("Sub", place, b.unsqueeze(centre, 1))), support)
    if node.attr("mode") == "linear":
        weight = b.op("Max", b.op("Sub", unit, distance), b.scalar(0.0))
    else:
        weight = _cubic(b, distance, float(node.attr("cubic_coeff_a", -0.75)))
    weight = b.op("Div", weight, b.reduce("ReduceSum", weight, [1]))
    if cut:
        return weight
    inside = b.op("Min", b.op("Max", places, zero), b.op("Sub", size, one))
    folded = b.op("Equal", b.unsqueeze(inside, 1), b.unsqueeze(b.op("Range", zero, size, one), 0))
    return b.op("MatMul", weight, b.cast(folded, FLOAT))


def _cubic(b: Builder, t: str, a: float) -> str:
    """The cubic convolution filter: one polynomial up to 1, another up to 2, nothing beyond."""

    def polynomial(*factors: float) -> str:
        value = b.scalar(factors[0])
        for factor in factors[1:]:
            value = b.op("Add", b.op("Mul", value, t), b.scalar(factor))
        return value

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    outer = b.op("Where", b.op("Less", t, b.scalar(2.0)), far, b.scalar(0.0))
    return b.op("Where", b.op("LessOrEqual", t, b.scalar(1.0)), near, outer)


# The window's weights are differences of coordinates of up to the length of the axis, so that each loses digits.
PROOF = Tolerance(rtol=2e-5, atol=2e-5, why="ONNX Runtime and the rule compute the weights of a window in FP32")

RULE = Rule(
    name="resize-antialias",
    why="No TensorRT antialiases: 8.6 ignores the attribute, later ones refuse the node; two matrix products do it.",
    ops=("Resize",),
    find=find,
    tolerance=PROOF,
    before="Resize(x, sizes, mode=linear, antialias=1)",
    after="MatMul(MatMul(Wh, x), Transpose(Ww)), the weights from Range and the sizes",
)

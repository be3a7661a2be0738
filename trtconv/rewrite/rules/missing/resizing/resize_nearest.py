"""Nearest Resize by a scale that is not an integer as Gather: TensorRT 8.6 rounds the coordinates in another way."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.missing.resizing.resize_like_summand import made_here

MOST_SIZES, USUAL_SIZES = 1 << 20, 1 << 16
# Positions half-way between two pixels come out one rounding off; ONNX Runtime 1.23 takes those this near for half-way
# (measured: with 4e-7 to 8e-7 the pixels are the same at 13,000 pairs of sizes, without at 99 % of them).
HALF_WAY = 5e-7
MODES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "tf_half_pixel_for_nn")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match nearest with constant scales that are not all integers, or with sizes."""
    if node.attr("mode", "nearest") != "nearest" or (made_here(node) and _plain(node)):
        return NOT_THIS
    rank = graph.rank(node.inputs[0])
    scales = graph.constant(node.input(2))
    scales = None if scales is None or not scales.size else scales
    if scales is not None and np.all(scales == np.round(scales)) and _plain(node):
        return NOT_THIS
    if rank is None or node.attr("axes"):
        return Skip("the rank is not known, or only some axes are resized")
    if node.attr("coordinate_transformation_mode", "half_pixel") not in MODES:
        return Skip(f"coordinates in mode {node.attr('coordinate_transformation_mode')}")
    if scales is None and not node.input(3):
        return Skip("scales are computed while the model runs")
    fixed = None if scales is None else [float(s) for s in scales]
    return Found((node,), lambda g: _build(g, node, rank, fixed, _ranges(graph, node.inputs[0], rank)))


def _ranges(graph: Graph, value: str, rank: int) -> list[tuple[int, int]]:
    """The sizes that each axis can have; where none are recorded, those that images have."""
    dims = graph.dims(value) or (None,) * rank
    return [graph.dim_range(d) or (1, USUAL_SIZES) for d in dims]


def _plain(node: Node) -> bool:
    mode = node.attr("coordinate_transformation_mode", "half_pixel"), node.attr("nearest_mode", "round_prefer_floor")
    return mode in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))


def _build(g: Replacement, node: Node, rank: int, scales: list[float] | None, ranges: list[tuple[int, int]]) -> Value:
    value = node.inputs[0]
    for axis in range(2, rank):
        if scales is not None and scales[axis] == 1.0:
            continue
        size = g.squeeze(g.size(node.inputs[0], axis), 0)
        if scales is not None:
            out = scaled_size(g, size, scales[axis], ranges[axis])
            rows = _whole_indices(g, node, size, out, scales[axis], ranges[axis])
            rows = rows or _indices(g, node, size, out, g.scalar(scales[axis]))
        else:
            out = g.gather(node.inputs[3], g.scalar(axis, dtype=7), axis=0)
            rows = _indices(g, node, size, out, g.div(g.cast(out, FLOAT), g.cast(size, FLOAT)))
        value = g.gather(value, rows, axis=axis)
    return value


def scaled_size(g: Replacement, size: Value, scale: float, within: tuple[int, int]) -> Value:
    """floor(size * scale).

    In integers where that is the same for every size in the range: TensorRT 8.6 computes sizes in floating point twice,
    for the shape and for the values, and the two did not agree on 48 / 3 (measured on an H200).
    """
    ratio = whole_ratio(scale, *within)
    if ratio is None:
        return g.cast(g.floor(g.mul(g.cast(size, FLOAT), g.scalar(scale))), 7)
    above, below = (g.scalar(part, dtype=7) for part in ratio)
    return g.div(g.mul(size, above), below)


def whole_ratio(scale: float, low: int, high: int) -> tuple[int, int] | None:
    """p and q with floor(n * scale) == n * p // q for all n from `low` to `high`; None when no q up to 100 does.

    The product is one of FP32, as in ONNX Runtime: 10 * 1.9 is 19 there, and 18.99999976 with more bits.
    """
    if high - low > MOST_SIZES:
        return None
    sizes = np.arange(low, high + 1, dtype=np.int64)
    scaled_sizes = np.floor(sizes.astype(np.float32) * np.float32(scale)).astype(np.int64)
    for below in range(1, 101):
        above = round(scale * below)
        if above and np.array_equal(sizes * above // below, scaled_sizes):
            return above, below
    return None


def _whole_indices(
    g: Replacement, node: Node, size: Value, out: Value, scale: float, within: tuple[int, int]
) -> Value | None:
    """floor(place / scale) in integers, for the mode in which that is all and where it is the same at every place."""
    mode = node.attr("coordinate_transformation_mode", "half_pixel"), node.attr("nearest_mode", "round_prefer_floor")
    ratio = whole_ratio(scale, *within) if mode == ("asymmetric", "floor") else None
    if ratio is None:
        return None
    above, below = ratio
    places = np.arange(within[1] * above // below, dtype=np.int64)
    if not np.array_equal(np.floor(places.astype(np.float32) / np.float32(scale)), places * below // above):
        return None
    zero, one = g.scalar(0, dtype=7), g.scalar(1, dtype=7)
    at = g.div(g.mul(g.range(zero, out, one), g.scalar(below, dtype=7)), g.scalar(above, dtype=7))
    return g.minimum(at, g.sub(size, one))


def _indices(g: Replacement, node: Node, size: Value, out: Value, scale: Value) -> Value:
    places = g.cast(g.range(g.scalar(0, dtype=7), out, g.scalar(1, dtype=7)), FLOAT)
    half, nearly = g.scalar(0.5), g.scalar(HALF_WAY)
    at = coordinates(g, node, size, out, scale, places)
    how = node.attr("nearest_mode", "round_prefer_floor")
    if how == "floor":
        at = g.floor(at)
    elif how == "ceil":
        at = g.ceil(at)
    elif how == "round_prefer_floor":
        at = g.ceil(g.sub(g.sub(at, half), nearly))
    else:
        at = g.floor(g.add(g.add(at, half), nearly))
    last = g.sub(size, g.scalar(1, dtype=7))
    return g.minimum(g.maximum(g.cast(at, 7), g.scalar(0, dtype=7)), last)


def coordinates(g: Replacement, node: Node, size: Value, out: Value, scale: Value, places: Value) -> Value:
    """The place in the input of each place in the output, in the formula of the mode."""
    mode, half = node.attr("coordinate_transformation_mode", "half_pixel"), g.scalar(0.5)
    if mode == "asymmetric":
        return g.div(places, scale)
    if mode == "tf_half_pixel_for_nn":
        return g.div(g.add(places, half), scale)
    if mode == "align_corners":
        one = g.scalar(1, dtype=7)
        steps = g.maximum(g.sub(out, one), one)
        room = g.cast(g.sub(size, one), FLOAT)
        return g.div(g.mul(places, room), g.cast(steps, FLOAT))
    at = g.sub(g.div(g.add(places, half), scale), half)
    if mode == "half_pixel":
        return at
    # One output pixel is the first input pixel in PyTorch's formula.
    several = g.cast(g.greater(out, g.scalar(1, dtype=7)), FLOAT)
    return g.mul(at, several)


RULE = Rule(
    name="resize-nearest",
    why="TensorRT 8.6 rounds nearest Resize in another way for scales like 1.7; Gather takes the right rows.",
    ops=("Resize",),
    find=find,
    needed=only_tensorrt_8,
    before="Resize(x, scales=[1, 1, 1.7, 1.7], mode=nearest)",
    after="Gather(Gather(x, rows, axis=2), columns, axis=3)",
)

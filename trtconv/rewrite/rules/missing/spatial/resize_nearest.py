"""Nearest Resize by a scale that is no integer as Gather: TensorRT 8.6 rounds the coordinates in another way."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.rules.missing.spatial.resize_like_summand import made_here

MOST_SIZES, USUAL_SIZES = 1 << 20, 1 << 16
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
    return Found((node,), lambda b: _build(b, node, rank, fixed, _ranges(graph, node.inputs[0], rank)))


def _ranges(graph: Graph, value: str, rank: int) -> list[tuple[int, int]]:
    """The sizes that each axis can have; where none are recorded, those that images have."""
    dims = graph.dims(value) or (None,) * rank
    return [graph.dim_range(d) or (1, USUAL_SIZES) for d in dims]


def _plain(node: Node) -> bool:
    mode = node.attr("coordinate_transformation_mode", "half_pixel"), node.attr("nearest_mode", "round_prefer_floor")
    return mode in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))


def _build(b: Builder, node: Node, rank: int, scales: list[float] | None, ranges: list[tuple[int, int]]) -> str:
    value = node.inputs[0]
    for axis in range(2, rank):
        if scales is not None and scales[axis] == 1.0:
            continue
        size = b.squeeze(b.size(node.inputs[0], axis), 0)
        if scales is not None:
            out = _scaled_size(b, size, scales[axis], ranges[axis])
            rows = _whole_indices(b, node, size, out, scales[axis], ranges[axis])
            rows = rows or _indices(b, node, size, out, b.scalar(scales[axis]))
        else:
            out = b.op("Gather", node.inputs[3], b.scalar(axis, dtype=7), axis=0)
            rows = _indices(b, node, size, out, b.op("Div", b.cast(out, FLOAT), b.cast(size, FLOAT)))
        value = b.op("Gather", value, rows, axis=axis)
    return value


def _scaled_size(b: Builder, size: str, scale: float, within: tuple[int, int]) -> str:
    """floor(size * scale).

    In integers where that is the same for every size in the range: TensorRT 8.6 computes sizes in floating point twice,
    for the shape and for the values, and the two did not agree on 48 / 3 (measured on an H200).
    """
    ratio = whole_ratio(scale, *within)
    if ratio is None:
        return b.cast(b.op("Floor", b.op("Mul", b.cast(size, FLOAT), b.scalar(scale))), 7)
    above, below = (b.scalar(part, dtype=7) for part in ratio)
    return b.op("Div", b.op("Mul", size, above), below)


def whole_ratio(scale: float, low: int, high: int) -> tuple[int, int] | None:
    """p and q with floor(n * scale) == n * p // q for all n from `low` to `high`; None when no q up to 100 does.

    The product is one of FP32, as in ONNX Runtime: 10 * 1.9 is 19 there, and 18.99999976 with more bits.
    """
    if high - low > MOST_SIZES:
        return None
    sizes = np.arange(low, high + 1, dtype=np.int64)
    wanted = np.floor(sizes.astype(np.float32) * np.float32(scale)).astype(np.int64)
    for below in range(1, 101):
        above = round(scale * below)
        if above and np.array_equal(sizes * above // below, wanted):
            return above, below
    return None


def _whole_indices(b: Builder, node: Node, size: str, out: str, scale: float, within: tuple[int, int]) -> str | None:
    """floor(place / scale) in integers, for the mode in which that is all and where it is the same at every place."""
    mode = node.attr("coordinate_transformation_mode", "half_pixel"), node.attr("nearest_mode", "round_prefer_floor")
    ratio = whole_ratio(scale, *within) if mode == ("asymmetric", "floor") else None
    if ratio is None:
        return None
    above, below = ratio
    places = np.arange(within[1] * above // below, dtype=np.int64)
    if not np.array_equal(np.floor(places.astype(np.float32) / np.float32(scale)), places * below // above):
        return None
    zero, one = b.scalar(0, dtype=7), b.scalar(1, dtype=7)
    at = b.op("Div", b.op("Mul", b.op("Range", zero, out, one), b.scalar(below, dtype=7)), b.scalar(above, dtype=7))
    return b.op("Min", at, b.op("Sub", size, one))


def _indices(b: Builder, node: Node, size: str, out: str, scale: str) -> str:
    places = b.cast(b.op("Range", b.scalar(0, dtype=7), out, b.scalar(1, dtype=7)), FLOAT)
    half = b.scalar(0.5)
    at = _coordinates(b, node, size, out, scale, places)
    how = node.attr("nearest_mode", "round_prefer_floor")
    if how == "floor":
        at = b.op("Floor", at)
    elif how == "ceil":
        at = b.op("Ceil", at)
    elif how == "round_prefer_floor":
        at = b.op("Ceil", b.op("Sub", at, half))
    else:
        at = b.op("Floor", b.op("Add", at, half))
    last = b.op("Sub", size, b.scalar(1, dtype=7))
    return b.op("Min", b.op("Max", b.cast(at, 7), b.scalar(0, dtype=7)), last)


def _coordinates(b: Builder, node: Node, size: str, out: str, scale: str, places: str) -> str:
    """The place in the input of each place in the output, in the formula of the mode."""
    mode, half = node.attr("coordinate_transformation_mode", "half_pixel"), b.scalar(0.5)
    if mode == "asymmetric":
        return b.op("Div", places, scale)
    if mode == "tf_half_pixel_for_nn":
        return b.op("Div", b.op("Add", places, half), scale)
    if mode == "align_corners":
        one = b.scalar(1, dtype=7)
        steps = b.op("Max", b.op("Sub", out, one), one)
        room = b.cast(b.op("Sub", size, one), FLOAT)
        return b.op("Div", b.op("Mul", places, room), b.cast(steps, FLOAT))
    at = b.op("Sub", b.op("Div", b.op("Add", places, half), scale), half)
    if mode == "half_pixel":
        return at
    # One output pixel is the first input pixel in PyTorch's formula.
    several = b.cast(b.op("Greater", out, b.scalar(1, dtype=7)), FLOAT)
    return b.op("Mul", at, several)


RULE = Rule(
    name="resize-nearest",
    why="TensorRT 8.6 rounds nearest Resize in another way for scales like 1.7; Gather takes the right rows.",
    ops=("Resize",),
    find=find,
    needed=only_tensorrt_8,
    before="Resize(x, scales=[1, 1, 1.7, 1.7], mode=nearest)",
    after="Gather(Gather(x, rows, axis=2), columns, axis=3)",
)

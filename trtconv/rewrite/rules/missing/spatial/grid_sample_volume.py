"""GridSample of volumes as gathers of the corners around each point: classic TensorRT samples images only."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7
# The last axis of the grid holds x, y, z; the input has z, y, x.
AXES = (4, 3, 2)


@dataclass(frozen=True)
class SamplingMode:
    """How the node samples."""

    linear: bool
    padding: str
    corners: bool


def needed(target: Target) -> bool:
    """RTX 1.7 was measured to build it."""
    return not target.is_rtx


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match FP32 volumes sampled in mode linear or nearest."""
    rank = graph.rank(node.inputs[0])
    if rank != 5:
        return NOT_THIS if rank is not None else Skip("the rank is not known")
    if graph.dtype(node.inputs[0]) != FLOAT or graph.dtype(node.inputs[1]) != FLOAT:
        return Skip("the element type is not FP32")
    mode = node.attr("mode", "linear")
    if mode not in ("linear", "bilinear", "nearest"):
        return Skip(f"mode {mode} of a volume")
    way = SamplingMode(mode != "nearest", node.attr("padding_mode", "zeros"), bool(node.attr("align_corners", 0)))
    # Beyond a few periods, the reflections of two implementations differ by roundings of the coordinate.
    return Found((node,), lambda g: _build(g, node, way), ranges={node.inputs[1]: (-1.6, 1.6)})


def _build(g: Replacement, node: Node, way: SamplingMode) -> Value:
    x, grid = node.inputs
    channels, points = g.gather(g.shape_of(x), g.ints(0, 1), axis=0), g.shape_of(grid)
    flat_x = g.reshape(x, g.concat(channels, g.ints(-1)))
    sizes = [g.squeeze(g.size(x, axis), 0) for axis in AXES]
    places = [_sample_position(g, grid, i, size, way) for i, size in enumerate(sizes)]
    both = (0, 1) if way.linear else (0,)
    near = [[_side(g, p, s, side, way) for side in both] for p, s in zip(places, sizes, strict=True)]
    total = ""
    for corner in itertools.product(both, repeat=3):
        sides = [neighbours[side] for neighbours, side in zip(near, corner, strict=True)]
        value = _gather(g, flat_x, [i for i, _ in sides], sizes, channels)
        for weight in (w for _, w in sides if w):
            value = g.mul(value, weight)
        total = g.add(total, value) if total else value
    return g.reshape(total, g.concat(channels, g.slice(points, g.ints(1), g.ints(4), [0])))


def _sample_position(g: Replacement, grid: Value, index: int, size: Value, way: SamplingMode) -> Value:
    """Coordinates along one axis in voxels, [N, 1, points], folded into the volume as the padding says."""
    first = g.gather(grid, g.scalar(index, dtype=INT64), axis=4)
    rows = g.gather(g.shape_of(grid), g.ints(0), axis=0)
    at = g.reshape(first, g.concat(rows, g.ints(1, -1)))
    one, half, wide = g.scalar(1.0, dtype=FLOAT), g.scalar(0.5, dtype=FLOAT), g.cast(size, FLOAT)
    last = g.sub(wide, one)
    shifted = g.add(at, one)
    if way.corners:
        at = g.mul(g.mul(shifted, half), last)
    else:
        at = g.mul(g.sub(g.mul(shifted, wide), one), half)
    # Rounded before it is folded, as ONNX Runtime does: the order decides for points half way between two voxels.
    at = at if way.linear else g.round(at)
    if way.padding == "reflection":
        at = _reflected(g, at, wide, last, way)
    return at if way.padding == "zeros" else g.minimum(g.maximum(at, g.scalar(0.0, dtype=FLOAT)), last)


def _reflected(g: Replacement, at: Value, wide: Value, last: Value, way: SamplingMode) -> Value:
    """Mirrored at the centres of the outer voxels, or at their outer faces."""
    low = g.scalar(0.0 if way.corners else -0.5, dtype=FLOAT)
    span = last if way.corners else wide
    double = g.maximum(g.add(span, span), g.scalar(1.0, dtype=FLOAT))
    away = g.absolute(g.sub(at, low))
    rest = g.sub(away, g.mul(g.floor(g.div(away, double)), double))
    return g.add(g.sub(span, g.absolute(g.sub(rest, span))), low)


def _side(g: Replacement, at: Value, size: Value, side: int, way: SamplingMode) -> tuple[Value, Value]:
    """The voxel below or above a coordinate, kept inside, and its weight (empty where it is always 1)."""
    one, zero = g.scalar(1.0, dtype=FLOAT), g.scalar(0.0, dtype=FLOAT)
    last = g.sub(g.cast(size, FLOAT), one)
    whole = g.floor(at) if way.linear else at
    weight = ""
    if way.linear:
        above = g.sub(at, whole)
        weight = above if side else g.sub(one, above)
        whole = g.add(whole, one) if side else whole
    inside = g.minimum(g.maximum(whole, zero), last)
    if way.padding == "zeros":
        valid = g.cast(g.equal(inside, whole), FLOAT)
        weight = g.mul(weight, valid) if weight else valid
    return g.cast(inside, INT64), weight


def _gather(g: Replacement, flat: Value, at: list[Value], sizes: list[Value], channels: Value) -> Value:
    """The values at voxels (x, y, z), [N, C, points]."""
    across, down, deep = at
    row = g.add(g.mul(deep, sizes[1]), down)
    index = g.add(g.mul(row, sizes[0]), across)
    count = g.gather(g.shape_of(index), g.ints(2), axis=0)
    return g.gather_elements(flat, g.expand(index, g.concat(channels, count)), axis=2)


RULE = Rule(
    name="grid-sample-volume",
    why="Classic TensorRT samples images only; of a volume, the eight corners around each point are gathered.",
    ops=("GridSample",),
    find=find,
    needed=needed,
    before="GridSample(x[N,C,D,H,W], grid[N,d,h,w,3])",
    after="Sum of weight * GatherElements(Reshape(x), flat index) over the corners",
    keeps_infinities=False,
)

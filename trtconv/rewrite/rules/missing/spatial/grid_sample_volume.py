"""GridSample of volumes as gathers of the corners around each point: classic TensorRT samples images only."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.index import Graph, Node

INT64 = 7
# The last axis of the grid holds x, y, z; the input has z, y, x.
AXES = (4, 3, 2)


@dataclass(frozen=True)
class Way:
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
    way = Way(mode != "nearest", node.attr("padding_mode", "zeros"), bool(node.attr("align_corners", 0)))
    # Beyond a few periods, the reflections of two implementations differ by roundings of the coordinate.
    return Found((node,), lambda b: _build(b, node, way), ranges={node.inputs[1]: (-1.6, 1.6)})


def _build(b: Builder, node: Node, way: Way) -> str:
    x, grid = node.inputs
    channels, points = b.op("Gather", b.shape_once(x), b.ints(0, 1), axis=0), b.shape_once(grid)
    flat_x = b.op("Reshape", x, b.concat(channels, b.ints(-1)))
    sizes = [b.squeeze(b.size(x, axis), 0) for axis in AXES]
    places = [_place(b, grid, i, size, way) for i, size in enumerate(sizes)]
    both = (0, 1) if way.linear else (0,)
    near = [[_side(b, p, s, side, way) for side in both] for p, s in zip(places, sizes, strict=True)]
    total = ""
    for corner in itertools.product(both, repeat=3):
        sides = [found[side] for found, side in zip(near, corner, strict=True)]
        value = _gather(b, flat_x, [i for i, _ in sides], sizes, channels)
        for weight in (w for _, w in sides if w):
            value = b.op("Mul", value, weight)
        total = b.op("Add", total, value) if total else value
    return b.op("Reshape", total, b.concat(channels, b.slice(points, b.ints(1), b.ints(4), [0])))


def _place(b: Builder, grid: str, index: int, size: str, way: Way) -> str:
    """Coordinates along one axis in voxels, [N, 1, points], folded into the volume as the padding says."""
    first = b.op("Gather", grid, b.scalar(index, dtype=INT64), axis=4)
    rows = b.op("Gather", b.shape_once(grid), b.ints(0), axis=0)
    at = b.op("Reshape", first, b.concat(rows, b.ints(1, -1)))
    one, half, wide = b.scalar(1.0, dtype=FLOAT), b.scalar(0.5, dtype=FLOAT), b.cast(size, FLOAT)
    last = b.op("Sub", wide, one)
    shifted = b.op("Add", at, one)
    if way.corners:
        at = b.op("Mul", b.op("Mul", shifted, half), last)
    else:
        at = b.op("Mul", b.op("Sub", b.op("Mul", shifted, wide), one), half)
    # Rounded before it is folded, as ONNX Runtime does: the order decides for points half way between two voxels.
    at = at if way.linear else b.op("Round", at)
    if way.padding == "reflection":
        at = _reflected(b, at, wide, last, way)
    return at if way.padding == "zeros" else b.op("Min", b.op("Max", at, b.scalar(0.0, dtype=FLOAT)), last)


def _reflected(b: Builder, at: str, wide: str, last: str, way: Way) -> str:
    """Mirrored at the centres of the outer voxels, or at their outer faces."""
    low = b.scalar(0.0 if way.corners else -0.5, dtype=FLOAT)
    span = last if way.corners else wide
    double = b.op("Max", b.op("Add", span, span), b.scalar(1.0, dtype=FLOAT))
    away = b.op("Abs", b.op("Sub", at, low))
    rest = b.op("Sub", away, b.op("Mul", b.op("Floor", b.op("Div", away, double)), double))
    return b.op("Add", b.op("Sub", span, b.op("Abs", b.op("Sub", rest, span))), low)


def _side(b: Builder, at: str, size: str, side: int, way: Way) -> tuple[str, str]:
    """The voxel below or above a coordinate, kept inside, and its weight (empty where it is always 1)."""
    one, zero = b.scalar(1.0, dtype=FLOAT), b.scalar(0.0, dtype=FLOAT)
    last = b.op("Sub", b.cast(size, FLOAT), one)
    whole = b.op("Floor", at) if way.linear else at
    weight = ""
    if way.linear:
        above = b.op("Sub", at, whole)
        weight = above if side else b.op("Sub", one, above)
        whole = b.op("Add", whole, one) if side else whole
    inside = b.op("Min", b.op("Max", whole, zero), last)
    if way.padding == "zeros":
        valid = b.cast(b.op("Equal", inside, whole), FLOAT)
        weight = b.op("Mul", weight, valid) if weight else valid
    return b.cast(inside, INT64), weight


def _gather(b: Builder, flat: str, at: list[str], sizes: list[str], channels: str) -> str:
    """The values at voxels (x, y, z), [N, C, points]."""
    across, down, deep = at
    row = b.op("Add", b.op("Mul", deep, sizes[1]), down)
    index = b.op("Add", b.op("Mul", row, sizes[0]), across)
    count = b.op("Gather", b.shape_once(index), b.ints(2), axis=0)
    return b.op("GatherElements", flat, b.op("Expand", index, b.concat(channels, count)), axis=2)


RULE = Rule(
    name="grid-sample-volume",
    why="Classic TensorRT samples images only; of a volume, the eight corners around each point are gathered.",
    ops=("GridSample",),
    find=find,
    needed=needed,
    before="GridSample(x[N,C,D,H,W], grid[N,d,h,w,3])",
    after="Sum of weight * GatherElements(Reshape(x), flat index) over the corners",
)

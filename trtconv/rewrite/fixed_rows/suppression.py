"""Greedy suppression as ONNX defines NonMaxSuppression, at fixed sizes: a Loop that takes the best box that is left.

Every step takes one box of each class of each image, so that memory is linear in the boxes, and the steps end when
nothing is left. Elements are compared in the order in which ONNX Runtime does it (intersection over union, greater
than the threshold; the lower index of equal scores first), so that the choice is the same to the last tie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx import helper
from onnx_graphsurgeon.exporters.onnx_exporter import OnnxExporter

from trtconv.rewrite.fixed_rows.row_count import RowCount, cannot
from trtconv.rewrite.fixed_rows.selection import INT32, least, ordered, places_32
from trtconv.rewrite.graph.index import Node
from trtconv.rewrite.graph.operators import BOOL, FLOAT, INT64, Value
from trtconv.rewrite.graph.replacement import Replacement, export_node

LARGEST = 2**31 - 1
LOWEST = -float("inf")


@dataclass(frozen=True)
class _Boxes:
    """The corners of all boxes, float[B, 1, N] each, their areas, and the same as float[B * N] to pick from."""

    corners: tuple[gs.Tensor, ...]
    areas: gs.Tensor
    flat: tuple[gs.Tensor, ...]


def suppress(g: Replacement, node: Node, valid: gs.Tensor | None, most: int | None) -> tuple[gs.Tensor, RowCount]:
    """The selected indices, int64[rows, 3], and how many count; `most` limits what is looked for.

    `valid` is bool[N], where not all boxes count. Raises UnsupportedError where the limit by class is not a constant.
    """
    boxes, scores = node.inputs[:2]
    limit = g.index.scalar(node.input(2)) if node.input(2) else 0.0
    if limit is None:
        raise cannot(node, "takes a number of boxes that is computed")
    if limit < 1:
        raise cannot(node, "selects nothing: its max_output_boxes_per_class is 0")
    by_class = min(int(limit), LARGEST, LARGEST if most is None else most)
    alive = _alive(g, node, scores, valid)
    count, places = g.size(scores, 2), places_32(g, g.size(scores, 2))
    rank = _ranks(g, node, _corners(g, node, boxes), scores, alive, places, by_class)
    rows, static = _rows(g, scores, by_class, most)
    flat = g.reshape(rank, -1)
    chosen = g.op("Not", g.less(flat, g.scalar(0, dtype=INT32)))
    total = g.reduce("ReduceSum", g.cast(chosen, INT64), [0])
    order = ordered(g, chosen, _positions(g, scores, rank), rows)
    if most is not None:
        total = least(g, total, g.ints(most))
    return _indices(g, scores, g.cast(order, INT64), count), RowCount(total, static)


def _alive(g: Replacement, node: Node, scores: str, valid: gs.Tensor | None) -> gs.Tensor:
    """bool[B, C, N]: the boxes that may be taken."""
    if node.input(4):
        alive = g.greater(scores, _scalar(g, node.inputs[4]))
    else:
        alive = g.expand(g.const(np.asarray(True)), g.shape_of(scores))
        alive.dtype = np.dtype(bool)
    return alive if valid is None else g.logical_and(alive, valid)


def _scalar(g: Replacement, name: str) -> gs.Tensor:
    """A threshold without dims: some exporters write float[1]."""
    number = g.index.scalar(name)
    return g.scalar(number, dtype=FLOAT) if number is not None else g.reshape(name, g.ints())


def _corners(g: Replacement, node: Node, boxes: str) -> _Boxes:
    first, second, third, fourth = (g.gather(boxes, g.scalar(i, dtype=INT64), axis=2) for i in range(4))
    if node.attr("center_point_box", 0):
        wide, high = (g.div(size, g.scalar(2.0, dtype=FLOAT)) for size in (third, fourth))
        corners = g.sub(first, wide), g.sub(second, high), g.add(first, wide), g.add(second, high)
    else:
        low = g.minimum(first, third), g.minimum(second, fourth)
        corners = (*low, g.maximum(first, third), g.maximum(second, fourth))
    areas = g.mul(g.sub(corners[2], corners[0]), g.sub(corners[3], corners[1]))
    flat = tuple(g.reshape(c, -1) for c in (*corners, areas))
    return _Boxes(tuple(g.unsqueeze(c, 1) for c in corners), g.unsqueeze(areas, 1), flat)


def _ranks(
    g: Replacement, node: Node, boxes: _Boxes, scores: str, alive: gs.Tensor, places: gs.Tensor, limit: int
) -> gs.Tensor:
    """int32[B, C, N]: when a box was taken among those of its class, -1 for one that was not."""
    overlap = _scalar(g, node.inputs[3]) if node.input(3) else g.scalar(0.0, dtype=FLOAT)
    start = g.where(alive, g.scalar(-1, dtype=INT32), g.scalar(-1, dtype=INT32))
    steps = g.scalar(limit, dtype=INT64) if limit < LARGEST else g.squeeze(g.size(scores, 2), 0)
    body = _TakeBest(g, node.output, boxes, scores, places, overlap)
    attribute = helper.make_attribute("body", body.graph())
    _, rank = g.ops("Loop", 2, steps, g.const(np.asarray(True)), alive, start, body=attribute)
    rank.dtype = np.dtype(np.int32)
    return rank


class _TakeBest:
    """The body of the Loop: take the best box of each class, and leave out those that it overlaps."""

    def __init__(
        self, g: Replacement, stem: str, boxes: _Boxes, scores: str, places: gs.Tensor, overlap: gs.Tensor
    ) -> None:
        self.around, self.g = g, Replacement(g.index, f"{stem}/step", g.opset)
        self.boxes, self.scores, self.places, self.overlap = boxes, scores, places, overlap

    def graph(self) -> onnx.GraphProto:
        """The body as ONNX: (step, go on, alive, rank) to (go on, alive, rank)."""
        g = self.g
        step, before = (gs.Variable(g.unique_name(n), dtype=t) for n, t in (("step", np.int64), ("before", bool)))
        alive, rank = (gs.Variable(g.unique_name(n), dtype=t) for n, t in (("alive", bool), ("rank", np.int32)))
        best = self._best(alive)
        chosen = g.logical_and(g.equal(self.places, best), alive)
        left = g.logical_and(alive, g.logical_not(g.logical_or(chosen, self._overlapped(best))))
        order = g.where(chosen, g.cast(step, INT32), rank)
        most = g.reduce("ReduceMax", g.cast(left, INT32), [0, 1, 2], keepdims=False)
        more = g.greater(most, g.scalar(0, dtype=INT32))
        return helper.make_graph(
            [export_node(n) for n in g.nodes],
            g.stem,
            [_typed(step, INT64, 0), _typed(before, BOOL, 0), _typed(alive, BOOL, 3), _typed(rank, INT32, 3)],
            [_typed(more, BOOL, 0), _typed(left, BOOL, 3), _typed(order, INT32, 3)],
            initializer=[_message(c) for c in g.constants],
        )

    def _best(self, alive: gs.Tensor) -> gs.Tensor:
        """int32[B, C, 1]: the first box of those with the highest score; the last box where none is left."""
        g = self.g
        scores = g.where(alive, self.scores, g.scalar(LOWEST, dtype=FLOAT))
        highest = g.equal(scores, g.reduce("ReduceMax", scores, [2]))
        last = g.reduce("ReduceMax", self.places, [0], keepdims=False)
        return g.reduce("ReduceMin", g.where(g.logical_and(highest, alive), self.places, last), [2])

    def _overlapped(self, best: gs.Tensor) -> gs.Tensor:
        """bool[B, C, N]: the boxes whose intersection over union with the best is over the threshold."""
        g = self.g
        index = self._flat_index(best)
        left, top, right, bottom, area = (g.gather(flat, index, axis=0) for flat in self.boxes.flat)
        x0, y0, x1, y1 = self.boxes.corners
        wide = g.relu(g.sub(g.minimum(x1, right), g.maximum(x0, left)))
        high = g.relu(g.sub(g.minimum(y1, bottom), g.maximum(y0, top)))
        shared = g.mul(wide, high)
        union = g.sub(g.add(self.boxes.areas, area), shared)
        return g.greater(g.div(shared, union), self.overlap)

    def _flat_index(self, best: gs.Tensor) -> gs.Tensor:
        """The indices among the boxes of all images."""
        g = self.g
        dims = g.index.dims(self.scores)
        if dims is not None and dims[0] == 1:
            return best
        image = g.reshape(places_32(g, g.size(self.scores, 0)), -1, 1, 1)
        return g.add(best, g.mul(image, g.cast(g.size(self.scores, 2), INT32)))


def _typed(tensor: gs.Tensor, dtype: int, rank: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(tensor.name, dtype, [None] * rank)


def _message(constant: gs.Constant) -> onnx.TensorProto:
    return OnnxExporter.export_tensor_proto(constant)


def _positions(g: Replacement, scores: str, rank: gs.Tensor) -> gs.Tensor:
    """int32[B * C * N]: the rows of the taken boxes, by image, then class, then score."""
    dims = g.index.dims(scores)
    if dims is not None and dims[:2] == (1, 1):
        return g.reshape(rank, -1)
    chosen = g.cast(g.greater(rank, g.scalar(-1, dtype=INT32)), INT32)
    numbers = g.reduce("ReduceSum", chosen, [2])
    before = g.op("CumSum", g.reshape(numbers, -1), g.scalar(0, dtype=INT64), exclusive=1)
    before.dtype = np.dtype(np.int32)
    start = g.reshape(before, g.shape_of(numbers))
    return g.reshape(g.add(rank, start), -1)


def _rows(g: Replacement, scores: str, by_class: int, most: int | None) -> tuple[Value, int | None]:
    """How many rows there may be, as int64[1], and as a number where it is one."""
    dims = g.index.dims(scores) or (None, None, None)
    batch, classes, boxes = (d if isinstance(d, int) else None for d in dims)
    limits = [by_class] if by_class < LARGEST else []
    limits += [boxes] if boxes is not None else []
    if limits and batch is not None and classes is not None:
        rows = min(limits) * batch * classes
        rows = rows if most is None else min(rows, most)
        return g.ints(rows), rows
    if most is not None:
        return g.ints(most), most
    sizes = [g.size(scores, axis) for axis in range(3)]
    sizes[2] = least(g, sizes[2], g.ints(by_class)) if by_class < LARGEST else sizes[2]
    return g.mul(g.mul(sizes[0], sizes[1]), sizes[2]), None


def _indices(g: Replacement, scores: str, order: gs.Tensor, count: gs.Tensor) -> gs.Tensor:
    """int64[rows, 3]: image, class and box of indices into all scores."""
    dims = g.index.dims(scores)
    if dims is not None and dims[:2] == (1, 1):
        zero = g.sub(order, order)
        parts = [zero, zero, order]
    else:
        classes = g.size(scores, 1)
        by_class = g.div(order, count)
        parts = [g.div(by_class, classes), g.mod(by_class, classes), g.mod(order, count)]
    return g.concat(*(g.unsqueeze(p, 1) for p in parts), axis=1)

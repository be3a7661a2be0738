"""Resize by constant scales whose result is added to a value of the same shape: take the sizes from that value.

TensorRT 8.6 writes the size of a value as an expression of the input's sizes. A map that was halved by a strided
convolution and doubled again has `2 * ((H - 1) / 2 + 1)` rows for it, which is not the expression `H` of the map it is
added to, and its fusion of an addition into a convolution fails an assertion on that (`residual->extent ==
output->extent`, seen on HRNet with dynamic shapes). Sizes that are read from the other value are the same expression.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.rules.resize_by_size import KEPT
from trtconv.rewrite.sizes import whole_ratio


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an Add one of whose inputs is a Resize by constant whole scales, used here only."""
    missed = NOT_THIS
    for side in (0, 1):
        resize, other = graph.maker(node.inputs[side], "Resize"), node.inputs[1 - side]
        if resize is None or graph.is_constant(other):
            continue
        found = _fits(graph, resize, other)
        if isinstance(found, Skip):
            missed = found
            continue
        return Found((resize, node), partial(_build, resize=resize, other=other, side=side))
    return missed


def _fits(graph: Graph, resize: Node, other: str) -> Skip | None:
    scales = graph.constant(resize.input(2)) if resize.input(2) else None
    if scales is None:
        return NOT_THIS
    if all(isinstance(d, int) for d in graph.dims(resize.inputs[0]) or (None,)):
        return NOT_THIS
    if not np.array_equal(scales, np.round(scales)):
        return Skip("the scale is no whole number, so that sizes would mean another scale")
    if resize.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        return Skip("a region of interest is cropped")
    if not graph.used_once(resize.output):
        return Skip("the resized value is used elsewhere too")
    if whole_ratio(graph, resize.inputs[0], other) != tuple(int(s) for s in scales):
        return Skip("the resized value is not known to have the shape of what it is added to")
    return None


def _build(b: Builder, resize: Node, other: str, side: int) -> str:
    kept = {k: resize.attr(k) for k in KEPT}
    resized = b.op("Resize", resize.inputs[0], "", "", b.shape(other), **kept)
    return b.op("Add", *((resized, other) if side == 0 else (other, resized)))


RULE = Rule(
    name="resize-residual",
    why="TensorRT 8.6 fails an assertion where a map resized by scale is added to a map of the same dynamic size.",
    ops=("Add",),
    find=find,
    needed=only_tensorrt_8,
    before="Add(x, Resize(y, scales=[1, 1, 2, 2]))",
    after="Add(x, Resize(y, sizes=Shape(x)))",
)

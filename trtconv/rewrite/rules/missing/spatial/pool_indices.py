"""MaxPool with its second output: the place of the largest tap, from ArgMax over slices of the input."""

from __future__ import annotations

import math

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.taps import Window, padded, tap, window_of
from trtconv.rewrite.rules.missing.spatial.pool_dilated import FLOATS

INT64 = 7
MAX_TAPS = 256


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a MaxPool of floats whose indices are used."""
    used = [bool(o) and (bool(graph.uses(o)) or o in graph.outputs) for o in node.outputs]
    if len(used) < 2 or not used[1]:
        return NOT_THIS
    kernel = node.attr("kernel_shape")
    if graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("the element type is not known, or is no float")
    window = window_of(node, kernel)
    if isinstance(window, str):
        return Skip(window)
    if math.prod(kernel) > MAX_TAPS:
        return Skip(f"a window of {math.prod(kernel)} values would be copied that many times")
    return Found((node,), lambda b: _build(b, node, window, used[0]))


def _build(b: Builder, node: Node, window: Window, wants_values: bool) -> tuple[str, str]:
    x = node.inputs[0]
    inner = padded(b, x, window, b.scalar(-math.inf, x))
    parts = [b.unsqueeze(tap(b, inner, window, place), len(window.kernel) + 2) for place in window.taps]
    stack = b.concat(*parts, axis=len(window.kernel) + 2)
    # The first of equal values wins here, as it does in a pool.
    best = b.op("ArgMax", stack, axis=len(window.kernel) + 2, keepdims=0)
    values = ""
    if wants_values and all(d == 1 for d in window.dilations):
        kept = {k: node.attr(k) for k in ("kernel_shape", "strides", "pads", "ceil_mode", "auto_pad")}
        values = b.op("MaxPool", x, **kept)
    elif wants_values:
        values = b.reduce("ReduceMax", stack, [len(window.kernel) + 2], keepdims=False)
    return values, _flat_index(b, node, window, best)


def _flat_index(b: Builder, node: Node, window: Window, best: str) -> str:
    """The index into the flattened input [N, C, spatial..] of the tap that is the largest of each window."""
    x, count = node.inputs[0], len(window.kernel)
    taps = np.asarray(window.taps, np.int64)
    axes = list(range(count))
    # Column-major storage counts the last spatial axis slowest.
    order = axes if not node.attr("storage_order", 0) else axes[::-1]
    index = _planes(b, x, count)
    for axis in order:
        offsets = taps[:, axis] * window.dilations[axis] - window.begins[axis]
        inside = b.op("Gather", b.const(offsets), best, axis=0)
        size = b.squeeze(b.size(best, axis + 2), 0)
        first = b.op("Mul", _range(b, size), b.scalar(window.strides[axis], dtype=INT64))
        behind = count - 1 - axis
        first = b.unsqueeze(first, *range(1, behind + 1)) if behind else first
        index = b.op("Add", b.op("Mul", index, b.size(x, axis + 2)), b.op("Add", first, inside))
    return index


def _planes(b: Builder, x: str, count: int) -> str:
    """The number of each plane, [N, C, 1, ..]."""
    batch, channels = b.size(x, 0), b.size(x, 1)
    number = _range(b, b.squeeze(b.op("Mul", batch, channels), 0))
    return b.op("Reshape", number, b.concat(batch, channels, b.ints(*[1] * count)))


def _range(b: Builder, size: str) -> str:
    return b.op("Range", b.scalar(0, dtype=INT64), size, b.scalar(1, dtype=INT64))


RULE = Rule(
    name="pool-indices",
    why="No TensorRT gives the indices of a MaxPool; ArgMax over the values of each window finds the same ones.",
    ops=("MaxPool",),
    find=find,
    before="y, i = MaxPool(x, kernel_shape=[2,2])",
    after="y = MaxPool(x); i = flat index of ArgMax(Concat(slices of x)) (memory: the window's size times y)",
)

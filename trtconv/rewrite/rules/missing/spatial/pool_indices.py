"""MaxPool with its second output: the place of the largest tap, from ArgMax over slices of the input."""

from __future__ import annotations

import math

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.taps import Window, pad_input, tap, window_of
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
        return Skip("the element type is not known, or is not a float")
    window = window_of(node, kernel)
    if isinstance(window, str):
        return Skip(window)
    if math.prod(kernel) > MAX_TAPS:
        return Skip(f"a window of {math.prod(kernel)} values would be copied that many times")
    return Found((node,), lambda g: _build(g, node, window, used[0]))


def _build(g: Replacement, node: Node, window: Window, wants_values: bool) -> tuple[Value, Value]:
    x = node.inputs[0]
    inner = pad_input(g, x, window, g.scalar(-math.inf, x))
    axis = len(window.kernel) + 2
    stack = _stacked(g, inner, window)
    # The first of equal values wins here, as it does in a pool.
    best = g.op("ArgMax", stack, axis=axis, keepdims=0)
    if any((*window.begins, *window.ends)):
        best = _never_padding(g, x, window, stack, best)
    values = ""
    if wants_values and all(d == 1 for d in window.dilations):
        attributes = {k: node.attr(k) for k in ("kernel_shape", "strides", "pads", "ceil_mode", "auto_pad")}
        values = g.op("MaxPool", x, **attributes)
    elif wants_values:
        values = g.reduce("ReduceMax", stack, [len(window.kernel) + 2], keepdims=False)
    return values, _flat_index(g, node, window, best)


def _stacked(g: Replacement, inner: Value, window: Window) -> Value:
    """The taps of each window along a new last axis."""
    axis = len(window.kernel) + 2
    return g.concat(*(g.unsqueeze(tap(g, inner, window, position), axis) for position in window.taps), axis=axis)


def _never_padding(g: Replacement, x: Value, window: Window, stack: Value, best: Value) -> Value:
    """The first tap that is not a padding where all of a window is minus infinity, as the padding is."""
    axis = len(window.kernel) + 2
    low = g.scalar(-math.inf, x)
    empty = g.equal(g.reduce("ReduceMax", stack, [axis], keepdims=False), low)
    # The same for every batch and channel, so that one plane tells.
    plane = g.slice(x, g.ints(0, 0), g.ints(1, 1), [0, 1])
    zeros = g.where(g.equal(plane, plane), g.scalar(0.0, x), g.scalar(0.0, x))
    first = g.op("ArgMax", _stacked(g, pad_input(g, zeros, window, low), window), axis=axis, keepdims=0)
    return g.where(empty, first, best)


def _flat_index(g: Replacement, node: Node, window: Window, best: Value) -> Value:
    """The index into the flattened input [N, C, spatial..] of the tap that is the largest of each window."""
    x, count = node.inputs[0], len(window.kernel)
    taps = np.asarray(window.taps, np.int64)
    axes = list(range(count))
    # Column-major storage counts the last spatial axis slowest.
    order = axes if not node.attr("storage_order", 0) else axes[::-1]
    index = _planes(g, x, count)
    for axis in order:
        offsets = taps[:, axis] * window.dilations[axis] - window.begins[axis]
        inside = g.gather(g.const(offsets), best, axis=0)
        size = g.squeeze(g.size(best, axis + 2), 0)
        first = g.mul(_range(g, size), g.scalar(window.strides[axis], dtype=INT64))
        behind = count - 1 - axis
        first = g.unsqueeze(first, *range(1, behind + 1)) if behind else first
        index = g.add(g.mul(index, g.size(x, axis + 2)), g.add(first, inside))
    return index


def _planes(g: Replacement, x: Value, count: int) -> Value:
    """The number of each plane, [N, C, 1, ..]."""
    batch, channels = g.size(x, 0), g.size(x, 1)
    number = _range(g, g.squeeze(g.mul(batch, channels), 0))
    return g.reshape(number, g.concat(batch, channels, g.ints(*[1] * count)))


def _range(g: Replacement, size: Value) -> Value:
    return g.arange(size)


RULE = Rule(
    name="pool-indices",
    why="No TensorRT gives the indices of a MaxPool; ArgMax over the values of each window finds the same ones.",
    ops=("MaxPool",),
    find=find,
    before="y, i = MaxPool(x, kernel_shape=[2,2])",
    after="y = MaxPool(x); i = flat index of ArgMax(Concat(slices of x)) (memory: the window's size times y)",
)

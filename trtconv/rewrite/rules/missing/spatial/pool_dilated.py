"""Pools with dilations as strided slices, one axis after the other: no TensorRT dilates a pool."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from onnx import helper

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.taps import Window, pad_input, tap, window_of

FLOATS = (1, 10, 16)
Join = Callable[[Replacement, list[Value]], Value]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match MaxPool (whose indices nobody uses), AveragePool and LpPool of floats with a dilation over 1."""
    kernel = node.attr("kernel_shape")
    if all(d == 1 for d in node.attr("dilations", [1])) or _has_indices(graph, node):
        return NOT_THIS
    if graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("the element type is not known, or is not a float")
    if node.op != "MaxPool" and node.attr("ceil_mode", 0):
        return Skip("what ceil_mode counts at the end differs between frameworks")
    window = window_of(node, kernel)
    if isinstance(window, str):
        return Skip(window)
    return Found((node,), partial(MADE[node.op], node=node, window=window))


def _has_indices(graph: Graph, node: Node) -> bool:
    second = node.outputs[1] if len(node.outputs) > 1 else ""
    return bool(second) and (bool(graph.uses(second)) or second in graph.outputs)


def _folded(g: Replacement, value: Value, window: Window, join: Join) -> Value:
    """Join what the places of the window see, an axis at a time: kh + kw slices instead of kh * kw."""
    for axis, size in enumerate(window.kernel):
        places = [tuple(i if a == axis else 0 for a in range(len(window.kernel))) for i in range(size)]
        parts = [tap(g, value, window, position, [axis]) for position in places]
        value = join(g, parts) if len(parts) > 1 else parts[0]
    return value


def _maximum(g: Replacement, node: Node, window: Window) -> Value:
    x = node.inputs[0]
    return _folded(g, pad_input(g, x, window, g.scalar(-math.inf, x)), window, lambda g, parts: g.maximum(*parts))


def _sum(g: Replacement, x: Value, window: Window) -> Value:
    return _folded(g, pad_input(g, x, window, ""), window, _added)


def _added(g: Replacement, parts: list[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        total = g.add(total, part)
    return total


def _average(g: Replacement, node: Node, window: Window) -> Value:
    x = node.inputs[0]
    total = _sum(g, x, window)
    if node.attr("count_include_pad", 0) or not any((*window.begins, *window.ends)):
        return g.mul(total, g.scalar(1 / math.prod(window.kernel), x))
    count = len(window.kernel)
    spatial = g.slice(g.shape_of(x), g.ints(2), g.ints(2 + count), [0])
    one = np.ones(1, np.dtype(helper.tensor_dtype_to_np_dtype(g.dtype(x))))
    ones = g.expand(g.const(one), g.concat(g.ints(1, 1), spatial))
    return g.div(total, _sum(g, ones, window))


def _norm(g: Replacement, node: Node, window: Window) -> Value:
    x, p = node.inputs[0], float(node.attr("p", 2))
    total = _sum(g, g.pow(g.absolute(x), g.scalar(p, x)), window)
    return g.pow(total, g.scalar(1 / p, x))


MADE: dict[str, Callable[..., str]] = {"MaxPool": _maximum, "AveragePool": _average, "LpPool": _norm}

RULE = Rule(
    name="pool-dilated",
    why="No TensorRT has a pool with dilations; the maximum or sum of strided slices is the same values.",
    ops=tuple(MADE),
    find=find,
    before="MaxPool(x, kernel_shape=[3,3], dilations=[2,2])",
    after="Max(Max of x[:, :, i::s] for each i) over columns likewise, x padded with -inf",
)

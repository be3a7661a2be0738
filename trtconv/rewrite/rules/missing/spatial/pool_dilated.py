"""Pools with dilations as strided slices, one axis after the other: no TensorRT dilates a pool."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from onnx import helper

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.taps import Window, padded, tap, window_of

FLOATS = (1, 10, 16)
Join = Callable[[Builder, list[str]], str]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match MaxPool (whose indices nobody uses), AveragePool and LpPool of floats with a dilation over 1."""
    kernel = node.attr("kernel_shape")
    if all(d == 1 for d in node.attr("dilations", [1])) or _has_indices(graph, node):
        return NOT_THIS
    if graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("the element type is not known, or is no float")
    if node.op != "MaxPool" and node.attr("ceil_mode", 0):
        return Skip("what ceil_mode counts at the end differs between frameworks")
    window = window_of(node, kernel)
    if isinstance(window, str):
        return Skip(window)
    return Found((node,), partial(MADE[node.op], node=node, window=window))


def _has_indices(graph: Graph, node: Node) -> bool:
    second = node.outputs[1] if len(node.outputs) > 1 else ""
    return bool(second) and (bool(graph.uses(second)) or second in graph.outputs)


def _folded(b: Builder, value: str, window: Window, join: Join) -> str:
    """Join what the places of the window see, an axis at a time: kh + kw slices instead of kh * kw."""
    for axis, size in enumerate(window.kernel):
        places = [tuple(i if a == axis else 0 for a in range(len(window.kernel))) for i in range(size)]
        parts = [tap(b, value, window, place, [axis]) for place in places]
        value = join(b, parts) if len(parts) > 1 else parts[0]
    return value


def _maximum(b: Builder, node: Node, window: Window) -> str:
    x = node.inputs[0]
    return _folded(b, padded(b, x, window, b.scalar(-math.inf, x)), window, lambda b, parts: b.op("Max", *parts))


def _sum(b: Builder, x: str, window: Window) -> str:
    return _folded(b, padded(b, x, window, ""), window, _added)


def _added(b: Builder, parts: list[str]) -> str:
    total = parts[0]
    for part in parts[1:]:
        total = b.op("Add", total, part)
    return total


def _average(b: Builder, node: Node, window: Window) -> str:
    x = node.inputs[0]
    total = _sum(b, x, window)
    if node.attr("count_include_pad", 0) or not any((*window.begins, *window.ends)):
        return b.op("Mul", total, b.scalar(1 / math.prod(window.kernel), x))
    count = len(window.kernel)
    spatial = b.slice(b.shape_once(x), b.ints(2), b.ints(2 + count), [0])
    one = np.ones(1, np.dtype(helper.tensor_dtype_to_np_dtype(b.graph.dtype(x))))
    ones = b.op("Expand", b.const(one), b.concat(b.ints(1, 1), spatial))
    return b.op("Div", total, _sum(b, ones, window))


def _norm(b: Builder, node: Node, window: Window) -> str:
    x, p = node.inputs[0], float(node.attr("p", 2))
    total = _sum(b, b.op("Pow", b.op("Abs", x), b.scalar(p, x)), window)
    return b.op("Pow", total, b.scalar(1 / p, x))


MADE: dict[str, Callable[..., str]] = {"MaxPool": _maximum, "AveragePool": _average, "LpPool": _norm}

RULE = Rule(
    name="pool-dilated",
    why="No TensorRT has a pool with dilations; the maximum or sum of strided slices is the same values.",
    ops=tuple(MADE),
    find=find,
    before="MaxPool(x, kernel_shape=[3,3], dilations=[2,2])",
    after="Max(Max of x[:, :, i::s] for each i) over columns likewise, x padded with -inf",
)

"""MaxPool with dilations as the maximum of strided slices, one axis after the other: no TensorRT dilates a pool."""

from __future__ import annotations

import math

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.taps import Window, padded, tap, window_of

FLOATS = (1, 10, 16)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a MaxPool of floats with a dilation over 1 whose indices nobody uses."""
    kernel = node.attr("kernel_shape")
    if all(d == 1 for d in node.attr("dilations", [1])) or _has_indices(graph, node):
        return NOT_THIS
    if graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("the element type is not known, or is no float")
    window = window_of(node, kernel)
    if isinstance(window, str):
        return Skip(window)
    return Found((node,), lambda b: dilated_maximum(b, node.inputs[0], window))


def _has_indices(graph: Graph, node: Node) -> bool:
    second = node.outputs[1] if len(node.outputs) > 1 else ""
    return bool(second) and (bool(graph.uses(second)) or second in graph.outputs)


def dilated_maximum(b: Builder, x: str, window: Window) -> str:
    """The maximum over the window, an axis at a time: kh + kw slices instead of kh * kw."""
    value = padded(b, x, window, b.scalar(-math.inf, x))
    for axis, size in enumerate(window.kernel):
        places = [tuple(i if a == axis else 0 for a in range(len(window.kernel))) for i in range(size)]
        parts = [tap(b, value, window, place, [axis]) for place in places]
        value = b.op("Max", *parts) if len(parts) > 1 else parts[0]
    return value


RULE = Rule(
    name="pool-dilated",
    why="No TensorRT has a pool with dilations; the maximum of strided slices is the same values.",
    ops=("MaxPool",),
    find=find,
    before="MaxPool(x, kernel_shape=[3,3], dilations=[2,2])",
    after="Max(Max of x[:, :, i::s] for each i) over columns likewise, x padded with -inf",
)

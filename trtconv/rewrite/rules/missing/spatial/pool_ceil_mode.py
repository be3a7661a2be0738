"""AveragePool with ceil_mode as two plain pools: TensorRT 8.6 gives other values at the border."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match ceil_mode with a stride over 1; the windows must all begin inside the value."""
    kernel = node.attr("kernel_shape")
    strides = node.attr("strides", [1] * len(kernel))
    if not node.attr("ceil_mode", 0) or max(strides) == 1:
        return NOT_THIS
    dtype = graph.dtype(node.inputs[0])
    if dtype not in (1, 10):
        return Skip("the element type is not known")
    if node.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Skip("the padding is automatic")
    pads = node.attr("pads", [0] * (2 * len(kernel)))
    tails = pads[len(kernel) :]
    if any(s - 1 >= k - p for s, k, p in zip(strides, kernel, tails, strict=True)):
        return Skip("a window could begin in the padding, which frameworks treat in different ways")
    return Found((node,), lambda g: _build(g, node, kernel, strides, pads, dtype))


def _build(g: Replacement, node: Node, kernel: list[int], strides: list[int], pads: list[int], dtype: int) -> Value:
    x, count = node.inputs[0], len(kernel)
    # floor((H + s - 1 - k) / s) is ceil((H - k) / s): padding the end by s - 1 makes the window count the same.
    ends = [p + s - 1 for p, s in zip(pads[count:], strides, strict=True)]
    margin = [0, 0, *pads[:count], 0, 0, *ends]
    spatial = g.slice(g.shape_of(x), g.ints(2), g.ints(2 + count), [0])
    ones = g.expand(g.const(np.ones(1, np.float16 if dtype == 10 else np.float32)), g.concat(g.ints(1, 1), spatial))
    one = ""
    if node.attr("count_include_pad", 0):
        inner = [0, 0, *pads[:count], 0, 0, *pads[count:]]
        one = g.scalar(1.0, dtype=dtype)
        ones = g.pad(ones, g.ints(*inner), one)
        outer = [0] * (2 + count) + [0, 0, *(s - 1 for s in strides)]
        weights = g.pad(ones, g.ints(*outer))
    else:
        weights = g.pad(ones, g.ints(*margin))
    pooled = [_pool(g, v, kernel, strides) for v in (g.pad(x, g.ints(*margin)), weights)]
    return g.div(*pooled)


def _pool(g: Replacement, x: Value, kernel: list[int], strides: list[int]) -> Value:
    return g.op("AveragePool", x, kernel_shape=kernel, strides=strides)


RULE = Rule(
    name="pool-ceil-mode",
    why="TensorRT 8.6 counts the window's overhang in ceil_mode and gives other values at the border.",
    ops=("AveragePool",),
    find=find,
    needed=only_tensorrt_8,
    before="AveragePool(x, kernel_shape=[3,3], strides=[2,2], ceil_mode=1)",
    after="Div(AveragePool(Pad(x)), AveragePool(Pad(ones)))",
)

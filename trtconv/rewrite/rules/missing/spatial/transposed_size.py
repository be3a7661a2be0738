"""ConvTranspose that names the size of its result, as one that names the pads which give it.

TensorRT 8.6.0 gives another size (measured on an H200). ONNX, ConvTranspose: what is too much is cut off half at the
beginning, the odd one there too unless `auto_pad` is SAME_UPPER.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an `output_shape` beside sizes that are known."""
    sizes = node.attr("output_shape")
    if not sizes:
        return NOT_THIS
    dims, weights = graph.dims(node.inputs[0]), graph.dims(node.inputs[1])
    if dims is None or weights is None or not all(isinstance(d, int) for d in (*dims[2:], *weights[2:])):
        return Skip("the sizes of the image or of the kernel are not known: name pads in the place of output_shape")
    count = len(dims) - 2
    steps, gaps, extras = (
        list(node.attr(name) or [default] * count)
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    upper = node.attr("auto_pad", "NOTSET") == "SAME_UPPER"
    begins, ends = [], []
    for axis, size in enumerate(list(sizes)[-count:]):
        full = steps[axis] * (int(dims[axis + 2] or 0) - 1) + gaps[axis] * (int(weights[axis + 2] or 0) - 1) + 1
        excess = full + extras[axis] - size
        if excess < 0:
            extras[axis], excess = extras[axis] - excess, 0
        if extras[axis] >= max(steps[axis], gaps[axis]):
            return Skip("the result is larger than its strides make it")
        lower = excess // 2 if upper else excess - excess // 2
        begins.append(lower)
        ends.append(excess - lower)
    attributes = node.attributes("output_shape", "auto_pad")
    attributes |= {"pads": [*begins, *ends], "output_padding": extras}
    return Found((node,), partial(_build, node=node, attributes=attributes))


def _build(g: Replacement, node: Node, attributes: dict[str, Any]) -> Value:
    return g.op("ConvTranspose", *node.inputs, **attributes)


RULE = Rule(
    name="transposed-size",
    why="TensorRT does not read output_shape of ConvTranspose as ONNX does; pads say the same.",
    ops=("ConvTranspose",),
    find=find,
    before="ConvTranspose(x[N,C,3,3], w), strides = [2, 2], output_shape = [6, 8]",
    after="ConvTranspose(x, w), strides = [2, 2], pads = [1, 0, 0, 0], output_padding = [0, 1]",
)

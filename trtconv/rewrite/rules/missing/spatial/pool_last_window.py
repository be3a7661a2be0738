"""MaxPool with ceil_mode without the window that lies in the padding alone, which every TensorRT counts."""

from __future__ import annotations

from functools import partial

from trtconv.core.model.provenance import rule_of
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where the last window can begin behind the value, at some size."""
    kernel = node.attr("kernel_shape")
    count = len(kernel)
    strides = node.attr("strides", [1] * count)
    if not node.attr("ceil_mode", 0) or node.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return NOT_THIS
    pads, dilations = node.attr("pads", [0] * (2 * count)), node.attr("dilations", [1] * count)
    reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    axes = [a for a in range(count) if pads[count + a] + strides[a] - 1 > reach[a]]
    if not axes or rule_of(node.proto) == NAME:
        return NOT_THIS
    if len(node.outputs) > 1 and node.outputs[1]:
        return Skip("its indices are used too")
    return Found((node,), partial(_build, node=node, axes=axes, strides=strides, pads=pads))


def _build(g: Replacement, node: Node, axes: list[int], strides: list[int], pads: list[int]) -> Value:
    attributes = node.attributes()
    pooled = g.op(node.op, node.inputs[0], **attributes)
    # Windows begin at 0, s, 2s, .. of the padded value; those before size + padding at its begin see some of it.
    ends = []
    for axis in axes:
        begins = g.add(g.size(node.inputs[0], axis + 2), g.ints(pads[axis] + strides[axis] - 1))
        ends.append(g.div(begins, g.ints(strides[axis])))
    return g.slice(pooled, g.ints(*[0] * len(axes)), g.concat(*ends), [a + 2 for a in axes])


NAME = "pool-last-window"
RULE = Rule(
    name=NAME,
    why="TensorRT counts a last window that lies in the padding alone, which ONNX does not, and gives one row more.",
    ops=("MaxPool",),
    find=find,
    before="MaxPool(x, kernel_shape=[3], strides=[3], pads=[1, 1], ceil_mode=1)",
    after="MaxPool(x, ..)[:, :, : (size + 1 + 2) // 3]",
)

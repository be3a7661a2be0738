"""A pool whose window is a whole axis is a reduction over that axis."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

REDUCTION = {"AveragePool": "ReduceMean", "MaxPool": "ReduceMax"}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a pool without padding that covers at least one axis of more than one element."""
    kernel, dims = node.attr("kernel_shape"), graph.dims(node.inputs[0])
    if not kernel or max(kernel) == 1:
        return NOT_THIS
    if dims is None:
        return Skip("the input's rank is not known")
    spatial = dims[2:]
    whole = [a for a, (k, d) in enumerate(zip(kernel, spatial, strict=True)) if k == d and k > 1]
    if not whole:
        return _near_miss(kernel, spatial)
    if any(node.attr("pads", [0])) or node.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Skip("the pool is padded, so its window is not the axis alone")
    if any(d != 1 for d in node.attr("dilations", [1])):
        return Skip("the window is dilated")
    if len(node.outputs) > 1 and node.outputs[1]:
        return Skip("the indices of the maxima are used")
    return Found((node,), lambda g: _build(g, node, kernel, whole))


def _near_miss(kernel: list[int], spatial: tuple[int | str | None, ...]) -> Skip:
    long = [k for k, d in zip(kernel, spatial, strict=True) if k > 3 and not isinstance(d, int)]
    alone = sum(k > 1 for k in kernel) == 1 or len(set(kernel)) > 1
    if long and alone:
        return Skip(
            f"the window {kernel} covers no axis of known size {list(spatial)}: when it was meant to be the whole "
            "axis, the exporter has baked the traced size into it"
        )
    return NOT_THIS


def _build(g: Replacement, node: Node, kernel: list[int], whole: list[int]) -> Value:
    value = g.reduce(REDUCTION[node.op], node.inputs[0], [a + 2 for a in whole])
    rest = [1 if a in whole else k for a, k in enumerate(kernel)]
    strides = [1 if a in whole else s for a, s in enumerate(node.attr("strides", [1] * len(kernel)))]
    if max(rest) == 1 and max(strides) == 1:
        return value
    return g.op(
        node.op,
        value,
        kernel_shape=rest,
        strides=strides,
        ceil_mode=node.attr("ceil_mode"),
        count_include_pad=node.attr("count_include_pad"),
    )


RULE = Rule(
    name="pool-whole-axis",
    why="A window as long as the axis is a reduction, which has no limit on its length.",
    ops=("AveragePool", "MaxPool"),
    find=find,
    before="AveragePool(x[N,C,32,W], kernel_shape=[32,1])",
    after="ReduceMean(x, axes=[2], keepdims=1)",
)

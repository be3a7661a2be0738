"""ReduceLogSumExp with the maximum taken off first: TensorRT's parser writes Log(Sum(Exp(x))), infinite from 89 on."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node

LARGEST = {1: 3.4028235e38, 10: 65504.0}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match over known axes of FP32 and FP16."""
    axes, dtype = graph.reduced_axes(node), graph.dtype(node.inputs[0])
    if axes == ():
        return NOT_THIS if graph.rank(node.inputs[0]) is not None else Skip("the rank is not known")
    if axes is None or min(axes) < 0:
        return Skip("the axes are computed while the model runs, or the rank is not known")
    if dtype not in LARGEST:
        return Skip("the element type is not known, or is no FP32 or FP16")
    return Found((node,), partial(_build, node=node, axes=axes, limit=LARGEST[dtype]))


def _build(b: Builder, node: Node, axes: tuple[int, ...], limit: float) -> str:
    x = node.inputs[0]
    # A finite maximum: with one that is infinite the difference would be infinity less infinity.
    top = b.op("Min", b.op("Max", b.reduce("ReduceMax", x, axes), b.scalar(-limit, x)), b.scalar(limit, x))
    total = b.reduce("ReduceSum", b.op("Exp", b.op("Sub", x, top)), axes)
    result = b.op("Add", b.op("Log", total), top)
    return result if node.attr("keepdims", 1) else b.squeeze(result, *axes)


RULE = Rule(
    name="log-sum-exp",
    why="TensorRT takes the exponential first, which is infinite from 89 on (11 in FP16); the maximum comes off first.",
    ops=("ReduceLogSumExp",),
    find=find,
    before="ReduceLogSumExp(x, axes=[1])",
    after="m + Log(ReduceSum(Exp(x - m))), m = ReduceMax(x)",
)

"""ReduceLogSumExp with the maximum taken off first: TensorRT's parser writes Log(Sum(Exp(x))), infinite from 89 on."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

LARGEST = {1: 3.4028235e38, 10: 65504.0}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match over known axes of FP32 and FP16."""
    axes, dtype = graph.reduced_axes(node), graph.dtype(node.inputs[0])
    if axes == ():
        return NOT_THIS if graph.rank(node.inputs[0]) is not None else Skip("the rank is not known")
    if axes is None or min(axes) < 0:
        return Skip("the axes are computed while the model runs, or the rank is not known")
    if dtype not in LARGEST:
        return Skip("the element type is not known, or is not an FP32 or FP16")
    return Found((node,), partial(_build, node=node, axes=axes, limit=LARGEST[dtype]))


def _build(g: Replacement, node: Node, axes: tuple[int, ...], limit: float) -> Value:
    x = node.inputs[0]
    # A finite maximum: with one that is infinite the difference would be infinity less infinity.
    top = g.minimum(g.maximum(g.reduce("ReduceMax", x, axes), g.scalar(-limit, x)), g.scalar(limit, x))
    total = g.reduce("ReduceSum", g.exp(g.sub(x, top)), axes)
    result = g.add(g.log(total), top)
    return result if node.attr("keepdims", 1) else g.squeeze(result, *axes)


RULE = Rule(
    name="log-sum-exp",
    why="TensorRT takes the exponential first, which is infinite from 89 on (11 in FP16); the maximum comes off first.",
    ops=("ReduceLogSumExp",),
    find=find,
    before="ReduceLogSumExp(x, axes=[1])",
    after="m + Log(ReduceSum(Exp(x - m))), m = ReduceMax(x)",
)

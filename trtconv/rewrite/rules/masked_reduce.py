"""A sum, mean or extremum over the values that a mask selects, without selecting them."""

from __future__ import annotations

import math

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a full reduction of GatherND(x, Transpose(NonZero(mask)))."""
    picked, views = graph.behind(node.inputs[0], "Identity", "Reshape")
    gather = graph.maker(picked, "GatherND")
    if gather is None or gather.attr("batch_dims", 0):
        return NOT_THIS
    turned = graph.maker(gather.inputs[1], "Transpose")
    nonzero = None if turned is None else graph.maker(turned.inputs[0], "NonZero")
    if turned is None or nonzero is None:
        return NOT_THIS
    value, mask = gather.inputs[0], nonzero.inputs[0]
    dtype, dims = graph.dtype(value), graph.dims(value)
    if graph.dtype(mask) != 9 or dims is None or graph.dims(mask) != dims:
        return Skip("the mask is not boolean, or not known to have the shape of the value")
    if dtype not in (1, 10):
        return Skip("the values are not FP32 or FP16")
    if graph.reduced_axes(node) != (0,):
        return Skip("it does not reduce over all that was selected")
    rank = len(dims)
    return Found((nonzero, turned, gather, *views, node), lambda b: _build(b, node, value, mask, rank, dtype))


def _build(b: Builder, node: Node, value: str, mask: str, rank: int, dtype: int) -> str:
    axes = list(range(rank))
    neutral = {"ReduceMax": -math.inf, "ReduceMin": math.inf}.get(node.op, 0.0)
    kept = b.op("Where", mask, value, b.scalar(neutral, dtype=dtype))
    if node.op == "ReduceMean":
        total = b.reduce("ReduceSum", kept, axes, keepdims=False)
        count = b.reduce("ReduceSum", b.cast(mask, dtype), axes, keepdims=False)
        # Of nothing, ONNX Runtime's mean is 0.
        result = b.op("Div", total, b.op("Max", count, b.scalar(1.0, dtype=dtype)))
    else:
        result = b.reduce(node.op, kept, axes, keepdims=False)
    return b.unsqueeze(result, 0) if node.attr("keepdims", 1) else result


RULE = Rule(
    name="masked-reduce",
    why="How many values a mask selects depends on the data, which RTX refuses; reducing over all of them does not.",
    ops=("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"),
    find=find,
    before="ReduceSum(GatherND(x, Transpose(NonZero(mask))))",
    after="ReduceSum(Where(mask, x, 0))",
)

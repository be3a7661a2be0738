"""A sum, mean, product or extremum over the rows that a mask selects, without selecting them."""

from __future__ import annotations

import math
from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.selection.dense import COUNTS, ROW_BY_ROW, VIEWS, Dense, dense
from trtconv.rewrite.patterns.selection.masks import Mask, mask_of_indices, spread_mask

NEUTRAL = {"ReduceMax": -math.inf, "ReduceMin": math.inf, "ReduceProd": 1.0}
FLOATS = (1, 10)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a reduction over at least the selected rows of what is computed place by place from them."""
    mask = _mask_above(graph, node.inputs[0])
    if mask is None:
        return NOT_THIS
    read = dense(graph, node.inputs[0], mask)
    if read is None or not read.gathered:
        return Skip("the values are not computed place by place, or the mask is not known to have their shape")
    dtype = graph.dtype(node.inputs[0])
    if dtype not in FLOATS:
        return Skip("the values are not FP32 or FP16")
    axes = graph.reduced_axes(node)
    if axes is None or 0 not in axes:
        return Skip("it does not reduce over all that was selected")
    nodes = tuple({id(n): n for n in (*mask.nodes, *read.nodes, node)}.values())
    return Found(nodes, partial(_build, node=node, mask=mask, read=read, axes=axes, dtype=dtype))


def _mask_above(graph: Graph, name: str, depth: int = 24) -> Mask | None:
    """The mask of the first selection that a value is computed from."""
    waiting = [name]
    while waiting and depth:
        node = graph.maker(waiting.pop())
        depth -= 1
        if node is None:
            continue
        if node.key == "GatherND":
            return mask_of_indices(graph, node.inputs[1])
        if node.key in (*COUNTS, *ROW_BY_ROW, *VIEWS):
            waiting += reversed(node.inputs)
    return None


def _build(g: Replacement, node: Node, mask: Mask, read: Dense, axes: tuple[int, ...], dtype: int) -> Value:
    inner = [*range(mask.rank), *(a - 1 + mask.rank for a in axes if a)]
    shown = spread_mask(g, mask, read.tail)
    values = read.build(g)
    selected = g.where(shown, values, g.scalar(NEUTRAL.get(node.op, 0.0), dtype=dtype))
    if node.op == "ReduceMean":
        total = g.reduce("ReduceSum", selected, inner, keepdims=False)
        ones = g.expand(g.cast(shown, dtype), g.shape(values)) if len(axes) > 1 else g.cast(shown, dtype)
        count = g.reduce("ReduceSum", ones, [a for a in inner if a < mask.rank or len(axes) > 1], keepdims=False)
        # Of nothing, ONNX Runtime's mean is 0.
        result = g.div(total, g.maximum(count, g.scalar(1.0, dtype=dtype)))
    else:
        result = g.reduce(node.op, selected, inner, keepdims=False)
    return g.unsqueeze(result, *axes) if node.attr("keepdims", 1) else result


RULE = Rule(
    name="masked-reduce",
    why="How many values a mask selects depends on the data, which RTX refuses; reducing over all of them does not.",
    ops=("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    find=find,
    before="ReduceSum(GatherND(x, Transpose(NonZero(mask))))",
    after="ReduceSum(Where(mask, x, 0))",
)

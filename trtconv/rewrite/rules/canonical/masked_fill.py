"""x[mask] = what was computed from x[mask] or y[mask], or a number: exported as NonZero and ScatterND, as Where."""

from __future__ import annotations

import onnx_graphsurgeon as gs
from onnx import helper

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.selection.dense import Dense, dense
from trtconv.rewrite.patterns.selection.masks import Mask, fits, mask_of_columns, spread_mask


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match ScatterND whose indices are the ones of a mask and whose updates are computed place by place.

    Of a part of the mask's axes (`out.index_add_(0, rows, ...)` of a mixture of experts) it has to add, and all rows
    are computed in the place of those that are selected: for RTX, which selects none.
    """
    reduction = node.attr("reduction", "none")
    if reduction not in ("none", "add"):
        return NOT_THIS
    value, indices, updates = node.inputs
    mask = mask_of_columns(graph, indices)
    if mask is None or (not mask.is_whole and (reduction == "none" or not graph.target.is_rtx)):
        return NOT_THIS
    dtype = graph.dtype(value)
    if not dtype or list(mask.columns) != sorted(set(mask.columns)) or not fits(graph, mask, value):
        return Skip("the mask is not known to have the shape of the value, or of its first axes")
    tail = (graph.rank(value) or 0) - len(mask.columns)
    read = dense(graph, updates, mask)
    if read is None or (read.gathered and read.tail != tail):
        return Skip("what is put in is not a constant number, and not computed from values at the same places")
    nodes = tuple({id(n): n for n in (*mask.nodes, *read.nodes, node)}.values())
    note = "" if mask.is_whole else "all rows are computed, and not those alone that the mask selects"
    return Found(nodes, lambda g: _build(g, mask, read, value, tail, dtype, reduction == "add"), note=note)


def _build(g: Replacement, mask: Mask, read: Dense, value: Value, tail: int, dtype: int, adds: bool) -> Value:
    fill = read.build(g)
    if not read.gathered and isinstance(fill, gs.Constant) and not fill.shape and g.dtype(fill) != dtype:
        fill = g.const(fill.values.astype(helper.tensor_dtype_to_np_dtype(dtype)))
    shown = spread_mask(g, mask, tail)
    if not adds:
        return g.where(shown, fill, value)
    added = g.where(shown, fill, g.scalar(0, dtype=dtype))
    others = [a for a in range(mask.rank) if a not in mask.columns]
    return g.add(value, g.reduce("ReduceSum", added, others, keepdims=False) if others else added)


RULE = Rule(
    name="masked-fill",
    why="NonZero has an output whose size depends on the data, which RTX refuses; filling by a mask is Where.",
    ops=("ScatterND",),
    find=find,
    before="ScatterND(x, Transpose(NonZero(mask)), GatherND(x, Transpose(NonZero(mask))) * 2)",
    after="Where(mask, x * 2, x)",
)

"""Attention (opset 23) as MatMul and Softmax: in FP32 no TensorRT has a kernel for the fused op."""

from __future__ import annotations

import math

import numpy as np
import onnx

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.heads import later_keys, merge_heads, split_heads

MASK, PAST_KEY, PAST_VALUE, LENGTHS = 3, 4, 5, 6
HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an Attention, with or without a cache; in half types where the target lacks the op or takes no cache."""
    dtype, rank = graph.dtype(node.inputs[0]), graph.rank(node.inputs[0])
    read = [bool(o) and (bool(graph.uses(o)) or o in graph.outputs) for o in node.outputs]
    cached = any(node.input(i) for i in (PAST_KEY, PAST_VALUE, LENGTHS)) or any(read[1:])
    if graph.target.generation >= 11 and dtype in HALF and not cached:
        return NOT_THIS
    if any(read[3:]):
        return Skip("it gives its scores")
    if node.input(LENGTHS) and node.attr("is_causal", 0):
        return Skip("its causal mask counts from the lengths of the cache")
    if any(node.attr(f"{side}_window_size", -1) != -1 for side in ("left", "right")):
        return Skip("it attends within a window around each position (opset 25), which is not written out here")
    if not dtype or rank not in (3, 4):
        return Skip("rank or element type is not known")
    if rank == 3 and not (node.attr("q_num_heads") and node.attr("kv_num_heads")):
        return Skip("the number of heads is not given")
    if (node.attr("scale") or 0.0) < 0.0:
        return Skip("a negative scale has no root, with which the op multiplies both sides")
    head = _head_size(graph, node, rank)
    if head is None and node.attr("scale") is None:
        return Skip("the size of a head is not known")
    if rank == 4 and _heads(graph, node.inputs[0]) is None:
        return Skip("the number of heads is not known")
    return Found((node,), lambda g: _build(g, node, rank, head or 1, dtype))


def _heads(graph: Graph, name: str) -> int | None:
    dims = graph.dims(name)
    return dims[1] if dims is not None and isinstance(dims[1], int) else None


def _head_size(graph: Graph, node: Node, rank: int) -> int | None:
    last = (graph.dims(node.inputs[0]) or (None,))[-1]
    if not isinstance(last, int):
        return None
    return last if rank == 4 else last // int(node.attr("q_num_heads"))


def _split(g: Replacement, x: Value, heads: int, rank: int) -> Value:
    return x if rank == 4 else split_heads(g, x, heads)


def _build(g: Replacement, node: Node, rank: int, head: int, dtype: int) -> tuple[Value, ...]:
    q_heads = int(node.attr("q_num_heads") or _heads(g.index, node.inputs[0]) or 1)
    kv_heads = int(node.attr("kv_num_heads") or _heads(g.index, node.inputs[1]) or q_heads)
    q = _split(g, node.inputs[0], q_heads, rank)
    k, v = (_split(g, x, kv_heads, rank) for x in node.inputs[1:3])
    if node.input(PAST_KEY):
        k, v = g.concat(node.inputs[PAST_KEY], k, axis=2), g.concat(node.inputs[PAST_VALUE], v, axis=2)
    cache = (k, v)
    if q_heads != kv_heads:
        k, v = (_repeated(g, x, q_heads // kv_heads, q_heads) for x in (k, v))
    scale = math.sqrt(node.attr("scale") or 1 / math.sqrt(head))
    # The root of the scale on both sides, as the op is defined: products stay small in half precision.
    factor = g.scalar(scale, dtype=dtype)
    scores = g.matmul(g.mul(q, factor), g.transpose(g.mul(k, factor), 0, 1, 3, 2))
    if node.attr("softcap", 0.0):
        cap = g.scalar(float(node.attr("softcap")), dtype=dtype)
        scores = g.mul(g.tanh(g.div(scores, cap)), cap)
    bias = _bias(g, node, q, k, dtype)
    if not bias:
        y = g.matmul(g.softmax(scores, axis=-1), v)
    elif not _may_leave_a_row_empty(g.index, node):
        y = g.matmul(g.softmax(g.add(scores, bias), axis=-1), v)
    else:
        # Where a position may attend to none, a Softmax gives NaN. The op's own definition has zeros for weights there,
        # and the product comes after: an infinite value makes the row NaN.
        none = g.scalar(0.0, dtype=dtype)
        empty = g.equal(g.reduce("ReduceMax", bias, [-1]), g.scalar(-math.inf, dtype=dtype))
        weights = g.softmax(g.add(scores, g.where(empty, none, bias)), axis=-1)
        y = g.matmul(g.where(empty, none, weights), v)
    results = (y if rank == 4 else merge_heads(g, y), *cache, "")
    return tuple(r if o else "" for r, o in zip(results, node.outputs, strict=False))


def _repeated(g: Replacement, x: Value, times: int, heads: int) -> Value:
    """Each key head serves `times` query heads: [N, h, L, D] to [N, h * times, L, D]."""
    wide = g.concat(*[g.unsqueeze(x, 2)] * times, axis=2)
    shape = g.shape_of(x)
    dims = g.concat(g.gather(shape, g.ints(0), axis=0), g.ints(heads), g.gather(shape, g.ints(2, 3), axis=0))
    return g.reshape(wide, dims)


def _bias(g: Replacement, node: Node, q: Value, k: Value, dtype: int) -> Value:
    """What is added to the scores: minus infinity where nothing may be attended to; empty without a mask.

    Not a large number: half precision has none that is beyond every score.
    """
    low, none = g.scalar(-math.inf, dtype=dtype), g.scalar(0.0, dtype=dtype)
    mask = node.inputs[MASK] if node.input(MASK) else ""
    if mask and g.dtype(mask) == onnx.TensorProto.BOOL:
        mask = g.where(mask, none, low)
    if node.input(LENGTHS):
        # Of a cache that is given whole, [N], the keys behind the length are not there yet.
        length = g.unsqueeze(node.inputs[LENGTHS], 1, 2, 3)
        absent = g.where(g.less(g.places(k, 2), length), none, low)
        mask = g.add(mask, absent) if mask else absent
    if not node.attr("is_causal", 0):
        return mask
    # With a cache of the past the last query stands at the last key (ONNX Runtime and ONNX's reference).
    causal = g.where(later_keys(g, q, k, ends_together=bool(node.input(PAST_KEY))), low, none)
    # A sum, as the op is defined: an infinite bias behind the causal mask is NaN.
    return g.add(mask, causal) if mask else causal


def _may_leave_a_row_empty(graph: Graph, node: Node) -> bool:
    """False without a mask, as each position attends to the first one, and for a constant without such a row."""
    if node.input(LENGTHS):
        return True
    if not node.input(MASK):
        return False
    mask = graph.constant(node.inputs[MASK])
    if mask is None or node.attr("is_causal", 0):
        return True
    return bool(((mask == 0) if mask.dtype.kind == "b" else np.isneginf(mask)).all(-1).any())


RULE = Rule(
    name="attention",
    why="TensorRT has no kernel for Attention in FP32, and none at all before 10.14; MatMul and Softmax run anywhere.",
    ops=("Attention",),
    find=find,
    # Where all that a row may attend to scores minus infinity, ONNX's definition has NaN. ONNX Runtime, which the proof
    # runs, masks by the lowest finite number and attends to what is masked.
    keeps_infinities=False,
    before="Attention(q, k, v, mask)",
    after="MatMul(Softmax(Add(MatMul(q * s, Transpose(k * s)), mask)), v), and 0 in rows that are masked whole",
)

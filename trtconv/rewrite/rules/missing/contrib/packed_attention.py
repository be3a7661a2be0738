"""ONNX Runtime's Attention, which projects the tokens itself, and its MultiHeadAttention, as MatMul and Softmax.

A mask of tokens adds `mask_filter_value` to the scores of what is left out; what comes later gets the lowest number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.heads import later_keys, merge_heads, split_heads

MASK_FILTER = -10000.0


@dataclass(frozen=True)
class _AttentionForm:
    """What is known of a node: its element type, the size of a head of the queries, and the inputs that it takes."""

    dtype: int
    head: int
    mask: str
    mask_rank: int
    bias: str


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match values and masks in the forms that exporters and the optimizer write."""
    packed = node.op == "Attention"
    if node.attr("do_rotary", 0) or node.attr("past_present_share_buffer", 0):
        return Skip("it turns its queries, or shares the room of its cache")
    if any(node.input(i) for i in ((6,) if packed else (8, 9))) or len(node.outputs) > (2 if packed else 3):
        return Skip("it has inputs or outputs of generation that are not written out")
    if packed:
        width = _query_width(graph, node)
    elif not node.input(1) or not node.input(2):
        return Skip("its queries, keys and values are packed")
    else:
        if any(graph.rank(name) != 3 for name in node.inputs[:3]):
            return Skip("its queries, keys or values are not known to be [N, L, D]")
        width = _last(graph, node.inputs[0])
    heads, dtype = int(node.attr("num_heads", 1)), graph.dtype(node.inputs[0]) or graph.dtype(node.inputs[1])
    if width is None or not dtype:
        return Skip("the size of a head or the element type is not known")
    mask = node.input(3 if packed else 4)
    rank = graph.rank(mask) if mask else 0
    if rank is None or (mask and rank not in (2, 3)):
        return Skip("its mask holds lengths, or its rank is not known")
    form = _AttentionForm(dtype, width // heads, mask, rank, node.input(5))
    ranges = {mask: (0.0, 1.0)} if mask else {}
    return Found((node,), partial(_build, node=node, form=form), ranges)


def _query_width(graph: Graph, node: Node) -> int | None:
    sizes = node.attr("qkv_hidden_sizes")
    if sizes:
        return int(sizes[0])
    width = _last(graph, node.inputs[1])
    return None if width is None else width // 3


def _last(graph: Graph, name: str) -> int | None:
    size = (graph.dims(name) or (None,))[-1]
    return size if isinstance(size, int) else None


def _build(g: Replacement, node: Node, form: _AttentionForm) -> list[Value]:
    heads = int(node.attr("num_heads", 1))
    parts = _projected(g, node, form.head * heads) if node.op == "Attention" else _biased(g, node, form.head * heads)
    query, key, value = (split_heads(g, p, heads) for p in parts)
    past_key, past_value = _past(g, node)
    if past_key:
        key, value = g.concat(past_key, key, axis=2), g.concat(past_value, value, axis=2)
    scale = float(node.attr("scale", 0.0) or 0.0) or 1 / math.sqrt(form.head)
    scores = g.mul(g.matmul(query, g.transpose(key, 0, 1, 3, 2)), g.scalar(scale, dtype=form.dtype))
    if form.bias:
        scores = g.add(scores, form.bias)
    if form.mask:
        scores = g.add(scores, _mask(g, form, float(node.attr("mask_filter_value", MASK_FILTER))))
    if node.attr("unidirectional", 0):
        # ONNX Runtime adds it, so that an infinite score of a later key is not hidden.
        later = later_keys(g, query, key, ends_together=True)
        scores = g.add(scores, g.where(later, g.const(_lowest(g, form.dtype)), g.scalar(0.0, dtype=form.dtype)))
    y = merge_heads(g, g.matmul(g.softmax(scores, axis=-1), value))
    if node.op == "Attention":
        present = g.concat(g.unsqueeze(key, 0), g.unsqueeze(value, 0), axis=0) if len(node.outputs) > 1 else ""
        return [y, present][: len(node.outputs)]
    return [y, key, value][: len(node.outputs)]


def _projected(g: Replacement, node: Node, width: int) -> list[Value]:
    """The queries, keys and values of tokens [N, L, D], by weights [D, 3 * D] or of the sizes that are given."""
    product = g.matmul(node.inputs[0], node.inputs[1])
    product = g.add(product, node.inputs[2]) if node.input(2) else product
    return _cut(g, product, list(node.attr("qkv_hidden_sizes") or (width, width, width)), 2)


def _biased(g: Replacement, node: Node, width: int) -> list[Value]:
    values: list[Value] = list(node.inputs[:3])
    if not node.input(3):
        return values
    # The bias of the values goes to the end: they may be of another width.
    return [g.add(v, b) for v, b in zip(values, _cut(g, node.inputs[3], [width, width, -1], 0), strict=True)]


def _cut(g: Replacement, value: Value, sizes: list[int], axis: int) -> list[Value]:
    ends = [sizes[0], sizes[0] + sizes[1], (1 << 31) - 1]
    return [g.slice(value, g.ints(b), g.ints(e), [axis]) for b, e in zip([0, *ends[:2]], ends, strict=True)]


def _past(g: Replacement, node: Node) -> tuple[Value, Value]:
    if node.op == "MultiHeadAttention":
        return node.input(6), node.input(7)
    if not node.input(4):
        return "", ""
    key, value = (g.squeeze(g.slice(node.inputs[4], g.ints(i), g.ints(i + 1), [0]), 0) for i in (0, 1))
    return key, value


def _mask(g: Replacement, form: _AttentionForm, low: float) -> Value:
    """What is added to the scores: [N, 1, 1, L] of a mask of tokens, [N, 1, L, L] of one of pairs."""
    axes = (1, 2) if form.mask_rank == 2 else (1,)
    hidden = g.less(g.unsqueeze(form.mask, *axes), g.scalar(1, like=form.mask))
    return g.where(hidden, g.scalar(low, dtype=form.dtype), g.scalar(0.0, dtype=form.dtype))


def _lowest(g: Replacement, dtype: int) -> np.ndarray:
    from onnx import helper

    kind = helper.tensor_dtype_to_np_dtype(dtype)
    return np.asarray(np.finfo(kind).min, kind)


RULE = Rule(
    name="packed-attention",
    why="No TensorRT has the attention that ONNX Runtime's optimizer fuses; MatMul and Softmax run anywhere.",
    ops=tuple(f"{DOMAIN}::{name}" for name in ("Attention", "MultiHeadAttention")),
    find=find,
    # Behind a causal mask ONNX Runtime has the lowest number in the place of a sum, and what comes of an infinity there
    # is its own.
    keeps_infinities=False,
    before="com.microsoft.MultiHeadAttention(q, k, v, bias, mask), num_heads = 8",
    after="MatMul(Softmax(MatMul(q * s, Transpose(k)) + Where(mask < 1, -10000, 0)), v), by heads",
)

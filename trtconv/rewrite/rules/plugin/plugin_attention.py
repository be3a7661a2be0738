"""Attention between rows that hold head beside head as one plugin node: products, bias, masks, softmax, transposes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from trtconv.plugins.described.attention import LARGEST_HEAD, OP_TYPE
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Array, Dims, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.attention_heads import (
    BATCH,
    COLUMN,
    HEAD,
    ROW,
    Addend,
    Heads,
    Scores,
    heads_of,
    keeps_rows,
    scores_of,
)

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
LARGEST_BIAS = 1 << 22
"""Elements of a bias and a mask that are added here; of larger ones the engine adds them."""


@dataclass(frozen=True)
class Attention:
    """What the plugin is given."""

    scores: Scores
    value: Heads
    terms: tuple[tuple[Addend, Dims], ...]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Reshape(Transpose(MatMul(Softmax(scores), value))) where nothing else uses what lies between."""
    transpose = graph.maker(node.inputs[0], "Transpose")
    product = graph.maker(transpose.inputs[0], "MatMul") if transpose is not None else None
    softmax = graph.maker(product.inputs[0], "Softmax") if product is not None else None
    if transpose is None or product is None or softmax is None or list(transpose.attr("perm", ())) != [0, 2, 1, 3]:
        return NOT_THIS
    if graph.opset < 13 or softmax.attr("axis", -1) not in (-1, 3) or not all(
        graph.used_once(n.output) for n in (transpose, product, softmax)
    ):
        return Skip("the weights are over another axis, or something between is used elsewhere too")
    scores = scores_of(graph, softmax.inputs[0])
    value = heads_of(graph, product.inputs[1], (BATCH, HEAD, ROW, COLUMN))
    if scores is None or value is None or value.scale != 1:
        return Skip("query, key and value are not heads of rows, or the scores are more than products with addends")
    attention = _checked(graph, scores, value, node)
    if isinstance(attention, Skip):
        return attention
    nodes = dict.fromkeys((*scores.nodes, *value.nodes, softmax, product, transpose, node))
    return Found(tuple(nodes), lambda g: _build(g, graph, attention))


def _checked(graph: Graph, scores: Scores, value: Heads, node: Node) -> Attention | Skip:
    query, key = scores.query, scores.key
    if (value.heads, value.size) != (query.heads, query.size) or query.size > LARGEST_HEAD:
        return Skip(f"heads of the value have another size, or one over {LARGEST_HEAD}")
    dtype, rows, result = graph.dtype(query.rows), graph.dims(query.rows), graph.dims(node.output)
    keys = graph.dims(key.rows)
    if dtype not in FLOATS or any(graph.dtype(h.rows) != dtype for h in (key, value)):
        return Skip("the element type is not known, or not one")
    if rows is None or keys is None or result is None or len(result) != 3 or result[2] != query.heads * query.size:
        return Skip("the result is not rows of all heads")
    if not keeps_rows(graph, node):
        return Skip("the result is not known to have the rows of the query")
    terms = []
    for addend in scores.addends:
        dims = _bias_dims(graph, addend, (rows[0], query.heads, rows[1], keys[1]))
        if dims is None:
            return Skip("what is added to the scores has dims that are not known to be theirs")
        terms.append((addend, dims))
    groups = {dims[0] for _, dims in terms} - {1}
    if len(groups) > 1:
        return Skip("addends are by group and by element of the batch")
    return Attention(scores, value, tuple(terms))


def _bias_dims(graph: Graph, addend: Addend, scores: Dims) -> Dims | None:
    """The addend's dims as `[groups, heads, Lq, Lk]`, each 1 or that of the scores."""
    dims = graph.dims(addend.value)
    rank = 5 if addend.groups else 4
    if dims is None or len(dims) > rank:
        return None
    padded = (*(1,) * (rank - len(dims)), *dims)
    if addend.groups:
        if padded[0] != 1:
            return None
        padded, scores = padded[1:], (addend.groups, *scores[1:])
    fits = all(d == 1 or (d is not None and d == s) for d, s in zip(padded, scores, strict=True))
    return padded if fits else None


def _build(g: Replacement, graph: Graph, attention: Attention) -> Value:
    query, key, value = attention.scores.query, attention.scores.key, attention.value
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtype(query.rows))
    return g.plugin(
        OP_TYPE, query.rows, key.rows, value.rows, _bias(g, graph, attention, dtype),
        heads=query.heads, size=query.size, scale=float(attention.scores.scale),
        query_offset=query.offset, key_offset=key.offset, value_offset=value.offset,
    )  # fmt: skip


def _bias(g: Replacement, graph: Graph, attention: Attention, dtype: np.dtype[np.generic]) -> Value:
    """The sum of all addends: of those that are constants here, else in the engine."""
    constant: Array | None = None
    moving: Value | None = None
    for addend, dims in attention.terms:
        array = graph.constant(addend.value, LARGEST_BIAS)
        if array is not None:
            shaped = array.reshape([int(d) for d in dims if isinstance(d, int)])
            constant = shaped if constant is None else constant + shaped
        else:
            term = _of_rank_4(g, graph, addend)
            moving = term if moving is None else g.add(moving, term)
    if moving is None:
        return g.const(np.zeros((1, 1, 1, 1), dtype) if constant is None else constant.astype(dtype), "bias")
    return moving if constant is None else g.add(moving, g.const(constant.astype(dtype), "bias"))


def _of_rank_4(g: Replacement, graph: Graph, addend: Addend) -> Value:
    rank, expected = len(graph.dims(addend.value) or ()), 5 if addend.groups else 4
    value: Value = addend.value
    if addend.groups and rank == expected:
        return g.squeeze(value, 0)
    missing = 4 - rank
    return g.unsqueeze(value, *range(missing)) if missing > 0 else value


RULE = Rule(
    name="plugin-attention",
    why="The plugin reads heads where they lie and writes no scores to memory, with any bias and mask.",
    ops=("Reshape",),
    find=find,
    needed=only_with_plugins,
    before="Reshape(Transpose(MatMul(Softmax(MatMul(q, k^T) * scale + bias), v))) of heads of qkv[B,L,3*C]",
    after="TrtconvAttention(qkv, qkv, qkv, bias[G,heads,L,L])",
    judged_as_float32=True,
    plugin=OP_TYPE,
)

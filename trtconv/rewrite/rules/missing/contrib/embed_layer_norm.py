"""ONNX Runtime's embeddings of a BERT: three tables, their sum, its normalization, and the length of each mask."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.normalize import layer_norm

INT32 = 6


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match tables that are constants; their rows bound the indices."""
    _, segments, words, places, kinds = node.inputs[:5]
    rows = {table: (graph.dims(table) or (None,))[0] for table in (words, places, kinds) if table}
    if any(not isinstance(size, int) for size in rows.values()) or not graph.dtype(words):
        return Skip("the size of a table is not known")
    indices = {node.inputs[0]: words, segments: kinds, node.input(8): places}
    ranges = {name: (0.0, float(rows[table] or 1) - 1) for name, table in indices.items() if name and table in rows}
    return Found((node,), partial(_build, node=node, dtype=graph.dtype(words)), ranges)


def _build(g: Replacement, node: Node, dtype: int) -> list[Value]:
    ids, segments, words, places, kinds, scale, shift = node.inputs[:7]
    mask, positions = node.input(7), node.input(8)
    rows = positions or g.arange(g.squeeze(g.size(ids, 1), 0))
    total = g.add(g.gather(words, ids, axis=0), g.gather(places, rows, axis=0))
    if segments and kinds:
        total = g.add(total, g.gather(kinds, segments, axis=0))
    result = layer_norm(g, total, scale, shift, float(node.attr("epsilon", 1e-12)), dtype)
    # ONNX Runtime counts the ones, and gives zeros without a mask.
    zero, one = g.scalar(0, dtype=INT32), g.scalar(1, dtype=INT32)
    marks = g.cast(g.equal(mask, one), INT32) if mask else g.mul(ids, zero)
    lengths = g.reduce("ReduceSum", marks, [1], keepdims=False)
    return [result, lengths, total][: len(node.outputs)]


RULE = Rule(
    name="embed-layer-norm",
    why="No TensorRT has the embeddings that ONNX Runtime's optimizer fuses; three Gathers and a sum are the same.",
    ops=(f"{DOMAIN}::EmbedLayerNormalization",),
    find=find,
    before="com.microsoft.EmbedLayerNormalization(ids, kinds, words, places, kind_table, scale, shift, mask)",
    after="LayerNormalization(Gather(words, ids) + Gather(places, Range(T)) + Gather(kind_table, kinds), scale, shift)",
)

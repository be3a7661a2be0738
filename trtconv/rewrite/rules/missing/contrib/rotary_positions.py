"""ONNX Runtime's rotary embedding, which takes its tables last and one position or a table of them."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import INT64, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.heads import merge_heads, rotate, split_heads


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match [N, heads, L, D], and [N, L, heads * D]; D and the tables have to be known."""
    dims, places, tables = (graph.dims(name) for name in node.inputs[:3])
    if dims is None or places is None or tables is None or not all(isinstance(d, int) for d in (dims[-1], *tables)):
        return Skip("the sizes of a head, of the positions or of the tables are not known")
    if node.attr("is_packed_batching", 0) or node.attr("scale", 1.0) != 1.0:
        return Skip("it is packed or scaled")
    rows, half = (int(size or 0) for size in tables)
    turned = int(node.attr("rotary_embedding_dim", 0)) or 2 * half
    width, heads = int(dims[-1] or 0), int(node.attr("num_heads", 0))
    head = width if len(dims) == 4 else width // (heads or width // turned)
    build = partial(_build, node=node, rank=len(dims), head=head, turned=turned, one=len(places) == 1)
    return Found((node,), build, {node.inputs[1]: (0.0, float(rows - 1) if len(places) > 1 else 0.0)})


def _build(g: Replacement, node: Node, rank: int, head: int, turned: int, one: bool) -> Value:
    x: Value = node.inputs[0] if rank == 4 else split_heads(g, node.inputs[0], -1, head)
    places: Value = g.cast(node.inputs[1], INT64)
    if one:
        # The position of the first token; the others follow it.
        places = g.unsqueeze(g.add(places, g.arange(g.squeeze(g.size(x, 2), 0))), 0)
    cos, sin = (g.unsqueeze(g.gather(table, places, axis=0), 1) for table in node.inputs[2:4])
    y = rotate(g, x, cos, sin, turned, head, interleaved=bool(node.attr("interleaved", 0)))
    return y if rank == 4 else merge_heads(g, y)


RULE = Rule(
    name="rotary-positions",
    why="No TensorRT has ONNX Runtime's rotary embedding; two Gathers from its tables and products are the same.",
    ops=(f"{DOMAIN}::RotaryEmbedding",),
    find=find,
    before="com.microsoft.RotaryEmbedding(x, positions, cos, sin)",
    after="Concat(a * c - b * s, a * s + b * c), a and b the halves of x, c = Gather(cos, positions)",
)

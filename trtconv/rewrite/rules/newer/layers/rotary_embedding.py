"""RotaryEmbedding as slices and products where the target lacks it."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.heads import merge_heads, rotate, split_heads


def needed(target: Target) -> bool:
    """TensorRT has it from 10.15 on."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match [N, heads, L, D], and [N, L, heads * D] with num_heads; D has to be known."""
    dims, heads = graph.dims(node.inputs[0]), int(node.attr("num_heads", 0))
    if dims is None or not isinstance(dims[-1], int) or (len(dims) == 3 and not heads):
        return Skip("the size of a head is not known")
    head = int(dims[-1] or 0) if len(dims) == 4 else int(dims[-1] or 0) // heads
    return Found((node,), lambda g: _build(g, node, len(dims), heads, head), ranges=_ranges(node))


def _ranges(node: Node) -> dict[str, tuple[float, float]]:
    return {node.inputs[3]: (0.0, 0.0)} if node.input(3) else {}


def _build(g: Replacement, node: Node, rank: int, heads: int, head: int) -> Value:
    x = node.inputs[0] if rank == 4 else split_heads(g, node.inputs[0], heads, head)
    turned = int(node.attr("rotary_embedding_dim", 0)) or head
    # One line of factors per place, the same for every head: [N, 1, L, turned / 2].
    cos, sin = (
        g.unsqueeze(g.gather(cache, node.inputs[3], axis=0) if node.input(3) else cache, 1)
        for cache in node.inputs[1:3]
    )
    y = rotate(g, x, cos, sin, turned, head, interleaved=bool(node.attr("interleaved", 0)))
    return y if rank == 4 else merge_heads(g, y)


RULE = Rule(
    name="rotary-embedding",
    why="TensorRT has RotaryEmbedding only from 10.15 on; slices and products are everywhere.",
    ops=("RotaryEmbedding",),
    find=find,
    needed=needed,
    before="RotaryEmbedding(x, cos, sin)",
    after="Concat(a * cos - b * sin, a * sin + b * cos), a and b the halves of x",
)

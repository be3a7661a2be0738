"""RotaryEmbedding as slices and products where the target lacks it."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node

END = (1 << 31) - 1


def needed(target: Target) -> bool:
    """TensorRT has it from 10.15 on."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match [N, heads, L, D], and [N, L, heads * D] with num_heads; D has to be known."""
    dims, heads = graph.dims(node.inputs[0]), int(node.attr("num_heads", 0))
    if dims is None or not isinstance(dims[-1], int) or (len(dims) == 3 and not heads):
        return Skip("the size of a head is not known")
    head = int(dims[-1] or 0) if len(dims) == 4 else int(dims[-1] or 0) // heads
    return Found((node,), lambda b: _build(b, node, len(dims), heads, head), ranges=_ranges(node))


def _ranges(node: Node) -> dict[str, tuple[float, float]]:
    return {node.inputs[3]: (0.0, 0.0)} if node.input(3) else {}


def _build(b: Builder, node: Node, rank: int, heads: int, head: int) -> str:
    x = node.inputs[0] if rank == 4 else b.transpose(b.reshape(node.inputs[0], 0, 0, heads, head), 0, 2, 1, 3)
    turned = int(node.attr("rotary_embedding_dim", 0)) or head
    # One line of factors per place, the same for every head: [N, 1, L, turned / 2].
    cos, sin = (
        b.unsqueeze(b.op("Gather", cache, node.inputs[3], axis=0) if node.input(3) else cache, 1)
        for cache in node.inputs[1:3]
    )
    first, second = _halves(b, x, turned, bool(node.attr("interleaved", 0)))
    real = b.op("Sub", b.op("Mul", first, cos), b.op("Mul", second, sin))
    imaginary = b.op("Add", b.op("Mul", first, sin), b.op("Mul", second, cos))
    if node.attr("interleaved", 0):
        pairs = b.concat(b.unsqueeze(real, 4), b.unsqueeze(imaginary, 4), axis=4)
        y = b.op("Reshape", pairs, b.ints(0, 0, 0, turned))
    else:
        y = b.concat(real, imaginary, axis=3)
    if turned < head:
        y = b.concat(y, b.slice(x, b.ints(turned), b.ints(END), [3]), axis=3)
    return y if rank == 4 else b.reshape(b.transpose(y, 0, 2, 1, 3), 0, 0, -1)


def _halves(b: Builder, x: str, turned: int, interleaved: bool) -> tuple[str, str]:
    if interleaved:
        return tuple(b.slice(x, b.ints(i), b.ints(turned), [3], [2]) for i in (0, 1))  # type: ignore[return-value]
    half = turned // 2
    return b.slice(x, b.ints(0), b.ints(half), [3]), b.slice(x, b.ints(half), b.ints(turned), [3])


RULE = Rule(
    name="rotary-embedding",
    why="TensorRT has RotaryEmbedding only from 10.15 on; slices and products are everywhere.",
    ops=("RotaryEmbedding",),
    find=find,
    needed=needed,
    before="RotaryEmbedding(x, cos, sin)",
    after="Concat(a * cos - b * sin, a * sin + b * cos), a and b the halves of x",
)

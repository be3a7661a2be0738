"""Pixel unshuffle (Reshape, Transpose, Reshape of rank 6) as SpaceToDepth-free slices for TensorRT 8.6."""

from __future__ import annotations

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.sizes import size_element

UNSHUFFLE = [0, 1, 3, 5, 2, 4]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match SpaceToDepth, and the six-axis Transpose between two Reshapes that exporters write for pixel_unshuffle."""
    if node.key == "SpaceToDepth":
        block = int(node.attr("blocksize"))
        return Found((node,), lambda b: _build(b, node.inputs[0], block, False))
    turned = graph.maker(node.inputs[0], "Transpose")
    if turned is None or list(turned.attr("perm") or ()) != UNSHUFFLE:
        return NOT_THIS
    first = graph.maker(turned.inputs[0], "Reshape")
    if first is None or graph.rank(first.inputs[0]) != 4:
        return NOT_THIS
    blocks = [size_element(graph, first.inputs[1], i) for i in (3, 5)]
    if blocks[0] is None or blocks[0] != blocks[1] or not blocks[0].is_constant or blocks[0].add < 2:
        return Skip("the block is not one constant size")
    block = blocks[0].add
    return Found((first, turned, node), lambda b: _build(b, first.inputs[0], block, True))


def _build(b: Builder, x: str, block: int, channels_first: bool) -> str:
    """Every block-th row and column, one phase after the other, side by side as channels."""
    end = b.ints((1 << 31) - 1, (1 << 31) - 1)
    phases = [
        b.slice(x, b.ints(row, column), end, [2, 3], [block, block]) for row in range(block) for column in range(block)
    ]
    if not channels_first:
        return b.concat(*phases, axis=1)
    stacked = b.concat(*[b.unsqueeze(p, 2) for p in phases], axis=2)
    tail = b.op("Gather", b.shape_once(phases[0]), b.ints(2, 3), axis=0)
    head = b.op("Gather", b.shape_once(phases[0]), b.ints(0), axis=0)
    return b.op("Reshape", stacked, b.concat(head, b.ints(-1), tail))


RULE = Rule(
    name="pixel-unshuffle",
    why="TensorRT 8.6 finds no implementation of the six-axis Transpose of pixel_unshuffle; strided slices have one.",
    ops=("Reshape", "SpaceToDepth"),
    find=find,
    needed=only_tensorrt_8,
    before="Reshape(Transpose(Reshape(x, [N,C,H/r,r,W/r,r]), [0,1,3,5,2,4]))",
    after="Reshape(Concat(x[:, :, i::r, j::r] for i, j))",
)

"""Pixel unshuffle (Reshape, Transpose, Reshape of rank 6) as SpaceToDepth-free slices for TensorRT 8.6."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.sizes import size_element

UNSHUFFLE = [0, 1, 3, 5, 2, 4]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match SpaceToDepth, and the six-axis Transpose between Reshapes that exporters write for pixel_unshuffle."""
    if node.key == "SpaceToDepth":
        block = int(node.attr("blocksize"))
        return Found((node,), lambda g: _build(g, node.inputs[0], block, False))
    turned, after = graph.behind(node.inputs[0], "Reshape")
    transpose = graph.maker(turned, "Transpose")
    if transpose is None or list(transpose.attr("perm") or ()) != UNSHUFFLE or graph.rank(node.output) != 4:
        return NOT_THIS
    value, before = _source(graph, transpose.inputs[0])
    if value is None:
        return NOT_THIS
    blocks = [_size(graph, transpose.inputs[0], axis) for axis in (3, 5)]
    if blocks[0] is None or blocks[0] != blocks[1] or blocks[0] < 2:
        return Skip("the block is not one constant size")
    block, source = blocks[0], value
    return Found((*before, transpose, *after, node), lambda g: _build(g, source, block, True))


def _size(graph: Graph, name: str, axis: int) -> int | None:
    """A dim as inference knows it, else as the Reshape before says it."""
    dims = graph.dims(name)
    dim = dims[axis] if dims is not None and len(dims) == 6 else None
    if isinstance(dim, int):
        return dim
    reshape = graph.maker(name, "Reshape")
    size = None if reshape is None else size_element(graph, reshape.inputs[1], axis)
    return size.add if size is not None and size.is_constant and size.add > 0 else None


def _source(graph: Graph, name: str) -> tuple[str | None, tuple[Node, ...]]:
    """The value of rank 4 that was reshaped into six axes, and the nodes that did it."""
    passed: list[Node] = []
    while graph.rank(name) != 4:
        node = graph.maker(name, "Reshape", "Unsqueeze")
        if node is None or len(passed) > 3:
            return None, ()
        passed.append(node)
        name = node.inputs[0]
    return name, tuple(reversed(passed))


def _build(g: Replacement, x: Value, block: int, channels_first: bool) -> Value:
    """Every block-th row and column, one phase after the other, side by side as channels."""
    end = g.ints((1 << 31) - 1, (1 << 31) - 1)
    phases = [
        g.slice(x, g.ints(row, column), end, [2, 3], [block, block]) for row in range(block) for column in range(block)
    ]
    if not channels_first:
        return g.concat(*phases, axis=1)
    stacked = g.concat(*[g.unsqueeze(p, 2) for p in phases], axis=2)
    tail = g.gather(g.shape_of(phases[0]), g.ints(2, 3), axis=0)
    head = g.gather(g.shape_of(phases[0]), g.ints(0), axis=0)
    return g.reshape(stacked, g.concat(head, g.ints(-1), tail))


RULE = Rule(
    name="pixel-unshuffle",
    why="TensorRT 8.6 finds no implementation of the six-axis Transpose of pixel_unshuffle; strided slices have one.",
    ops=("Reshape", "Squeeze", "SpaceToDepth"),
    find=find,
    needed=only_tensorrt_8,
    before="Reshape(Transpose(Reshape(x, [N,C,H/r,r,W/r,r]), [0,1,3,5,2,4]))",
    after="Reshape(Concat(x[:, :, i::r, j::r] for i, j))",
)

"""The last two axes swapped behind a flattened batch, as torch's ONNX exporter writes the keys of attention."""

from __future__ import annotations

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.sizes import Size, dim_size, same_dim, size_element

SWAPPED = [0, 2, 1]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Reshape(Transpose(Reshape(x), 0, 2, 1)) where the Reshapes fold the leading axes and unfold them again."""
    transpose = graph.maker(node.inputs[0], "Transpose")
    if transpose is None or list(transpose.attr("perm", ())) != SWAPPED:
        return NOT_THIS
    first = graph.maker(transpose.inputs[0], "Reshape")
    if first is None:
        return NOT_THIS
    x = first.inputs[0]
    rank, folded = graph.rank(x), graph.dims(first.output)
    if rank is None or rank < 3 or folded is None:
        return Skip("the rank is not known")
    last = (graph.dims(x) or ())[-2:]
    if None in last or folded[1:] != last:
        return Skip("the last two axes are not known to stay as they are")
    order = (*range(rank - 2), rank - 1, rank - 2)
    if not _has_sizes(graph, node, [dim_size(graph, x, axis) for axis in order]):
        return Skip("the leading axes are not known to come back as they were")
    return Found((first, transpose, node), lambda g: g.transpose(x, *order))


def _has_sizes(graph: Graph, node: Node, sizes: list[Size]) -> bool:
    """True when a Reshape gives these sizes; one of them may be what is left over (-1)."""
    if graph.rank(node.output) != len(sizes):
        return False
    reshaped = [size_element(graph, node.inputs[1], axis) for axis in range(len(sizes))]
    named = [(size, own) for size, own in zip(reshaped, sizes, strict=True) if size is not None and size.add != -1]
    return len(sizes) - len(named) <= 1 and all(_same(graph, size, own) for size, own in named)


def _same(graph: Graph, size: Size, own: Size) -> bool:
    if size.is_constant or own.is_constant:
        return size == own
    return size.is_dim and same_dim(graph, size, own)


RULE = Rule(
    name="swap-last-axes",
    why="Reshapes around the Transpose hide from TensorRT that this is attention, which it then computes unfused.",
    ops=("Reshape",),
    find=find,
    before="Reshape(Transpose(Reshape(x, [-1, S, D]), [0, 2, 1]), [N, H, D, S])",
    after="Transpose(x, [0, 1, 3, 2])",
)

"""ScatterND with reduction add as a product with a one-hot matrix of flat row numbers."""

from __future__ import annotations

from trtconv.rewrite.builder import FLOAT, Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match reduction add of FP32 values; the index depth has to be known."""
    how = node.attr("reduction", "none")
    if how == "none":
        return NOT_THIS
    if how != "add" or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip(f"reduction '{how}' of this element type has no dense form here")
    rank, given = graph.rank(node.inputs[0]), graph.dims(node.inputs[1])
    if rank is None or given is None or not isinstance(given[-1], int):
        return Skip("rank or depth of the indices is not known")
    depth = given[-1]
    return Found((node,), lambda b: _build(b, node, rank, depth))


def _build(b: Builder, node: Node, rank: int, depth: int) -> str:
    data, indices, updates = node.inputs
    shape = b.shape_once(data)
    heads = b.slice(shape, b.ints(0), b.ints(depth), [0])
    # Negative indices count from the end; then a row number over the first `depth` axes.
    flat = b.op("Reshape", indices, b.ints(-1, depth))
    positive = b.op("Where", b.op("Less", flat, b.scalar(0, dtype=7)), b.op("Add", flat, heads), flat)
    strides = b.concat(*[_product(b, shape, i + 1, depth) for i in range(depth)])
    row = b.reduce("ReduceSum", b.op("Mul", positive, strides), [1])
    rows = b.reduce("ReduceProd", heads, [0], keepdims=False)
    every = b.op("Range", b.scalar(0, dtype=7), rows, b.scalar(1, dtype=7))
    hit = b.cast(b.op("Equal", b.unsqueeze(every, 1), b.transpose(row, 1, 0)), FLOAT)
    tail = b.reduce("ReduceProd", b.slice(shape, b.ints(depth), b.ints(rank), [0]), [0]) if depth < rank else b.ints(1)
    summed = b.op("MatMul", hit, b.op("Reshape", updates, b.concat(b.ints(-1), tail)))
    return b.op("Add", data, b.op("Reshape", summed, shape))


def _product(b: Builder, shape: str, start: int, end: int) -> str:
    if start == end:
        return b.ints(1)
    return b.reduce("ReduceProd", b.slice(shape, b.ints(start), b.ints(end), [0]), [0])


RULE = Rule(
    name="scatter-nd",
    why="TensorRT 8.6 drops the reduction and overwrites; later ones refuse it; a one-hot product adds exactly.",
    ops=("ScatterND",),
    find=find,
    before="ScatterND(x, indices, updates, reduction=add)",
    after="x + Reshape(MatMul(Cast(Equal(Range(rows), row numbers)), updates))",
)

"""ScatterND with a reduction: added by a product with a one-hot matrix of flat row numbers, or folded under a mask."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import FLOAT, Builder
from trtconv.rewrite.graph.extent import largest
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.scatter_fold import FOLD, neutral

INT64, FLOAT16 = 7, 10
MOST, FEW = 1 << 27, 1 << 10


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match every reduction of FP32, FP16, int32 and int64; the index depth has to be known."""
    how = node.attr("reduction", "none")
    if how == "none":
        return NOT_THIS
    dtype = graph.dtype(node.inputs[0])
    if how not in FOLD or dtype not in (FLOAT, FLOAT16, 6, INT64):
        return Skip(f"reduction '{how}' of this element type has no dense form here")
    rank, given = graph.rank(node.inputs[0]), graph.dims(node.inputs[1])
    if rank is None or given is None or not isinstance(given[-1], int):
        return Skip("rank or depth of the indices is not known")
    depth = given[-1]
    product = how == "add" and dtype in (FLOAT, FLOAT16)
    problem = _too_large(graph, node, depth, product)
    if problem:
        return Skip(problem)
    note = "" if product else "every row meets every update: takes the size of the data times the number of updates"
    return Found((node,), partial(_build, node=node, how=how, rank=rank, depth=depth, dtype=dtype), note=note)


def _too_large(graph: Graph, node: Node, depth: int, product: bool) -> str:
    """Why every row cannot meet every update. A product holds rows x updates, the other forms the tail as well."""
    rows, updates = largest(graph, node.inputs[0], 0, depth), largest(graph, node.inputs[1], 0, -1)
    tail = 1 if product else largest(graph, node.inputs[0], depth)
    if rows is None or updates is None or tail is None:
        few = rows is not None and tail is not None and rows * tail <= FEW
        return (
            ""
            if product or few
            else "how many rows and updates there can be is not known, and each row meets each update"
        )
    count = rows * updates * tail
    return f"each row would meet each update: {count} values" if count > MOST else ""


def _build(b: Builder, node: Node, how: str, rank: int, depth: int, dtype: int) -> str:
    data, updates = node.inputs[0], node.inputs[2]
    shape = b.shape_once(data)
    hit = _hits(b, node, depth)
    tail = b.reduce("ReduceProd", b.slice(shape, b.ints(depth), b.ints(rank), [0]), [0]) if depth < rank else b.ints(1)
    rows = b.op("Reshape", updates, b.concat(b.ints(-1), tail))
    reduction, join = FOLD[how]
    if how == "add" and dtype in (FLOAT, FLOAT16):
        wide = rows if dtype == FLOAT else b.cast(rows, FLOAT)
        folded = b.op("MatMul", b.cast(hit, FLOAT), wide)
        folded = folded if dtype == FLOAT else b.cast(folded, dtype)
    else:
        spread = b.op("Where", b.unsqueeze(hit, 2), b.unsqueeze(rows, 0), neutral(b, how, dtype))
        folded = b.reduce(reduction, spread, [1], keepdims=False)
    return b.op(join, data, b.op("Reshape", folded, shape))


def _hits(b: Builder, node: Node, depth: int) -> str:
    """Which update meets which row, [rows, updates]: rows are counted over the first `depth` axes."""
    data, indices = node.inputs[:2]
    shape = b.shape_once(data)
    heads = b.slice(shape, b.ints(0), b.ints(depth), [0])
    flat = b.op("Reshape", indices, b.ints(-1, depth))
    flat = flat if b.graph.dtype(indices) in (0, INT64) else b.cast(flat, INT64)
    # Negative indices count from the end.
    positive = b.op("Where", b.op("Less", flat, b.scalar(0, dtype=INT64)), b.op("Add", flat, heads), flat)
    strides = b.concat(*[_product(b, shape, i + 1, depth) for i in range(depth)])
    row = b.reduce("ReduceSum", b.op("Mul", positive, strides), [1])
    count = b.reduce("ReduceProd", heads, [0], keepdims=False)
    every = b.op("Range", b.scalar(0, dtype=INT64), count, b.scalar(1, dtype=INT64))
    return b.op("Equal", b.unsqueeze(every, 1), b.transpose(row, 1, 0))


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
    after="x + Reshape(MatMul(Cast(Equal(Range(rows), row numbers)), updates)); max by ReduceMax(Where(..))",
    judged_as_float32=True,
)

"""ScatterND with a reduction: added by a product with a one-hot matrix of flat row numbers, or folded under a mask."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.extent import largest
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.scatter_fold import FOLD, neutral
from trtconv.rewrite.patterns.windows import masked_product

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
    rank, index_dims = graph.rank(node.inputs[0]), graph.dims(node.inputs[1])
    if rank is None or index_dims is None or not isinstance(index_dims[-1], int):
        return Skip("rank or depth of the indices is not known")
    depth = index_dims[-1]
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


def _build(g: Replacement, node: Node, how: str, rank: int, depth: int, dtype: int) -> Value:
    data, updates = node.inputs[0], node.inputs[2]
    shape = g.shape_of(data)
    hit = _hits(g, node, depth)
    tail = g.reduce("ReduceProd", g.slice(shape, g.ints(depth), g.ints(rank), [0]), [0]) if depth < rank else g.ints(1)
    rows = g.reshape(updates, g.concat(g.ints(-1), tail))
    reduction, join = FOLD[how]
    if how == "add" and dtype in (FLOAT, FLOAT16):
        wide = rows if dtype == FLOAT else g.cast(rows, FLOAT)
        folded = masked_product(g, g.cast(hit, FLOAT), wide, FLOAT, first=True)
        folded = folded if dtype == FLOAT else g.cast(folded, dtype)
    else:
        spread = g.where(g.unsqueeze(hit, 2), g.unsqueeze(rows, 0), neutral(g, how, dtype))
        folded = g.reduce(reduction, spread, [1], keepdims=False)
    return g.op(join, data, g.reshape(folded, shape))


def _hits(g: Replacement, node: Node, depth: int) -> Value:
    """Which update meets which row, [rows, updates]: rows are counted over the first `depth` axes."""
    data, indices = node.inputs[:2]
    shape = g.shape_of(data)
    heads = g.slice(shape, g.ints(0), g.ints(depth), [0])
    flat = g.reshape(indices, g.ints(-1, depth))
    flat = flat if g.dtype(indices) in (0, INT64) else g.cast(flat, INT64)
    # Negative indices count from the end.
    positive = g.where(g.less(flat, g.scalar(0, dtype=INT64)), g.add(flat, heads), flat)
    strides = g.concat(*[_product(g, shape, i + 1, depth) for i in range(depth)])
    row = g.reduce("ReduceSum", g.mul(positive, strides), [1])
    count = g.reduce("ReduceProd", heads, [0], keepdims=False)
    every = g.arange(count)
    return g.equal(g.unsqueeze(every, 1), g.transpose(row, 1, 0))


def _product(g: Replacement, shape: Value, start: int, end: int) -> Value:
    if start == end:
        return g.ints(1)
    return g.reduce("ReduceProd", g.slice(shape, g.ints(start), g.ints(end), [0]), [0])


RULE = Rule(
    name="scatter-nd",
    why="TensorRT 8.6 drops the reduction and overwrites; later ones refuse it; a one-hot product adds exactly.",
    ops=("ScatterND",),
    find=find,
    before="ScatterND(x, indices, updates, reduction=add)",
    after="x + Reshape(MatMul(Cast(Equal(Range(rows), row numbers)), updates)); max by ReduceMax(Where(..))",
    judged_as_float32=True,
)

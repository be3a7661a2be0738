"""Values selected by a mask, read as an expression over all places.

Exporters write x[mask] as GatherND(x, Transpose(NonZero(mask))): as many rows as the mask has ones, which depends
on the data. Whatever is computed place by place from such rows, then reduced or put back, can be computed everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from trtconv.proof.probes.decisions import INTEGERS
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.selection.masks import Mask, fits, mask_of_columns, spread_mask

UNARY = (
    "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign",
    "Sin", "Softplus", "Sqrt", "Tanh", "Cast", "Clip", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Identity", "Gelu",
    "HardSwish", "Mish", "IsNaN", "IsInf", "Tan", "Atan",
)  # fmt: skip
BINARY = (
    "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual",
    "Greater", "GreaterOrEqual",
)  # fmt: skip
COUNTS = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2) | {"Where": 3}
# What takes each row for itself, and gives a row for it.
PRODUCTS = ("MatMul", "Gemm")
NORMALISED = ("Softmax", "LogSoftmax", "LayerNormalization")
REDUCED = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp")
ROW_BY_ROW = (*PRODUCTS, *NORMALISED, *REDUCED, "Concat")
DIVIDING = ("Div", "Mod")
VIEWS = ("Reshape", "Expand", "Slice")
DEPTH = 24


@dataclass(frozen=True)
class Dense:
    """An expression over all places: `build` makes it, with `tail` axes behind those of the mask.

    `gathered` are the values that are selected from (empty for a constant); `nodes` is what it stands for. Of the axes
    of the mask it has `axes`; the others are of size 1.
    """

    build: Callable[[Replacement], Value]
    tail: int
    nodes: tuple[Node, ...]
    gathered: tuple[str, ...] = ()
    axes: tuple[int, ...] = ()


def dense(graph: Graph, name: str, mask: Mask, depth: int = DEPTH) -> Dense | None:
    """Read a value as computed place by place from what `mask` selects; None where it is not."""
    constant = graph.constant(name)
    if constant is not None and constant.size and np.all(constant == constant.reshape(-1)[0]):
        first = constant.reshape(-1)[0]
        return Dense(lambda g: g.const(np.asarray(first)), 0, ())
    node = graph.maker(name)
    if node is None or depth == 0:
        return None
    if node.key == "ConstantOfShape":
        return Dense(lambda g: g.const(_fill(node)), 0, (node,))
    if node.key in ("GatherND", "Gather") and (rows := _gathered(graph, node, mask)) is not None:
        return rows
    if node.key in ("Unsqueeze", "Squeeze") and (rows := _reranked(graph, node, mask, depth)) is not None:
        return rows
    if node.key == "Reshape" and (rows := _of_one_row(graph, node, mask, depth)) is not None:
        return rows
    if node.key == "Slice" and (cut := _cut_rows(graph, node, mask, depth)) is not None:
        return cut
    if node.key in VIEWS:
        below = dense(graph, node.inputs[0], mask, depth - 1)
        if below is None or not (not below.gathered or _keeps_rows(graph, node)):
            return None
        return Dense(below.build, below.tail, (*below.nodes, node), below.gathered, below.axes)
    if _is_number(graph, name):
        return Dense(lambda g: g.reshape(name), 0, ())
    if node.key in ROW_BY_ROW:
        return _row_by_row(graph, node, mask, depth)
    if len(node.inputs) >= COUNTS.get(node.key, DEPTH) and (node.key in UNARY or len(node.inputs) == COUNTS[node.key]):
        return _elementwise(graph, node, mask, depth)
    return None


def _fill(node: Node) -> Any:
    from onnx import numpy_helper

    value = node.attr("value")
    return np.asarray(0, np.float32) if value is None else numpy_helper.to_array(value).reshape(())


def _gathered(graph: Graph, node: Node, mask: Mask) -> Dense | None:
    """What is selected, with the axes of the mask in front; one that its indices are not of has the size 1."""
    index_mask = mask_of_columns(graph, node.inputs[1])
    value = node.inputs[0]
    rank = graph.rank(value)
    if index_mask is None or index_mask.name != mask.name or not rank:
        return None
    columns = index_mask.columns
    is_one_axis = node.attr("axis", 0) == 0 and len(columns) == 1 and graph.rank(node.inputs[1]) == 1
    is_rows = is_one_axis if node.key == "Gather" else not node.attr("batch_dims", 0)
    if not is_rows or rank < len(columns) or len(set(columns)) < len(columns):
        return None
    build = partial(_in_front, value=value, mask=index_mask, fitting=fits(graph, index_mask, value))
    return Dense(build, rank - len(columns), (*index_mask.nodes, node), (value,), tuple(sorted(columns)))


def _in_front(g: Replacement, value: str, mask: Mask, fitting: bool) -> Value:
    """The value with its axes in the order of the mask's, and without what lies beyond those, where its sizes are not
    known to be the mask's.
    """
    result: Value = value
    columns = mask.columns
    if not fitting:
        shape = g.shape_of(mask.name)
        ends = shape if mask.is_whole else g.gather(shape, g.ints(*columns), axis=0)
        result = g.slice(value, g.ints(*[0] * len(columns)), ends, range(len(columns)))
    if list(columns) != sorted(columns):
        rank = g.index.rank(value) or 0
        order = sorted(range(len(columns)), key=lambda i: columns[i])
        result = g.transpose(result, *order, *range(len(columns), rank))
    missing = [a for a in range(mask.rank) if a not in columns]
    return g.unsqueeze(result, *missing) if missing else result


def _keeps_rows(graph: Graph, node: Node) -> bool:
    """True for a view of rows that leaves them as they are: the number of rows cannot change on the way back."""
    before, after = graph.dims(node.inputs[0]), graph.dims(node.output)
    if before is None or after is None or len(before) != len(after) or not before:
        return False
    if node.key == "Slice":
        starts, axes = graph.ints(node.input(1)), graph.ints(node.input(3)) if node.input(3) else (0,)
        steps = graph.ints(node.input(4)) if node.input(4) else (1,)
        return starts == (0,) and axes == (0,) and steps == (1,)
    return all(isinstance(d, int) for d in before[1:]) and before[1:] == after[1:]


def _is_number(graph: Graph, name: str) -> bool:
    """True for one number that does not come from the selection as a row of it."""
    return graph.dims(name) in ((), (1,)) and graph.maker(name, "GatherND", *VIEWS) is None


def _elementwise(graph: Graph, node: Node, mask: Mask, depth: int) -> Dense | None:
    count = COUNTS[node.key]
    read = [dense(graph, v, mask, depth - 1) for v in node.inputs[:count]]
    tails = {p.tail for p in read if p is not None and p.gathered}
    if len(tails) != 1:
        return None
    (tail,) = tails
    parts = [p or _vector(graph, v, tail) for v, p in zip(node.inputs, read, strict=False)]
    present = [p for p in parts if p is not None]
    if len(present) < count:
        return None
    build = partial(_rebuilt, node=node, parts=present, mask=mask, whole=graph.dtype(node.inputs[0]) in INTEGERS)
    return _joined(build, tail, node, present)


def _joined(build: Callable[[Replacement], Value], tail: int, node: Node, parts: list[Dense]) -> Dense:
    gathered = tuple(dict.fromkeys(g for p in parts for g in p.gathered))
    nodes = tuple({id(n): n for p in parts for n in (*p.nodes, node)}.values())
    return Dense(build, tail, nodes, gathered, tuple(sorted({a for p in parts for a in p.axes})))


def _vector(graph: Graph, name: str, tail: int) -> Dense | None:
    """What is the same for all rows, as a bias is: a value of fixed sizes with no more axes than a row has."""
    dims = graph.dims(name)
    if dims is None or len(dims) > tail or not all(isinstance(d, int) for d in dims):
        return None
    return Dense(lambda g: name, 0, ())


def _rebuilt(g: Replacement, node: Node, parts: list[Dense], mask: Mask, whole: bool) -> Value:
    attributes: Mapping[str, Any] = node.attributes()
    values = [p.build(g) for p in parts]
    if node.key in DIVIDING and whole and parts[1].gathered:
        # Whole numbers are divided by 0 in places that nothing selects, which ends ONNX Runtime by a signal.
        values[1] = g.where(spread_mask(g, mask, parts[1].tail), values[1], g.scalar(1, like=values[1]))
    return g.op(node.op, *values, *node.inputs[len(parts) :], **attributes)


def _row_by_row(graph: Graph, node: Node, mask: Mask, depth: int) -> Dense | None:
    """A layer on each of the selected rows: a product with weights, a normalisation or a reduction of the row."""
    rank = graph.rank(node.inputs[0])
    parts = [dense(graph, v, mask, depth - 1) for v in node.inputs[: len(node.inputs) if node.key == "Concat" else 1]]
    rows = [p for p in parts if p is not None and p.gathered and p.tail]
    if not rank or not rows or len(rows) < len(parts) or any(p.tail != rank - 1 for p in rows):
        return None
    first, tail = rows[0], rank - 1
    if len({p.axes for p in rows}) > 1:
        return None
    if node.key in PRODUCTS:
        return _product(graph, node, first)
    if node.key in REDUCED:
        axes = graph.reduced_axes(node)
        if not axes or 0 in axes:
            return None
        from_behind, keeps = [a - rank for a in axes], bool(node.attr("keepdims", 1))
        left = tail if keeps else tail - len(axes)
        return _joined(lambda g: g.reduce(node.op, first.build(g), from_behind, keepdims=keeps), left, node, rows)
    axis = node.attr("axis", -1)
    axis = axis - rank if axis >= 0 else axis
    if axis == -rank:
        return None
    attributes = {**node.attributes(), "axis": axis}
    rest = () if node.key == "Concat" else node.inputs[1:]
    return _joined(lambda g: g.op(node.op, *(p.build(g) for p in rows), *rest, **attributes), tail, node, rows)


def _cut_rows(graph: Graph, node: Node, mask: Mask, depth: int) -> Dense | None:
    """A part of each row, by axes that are known and not that of the rows."""
    rank, axes = graph.rank(node.inputs[0]), graph.ints(node.input(3)) if node.input(3) else None
    row = dense(graph, node.inputs[0], mask, depth - 1) if rank and axes else None
    if row is None or not rank or not axes or not row.gathered or row.tail != rank - 1:
        return None
    from_behind = [a if a < 0 else a - rank for a in axes]
    if -rank in from_behind:
        return None
    starts, ends, steps = node.inputs[1], node.inputs[2], node.input(4)

    def build(g: Replacement) -> Value:
        return g.op("Slice", row.build(g), starts, ends, g.ints(*from_behind), steps)

    return _joined(build, row.tail, node, [row])


def _reranked(graph: Graph, node: Node, mask: Mask, depth: int) -> Dense | None:
    """Rows with axes of size 1 more or less."""
    row = dense(graph, node.inputs[0], mask, depth - 1)
    axes = graph.ints(node.input(1)) if node.input(1) else node.attr("axes")
    # Axes are counted in what has more of them.
    rank = graph.rank(node.output if node.key == "Unsqueeze" else node.inputs[0])
    if row is None or not row.gathered or not axes or not rank:
        return None
    inner = [a % rank for a in axes]
    if 0 in inner:
        return None
    shifted = [a - 1 + mask.rank for a in inner]
    more = len(inner) if node.key == "Unsqueeze" else -len(inner)

    def build(g: Replacement) -> Value:
        return g.unsqueeze(row.build(g), *shifted) if more > 0 else g.squeeze(row.build(g), *shifted)

    return _joined(build, row.tail + more, node, [row])


def _of_one_row(graph: Graph, node: Node, mask: Mask, depth: int) -> Dense | None:
    """`x[None, rows].reshape(-1, width)`, as a mixture of experts has it: rows of one row each, behind one another."""
    turned = graph.maker(node.inputs[0], "Transpose")
    if turned is None or list(turned.attr("perm", ())) != [1, 0, 2]:
        return None
    inner, outer = graph.dims(turned.inputs[0]), graph.dims(node.output)
    row = dense(graph, turned.inputs[0], mask, depth - 1)
    if row is None or row.tail != 2 or inner is None or outer is None or len(outer) != 2:
        return None
    if inner[1] != 1 or not isinstance(inner[2], int) or inner[2] != outer[1]:
        return None
    joined = _joined(lambda g: g.squeeze(row.build(g), mask.rank), 1, node, [row])
    return replace(joined, nodes=(*joined.nodes, turned))


def _product(graph: Graph, node: Node, rows: Dense) -> Dense | None:
    """Rows times a matrix of fixed sizes, and a bias."""
    weights, bias = node.inputs[1], node.input(2)
    dims = graph.dims(weights)
    scaled = any(node.attr(name, 1.0) != 1.0 for name in ("alpha", "beta"))
    if dims is None or len(dims) != 2 or not all(isinstance(d, int) for d in dims):
        return None
    if node.key == "Gemm" and (scaled or node.attr("transA", 0) or rows.tail != 1):
        return None
    if bias and _vector(graph, bias, rows.tail) is None:
        return None

    def build(g: Replacement) -> Value:
        matrix = g.transpose(weights, 1, 0) if node.attr("transB", 0) else weights
        product = g.matmul(rows.build(g), matrix)
        return g.add(product, bias) if bias else product

    return _joined(build, rows.tail, node, [rows])

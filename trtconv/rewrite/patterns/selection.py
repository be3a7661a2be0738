"""Values selected by a mask, read as an expression over all places.

Exporters write x[mask] as GatherND(x, Transpose(NonZero(mask))): as many rows as the mask has ones, which depends
on the data. Whatever is computed place by place from such rows, then reduced or put back, can be computed everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.sizes import dim_size, same_dim, size_element

BOOL = 9
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
WHOLE = (2, 3, 4, 5, 6, 7, 12, 13)
VIEWS = ("Reshape", "Expand", "Slice")
DEPTH = 24


@dataclass(frozen=True)
class Mask:
    """A boolean value and its rank, and the nodes from it to the indices of its ones."""

    name: str
    rank: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Dense:
    """An expression over all places: `build` makes it, with `tail` axes behind those of the mask.

    `gathered` are the values that are selected from (empty for a constant); `nodes` is what it stands for.
    """

    build: Callable[[Replacement], Value]
    tail: int
    nodes: tuple[Node, ...]
    gathered: tuple[str, ...] = ()


def mask_of_indices(graph: Graph, name: str) -> Mask | None:
    """The mask behind Transpose(NonZero(mask)), the indices [ones, rank] of its ones."""
    turned, casts = graph.behind(name, "Identity", "Cast")
    joined = _joined_columns(graph, turned)
    turned, columns = joined or (turned, ())
    transpose = graph.maker(turned, "Transpose")
    if transpose is None or list(transpose.attr("perm", [1, 0])) != [1, 0]:
        return None
    mask = mask_of_nonzero(graph, transpose.inputs[0])
    count = sum(n.key == "Slice" for n in columns)
    if mask is None or (joined and count != mask.rank):
        return None
    return Mask(mask.name, mask.rank, (*mask.nodes, transpose, *columns, *casts))


def _joined_columns(graph: Graph, name: str) -> tuple[str, tuple[Node, ...]] | None:
    """What all columns of a matrix are cut from that a Concat joins in their order, as torch.export writes
    `x[mask] = ...`; and the nodes between, a Slice for each.
    """
    concat = graph.maker(name, "Concat")
    if concat is None or concat.attr("axis") not in (-1, 1):
        return None
    sources, nodes = set(), []
    for column, part in enumerate(concat.inputs):
        cut, views = graph.behind(part, "Unsqueeze", "Squeeze", "Identity", "Cast")
        node = graph.maker(cut, "Slice")
        bounds = [graph.ints(node.input(i)) if node and node.input(i) else None for i in (1, 2, 3)]
        if node is None or graph.rank(part) != 2 or bounds != [(column,), (column + 1,), (1,)]:
            return None
        sources.add(node.inputs[0])
        nodes += [node, *views]
    return (sources.pop(), (*nodes, concat)) if len(sources) == 1 else None


def mask_of_nonzero(graph: Graph, name: str) -> Mask | None:
    """The mask behind NonZero(mask), seen through a cast of it and an Expand to the shape that it has."""
    nonzero = graph.maker(graph.behind(name)[0], "NonZero")
    if nonzero is None:
        return None
    mask = nonzero.inputs[0]
    nodes: tuple[Node, ...] = (nonzero,)
    for _ in range(4):
        node = graph.maker(mask, "Cast", "Expand", "Identity")
        if node is None or (node.key == "Cast" and graph.dtype(node.inputs[0]) != BOOL):
            break
        if node.key == "Expand" and not _same_shape(graph, node):
            break
        mask, nodes = node.inputs[0], (node, *nodes)
    rank = graph.rank(mask)
    return Mask(mask, rank, nodes) if graph.dtype(mask) == BOOL and rank else None


def _same_shape(graph: Graph, expand: Node) -> bool:
    """True when the shape that it is expanded to is the one that it has, or the same number of ones at least."""
    value = expand.inputs[0]
    rank = graph.rank(value)
    if rank is None or graph.rank(expand.output) != rank:
        return False
    for axis in range(rank):
        own, size = dim_size(graph, value, axis), size_element(graph, expand.inputs[1], axis)
        if size is None or not (size.is_constant or size.is_dim) or not same_dim(graph, size, own):
            return False
        if size.is_constant and size.add != own.add:
            return False
    return True


def fits(graph: Graph, mask: Mask, value: str) -> bool:
    """True when the mask is known to have the shape of the first axes of the value."""
    own, mask_dims = graph.dims(value), graph.dims(mask.name)
    if own is None or mask_dims is None or len(own) < mask.rank or None in mask_dims:
        return False
    return tuple(own[: mask.rank]) == tuple(mask_dims)


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
    if node.key == "GatherND":
        return _gathered(graph, node, mask)
    if node.key == "Slice" and (cut := _cut_rows(graph, node, mask, depth)) is not None:
        return cut
    if node.key in VIEWS:
        below = dense(graph, node.inputs[0], mask, depth - 1)
        if below is None or not (not below.gathered or _keeps_rows(graph, node)):
            return None
        return Dense(below.build, below.tail, (*below.nodes, node), below.gathered)
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
    index_mask = mask_of_indices(graph, node.inputs[1])
    value = node.inputs[0]
    rank = graph.rank(value)
    if index_mask is None or index_mask.name != mask.name or node.attr("batch_dims", 0) or not rank:
        return None
    if rank < mask.rank:
        return None
    build = (lambda g: value) if fits(graph, mask, value) else partial(_cut_to_mask, value=value, mask=mask)
    return Dense(build, rank - mask.rank, (*index_mask.nodes, node), (value,))


def _cut_to_mask(g: Replacement, value: str, mask: Mask) -> Value:
    """The value without what lies beyond the mask, for one whose sizes are not known to be the mask's."""
    return g.slice(value, g.ints(*[0] * mask.rank), g.shape_of(mask.name), range(mask.rank))


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
    build = partial(_rebuilt, node=node, parts=present, mask=mask, whole=graph.dtype(node.inputs[0]) in WHOLE)
    return _joined(build, tail, node, present)


def _joined(build: Callable[[Replacement], Value], tail: int, node: Node, parts: list[Dense]) -> Dense:
    gathered = tuple(dict.fromkeys(g for p in parts for g in p.gathered))
    nodes = tuple({id(n): n for p in parts for n in (*p.nodes, node)}.values())
    return Dense(build, tail, nodes, gathered)


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


def spread_mask(g: Replacement, mask: Mask, tail: int) -> Value:
    """The mask with axes of size 1 for the tail."""
    return g.unsqueeze(mask.name, *range(mask.rank, mask.rank + tail)) if tail else mask.name

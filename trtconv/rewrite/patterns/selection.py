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
    "Sin", "Softplus", "Sqrt", "Tanh", "Cast", "Clip", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Identity",
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "And", "Or", "Equal", "Less", "Greater")
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
    transpose = graph.maker(turned, "Transpose")
    if transpose is None or list(transpose.attr("perm", [1, 0])) != [1, 0]:
        return None
    mask = mask_of_nonzero(graph, transpose.inputs[0])
    return None if mask is None else Mask(mask.name, mask.rank, (*mask.nodes, transpose, *casts))


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
    if node.key in VIEWS:
        below = dense(graph, node.inputs[0], mask, depth - 1)
        if below is None or not (not below.gathered or _keeps_rows(graph, node)):
            return None
        return Dense(below.build, below.tail, (*below.nodes, node), below.gathered)
    if _is_number(graph, name):
        return Dense(lambda g: g.reshape(name), 0, ())
    if node.key in UNARY or (node.key in BINARY and len(node.inputs) == 2):
        return _elementwise(graph, node, mask, depth)
    return None


def _fill(node: Node) -> Any:
    from onnx import numpy_helper

    value = node.attr("value")
    return np.asarray(0, np.float32) if value is None else numpy_helper.to_array(value).reshape(())


def _gathered(graph: Graph, node: Node, mask: Mask) -> Dense | None:
    index_mask = mask_of_indices(graph, node.inputs[1])
    value = node.inputs[0]
    if index_mask is None or index_mask.name != mask.name or node.attr("batch_dims", 0) or not fits(graph, mask, value):
        return None
    tail = (graph.rank(value) or 0) - mask.rank
    return Dense(lambda g: value, tail, (*index_mask.nodes, node), (value,))


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
    count = 2 if node.key in BINARY else 1
    parts = [dense(graph, v, mask, depth - 1) for v in node.inputs[:count]]
    dense_parts = [p for p in parts if p is not None]
    if len(dense_parts) < count or not any(p.gathered for p in dense_parts):
        return None
    tails = {p.tail for p in dense_parts if p.gathered}
    if len(tails) > 1:
        return None
    gathered = tuple(dict.fromkeys(g for p in dense_parts for g in p.gathered))
    nodes = tuple({id(n): n for p in dense_parts for n in (*p.nodes, node)}.values())
    return Dense(partial(_rebuilt, node=node, parts=dense_parts, count=count), tails.pop(), nodes, gathered)


def _rebuilt(g: Replacement, node: Node, parts: list[Dense], count: int) -> Value:
    attributes: Mapping[str, Any] = node.attributes()
    return g.op(node.op, *(p.build(g) for p in parts), *node.inputs[count:], **attributes)


def spread_mask(g: Replacement, mask: Mask, tail: int) -> Value:
    """The mask with axes of size 1 for the tail."""
    return g.unsqueeze(mask.name, *range(mask.rank, mask.rank + tail)) if tail else mask.name

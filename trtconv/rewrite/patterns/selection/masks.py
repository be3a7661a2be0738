"""The mask behind the indices that NonZero gives, and which of its axes they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import BOOL, INTEGERS, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.sizes import dim_size, same_dim, size_element


@dataclass(frozen=True)
class Mask:
    """A value of booleans, or of whole numbers of which 0 is false, its rank, and the nodes from it to the indices of
    what is true.

    `columns` are the axes of the mask that the indices are of, in their order: all of them, or as in
    `rows, _ = torch.where(mask)` a part.
    """

    name: str
    rank: int
    nodes: tuple[Node, ...]
    columns: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """True where the indices are of all axes in their order."""
        return self.columns == tuple(range(self.rank))


def mask_of_indices(graph: Graph, name: str) -> Mask | None:
    """The mask behind Transpose(NonZero(mask)), the indices [ones, rank] of all its axes."""
    mask = mask_of_columns(graph, name)
    return mask if mask is not None and mask.is_whole else None


def mask_of_columns(graph: Graph, name: str) -> Mask | None:
    """The mask behind indices [ones, columns] that NonZero gives, or behind one column of them, [ones].

    The columns may be cut apart, and some of them joined again, as torch.export writes `x[rows, columns]`.
    """
    turned, casts = graph.behind(name, "Identity", "Cast")
    whole = _turned(graph, turned)
    if whole is not None:
        return _with(whole, whole.columns, casts)
    concat = graph.maker(turned, "Concat")
    parts = concat.inputs if concat is not None and concat.attr("axis") in (-1, 1) else [turned]
    columns = [_column(graph, part) for part in parts]
    present = [c for c in columns if c is not None]
    if len(present) < len(parts) or len({c.name for c in present}) != 1:
        return None
    nodes = [*(n for c in present for n in c.nodes), *([concat] if concat is not None else []), *casts]
    first = present[0]
    unique = tuple({id(n): n for n in nodes}.values())
    return Mask(first.name, first.rank, unique, tuple(c.columns[0] for c in present))


def _column(graph: Graph, name: str) -> Mask | None:
    """One column of the indices, [ones] or [ones, 1]."""
    cut, views = graph.behind(name, "Unsqueeze", "Squeeze", "Identity", "Cast")
    node = graph.maker(cut, "Slice", "Gather")
    whole = _turned(graph, cut)
    if whole is not None and whole.rank == 1:
        return _with(whole, whole.columns, views)
    if node is None:
        return None
    whole = _turned(graph, node.inputs[0])
    if node.key == "Slice":
        bounds = [graph.ints(node.input(i)) if node.input(i) else None for i in (1, 2, 3)]
        start = bounds[0][0] if bounds[0] and len(bounds[0]) == 1 else -1
        is_column = bounds == [(start,), (start + 1,), (1,)] and start >= 0
    else:
        index = graph.constant(node.inputs[1])
        start = int(index.reshape(-1)[0]) if index is not None and index.size == 1 else -1
        is_column = node.attr("axis", 0) in (1, -1) and start >= 0
    if whole is None or not is_column or start >= whole.rank:
        return None
    return _with(whole, (start,), (node, *views))


def _turned(graph: Graph, name: str) -> Mask | None:
    """The mask behind Transpose(NonZero(mask))."""
    transpose = graph.maker(name, "Transpose")
    if transpose is None or list(transpose.attr("perm", [1, 0])) != [1, 0]:
        return None
    mask = mask_of_nonzero(graph, transpose.inputs[0])
    return None if mask is None else _with(mask, mask.columns, (transpose,))


def _with(mask: Mask, columns: tuple[int, ...], nodes: Sequence[Node]) -> Mask:
    return Mask(mask.name, mask.rank, (*mask.nodes, *nodes), columns)


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
    return Mask(mask, rank, nodes, tuple(range(rank))) if graph.dtype(mask) in (BOOL, *INTEGERS) and rank else None


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
    """True when the first axes of the value are known to have the sizes of the mask's that the indices are of."""
    own, mask_dims, axes = graph.dims(value), graph.dims(mask.name), mask.columns
    if own is None or mask_dims is None or len(own) < len(axes) or any(mask_dims[a] is None for a in axes):
        return False
    return tuple(own[: len(axes)]) == tuple(mask_dims[a] for a in axes)


def spread_mask(g: Replacement, mask: Mask, tail: int) -> Value:
    """The mask in booleans, with axes of size 1 for the tail."""
    value: Value = mask.name if g.dtype(mask.name) == BOOL else g.cast(mask.name, BOOL)
    return g.unsqueeze(value, *range(mask.rank, mask.rank + tail)) if tail else value

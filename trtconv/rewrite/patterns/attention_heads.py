"""Attention as exporters write it: which columns of which rows are query, key and value, and what their scores are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trtconv.rewrite.graph.index import Graph, Node

BATCH, HEAD, ROW, COLUMN, PART = "batch", "head", "row", "column", "part"
CHAIN = 12
"""The most nodes between a product and the rows that it is of."""


@dataclass(frozen=True)
class Heads:
    """One side of attention: heads of `size` columns each, beside one another from `offset` on in rows `[B, L, W]`."""

    rows: str
    offset: int
    heads: int
    size: int
    scale: float
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Addend:
    """What is added to the scores. `groups` is set where the batch of the scores is `[B / groups, groups]` then."""

    value: str
    groups: int


@dataclass(frozen=True)
class Scores:
    """scale * query key^T plus the addends, in their order."""

    query: Heads
    key: Heads
    scale: float
    addends: tuple[Addend, ...]
    nodes: tuple[Node, ...]


def heads_of(graph: Graph, name: str, labels: tuple[str, ...]) -> Heads | None:
    """The rows and columns that an operand with axes of these labels is made of; None for anything else."""
    axes, scale = list(labels), 1.0
    part: int | None = None
    nodes: list[Node] = []
    for _ in range(CHAIN):
        node = graph.maker(name)
        if node is None:
            return None
        nodes.append(node)
        if node.key == "Reshape":
            return _finish(graph, node, axes, part, scale, nodes)
        if node.key == "Transpose" and len(perm := list(node.attr("perm", ()))) == len(axes):
            before = [""] * len(axes)
            for axis, source in enumerate(perm):
                before[source] = axes[axis]
            axes = before
        elif node.key in ("Mul", "Div"):
            factor = _factor(graph, node)
            if factor is None:
                return None
            scale *= factor[1]
            name = factor[0]
            continue
        elif node.key in ("Squeeze", "Gather") and PART not in axes:
            removed = _removed_axis(graph, node, len(axes))
            if removed is None:
                return None
            axes.insert(removed, PART)
            part = _gathered(graph, node, removed) if node.key == "Gather" else part
        elif node.key in ("Slice", "Split") and PART in axes and part is None:
            part = _selected(graph, node, axes.index(PART), name)
            if part is None:
                return None
        elif node.key != "Identity":
            return None
        name = node.inputs[0]
    return None


def scores_of(graph: Graph, name: str, groups: int = 0, depth: int = 8) -> Scores | None:
    """The product, scale and addends behind scores `[B, heads, Lq, Lk]`, or `[B / groups, groups, ...]` with groups."""
    node = graph.maker(name)
    if node is None or depth == 0 or not graph.used_once(name):
        return None
    if node.key == "MatMul" and not groups:
        query = heads_of(graph, node.inputs[0], (BATCH, HEAD, ROW, COLUMN))
        key = heads_of(graph, node.inputs[1], (BATCH, HEAD, COLUMN, ROW))
        if query is None or key is None or (query.heads, query.size) != (key.heads, key.size):
            return None
        return Scores(query, key, query.scale * key.scale, (), (*query.nodes, *key.nodes, node))
    inner: Scores | None = None
    if node.key in ("Mul", "Div") and (factor := _factor(graph, node)) is not None:
        inner = scores_of(graph, factor[0], groups, depth - 1)
        if inner is None or inner.addends:
            return None
        return replace(inner, scale=inner.scale * factor[1], nodes=(*inner.nodes, node))
    if node.key == "Add":
        for index in (0, 1):
            inner = scores_of(graph, node.inputs[index], groups, depth - 1)
            if inner is not None:
                addend = Addend(node.inputs[1 - index], groups)
                return replace(inner, addends=(*inner.addends, addend), nodes=(*inner.nodes, node))
    if node.key == "Reshape" and (other := _regrouped(graph, node, groups)) is not None:
        inner = scores_of(graph, node.inputs[0], other, depth - 1)
        return None if inner is None else replace(inner, nodes=(*inner.nodes, node))
    return None


def keeps_rows(graph: Graph, node: Node) -> bool:
    """Whether a Reshape that says how the columns are split or joined leaves batch and rows as they are.

    One of them that stays is enough: the number of elements is the same.
    """
    before, after = graph.dims(node.inputs[0]) or (), graph.dims(node.output) or ()
    copied = graph.ints(node.inputs[1]) if not node.attr("allowzero", 0) else None
    if copied is not None and 0 in copied[:2]:
        return True
    return any(b is not None and b == a for b, a in zip(before[:2], after[:2], strict=False))


def _finish(
    graph: Graph, node: Node, axes: list[str], part: int | None, scale: float, nodes: list[Node]
) -> Heads | None:
    """The Reshape that gives rows their heads: `[B, L, W]` to `[B, L, (parts,) heads, size]`."""
    expected = [BATCH, ROW, *([PART] if part is not None else []), HEAD, COLUMN]
    before, after = graph.dims(node.inputs[0]), graph.dims(node.output)
    if axes != expected or before is None or after is None or len(before) != 3 or len(after) != len(axes):
        return None
    sizes = [d for d in after[2:] if isinstance(d, int)]
    if len(sizes) != len(after) - 2 or not keeps_rows(graph, node):
        return None
    parts, heads, size = (1, *sizes)[-3:]
    if before[2] != parts * heads * size:
        return None
    return Heads(node.inputs[0], (part or 0) * heads * size, heads, size, scale, tuple(nodes))


def _factor(graph: Graph, node: Node) -> tuple[str, float] | None:
    """Of a product with or a quotient by one number: the other operand, and the number that multiplies it."""
    operand = graph.operand(node)
    if operand is None or operand[1].size != 1:
        return None
    number = float(operand[1].reshape(-1)[0])
    if node.key == "Div":
        if operand[0] != node.inputs[0] or number == 0:
            return None
        number = 1 / number
    return operand[0], number


def _removed_axis(graph: Graph, node: Node, rank: int) -> int | None:
    """The one axis that a Squeeze or a Gather with one index takes away, of `rank` + 1."""
    if node.key == "Gather":
        index = graph.constant(node.inputs[1])
        return int(node.attr("axis", 0)) % (rank + 1) if index is not None and index.ndim == 0 else None
    axes = node.attr("axes") if not node.input(1) else graph.ints(node.inputs[1])
    return int(axes[0]) % (rank + 1) if axes is not None and len(axes) == 1 else None


def _gathered(graph: Graph, node: Node, axis: int) -> int | None:
    index, dims = graph.scalar(node.inputs[1]), graph.dims(node.inputs[0])
    count = dims[axis] if dims is not None and axis < len(dims) else None
    return int(index) % count if index is not None and isinstance(count, int) and count else None


def _selected(graph: Graph, node: Node, axis: int, output: str) -> int | None:
    """The one part that a Slice, or an output of a Split into single parts, takes of an axis."""
    dims = graph.dims(node.inputs[0])
    count = dims[axis] if dims is not None and axis < len(dims) else None
    if not isinstance(count, int) or dims is None:
        return None
    if node.key == "Split":
        if int(node.attr("axis", 0)) % len(dims) != axis or len(node.outputs) != count:
            return None
        return node.outputs.index(output)
    starts, ends, axes = (graph.ints(node.input(i)) for i in (1, 2, 3))
    steps = graph.ints(node.input(4)) if node.input(4) else (1,)
    if starts is None or ends is None or axes is None or steps != (1,) or len(starts) != 1:
        return None
    start = starts[0] + count if starts[0] < 0 else starts[0]
    end = min(ends[0] + count if ends[0] < 0 else ends[0], count)
    return start if axes[0] % len(dims) == axis and end == start + 1 and 0 <= start < count else None


def _regrouped(graph: Graph, node: Node, groups: int) -> int | None:
    """The groups of the scores before a Reshape that splits their batch, or puts it together again."""
    before, after = graph.dims(node.inputs[0]), graph.dims(node.output)
    if before is None or after is None:
        return None
    split, whole = (after, before) if groups else (before, after)
    if len(split) != 5 or len(whole) != 4 or None in (*split[1:], *whole[1:]) or split[2:] != whole[1:]:
        return None
    number = split[1]
    if not isinstance(number, int) or number < 1 or (groups and number != groups):
        return None
    return 0 if groups else number

"""The sizes at which a condition on fractions of sizes turns: `W / H <= 4 / 3` turns, for each H, at one W.

Python computes such a condition in FP64, which TensorRT does not have, and FP32 decides otherwise where the two sides
are equal. What it comes to is known for every joint size, so that a file can look it up: for each size of one dim the
sizes of the other from which on it is no longer what it was before.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.guards import Guard
from trtconv.export.sizes.evaluate import WHOLE_OF_FLOATS, UnreadableError, called_name, evaluate_text
from trtconv.proof.joint_sizes import count_sizes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Joint sizes at which a condition is evaluated at once, and numbers in a table, of 8 bytes each.
MOST_EVALUATED, MOST_NUMBERS = 1 << 22, 1 << 15
# Sides that are as near to each other as this may have been equal, or not, before torch rearranged the formula.
NEAR = 1e-12
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# What is a whole number of whole numbers.
WHOLE_OF_WHOLE = ("Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "Max", "Min", "max", "min", "Abs", "abs")
# Past every size.
NEVER = 2**31 - 1
# Characters of a number that stands in a program, and not of one that was computed.
LONGEST = 8


class NoTableError(Exception):
    """The condition is on other than one or two dims, turns too often, or hangs on a last bit that torch lost."""


@dataclass(frozen=True)
class TurningSizes:
    """Where a condition turns along `dim`: it holds at a size that has passed an odd number of the turns.

    `table` is int64: [rows, turns], a row for each size of the dim `by`, or one row where `by` is None. `rows` are the
    first size of `by`, the step between its sizes, and the last row.
    """

    dim: str
    by: str | None
    rows: tuple[int, int, int]
    table: Array


def turning_sizes(guard: Guard, space: ShapeSpace) -> TurningSizes:
    """The smaller of the two tables of a condition on two dims, or that of one dim. Raises NoTableError."""
    if len(guard.names) not in (1, 2) or count_sizes(space, guard.names) > MOST_EVALUATED:
        raise NoTableError("it is no condition on two dims of few sizes")
    if _rearranged(guard.text) and near_ties(guard, space):
        raise NoTableError("its last bit decides, and torch rearranged the formula")
    pairs = [(guard.names[0], guard.names[-1]), (guard.names[-1], guard.names[0])][: len(guard.names)]
    tables = [_table(guard, space, dim, by if by != dim else None) for dim, by in pairs]
    best = min(tables, key=lambda turns: turns.table.size)
    if best.table.size > MOST_NUMBERS:
        raise NoTableError("it turns too often")
    return best


def _table(guard: Guard, space: ShapeSpace, dim: str, by: str | None) -> TurningSizes:
    import numpy as np

    sizes = np.array(space[dim].values(), np.int64)
    rows = np.array(space[by].values(), np.int64) if by is not None else np.zeros(1, np.int64)
    grids = {dim: sizes[None, :], **({by: rows[:, None]} if by is not None else {})}
    try:
        holds = np.broadcast_to(guard.holds_at(grids), (len(rows), len(sizes)))
    except ValueError as error:
        raise NoTableError("it cannot be read") from error
    before = np.concatenate([np.zeros((len(rows), 1), bool), holds[:, :-1]], axis=1)
    turns = holds != before
    table = np.full((len(rows), max(1, int(turns.sum(1).max()))), NEVER, np.int64)
    for row, turning in enumerate(turns):
        table[row, : int(turning.sum())] = sizes[turning]
    step = int(rows[1] - rows[0]) if len(rows) > 1 else 1
    return TurningSizes(dim, by, (int(rows[0]), step, len(rows) - 1), table)


def near_ties(guard: Guard, space: ShapeSpace, most: int = 8) -> list[dict[str, int]]:
    """Sizes at which the last bit of a fraction decides, or nearly so: up to `most` of all.

    There the two sides of a comparison are equal, or what is rounded is whole. Empty for a condition without fractions,
    on many sizes, or that cannot be read.
    """
    import numpy as np

    from trtconv.proof.joint_sizes import size_grids, sizes_where

    if not _has_fractions(guard.text) or not all(n in space for n in guard.names):
        return []
    if count_sizes(space, guard.names) > MOST_EVALUATED:
        return []
    ties: list[dict[str, int]] = []
    for grids in size_grids(space, guard.names, MOST_EVALUATED):
        for left, right in _turning(guard.text):
            try:
                a = _sides(left, grids)
                b = np.rint(a) if right is None else _sides(right, grids)
            except UnreadableError:
                continue
            near = np.abs(a - b) <= NEAR * np.maximum(np.abs(a), np.abs(b))
            ties += sizes_where(near, grids, most)
    return [t for i, t in enumerate(ties) if t not in ties[:i]][:most]


def _sides(text: str, grids: Mapping[str, Array]) -> Array:
    return evaluate_text(text, grids).astype(float)


def _turning(text: str) -> Iterator[tuple[str, str | None]]:
    """The two sides of each comparison of fractions; each fraction that is rounded, with None."""
    for tree in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(tree, ast.Compare) and all(isinstance(o, COMPARISONS) for o in tree.ops):
            for left, right in itertools.pairwise((tree.left, *tree.comparators)):
                if not (_is_whole(left) and _is_whole(right)):
                    yield ast.unparse(left), ast.unparse(right)
        elif called_name(tree) in WHOLE_OF_FLOATS:
            yield from ((ast.unparse(a), None) for a in tree.args if not _is_whole(a))  # type: ignore[attr-defined]


def _is_whole(tree: ast.AST) -> bool:
    """True for what is computed without fractions, or rounded: Python and torch agree on it in any order."""
    if isinstance(tree, ast.Constant):
        return isinstance(tree.value, int)
    if isinstance(tree, ast.Name):
        return True
    if isinstance(tree, ast.UnaryOp):
        return _is_whole(tree.operand)
    if isinstance(tree, ast.BinOp):
        return not isinstance(tree.op, (ast.Div, ast.Pow)) and _is_whole(tree.left) and _is_whole(tree.right)
    name = called_name(tree)
    return name in WHOLE_OF_FLOATS or (name in WHOLE_OF_WHOLE and all(map(_is_whole, tree.args)))  # type: ignore[attr-defined]


def _has_fractions(text: str) -> bool:
    return any(
        isinstance(tree, ast.Div) or (isinstance(tree, ast.Constant) and isinstance(tree.value, float))
        for tree in ast.walk(ast.parse(text.strip(), mode="eval"))
    )


def _rearranged(text: str) -> bool:
    """True where a product or a sum has three parts or more, or a factor that is no number a person writes.

    Python computes them in the order in which they stand, and folds no `0.1 * 3` of `h * 0.1 * 3`. In whole numbers
    the order changes nothing.
    """
    for tree in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Add, ast.Sub)) and not _is_whole(tree):
            alike = (ast.Mult,) if isinstance(tree.op, ast.Mult) else (ast.Add, ast.Sub)
            sides = (tree.left, tree.right)
            if any(isinstance(s, ast.BinOp) and isinstance(s.op, alike) and not _is_whole(s) for s in sides):
                return True
            if any(isinstance(s, ast.Constant) and len(repr(s.value)) > LONGEST for s in sides):
                return True
    return False

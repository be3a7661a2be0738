"""Dims that follow from others: `P+S` of a mask over past and new tokens, `2*T` of an output's length.

torch.export calls them derived dims. A size of one rises with each dim in it, so that its least and largest sizes are
those at the ends of the others' ranges.
"""

from __future__ import annotations

import ast
import bisect
import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
LONGEST = 200
# TensorRT before 10 holds a size in 32 bits.
LARGEST_SIZE = 2**31 - 1


def derived_from(dim: str) -> tuple[str, ...]:
    """The names in the expression of a derived dim, each once; empty for a plain name and for any other text."""
    return _parsed(dim)[1]


def is_derived(dim: int | str) -> TypeGuard[str]:
    """True for an axis whose size follows from named dims by an expression."""
    return isinstance(dim, str) and bool(derived_from(dim))


def is_name(dim: int | str) -> TypeGuard[str]:
    """True for an axis that is a named dim by itself."""
    return isinstance(dim, str) and not derived_from(dim)


def names_of(dim: int | str) -> tuple[str, ...]:
    """The named dims that the size of an axis follows from; a text that is no expression is a name."""
    return () if isinstance(dim, int) else (derived_from(dim) or (dim,))


def size_of(dim: int | str, sizes: Mapping[str, Any]) -> Any:
    """The size of an axis where the named dims have these: numbers, or arrays that broadcast.

    Raises KeyError for a name without a size.
    """
    if isinstance(dim, int) or dim in sizes:
        return dim if isinstance(dim, int) else sizes[dim]
    tree, names = _parsed(dim)
    if not names:
        raise KeyError(dim)
    return _evaluate(tree, sizes)


def solve_names(sizes: Iterable[tuple[int | str, int]]) -> dict[str, int]:
    """The named dims of axes that have these sizes: of `P` and `P+S` both P and S.

    A name that stands in derived dims alone gets the least size that gives theirs. One that does not follow from the
    sizes has none: `S` where `P+S` is all that there is.
    """
    pairs = list(sizes)
    names: dict[str, int] = {}
    for dim, size in pairs:
        if is_name(dim):
            names.setdefault(dim, size)
    waiting = [(dim, size) for dim, size in pairs if is_derived(dim)]
    while True:
        unknown = ((dim, size, [n for n in derived_from(dim) if n not in names]) for dim, size in waiting)
        solved = next(((dim, size, others[0]) for dim, size, others in unknown if len(others) == 1), None)
        if solved is None:
            return names
        dim, size, name = solved
        waiting.remove((dim, size))
        # It rises with the name.
        least = bisect.bisect_left(range(LARGEST_SIZE + 1), size, key=lambda n: size_of(dim, {**names, name: n}))
        if size_of(dim, {**names, name: least}) == size:
            names[name] = least


@functools.lru_cache(4096)
def _parsed(dim: str) -> tuple[ast.expr | None, tuple[str, ...]]:
    if dim.isidentifier() or len(dim) > LONGEST:
        return None, ()
    try:
        tree = ast.parse(dim.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, ()
    names = tuple(dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)))
    return (tree, names) if isinstance(tree, ast.BinOp) and _rises(tree) else (None, ())


def _rises(tree: ast.expr) -> bool:
    """True for an expression that no larger size makes smaller."""
    if isinstance(tree, ast.Name) or _is_number(tree):
        return True
    if not isinstance(tree, ast.BinOp) or not _rises(tree.left):
        return False
    if isinstance(tree.op, ast.Mult):
        # Of two factors below 0 the product falls.
        scales = _is_number(tree.left) or _is_number(tree.right)
        return _rises(tree.right) and (scales or not any(isinstance(n, ast.Sub) for n in ast.walk(tree)))
    if isinstance(tree.op, ast.Add):
        return _rises(tree.right)
    if isinstance(tree.op, ast.Sub):
        return _is_number(tree.right)
    return isinstance(tree.op, ast.FloorDiv) and _is_number(tree.right) and ast.literal_eval(tree.right) > 0


def _is_number(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Constant) and type(tree.value) is int


def _evaluate(tree: ast.expr | None, sizes: Mapping[str, Any]) -> Any:
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    if isinstance(tree, ast.Constant):
        return tree.value
    assert isinstance(tree, ast.BinOp)
    return _OPERATORS[type(tree.op)](_evaluate(tree.left, sizes), _evaluate(tree.right, sizes))

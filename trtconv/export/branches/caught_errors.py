"""Where a module catches errors of torch: an exporter sees none, and the file has not what comes after one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from trtconv.export.module.user_code import PARSED_FILES, Frame, is_library, parse_file

# Operators of aten that raise for some values: an index beyond its table, a matrix without an inverse, a count below 0.
RAISING = frozenset(
    ("bernoulli", "bincount", "ctc_loss", "embedding", "embedding_bag", "gather", "histc", "index", "index_add",
     "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "inverse", "multinomial", "nll_loss",
     "nll_loss_forward", "normal", "put", "repeat_interleave", "scatter", "scatter_add", "scatter_reduce", "take")
)  # fmt: skip
RAISING_KINDS = ("linalg_", "_linalg_", "cholesky", "lu_", "ormqr", "triangular_solve", "_assert")


def raises_by_value(operator: str) -> bool:
    """True for the name of an operator of aten that raises for some values and not for others."""
    name = operator.rstrip("_")
    return name in RAISING or name.removeprefix("_") in RAISING or name.startswith(RAISING_KINDS)


def is_caught(frames: Iterable[Frame]) -> bool:
    """True where an error at the innermost of these frames would be caught in the user's code."""
    return any(not is_library(file) and line in _guarded_lines(parse_file(file)) for file, line in frames)


@lru_cache(maxsize=PARSED_FILES)
def _guarded_lines(tree: ast.Module | None) -> frozenset[int]:
    """The lines of a file that are in the body of a `try` with handlers, or of `contextlib.suppress`."""
    return frozenset(
        line
        for body in (_guarded_bodies(tree) if tree is not None else ())
        for line in range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1)
    )


def _guarded_bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any(ast.unparse(call.func).endswith("suppress") for call in calls):
                yield node.body
        elif getattr(node, "handlers", None):
            yield node.body  # type: ignore[attr-defined]

"""How the steps of a loop are left before their end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def without_continue(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """`if c: ...; continue` with all that follows as its other side."""
    for index, statement in enumerate(statements):
        if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Continue):
            body = statement.body[:-1] or [ast.copy_location(ast.Pass(), statement)]
            rest = list(without_continue(statements[index + 1 :]))
            yield ast.copy_location(ast.If(statement.test, body, rest), statement)
            return
        yield statement


def of_this_loop(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement but for those by which a loop in it is left."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, (ast.For, ast.While)) and isinstance(child, (ast.Break, ast.Continue))):
            yield from of_this_loop(child)

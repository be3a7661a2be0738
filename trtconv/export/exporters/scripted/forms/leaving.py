"""How the steps of a loop are left before their end, and what runs where they are not."""

from __future__ import annotations

import ast
import copy
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


def without_else(loop: ast.For | ast.While, flag: str) -> list[ast.stmt]:
    """A loop and its `else` as two statements; where it breaks, `flag` is a variable that says that it did not."""
    plain, behind = copy.copy(loop), loop.orelse
    plain.orelse = []
    if not any(isinstance(n, ast.Break) for s in loop.body for n in of_this_loop(s)):
        return [plain, *behind]
    plain.body = [_Flagged(flag).visit(copy.deepcopy(s)) for s in loop.body]
    new = [_set(flag, True), plain, ast.If(ast.Name(flag, ast.Load()), behind, [])]
    return [ast.fix_missing_locations(s if hasattr(s, "lineno") else ast.copy_location(s, loop)) for s in new]


class _Flagged(ast.NodeTransformer):
    """Clears the flag before each `break` of the loop itself."""

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [ast.fix_missing_locations(ast.copy_location(_set(self._flag, False), node)), node]

    def _other_loop(self, node: ast.AST) -> ast.AST:
        return node

    visit_For = visit_While = _other_loop


def _set(name: str, value: bool) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))

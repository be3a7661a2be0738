"""Variables of a loop that are read behind it: a script knows them inside alone.

    for t in range(n):                              t = 0
        ...                                         for t_ in range(n):
    y = s / (t + 1)                                     t = t_
                                                        ...
                                                    y = s / (t + 1)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trtconv.export.exporters.scripted.forms.variables import all_names, assigned, unused


def keep_loop_variables(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with the counters and elements of loops that are read outside of them as variables of their own.

    Changed in place. Where a loop has no step Python raises at the read, and the file has the first number.
    """
    result = _Keeping(function)
    function.body = result.block(function.body)
    return ast.fix_missing_locations(function)


class _Keeping:
    def __init__(self, function: ast.FunctionDef) -> None:
        self._names = all_names(function)
        self._read_outside = _read_outside(function, frozenset())
        self._defined = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            result += self._before(statement) if isinstance(statement, ast.For) else []
            for _, field in ast.iter_fields(statement):
                if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
                    field[:] = self.block(field)
            result.append(statement)
            self._defined |= assigned([statement])
        return result

    def _before(self, loop: ast.For) -> list[ast.stmt]:
        """What stands before the loop, which is changed."""
        behind = (assigned([loop.target]) & self._read_outside) - assigned(loop.body)
        starts = _starts(loop)
        if not behind or not behind <= set(starts):
            return []
        own = {name: unused(name, self._names) for name in sorted(behind)}
        for node in ast.walk(loop.target):
            if isinstance(node, ast.Name):
                node.id = own.get(node.id, node.id)
        sets = [_set(name, ast.Name(new, ast.Load()), loop) for name, new in own.items()]
        loop.body[:0] = sets
        return [_set(name, starts[name], loop) for name in own if name not in self._defined]


def _read_outside(node: ast.AST, of_loops: frozenset[str]) -> set[str]:
    """The variables that are read where no loop around it has them for its own; those `of_loops` stand around it."""
    if isinstance(node, ast.Name):
        return {node.id} - of_loops if isinstance(node.ctx, ast.Load) else set()
    if isinstance(node, ast.For):
        inside = of_loops | assigned([node.target])
        parts = [(node.iter, of_loops), *((s, inside) for s in (*node.body, *node.orelse))]
        return {name for part, around in parts for name in _read_outside(part, around)}
    return {name for child in ast.iter_child_nodes(node) for name in _read_outside(child, of_loops)}


def _set(name: str, value: ast.expr, loop: ast.For) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), loop))


def _starts(loop: ast.For) -> dict[str, ast.expr]:
    """What the variables are at the first step, where that is said without computing something twice."""
    match loop.target, loop.iter:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_]):
            return {name: ast.Constant(0)}
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[ast.Constant() | ast.Name() as start, *_]):
            return {name: start}
        case ast.Name(id=name), ast.Name() as rows:
            return {name: ast.Subscript(rows, ast.Constant(0), ast.Load())}
        case ast.Tuple(elts=[ast.Name(id=number), row]), ast.Call(func=ast.Name(id="enumerate"), args=[rows]):
            starts: dict[str, ast.expr] = {number: ast.Constant(0)}
            if isinstance(row, ast.Name) and isinstance(rows, ast.Name):
                starts[row.id] = ast.Subscript(rows, ast.Constant(0), ast.Load())
            return starts
    return {}

"""Variables of a loop that are read behind it: a script knows them inside alone.

    for t in range(n):                              t = 0
        ...                                         for t_ in range(n):
    y = s / (t + 1)                                     t = t_
                                                        ...
                                                    y = s / (t + 1)
"""

from __future__ import annotations

import ast
from collections import Counter
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
        self._reads = _reads(function)
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
        inside = _reads(loop)
        behind = {n for n in assigned([loop.target]) if self._reads[n] > inside[n] and n not in assigned(loop.body)}
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


def _reads(node: ast.AST) -> Counter[str]:
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


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

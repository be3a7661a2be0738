"""Loops over parts of lists, such as an element and the next one, by numbers: a file has no part of a list.

    for a, b in zip(rows, rows[1:]):                for i in range(min(len(rows), len(rows) - 1)):
        out.append(a * b)                               a = rows[i]
                                                        b = rows[i + 1]
                                                        out.append(a * b)
    [a * b for a, b in itertools.pairwise(rows)]    [rows[i] * rows[i + 1] for i in range(...)]
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trtconv.export.exporters.scripted.forms.placing import Substituting, placed
from trtconv.export.exporters.scripted.forms.steps import whole_number
from trtconv.export.exporters.scripted.forms.variables import all_names, assigned, unused

_CHANGES = frozenset(("append", "extend", "insert", "pop", "clear", "reverse", "remove", "sort"))


def count_neighbours(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> ast.FunctionDef:
    """The function with such loops and comprehensions over numbers; changed in place. `namespace` has its globals."""
    result: ast.FunctionDef = _Counting(all_names(function), namespace).visit(function)
    return ast.fix_missing_locations(result)


@dataclass(frozen=True)
class _Part:
    """`rows[start : len(rows) - cut]`."""

    rows: str
    start: int
    cut: int

    def count(self) -> ast.expr:
        length = ast.Call(ast.Name("len", ast.Load()), [ast.Name(self.rows, ast.Load())], [])
        less = self.start + self.cut
        return ast.BinOp(length, ast.Sub(), ast.Constant(less)) if less else length


def _element(part: _Part | None, number: str) -> ast.expr:
    """What a step takes from the part; its number for None."""
    index: ast.expr = ast.Name(number, ast.Load())
    if part is None:
        return index
    index = ast.BinOp(index, ast.Add(), ast.Constant(part.start)) if part.start else index
    return ast.Subscript(ast.Name(part.rows, ast.Load()), index, ast.Load())


class _Counting(ast.NodeTransformer):
    def __init__(self, names: set[str], namespace: Mapping[str, Any]) -> None:
        self._names = names
        self._namespace = namespace

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        elements = self._elements(node.target, node.iter)
        if elements is None or {part.rows for _, part in elements if part is not None} & _changed(node.body):
            return node
        number = unused("number", self._names)
        sets = [ast.Assign([copy.deepcopy(target)], _element(part, number)) for target, part in elements]
        new = ast.For(ast.Name(number, ast.Store()), _range(elements), [*sets, *node.body], node.orelse)
        return placed(new, node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._comprehension(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> ast.AST:
        self.generic_visit(node)
        if len(node.generators) > 1:
            return node
        source = node.generators[0]
        elements = self._elements(source.target, source.iter)
        if elements is None:
            return node
        number = unused("number", self._names)
        replacing = Substituting({target.id: _element(part, number) for target, part in elements})
        tests = [replacing.visit(test) for test in source.ifs]
        new_source = ast.comprehension(ast.Name(number, ast.Store()), _range(elements), tests, 0)
        return placed(type(node)(replacing.visit(node.elt), [new_source]), node)

    def _elements(self, target: ast.expr, iterable: ast.expr) -> list[tuple[ast.Name, _Part | None]] | None:
        """The variables with what each step puts into them, None for its number; None where no part is looped over."""
        match target, iterable:
            case (
                ast.Tuple(elts=[ast.Name() as counter, inner]),
                ast.Call(func=ast.Name(id="enumerate"), args=[rows], keywords=[]),
            ):
                elements = self._elements(inner, rows)
                return None if elements is None else [(counter, None), *elements]
        sources = self._sources(iterable)
        targets = target.elts if isinstance(target, ast.Tuple) and len(sources) > 1 else [target]
        parts = [_part(source) for source in sources]
        names = [t for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(parts) or len(names) != len(targets) or not any(p and p.start + p.cut for p in parts):
            return None
        pairs = [(name, part) for name, part in zip(names, parts, strict=True) if part is not None]
        return list(pairs) if len(pairs) == len(parts) else None

    def _sources(self, iterable: ast.expr) -> Sequence[ast.expr]:
        match iterable:
            case ast.Call(func=ast.Name(id="zip"), args=sources, keywords=[]):
                return sources
            case ast.Call(func=function, args=[ast.Name() as rows], keywords=[]) if self._is_pairwise(function):
                behind = ast.Slice(ast.Constant(1), None, None)
                return [rows, ast.Subscript(rows, behind, ast.Load())]
        return [iterable]

    def _is_pairwise(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(id=name):
                return self._namespace.get(name) is itertools.pairwise
            case ast.Attribute(value=ast.Name(id=owner), attr="pairwise"):
                return self._namespace.get(owner) is itertools
        return False


def _part(source: ast.expr) -> _Part | None:
    match source:
        case ast.Name(id=rows):
            return _Part(rows, 0, 0)
        case ast.Subscript(value=ast.Name(id=rows), slice=ast.Slice(lower=lower, upper=upper, step=None)):
            start, cut = _bound(lower), _bound(upper)
            return _Part(rows, start, -cut) if start is not None and cut is not None and start >= 0 >= cut else None
    return None


def _bound(bound: ast.expr | None) -> int | None:
    """A bound that is written as a number, 0 for none; None for what is not, or an end at 0."""
    return 0 if bound is None else whole_number(bound) or None


def _range(elements: Sequence[tuple[ast.Name, _Part | None]]) -> ast.expr:
    """As many numbers as the shortest part has elements; none where a list is shorter than what is cut."""
    counts = [part.count() for _, part in elements if part is not None]
    count = counts[0] if len(counts) == 1 else ast.Call(ast.Name("min", ast.Load()), counts[:2], [])
    for more in counts[2:]:
        count = ast.Call(ast.Name("min", ast.Load()), [count, more], [])
    return ast.Call(ast.Name("range", ast.Load()), [count], [])


def _changed(statements: Sequence[ast.stmt]) -> set[str]:
    """The lists that a body may change, or whose names it gives to something else."""
    return assigned(statements) | {name for s in statements for n in ast.walk(s) for name in _changes(n)}


def _changes(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGES:
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name

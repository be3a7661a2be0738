"""Queues of `collections.deque` as lists, which are all that a script has.

    last = deque(maxlen=3)                          last = []
    last.append(a)                                  last.append(a)
                                                    if len(last) > 3:
                                                        last.pop(0)
    last = deque([a, b], maxlen=2)                  last = [a, b]
    last.append(c)                                  last = last[1:] + [c]
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trtconv.export.exporters.scripted.forms.placing import placed
from trtconv.export.exporters.scripted.forms.variables import one_by_one

# What reads a list and keeps it not.
_READING = frozenset(("stack", "cat", "concat", "vstack", "hstack", "len", "list", "tuple", "sum", "zip", "enumerate"))


def write_deques(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> ast.FunctionDef:
    """The function with lists for queues of its own, changed in place. `namespace` has its globals.

    A queue stays as it is written where it is handed on, or used by a method that a list has not in this sense.
    """
    function = _Apart(namespace).visit(function)
    queues: dict[str, list[_Queue]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                queue = _queue(value, namespace)
                queues.setdefault(name, []).extend([] if queue is None else [queue])
    own = {
        name: alike[0]
        for name, alike in queues.items()
        if len({(q.most, q.full) for q in alike}) == 1 and _is_used_as_list(function, name, namespace)
    }
    result: ast.FunctionDef = _Listing(own, namespace).visit(function) if own else function
    return ast.fix_missing_locations(result)


@dataclass(frozen=True)
class _Queue:
    """`start` is what it has at first, `most` its `maxlen`."""

    start: ast.expr
    most: int | None
    full: bool


def _queue(value: ast.expr, namespace: Mapping[str, Any]) -> _Queue | None:
    match value:
        case ast.Call(func=function, args=arguments, keywords=keywords) if _is_deque(function, namespace):
            named = {k.arg: k.value for k in keywords}
            start = arguments[0] if arguments else ast.List([], ast.Load())
            length = arguments[1] if len(arguments) == 2 else named.pop("maxlen", ast.Constant(None))
            if named or not isinstance(length, ast.Constant) or not isinstance(length.value, int | None):
                return None
            count = _count(start)
            if count is None or (length.value is not None and not count <= length.value > 0):
                return None
            if 0 < count != length.value is not None:
                # Neither empty nor full.
                return None
            return _Queue(start, length.value, count == length.value)
    return None


def _count(start: ast.expr) -> int | None:
    """How many elements a display has, where that is written."""
    match start:
        case ast.List(elts=elements) if not any(isinstance(e, ast.Starred) for e in elements):
            return len(elements)
        case ast.BinOp(left=ast.List() as row, op=ast.Mult(), right=ast.Constant(value=int() as times)):
            count = _count(row)
            return None if count is None else count * times
        case ast.ListComp(
            generators=[
                ast.comprehension(
                    iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int() as times)]), ifs=[]
                )
            ]
        ):
            return times
    return None


def _is_deque(function: ast.expr, namespace: Mapping[str, Any]) -> bool:
    match function:
        case ast.Name(id=name):
            return namespace.get(name) is collections.deque
        case ast.Attribute(value=ast.Name(id=owner), attr="deque"):
            return namespace.get(owner) is collections
    return False


def _is_used_as_list(function: ast.FunctionDef, name: str, namespace: Mapping[str, Any]) -> bool:
    nodes = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    allowed = {id(n) for parent in ast.walk(function) for n in _uses(parent, name, namespace)}
    return all(id(n) in allowed for n in nodes)


def _uses(parent: ast.AST, name: str, namespace: Mapping[str, Any]) -> Iterator[ast.AST]:
    match parent:
        case ast.Assign(targets=[ast.Name(id=target) as node], value=value) if target == name:
            yield from () if _queue(value, namespace) is None else (node,)
        # A call whose result nobody reads.
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=read) as node, attr=method))) if read == name:
            yield from (node,) if method in ("append", "appendleft", "popleft", "pop") else ()
        case ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id=read) as node, attr=method))) if (
            read == name
        ):
            yield from (node,) if method in ("popleft", "pop") else ()
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=arguments) if called in _READING:
            yield from arguments
        case ast.Subscript(value=node, slice=index, ctx=ast.Load()) if not isinstance(index, ast.Slice):
            yield node
        case ast.For(iter=node) | ast.comprehension(iter=node):
            yield node


class _Apart(ast.NodeTransformer):
    """`queue, rows = deque(), []` in two statements."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def visit_Assign(self, node: ast.Assign) -> ast.AST | Sequence[ast.stmt]:
        parts = one_by_one(node)
        return parts if any(_queue(part.value, self._namespace) for part in parts) else node


class _Listing(ast.NodeTransformer):
    def __init__(self, queues: Mapping[str, _Queue], namespace: Mapping[str, Any]) -> None:
        self._queues = queues
        self._namespace = namespace

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        queue = _queue(node.value, self._namespace)
        match node.targets:
            case [ast.Name(id=name)] if queue is not None and name in self._queues:
                node.value = ast.copy_location(queue.start, node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=[element]) if (
                name in self._queues and method in ("append", "appendleft")
            ):
                return self._appended(node, name, element, left=method == "appendleft")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="popleft"), args=[]) if name in self._queues:
                return placed(ast.Call(_method(name, "pop"), [ast.Constant(0)], []), node)
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=[copied, *others]) if (
                called in _READING
            ):
                node.args = [self._without_copy(copied), *others]
        return node

    def _without_copy(self, rows: ast.expr) -> ast.expr:
        match rows:
            case ast.Call(func=ast.Name(id=("list" | "tuple")), args=[ast.Name(id=name) as queue]) if (
                name in self._queues
            ):
                return queue
        return rows

    def _appended(self, node: ast.Expr, name: str, element: ast.expr, *, left: bool) -> list[ast.stmt]:
        queue, rows = self._queues[name], ast.Name(name, ast.Load())
        if queue.most is not None and queue.full:
            one: ast.expr = ast.List([element], ast.Load())
            minus = ast.UnaryOp(ast.USub(), ast.Constant(1))
            bounds = ast.Slice(None, minus, None) if left else ast.Slice(ast.Constant(1), None, None)
            others = ast.Subscript(rows, bounds, ast.Load())
            sides = (one, others) if left else (others, one)
            return [placed(ast.Assign([ast.Name(name, ast.Store())], ast.BinOp(sides[0], ast.Add(), sides[1])), node)]
        call = ast.Call(_method(name, "insert"), [ast.Constant(0), element], []) if left else node.value
        statements: list[ast.stmt] = [placed(ast.Expr(call), node)]
        if queue.most is not None:
            length = ast.Call(ast.Name("len", ast.Load()), [rows], [])
            gone = ast.Call(_method(name, "pop"), [] if left else [ast.Constant(0)], [])
            test = ast.Compare(length, [ast.Gt()], [ast.Constant(queue.most)])
            statements.append(placed(ast.If(test, [ast.Expr(gone)], []), node))
        return statements


def _method(name: str, method: str) -> ast.expr:
    return ast.Attribute(ast.Name(name, ast.Load()), method, ast.Load())

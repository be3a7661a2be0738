"""Lists that are read from their end, or in part: `torch.stack(rows[::-1], 1)` is `torch.stack(rows, 1).flip(1)`.

A loop that runs backwards fills its list so, and turns it. ONNX has sequences, but nothing that turns one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trtconv.export.exporters.scripted.forms.variables import assigned


def flip_reversed_lists(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with flipped tensors in place of reversed lists, where these are stacked and nothing else.

    `rows.reverse()` and `rows.insert(0, row)` count as well; the tree is changed in place.
    """
    for name in sorted(assigned(function.body)):
        turns = _turns(function.body, name)
        if turns is not None:
            _Flipping(name, turns).visit(function)
    result: ast.FunctionDef = _Flipping(None, []).visit(function)
    return ast.fix_missing_locations(result)


def _turns(statements: Sequence[ast.stmt], name: str) -> list[ast.AST] | None:
    """What reverses a list for all that stack it; None where nothing does, or the list is read elsewhere."""
    calls = [n for s in statements for n in ast.walk(s) if _method_of(n, name) is not None]
    methods = [_method_of(c, name) for c in calls]
    inserts = [c for c in calls if _inserts_first(c, name)]
    stacks = [n for s in statements for n in ast.walk(s) if _stacked(n) is not None and _is_name(_stacked(n), name)]
    reads = [n for s in statements for n in ast.walk(s) if _is_name(n, name) and isinstance(n.ctx, ast.Load)]  # type: ignore[attr-defined]
    if len(reads) != len(calls) + len(stacks) or not stacks:
        return None
    if inserts and len(inserts) == len(calls):
        return list(inserts)
    if methods.count("reverse") != 1 or not set(methods) <= {"append", "reverse"}:
        return None
    turn = next(c for c in calls if _method_of(c, name) == "reverse")
    index = next((i for i, s in enumerate(statements) if isinstance(s, ast.Expr) and s.value is turn), None)
    if index is None or _reads_stacks(statements[:index], stacks):
        return None
    behind = [n for s in statements[index + 1 :] for n in ast.walk(s)]
    return None if any(c in behind for c in calls) else [turn]


def _reads_stacks(statements: Sequence[ast.stmt], stacks: Sequence[ast.AST]) -> bool:
    return any(n is stack for s in statements for n in ast.walk(s) for stack in stacks)


class _Flipping(ast.NodeTransformer):
    """With `name`, its stacks are flipped and what `turns` it goes; else stacks of lists that are turned where they
    are read.
    """

    def __init__(self, name: str | None, turns: Sequence[ast.AST]) -> None:
        self._name, self._turns = name, turns

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if any(node.value is turn for turn in self._turns):
            assert isinstance(node.value, ast.Call)
            if _method_of(node.value, self._name) == "reverse":
                return ast.copy_location(ast.Pass(), node)
            function = node.value.func
            assert isinstance(function, ast.Attribute)
            append = ast.copy_location(ast.Attribute(function.value, "append", ast.Load()), function)
            call = ast.copy_location(ast.Call(append, [node.value.args[1]], []), node.value)
            return ast.copy_location(ast.Expr(call), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        stacked = _stacked(node)
        if stacked is None:
            return node
        part = _part(stacked, _axis(node)) if self._name is None else None
        if part is not None:
            whole = ast.copy_location(ast.Call(node.func, [part[0], *node.args[1:]], node.keywords), node)
            return ast.copy_location(ast.Subscript(whole, part[1], ast.Load()), node)
        rows = stacked if self._name is not None and _is_name(stacked, self._name) else None
        rows = _turned(stacked) if self._name is None else rows
        if rows is None:
            return node
        assert isinstance(node.func, ast.Attribute)
        new = ast.copy_location(ast.Call(node.func, [rows, *node.args[1:]], node.keywords), node)
        # The parser of scripts looks for an attribute in the source behind its object.
        flip = ast.copy_location(ast.Attribute(node.func.value, "flip", ast.Load()), node.func)
        return ast.copy_location(ast.Call(flip, [new, ast.List([_axis(node)], ast.Load())], []), node)


def _method_of(node: ast.AST | None, name: str | None) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method)) if owner == name:
            return method
    return None


def _inserts_first(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="insert"), args=[ast.Constant(value=0), _]):
            return owner == name
    return False


def _is_name(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _stacked(node: ast.AST) -> ast.expr | None:
    """The list that `torch.stack` puts together."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="stack"), args=[rows, *_]):
            return rows
    return None


def _axis(call: ast.Call) -> ast.expr:
    named = [k.value for k in call.keywords if k.arg == "dim"]
    return next(iter([*call.args[1:], *named]), ast.Constant(0))


def _turned(rows: ast.expr) -> ast.expr | None:
    """`rows` of `rows[::-1]`, of `reversed(rows)`, and of a list or tuple of either."""
    match rows:
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=None, step=step)) if (
            step is not None and ast.unparse(step) == "-1"
        ):
            return inner
        case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
            return inner
        case ast.Call(func=ast.Name(id=("list" | "tuple")), args=[inner], keywords=[]):
            return _turned(inner)
    return None


def _part(rows: ast.expr, axis: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """`rows` of `rows[-3:]` or `rows[::2]`, and the index that takes these rows of all of them stacked."""
    match rows:
        case ast.Subscript(value=ast.Name() as inner, slice=ast.Slice(step=step) as chosen):
            if step is not None and not (isinstance(step, ast.Constant) and type(step.value) is int and step.value > 0):
                return None
            whole = ast.Slice(None, None, None)
            if isinstance(axis, ast.Constant) and type(axis.value) is int and axis.value >= 0:
                before: list[ast.expr] = [whole] * axis.value
            elif ast.unparse(axis) == "-1":
                before = [ast.Constant(...)]
            else:
                return None
            return inner, ast.Tuple([*before, chosen], ast.Load())
    return None

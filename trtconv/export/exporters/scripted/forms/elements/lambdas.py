"""`area = lambda q: q[:, 2] * q[:, 3]` and functions of one line inside of another, written out where they are called:
a script holds no function but those of modules and classes.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

from trtconv.export.exporters.scripted.forms.order import may_write
from trtconv.export.exporters.scripted.forms.placing import Substituting
from trtconv.export.exporters.scripted.forms.variables import assigned

_SCOPES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp,
           ast.GeneratorExp)  # fmt: skip
_OUTSIDE = (*_SCOPES, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
# What is read as often as it is written without being computed again.
_CHEAP = (ast.Name, ast.Constant)


@dataclass
class _LocalFunction:
    definition: ast.stmt
    parameters: tuple[str, ...]
    result: ast.expr

    def uses(self, parameter: str) -> int:
        return sum(_name_of(n) == parameter for n in ast.walk(self.result))


def write_lambdas_out(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function without its local functions of one expression; itself where it has none that can be written out.

    Python reads the variables around a lambda when it is called, so that its expression means the same there. One that
    is called with what would be computed twice, or that goes anywhere but into calls, stays.
    """
    if next(_that_can_go(function), None) is None:
        return function
    written = copy.deepcopy(function)
    while (named := next(_that_can_go(written), None)) is not None:
        name, local = named
        written.body.remove(local.definition)
        _Calls(name, local).visit(written)
    return written


def _that_can_go(function: ast.FunctionDef) -> Iterator[tuple[str, _LocalFunction]]:
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=arguments, body=result)):
                pass
            case ast.FunctionDef(name=name, args=arguments, body=[ast.Return(value=ast.expr() as result)]):
                if statement.decorator_list:
                    continue
            case _:
                continue
        parameters = _positional(arguments)
        if parameters is None or len(function.body) == 1:
            continue
        local = _LocalFunction(statement, parameters, result)
        if _is_plain(name, local) and _is_only_called(name, local, function):
            yield name, local


def _positional(arguments: ast.arguments) -> tuple[str, ...] | None:
    """The names of parameters that are all given by position; None where others are possible."""
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        return None
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args))


def _is_plain(name: str, local: _LocalFunction) -> bool:
    nodes = list(ast.walk(local.result))
    return not any(_name_of(n) == name or isinstance(n, _OUTSIDE) for n in nodes)


def _is_only_called(name: str, local: _LocalFunction, function: ast.FunctionDef) -> bool:
    others = [s for s in function.body if s is not local.definition]
    if name in assigned(others) or name in {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}:
        return False
    calls = [n for s in others for n in ast.walk(s) if isinstance(n, ast.Call) and _name_of(n.func) == name]
    mentions = sum(_name_of(n) == name for s in others for n in ast.walk(s))
    around = {name, *(_name_of(n) for n in ast.walk(local.result))} - set(local.parameters)
    scopes = [n for s in others for n in ast.walk(s) if isinstance(n, _SCOPES)]
    hidden = any(_has_own(scope, around) and any(c in ast.walk(scope) for c in calls) for scope in scopes)
    return len(calls) == mentions and not hidden and all(_can_be_put_in(local, call) for call in calls)


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _has_own(scope: ast.AST, names: set[str]) -> bool:
    """True where a comprehension or function has a variable of one of the names."""
    own = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bool(names & (own | {a.arg for a in ast.walk(scope) if isinstance(a, ast.arg)}))


def _can_be_put_in(local: _LocalFunction, call: ast.Call) -> bool:
    if call.keywords or len(call.args) != len(local.parameters):
        return False
    pairs = zip(local.parameters, call.args, strict=True)
    return all(
        isinstance(a, _CHEAP)
        or (local.uses(p) == 1 and not isinstance(a, ast.Starred) and not any(may_write(n) for n in ast.walk(a)))
        for p, a in pairs
    )


class _Calls(ast.NodeTransformer):
    def __init__(self, name: str, local: _LocalFunction) -> None:
        self._name = name
        self._local = local

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The expression with the arguments in it."""
        self.generic_visit(node)
        if _name_of(node.func) != self._name:
            return node
        values = dict(zip(self._local.parameters, node.args, strict=True))
        result: ast.expr = Substituting(values).visit(copy.deepcopy(self._local.result))
        return ast.copy_location(result, node)

"""Methods that are handed lists of states or parts of the module, and functions within a function, written out where
they are called: `y, states = self.step(x[:, t], states)`, `h = self.step(self.cell, h)`, `def gate(v): ...`.

A list that a method gets may be changed by it, so that its elements are no variables of the caller. In one function
they can be. A module is no value of a script, and a script holds no function but those of modules and classes.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trtconv.export.exporters.scripted.forms.elements.constants import PLAIN
from trtconv.export.exporters.scripted.forms.order import CHANGES, EMBEDDED, SIMPLE, may_write
from trtconv.export.exporters.scripted.forms.placing import Substituting
from trtconv.export.exporters.scripted.forms.variables import all_names, assigned, unused

_Callee = tuple[ast.FunctionDef, inspect.Signature]
# Methods that call methods.
DEEPEST = 3
_DISPLAYS = (ast.List, ast.ListComp, ast.Dict)
_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Yield, ast.YieldFrom, ast.Global,
                 ast.Nonlocal, ast.Await)  # fmt: skip


def inline_methods(function: ast.FunctionDef, owner: Any, *, lists: bool) -> ast.FunctionDef:
    """The function with the owner's methods in place of their calls with a part, or with `lists`; itself without any.

    A method is written out where its one `return` stands at its end; its variables get names of their own.
    """
    if owner is None:
        return function
    inlining = _Inlining(function, owner, lists)
    result = copy.copy(function)
    result.body = inlining.block(copy.deepcopy(function.body), 0)
    return ast.fix_missing_locations(result) if inlining.count else function


def inline_local_functions(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with those that it defines in place of their calls; itself where it has none, or one goes elsewhere.

    Python reads the variables around a local function when it is called, as its statements do there.
    """
    local: dict[str, _Callee] = {}
    for statement in function.body:
        if isinstance(statement, ast.FunctionDef) and (callee := _local_callee(statement)) is not None:
            local[statement.name] = callee
    again = assigned([s for s in function.body if not isinstance(s, ast.FunctionDef)])
    local = {name: callee for name, callee in local.items() if name not in again}
    if not local:
        return function
    inlining = _Inlining(function, None, False, local)
    result = copy.copy(function)
    rest = [s for s in function.body if getattr(s, "name", None) not in local]
    result.body = inlining.block(copy.deepcopy(rest), 0)
    mentioned = {n.id for s in result.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    return function if mentioned & local.keys() else ast.fix_missing_locations(result)


class _Inlining:
    def __init__(
        self, function: ast.FunctionDef, owner: Any, takes_lists: bool, local: Mapping[str, _Callee] | None = None
    ) -> None:
        self._owner = owner
        self._local = local or {}
        self._takes_lists = takes_lists
        self._names = all_names(function)
        self._lists = _holding_lists(function.body)
        loops = [n for n in ast.walk(function) if isinstance(n, ast.For)]
        self._parts = {name for loop in loops for name in _parts_of_module(loop.target, loop.iter, owner)}
        self.count = 0

    def block(self, statements: Sequence[ast.stmt], depth: int) -> list[ast.stmt]:
        return [new for statement in statements for new in self._statement(statement, depth)]

    def _statement(self, statement: ast.stmt, depth: int) -> list[ast.stmt]:
        match statement:
            case (ast.Assign(value=ast.Call() as call) | ast.Return(value=ast.Call() as call)) if depth < DEEPEST:
                body = self._written_out(call)
                if body is not None:
                    last = copy.copy(statement)
                    *before, value = body
                    assert isinstance(value, ast.Expr)
                    last.value = value.value
                    self._lists |= _holding_lists([last])
                    return [*self.block(before, depth + 1), *self._statement(last, depth + 1)]
        if isinstance(statement, SIMPLE) and depth < DEEPEST:
            hoisting = _Hoisting(self._takes_part, self._names, getattr(statement, "value", None))
            if not any(may_write(n) for n in ast.walk(statement)):
                statement = hoisting.visit(statement)
            if hoisting.before:
                return [*self.block(hoisting.before, depth), statement]
        for field in ("body", "orelse"):
            inner = getattr(statement, field, None)
            if isinstance(inner, list) and inner and not isinstance(statement, _OTHER_SCOPES):
                setattr(statement, field, self.block(inner, depth))
        return [statement]

    def _written_out(self, call: ast.Call) -> list[ast.stmt] | None:
        """The statements of the method, its parameters set first, what it returns as an expression at their end."""
        arguments = [*call.args, *(k.value for k in call.keywords)]
        local = self._local_function(call)
        called = local or _method(call, self._owner)
        if called is None:
            return None
        method, signature = called
        values = _bound(signature, call)
        if values is None:
            return None
        takes = local is not None or any(self._is_part(a) for a in arguments)
        if self._takes_lists:
            takes |= any(_root(a) in self._lists for a in arguments)
            takes |= any(isinstance(n, _DISPLAYS) for n in ast.walk(method.body[-1]))
        if not takes:
            return None
        written = assigned(method.body)
        # A list of the caller's that the method does not replace is the caller's variable.
        same = {n: v for n, v in values.items() if (_root(v) is not None or self._is_part(v)) and n not in written}
        values = {n: v for n, v in values.items() if n not in same}
        # The caller's variable may have the name of one of a comprehension.
        stores = (n for statement in method.body for n in ast.walk(statement) if isinstance(n, ast.Name))
        own = {n.id for n in stores if isinstance(n.ctx, ast.Store)} | set(values)
        renamed = {name: unused(f"{name}_of_{method.name}", self._names) for name in sorted(own)}
        body: list[ast.stmt] = [ast.Assign([ast.Name(renamed[name], ast.Store())], v) for name, v in values.items()]
        variables = {old: ast.Name(new, ast.Load()) for old, new in renamed.items()}
        replacing = Substituting({**variables, **same})
        for statement in method.body:
            part = replacing.visit(copy.deepcopy(statement))
            is_result = isinstance(part, ast.Return) and part.value is not None
            body.append(ast.Expr(part.value) if is_result else part)
        # Its lines are those of the call: the parser of scripts has the source of the caller.
        for statement in body:
            for node in ast.walk(statement):
                if not any(node is inner for argument in arguments for inner in ast.walk(argument)):
                    ast.copy_location(node, call)
        self._lists |= {renamed[n] for n in _holding_lists(method.body)}
        self._lists |= {renamed[n] for n, v in values.items() if _root(v) in self._lists}
        self.count += 1
        return body

    def _takes_part(self, call: ast.Call) -> bool:
        """True for a call that is a statement of its own then: of a method with a part of the module, or of a function
        that is defined here and changes nothing.
        """
        local = self._local_function(call)
        if local is not None:
            # Nothing that stands before it in the statement is read later than it was.
            body = local[0].body
            return not any(_changes(n) for statement in body for n in ast.walk(statement))
        arguments = [*call.args, *(k.value for k in call.keywords)]
        return any(self._is_part(a) for a in arguments) and _method(call, self._owner) is not None

    def _local_function(self, call: ast.Call) -> _Callee | None:
        return self._local.get(call.func.id) if isinstance(call.func, ast.Name) else None

    def _is_part(self, value: ast.expr) -> bool:
        """True for `self.cell`, `self.cells[0]` and a variable of a loop over such: a script hands no module on."""
        match value:
            case ast.Name(id=name):
                return name in self._parts
            case ast.Subscript(value=inner, slice=ast.Constant()):
                return self._is_part(inner)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return _is_module(self._owner, name)
        return False


class _Hoisting(ast.NodeTransformer):
    """Calls within a statement as statements `before` it, each with a variable of its own; `whole` is no part."""

    def __init__(self, is_hoisted: Callable[[ast.Call], bool], names: set[str], whole: Any) -> None:
        self.before: list[ast.stmt] = []
        self._whole = whole
        self._is_hoisted = is_hoisted
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, EMBEDDED):
            return node
        self.generic_visit(node)
        if not isinstance(node, ast.Call) or node is self._whole or not self._is_hoisted(node):
            return node
        name = unused("result", self._names)
        self.before.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], node), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _parts_of_module(target: ast.expr, iterable: ast.expr, owner: Any) -> set[str]:
    """The variables of a loop that are parts of the owner: `for i, cell in enumerate(self.cells)`."""
    match target, iterable:
        case ast.Name(id=name), ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return {name} if _is_module(owner, attribute) else set()
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[rows, *_]):
            return _parts_of_module(inner, rows, owner)
        case ast.Tuple(elts=inner), ast.Call(func=ast.Name(id="zip"), args=rows) if len(inner) == len(rows):
            return {name for pair in zip(inner, rows, strict=True) for name in _parts_of_module(*pair, owner)}
        case _, ast.Call(func=ast.Name(id="reversed"), args=[rows]):
            return _parts_of_module(target, rows, owner)
    return set()


def _is_module(owner: Any, attribute: str) -> bool:
    from torch import nn

    return isinstance(getattr(owner, attribute, None), nn.Module)


def _root(node: ast.expr) -> str | None:
    """The variable of `state["h"][0]`; None for what is computed."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _holding_lists(statements: Sequence[ast.stmt]) -> set[str]:
    """The variables that a list or a dictionary is put into."""
    names: set[str] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and any(isinstance(n, _DISPLAYS) for n in ast.walk(node.value)):
                names |= assigned(node.targets)
    return names


def _local_callee(function: ast.FunctionDef) -> _Callee | None:
    """A function within a function, with its signature; None where it stays a function."""
    arguments = function.args
    if arguments.kwonlyargs or not _is_straight(function):
        return None
    names = [a.arg for a in arguments.args]
    defaults = [getattr(d, "value", d) for d in arguments.defaults]
    nodes = [n for statement in function.body for n in ast.walk(statement)]
    calls_itself = any(n.id == function.name for n in nodes if isinstance(n, ast.Name))
    if calls_itself or not all(isinstance(d, PLAIN) for d in defaults):
        return None
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    padded = [*[empty] * (len(names) - len(defaults)), *defaults]
    parameters = [inspect.Parameter(n, kind, default=d) for n, d in zip(names, padded, strict=True)]
    return function, inspect.Signature(parameters)


def _method(call: ast.Call, owner: Any) -> _Callee | None:
    """The method of the owner's class that is called, where it can be written out."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if owner is not None and name not in vars(owner):
            method = inspect.getattr_static(type(owner), name, None)
            if not inspect.isfunction(method) or method.__module__.split(".")[0] == "torch":
                return None
            try:
                tree = ast.parse(textwrap.dedent(inspect.getsource(method))).body[0]
            except (OSError, TypeError, SyntaxError, IndexError):
                return None
            takes_self = isinstance(tree, ast.FunctionDef) and [a.arg for a in tree.args.args[:1]] == ["self"]
            if isinstance(tree, ast.FunctionDef) and takes_self and _is_straight(tree):
                signature = inspect.signature(method)
                return tree, signature.replace(parameters=list(signature.parameters.values())[1:])
    return None


def _is_straight(function: ast.FunctionDef) -> bool:
    """True for a function whose one `return` stands at its end."""
    arguments = function.args
    plain = not (arguments.vararg or arguments.kwarg or arguments.posonlyargs or function.decorator_list)
    nodes = [n for statement in function.body for n in ast.walk(statement)]
    returns = [n for n in nodes if isinstance(n, ast.Return)]
    ends = len(returns) == 1 and returns[0] is function.body[-1] and returns[0].value is not None
    return plain and ends and not any(isinstance(n, _OTHER_SCOPES) for n in nodes)


def _changes(node: ast.AST) -> bool:
    """True for what may change a tensor, a list or a dictionary of the caller's."""
    if isinstance(node, ast.Attribute) and node.attr in CHANGES:
        return True
    return may_write(node) or (isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store))


def _bound(signature: inspect.Signature, call: ast.Call) -> dict[str, ast.expr] | None:
    """The argument of each parameter; None where they do not fit one another."""
    keywords = {k.arg: k.value for k in call.keywords if k.arg is not None}
    if any(isinstance(a, ast.Starred) for a in call.args) or len(keywords) < len(call.keywords):
        return None
    try:
        bound = signature.bind(*call.args, **keywords)
    except TypeError:
        return None
    values: dict[str, ast.expr] = {}
    for name, parameter in signature.parameters.items():
        value = bound.arguments.get(name)
        if value is None:
            if not isinstance(parameter.default, PLAIN):
                return None
            value = ast.Constant(parameter.default)
        values[name] = value
    return values

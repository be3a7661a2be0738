"""Lists and dictionaries of states in separate variables, where their length is the same at every step:

    states = [None] * len(self.cells)                 states_0 = None; states_1 = None
    for t in range(x.shape[1]):                       for t in range(x.shape[1]):
        for i, cell in enumerate(self.cells):             states_0 = self.cells[0](y, states_0)
            states[i] = cell(y, states[i])                y = states_0
            y = states[i]                                 states_1 = self.cells[1](y, states_1)
                                                          y = states_1

A list of a script holds one type, its dictionaries have no form in ONNX, and a loop over the parts of a module takes no
list beside them. What is not of this kind (a list that grows, an index that moves) stays as it is written.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trtconv.export.exporters.scripted.forms.elements.groups import Group, Layout, Value, displayed, part_of
from trtconv.export.exporters.scripted.forms.elements.held import Gone, NotSeparableError
from trtconv.export.exporters.scripted.forms.elements.writes import ElementWrites
from trtconv.export.exporters.scripted.forms.leaving import of_this_loop, without_continue
from trtconv.export.exporters.scripted.forms.order import CHANGES
from trtconv.export.exporters.scripted.forms.variables import assigned, read


def separate_elements(
    function: ast.FunctionDef, owner: Any, namespace: Mapping[str, Any], never_given: Collection[str] = ()
) -> ast.FunctionDef:
    """The function with a variable for each element of lists and dictionaries that allow it; itself where none does.

    `owner` is the module whose method it is, by which lengths are known, `namespace` the function's globals;
    `never_given` are parameters that are None.
    """
    together: set[str] = set()
    while True:
        separation = _Separation(function, owner, namespace, never_given, together)
        try:
            result = copy.copy(function)
            result.body = separation.block(copy.deepcopy(function.body))
        except NotSeparableError as error:
            if error.name is None or error.name in together:
                return function
            together.add(error.name)
            continue
        return ast.fix_missing_locations(result) if separation.count else function


class _Separation(ElementWrites):
    """Writes the statements of a function again; variables that stay `together` are not touched."""

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements, one after the other."""
        result: list[ast.stmt] = []
        outer = self.before
        for statement in statements:
            self.before = []
            new = self._statement(statement)
            result += [*self.before, *new]
        self.before = outer
        return result

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name) as target, value=ast.expr() as value) if (
                name not in self.together
            ):
                assigned_value = self.value(value)
                if isinstance(assigned_value, Group):
                    return self.assigned(target, assigned_value, statement)
                self.forget(name)
                return [ast.copy_location(ast.AnnAssign(target, statement.annotation, assigned_value, 1), statement)]
            case ast.Assign(targets=[target], value=value):
                return self._assignment(statement, target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name in self.layouts:
                return self.extended(name, self.listed_elements(value), statement)
            case ast.AugAssign(target=target):
                new_target: Any = self.slot(target) or self.expression(target)
                new_value = self.expression(statement.value)
                return [ast.copy_location(ast.AugAssign(new_target, statement.op, new_value), statement)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=method)) as call) if method in CHANGES:
                changed = self.changed(base, method, call, statement)
                if changed is not None:
                    return changed[0]
            case ast.If():
                return self._branch(statement)
            case ast.For():
                return self._loop(statement)
            case ast.While(orelse=[]):
                entry = dict(self.layouts)
                self._forget(assigned([statement]))
                new_while = ast.While(self.expression(statement.test), self.block(statement.body), [])
                self._forget(assigned([statement]))
                self._require_same(entry)
                return [ast.copy_location(new_while, statement)]
            case ast.With():
                for item in statement.items:
                    item.context_expr = self.expression(item.context_expr)
                statement.body = self.block(statement.body)
                return [statement]
            case ast.Return(value=ast.expr() as value):
                return [ast.copy_location(ast.Return(displayed(self.value(value), value)), statement)]
        return [self._other(statement)]

    def _other(self, statement: ast.stmt) -> ast.stmt:
        if any(hasattr(statement, field) for field in ("body", "orelse")):
            # A function, a `try`: nothing in it is touched, and nothing that it names.
            for name in read([statement]) | assigned([statement]):
                if name in self.layouts:
                    raise NotSeparableError(name)
            return statement
        for name, field in ast.iter_fields(statement):
            if isinstance(field, ast.expr):
                setattr(statement, name, self.expression(field))
            elif isinstance(field, list):
                setattr(statement, name, [self.expression(v) if isinstance(v, ast.expr) else v for v in field])
        for name in assigned([statement]):
            self.forget(name)
        return statement

    def _assignment(self, statement: ast.Assign, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match value:
            case ast.Call(func=ast.Attribute(value=base, attr="pop")) as call:
                changed = self.changed(base, "pop", call, statement)
                if changed is not None:
                    # What was there is read before the others move up.
                    return [*self.assigned(target, changed[1], statement), *changed[0]]
            # `hs, cs = zip(*states)`: a list of the first parts, one of the second.
            case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=rows)], keywords=[]) if (
                isinstance(target, ast.Tuple) and self.groups_in(rows)
            ):
                elements = [displayed(e, rows) for e in self.listed_elements(rows)]
                columns = [[part_of(e, index) for e in elements] for index in range(len(target.elts))]
                return self.assigned(target, Group.listed([Group.listed(list(c)) for c in columns], tuple), statement)
        return self.assigned(target, self.value(value), statement)

    def _branch(self, statement: ast.If) -> list[ast.stmt]:
        test = self.test(statement.test)
        if isinstance(test, ast.Constant) and isinstance(test.value, bool):
            return self.block(statement.body if test.value else statement.orelse) or [
                ast.copy_location(ast.Pass(), statement)
            ]
        before, constants = dict(self.layouts), dict(self.constants)
        body = self.block(statement.body)
        after_body, self.layouts = self.layouts, before
        body_constants, self.constants = self.constants, constants
        other = self.block(statement.orelse)
        if body and isinstance(body[-1], (ast.Return, ast.Raise)):
            pass
        elif other and isinstance(other[-1], (ast.Return, ast.Raise)):
            self.layouts, self.constants = after_body, body_constants
        else:
            for name in {*after_body, *self.layouts}:
                if after_body.get(name) != self.layouts.get(name):
                    self.layouts[name] = Gone.DIFFERENT_BY_BRANCH
            self.constants = {n: v for n, v in self.constants.items() if body_constants.get(n, self) is v}
        body = body or [ast.copy_location(ast.Pass(), statement)]
        return [ast.copy_location(ast.If(test, body, other), statement)]

    def _loop(self, loop: ast.For) -> list[ast.stmt]:
        steps = None if loop.orelse else self.steps(loop.iter)
        body = list(without_continue(loop.body))
        leaves = any(isinstance(n, (ast.Break, ast.Continue)) for s in body for n in of_this_loop(s))
        names = read([loop]) | assigned(loop.body)
        own = assigned([loop.target])
        if steps is not None and not leaves and names & self.layouts.keys():
            return self._unrolled(loop, body, steps)
        iterable = self.expression(loop.iter)
        self._forget(assigned([loop]))
        for name in own:
            self.forget(name)
        entry = dict(self.layouts)
        new = ast.For(loop.target, iterable, self.block(loop.body), self.block(loop.orelse))
        self._forget(assigned([loop]))
        self._require_same(entry)
        return [ast.copy_location(new, loop)]

    def _unrolled(self, loop: ast.For, body: Sequence[ast.stmt], steps: Sequence[Value]) -> list[ast.stmt]:
        sources = self.groups_in(loop.iter)
        entry = {n: self.layouts.get(n) for n in sources}
        if set(sources) & assigned(body):
            raise self.not_separable(loop.iter)
        own = assigned([loop.target])
        outer = {n: self.constants.pop(n) for n in own if n in self.constants}
        settled = not any(_changes(node) & set(sources) for s in body for node in ast.walk(s))
        standing = own - assigned(body)
        if not settled and _copies(loop.iter) & set(sources):
            raise self.not_separable(loop.iter)
        statements: list[ast.stmt] = []
        for step in steps:
            statements += self._bound(loop.target, copy.deepcopy(step), loop, standing, settled)
            statements += self.block(copy.deepcopy(list(body)))
            if {n: self.layouts.get(n) for n in sources} != entry:
                raise self.not_separable(loop.iter)
        if not steps:
            self.constants.update(outer)
        for name in own:
            # The element may be written from here on.
            if isinstance(self.constants.get(name), ast.Name):
                del self.constants[name]
        return statements

    def _bound(
        self, target: ast.expr, value: Value, loop: ast.For, standing: Collection[str], settled: bool
    ) -> list[ast.stmt]:
        """Statements that set what a loop runs over.

        In place of a `standing` variable stand numbers, parts of the module, and elements that the loop leaves
        `settled`.
        """
        match target, value:
            case ast.Name(id=name), ast.Name() if settled and name in standing:
                self.forget(name)
                self.constants[name] = value
                return []
            case ast.Name(id=name), ast.Constant() | ast.Attribute() | ast.Subscript(value=ast.Attribute()) if (
                name in standing
            ):
                assert isinstance(value, ast.expr)
                self.forget(name)
                self.constants[name] = value
                return []
            case ast.Tuple(elts=targets), Group() | ast.Tuple():
                pairs = zip(targets, self.elements(value) or [], strict=True)
                return [statement for t, v in pairs for statement in self._bound(t, v, loop, standing, settled)]
        return self.assigned(target, value, loop)

    def _forget(self, names: set[str]) -> None:
        """What is written in a loop is no constant in it."""
        for name in names:
            self.constants.pop(name, None)

    def _require_same(self, entry: dict[str, Layout | Gone]) -> None:
        """Raise where a step leaves another length or other keys than it met; forget what only the loop knows."""
        for name, layout in entry.items():
            if isinstance(layout, Layout) and self.layouts.get(name) != layout:
                raise NotSeparableError(name)
        self.layouts = {n: entry.get(n, Gone.OF_A_STEP) for n in self.layouts | entry}


def _changes(node: ast.AST) -> set[str]:
    """The variable whose list or dictionary a node changes."""
    match node:
        case ast.Subscript(value=inner, ctx=ast.Store()) | ast.Call(func=ast.Attribute(value=inner)):
            return read([inner])
    return set()


def _copies(node: ast.expr) -> set[str]:
    """The variables of which a loop takes the elements as they are before its first step, and not one by one."""
    match node:
        case ast.Name():
            return set()
        case ast.Call(func=ast.Name(id=("enumerate" | "zip" | "reversed")), args=arguments):
            return {name for argument in arguments for name in _copies(argument)}
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=("items" | "values" | "keys")), args=[]):
            return set()
    return read([node])

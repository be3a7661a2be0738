"""What expressions are where lists and dictionaries have a variable for each element."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from trtconv.export.exporters.scripted.forms.elements.constants import PLAIN, VariesError, attribute_of, constant_of
from trtconv.export.exporters.scripted.forms.elements.fixed_steps import LONGEST, FixedSteps
from trtconv.export.exporters.scripted.forms.elements.groups import Group, Layout, Value, displayed, part_of
from trtconv.export.exporters.scripted.forms.elements.held import NotSeparableError
from trtconv.export.exporters.scripted.forms.folding import joined


class ElementValues(FixedSteps):
    """Expressions with variables in place of elements."""

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression that is one value. Raises NotSeparableError where a whole group is read in it."""
        value = self.value(node)
        if isinstance(value, Group):
            if value.all_sources():
                raise self.not_separable(value)
            return displayed(value, node)
        return value

    def value(self, node: ast.expr) -> Value:
        """An expression, as a group where it makes one."""
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                if name in self.constants:
                    return copy.deepcopy(self.constants[name])
                return self._located(self.group(name), node) if name in self.layouts else node
            case ast.List(elts=elements):
                values = self._display(elements)
                return Group.listed(values) if values is not None else self._inside(node)
            case ast.Tuple(elts=elements):
                values = self._display(elements)
                if values is not None and any(isinstance(v, Group) for v in values):
                    return Group.listed(values, tuple)
                return self._inside(node) if values is None else _with(node, elts=values)
            case ast.Dict(keys=keys, values=elements) if all(_is_key(k) for k in keys):
                names = [k.value for k in keys if isinstance(k, ast.Constant)]
                return Group(names, [self.value(v) for v in elements], dict)
            case ast.ListComp(elt=element, generators=[ast.comprehension(is_async=0) as part]):
                group = self._comprehended(element, part)
                if group is not None:
                    return group
            case ast.BinOp(op=ast.Mult() | ast.Add()):
                group = self._combined(node)
                if group is not None:
                    return group
            case ast.Subscript(ctx=ast.Load()):
                return self._element(node)
            case ast.IfExp(test=test, body=body, orelse=other):
                decided = self.test(test)
                if isinstance(decided, ast.Constant) and isinstance(decided.value, bool):
                    return self.value(body if decided.value else other)
            case ast.Call():
                return self._call(node)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.test(node)
        return self._inside(node)

    def test(self, node: ast.expr) -> ast.expr:
        """A condition, decided where it is the same in every run."""
        if self.constants or self.layouts:
            try:
                return ast.copy_location(ast.Constant(bool(constant_of(node, self.read))), node)
            except VariesError:
                pass
        if isinstance(node, ast.BoolOp):
            return joined(node, [self.test(v) for v in node.values])
        return self._inside(node)

    def _located(self, group: Group, node: ast.expr) -> Group:
        for _, leaf in group.leaves():
            ast.copy_location(leaf, node)
        return group

    def _display(self, elements: Sequence[ast.expr]) -> list[Value] | None:
        values: list[Value] = []
        for element in elements:
            if isinstance(element, ast.Starred):
                inner = self.elements(self.value(element.value))
                if inner is None:
                    return None
                values += inner
            else:
                values.append(self.value(element))
        return values

    def _comprehended(self, element: ast.expr, part: ast.comprehension) -> Group | None:
        steps = self.steps(part.iter)
        own = {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
        if steps is None or own & self.layouts.keys():
            return None
        outer, values = dict(self.constants), []
        try:
            for step in steps:
                if not self._stands_for(part.target, step):
                    return None
                tests = [self.test(copy.deepcopy(test)) for test in part.ifs]
                if not all(isinstance(t, ast.Constant) for t in tests):
                    return None
                if all(t.value for t in tests if isinstance(t, ast.Constant)):
                    values.append(self.value(copy.deepcopy(element)))
        finally:
            self.constants = outer
        return Group.listed(values)

    def _stands_for(self, target: ast.expr, value: Value) -> bool:
        """True where a value may stand in place of a comprehension's variables, and does now."""
        match target, value:
            case ast.Name(id=name), (
                ast.Name() | ast.Constant() | ast.Attribute() | ast.Subscript(value=ast.Attribute() | ast.Name())
            ):
                assert isinstance(value, ast.expr)
                self.constants[name] = value
                return True
            case ast.Tuple(elts=targets), _:
                values = self.elements(value)
                if isinstance(value, ast.Name):
                    # A pair is read where each of its parts is.
                    values = [part_of(value, index) for index in range(len(targets))]
                if values is not None and len(values) == len(targets):
                    return all(self._stands_for(t, v) for t, v in zip(targets, values, strict=True))
        return False

    def _combined(self, node: ast.BinOp) -> Group | None:
        """`[None] * 2`, `first + second` of lists."""
        if isinstance(node.op, ast.Add):
            if not any(isinstance(n, (ast.List, ast.ListComp)) for n in (node.left, node.right)) and not (
                isinstance(node.left, ast.Name) and isinstance(self.layouts.get(node.left.id), Layout)
            ):
                return None
            sides = [self.value(node.left), self.value(node.right)]
            if all(isinstance(s, Group) and s.kind is list for s in sides):
                return Group.listed([v for s in sides if isinstance(s, Group) for v in s.values])
            return None
        if not isinstance(node.left, ast.List):
            return None
        times, values = self.number(node.right), self._display(node.left.elts)
        if times is None or values is None or times * len(values) > LONGEST:
            return None
        if times > 1:
            values = [self._once(v) for v in values if not isinstance(v, Group)]
        if len(values) != len(node.left.elts):
            return None
        return Group.listed([copy.deepcopy(v) for _ in range(times) for v in values])

    def _once(self, value: ast.expr) -> ast.expr:
        """A value that several elements are, computed once."""
        if isinstance(value, (ast.Constant, ast.Name)):
            return value
        name = self.names.of("element", (len(self.before), value.lineno, value.col_offset))
        target = ast.copy_location(ast.Name(name, ast.Store()), value)
        self.before.append(ast.copy_location(ast.Assign([target], value), value))
        return ast.copy_location(ast.Name(name, ast.Load()), value)

    def _element(self, node: ast.Subscript) -> Value:
        if isinstance(node.value, ast.Attribute):
            # A dictionary of numbers that a module holds has no form in a file.
            try:
                held = attribute_of(self.owner, node.value)
                value = held[constant_of(node.slice, self.read)] if isinstance(held, dict) else None
            except (VariesError, LookupError, TypeError):
                value = None
            if value is not None and isinstance(value, PLAIN):
                return ast.copy_location(ast.Constant(value), node)
        if not self.groups_in(node.value):
            return self._inside(node)
        base = self.value(node.value)
        if not isinstance(base, Group):
            return ast.copy_location(ast.Subscript(base, self.expression(node.slice), ast.Load()), node)
        if isinstance(node.slice, ast.Slice):
            part = self.fixed_slice(node.slice)
            if part is None or base.kind is dict:
                raise self.not_separable(base)
            return Group.listed(base.values[part], base.kind)
        try:
            key = base.layout.checked(constant_of(node.slice, self.read))
        except (VariesError, KeyError):
            raise self.not_separable(base) from None
        value = base.values[base.keys.index(key)]
        if isinstance(value, Group):
            value.sources = tuple(sorted(base.all_sources()))
        return value

    def _call(self, node: ast.Call) -> Value:
        match node:
            case ast.Call(func=ast.Name(id=("list" | "tuple") as kind), args=[argument], keywords=[]):
                if self.groups_in(argument):
                    values = self.all_steps(argument)
                    if values is not None:
                        return Group.listed(values, list if kind == "list" else tuple)
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if all(k.arg for k in keywords):
                return Group([k.arg for k in keywords], [self.value(k.value) for k in keywords], dict)
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]) if self.groups_in(argument):
                return ast.copy_location(ast.Constant(self.whole_number(node, self.groups_in(argument)[0])), node)
            case ast.Call(func=ast.Name(id="sum"), args=[argument], keywords=[]) if self.groups_in(argument):
                total: ast.expr = ast.copy_location(ast.Constant(0), node)
                for value in self.elements(self.value(argument)) or []:
                    total = ast.copy_location(ast.BinOp(total, ast.Add(), displayed(value, node)), node)
                return total
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name) as held, attr="get"), args=[key, *default], keywords=[]
            ) if name in self.layouts:
                if _constant_key(key, self.read) in self.group(name).keys:
                    return self._element(ast.copy_location(ast.Subscript(held, key, ast.Load()), node))
                return self.value(default[0]) if default else ast.copy_location(ast.Constant(None), node)
        whole = self._is_of_torch(node.func)
        arguments: list[ast.expr] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred) and self.groups_in(argument):
                values = self.elements(self.value(argument.value))
                if values is None:
                    raise self.not_separable(argument)
                arguments += [displayed(v, argument) for v in values]
            else:
                arguments.append(self._argument(argument, whole))
        keywords = [ast.copy_location(ast.keyword(k.arg, self._argument(k.value, whole)), k) for k in node.keywords]
        return ast.copy_location(ast.Call(self.expression(node.func), arguments, keywords), node)

    def _argument(self, node: ast.expr, whole: bool) -> ast.expr:
        return displayed(self.value(node), node) if whole else self.expression(node)

    def _is_of_torch(self, function: ast.expr) -> bool:
        """True for what torch defines: it keeps no list that it is handed, and changes none."""
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return False
        value = self.namespace.get(root.id)
        name = getattr(value, "__name__" if isinstance(function, ast.Attribute) else "__module__", None)
        return isinstance(name, str) and name.split(".")[0] == "torch"

    def _inside(self, node: ast.expr) -> ast.expr:
        """The expression with all that stands in it."""
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        if own & self.layouts.keys():
            raise NotSeparableError(next(iter(own & self.layouts.keys())))
        outer = self.constants
        self.constants = {n: v for n, v in outer.items() if n not in own}
        try:
            fields = {name: self._field(value) for name, value in ast.iter_fields(node)}
        finally:
            self.constants = outer
        return ast.copy_location(type(node)(**fields), node)

    def _field(self, value: Any) -> Any:
        if isinstance(value, ast.expr):
            return self.expression(value)
        if isinstance(value, list):
            return [self._field(v) for v in value]
        if isinstance(value, (ast.comprehension, ast.keyword)):
            return type(value)(**{name: self._field(v) for name, v in ast.iter_fields(value)})
        return value


def _constant_key(node: ast.expr, read: Any) -> Any:
    """A key of a dictionary. Raises NotSeparableError for one that moves."""
    try:
        return constant_of(node, read)
    except VariesError:
        raise NotSeparableError(None) from None


def _is_key(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, PLAIN)


def _with(node: ast.Tuple, elts: Sequence[Any]) -> ast.Tuple:
    return ast.copy_location(ast.Tuple(list(elts), node.ctx), node)

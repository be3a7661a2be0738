"""Statements that write lists and dictionaries of which each element is a variable."""

from __future__ import annotations

import ast

from trtconv.export.exporters.scripted.forms.elements.groups import Group, Layout, Path, Value, displayed
from trtconv.export.exporters.scripted.forms.elements.held import Gone, NotSeparableError, layout_at
from trtconv.export.exporters.scripted.forms.elements.values import ElementValues
from trtconv.export.exporters.scripted.forms.variables import assigned, read

# A target with what is put into it.
Pairs = list[tuple[ast.expr, ast.expr]]


class ElementWrites(ElementValues):
    """Assignments, and calls that change a list or a dictionary."""

    def assigned(self, target: ast.expr, value: Value, statement: ast.stmt) -> list[ast.stmt]:
        """Statements that put a value into a target."""
        pairs: Pairs = []
        sources: set[str] = set()
        self._pair(target, value, pairs, sources)
        for source in sources:
            self.layouts[source] = Gone.UNDER_ANOTHER_NAME
        pairs = [(t, v) for t, v in pairs if not (isinstance(t, ast.Name) and isinstance(v, ast.Name) and t.id == v.id)]
        written = assigned([t for t, _ in pairs])
        crossed = any(read([v]) & (written - assigned([t])) or not isinstance(t, ast.Name) for t, v in pairs)
        if len(pairs) > 1 and crossed:
            both = ast.Tuple([t for t, _ in pairs], ast.Store()), ast.Tuple([v for _, v in pairs], ast.Load())
            pairs = [both]
        assigns = [ast.Assign([t], v) for t, v in pairs]
        return [ast.fix_missing_locations(ast.copy_location(a, statement)) for a in assigns]

    def _pair(self, target: ast.expr, value: Value, pairs: Pairs, sources: set[str]) -> None:
        match target, value:
            case (ast.Tuple(elts=targets) | ast.List(elts=targets)), _:
                values = self.elements(value)
                if values is None:
                    assert isinstance(value, ast.expr)
                    slots = [self._slot_or_name(t) for t in targets]
                    pairs.append((ast.Tuple(slots, ast.Store()), value))
                    return
                if len(values) != len(targets) or any(isinstance(t, ast.Starred) for t in targets):
                    raise self.not_separable(value)
                # All values are read before the first is put anywhere.
                for part, element in zip(targets, values, strict=True):
                    self._pair(part, element, pairs, sources)
            case ast.Name(id=name), Group():
                if name in self.together:
                    pairs.append((target, displayed(value, target)))
                    sources |= value.all_sources()
                    return
                self.count += 1
                sources |= value.all_sources() - {name}
                self.layouts[name] = value.layout
                self.constants.pop(name, None)
                pairs += [(self.name(name, path, target), leaf) for path, leaf in value.leaves()]
            case ast.Name(id=name), ast.expr():
                self.forget(name)
                pairs.append((target, value))
            case ast.Subscript(), _:
                path = self.path_of(target)
                if path is None:
                    pairs.append((self.expression(target), displayed(value, target)))
                    return
                variable, keys = path
                layout = self.layouts[variable]
                assert isinstance(layout, Layout)
                try:
                    self._put(variable, layout, keys, value, pairs, target)
                except KeyError:
                    raise NotSeparableError(variable) from None
                sources |= value.all_sources() - {variable} if isinstance(value, Group) else set()
            case _:
                pairs.append((self.expression(target), displayed(value, target)))

    def _put(
        self, variable: str, layout: Layout, keys: Path, value: Value, pairs: Pairs, at: ast.expr
    ) -> None:
        holder = layout_at(layout, keys[:-1])
        if holder is None:
            raise KeyError(keys)
        if holder.kind is not dict or keys[-1] in dict(holder.elements):
            keys = (*keys[:-1], holder.checked(keys[-1]))
        if holder.kind is tuple:
            raise NotSeparableError(variable)
        if isinstance(value, Group):
            self.layouts[variable] = layout.with_element(keys, value.layout)
            pairs += [(self.name(variable, (*keys, *path), at), leaf) for path, leaf in value.leaves()]
            return
        if layout_at(layout, keys) is not None:
            raise NotSeparableError(variable)
        self.layouts[variable] = layout.with_element(keys, None)
        pairs.append((self.name(variable, keys, at), value))

    def _slot_or_name(self, target: ast.expr) -> ast.expr:
        slot = self.slot(target)
        if slot is not None:
            return slot
        if isinstance(target, (ast.Tuple, ast.List)):
            return ast.copy_location(ast.Tuple([self._slot_or_name(t) for t in target.elts], ast.Store()), target)
        if isinstance(target, ast.Name):
            self.forget(target.id)
            return target
        return self.expression(target)

    def slot(self, target: ast.expr) -> ast.expr | None:
        """The variable of an element that is written; None for another target."""
        path = self.path_of(target) if isinstance(target, ast.Subscript) else None
        if path is None:
            return None
        pairs: Pairs = []
        layout = self.layouts[path[0]]
        assert isinstance(layout, Layout)
        try:
            self._put(path[0], layout, path[1], target, pairs, target)
        except KeyError:
            raise NotSeparableError(path[0]) from None
        return pairs[0][0]

    def listed_elements(self, value: ast.expr) -> list[Value]:
        """What a list is extended by. Raises NotSeparableError where that is not written out."""
        elements = self.elements(self.value(value))
        if elements is None:
            raise self.not_separable(value)
        return elements

    def extended(self, name: str, elements: list[Value], statement: ast.stmt) -> list[ast.stmt]:
        """Statements for a list with more elements."""
        group = self.group(name)
        return self._regrouped(name, [*group.values, *elements], statement)

    def _regrouped(self, name: str, values: list[Value], statement: ast.stmt) -> list[ast.stmt]:
        target = ast.copy_location(ast.Name(name, ast.Store()), statement)
        return self.assigned(target, Group.listed(values, sources=(name,)), statement)

    def changed(
        self, base: ast.expr, method: str, call: ast.Call, statement: ast.stmt
    ) -> tuple[list[ast.stmt], Value] | None:
        """Statements for a call that changes a list or a dictionary, and what it returns; None for another object."""
        if not isinstance(base, ast.Name) or not isinstance(self.layouts.get(base.id), (Layout, Gone)):
            if self.groups_in(base):
                raise self.not_separable(base)
            return None
        name, group = base.id, self.group(base.id)
        nothing: ast.expr = ast.copy_location(ast.Constant(None), call)
        if group.kind is dict and method == "update" and not call.args:
            statements: list[ast.stmt] = []
            for keyword in call.keywords:
                slot = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(keyword.arg), ast.Store())
                statements += self.assigned(ast.copy_location(slot, call), self.value(keyword.value), statement)
            return statements, nothing
        if group.kind is not list or call.keywords:
            raise NotSeparableError(name)
        values = list(group.values)
        result: Value = nothing
        match method, call.args:
            case "append", [value]:
                values.append(self.value(value))
            case "extend", [value]:
                values += self.listed_elements(value)
            case "insert", [index, value]:
                values.insert(self.whole_number(index, name), self.value(value))
            case "pop", [*index] if len(index) <= 1 and values:
                try:
                    result = values.pop(self.whole_number(index[0], name) if index else -1)
                except IndexError:
                    raise NotSeparableError(name) from None
            case "clear", []:
                values = []
            case "reverse", []:
                values.reverse()
            case _:
                raise NotSeparableError(name)
        return self._regrouped(name, values, statement), result

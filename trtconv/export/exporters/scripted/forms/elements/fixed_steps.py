"""What loops run over, where it is the same in every run: the parts of a module, a list of states, a fixed range."""

from __future__ import annotations

import ast
from typing import Any

from trtconv.export.exporters.scripted.forms.elements.constants import (
    PLAIN,
    VariesError,
    attribute_of,
    number_of_parts,
)  # fmt: skip
from trtconv.export.exporters.scripted.forms.elements.groups import Group, Value, part_of
from trtconv.export.exporters.scripted.forms.elements.held import HeldVariables

# A list of more elements stays a list.
LONGEST = 64


class FixedSteps(HeldVariables):
    """The steps of loops and comprehensions."""

    def steps(self, node: ast.expr) -> list[Value] | None:
        """What a loop runs over, where that is the same in every run; None for what is not."""
        steps = self.all_steps(node)
        return None if steps is None or len(steps) > LONGEST else steps

    def elements(self, value: Value) -> list[Value] | None:
        """The elements of a list or a tuple that is written out, the keys of a dictionary; None for another value."""
        if isinstance(value, Group):
            return [ast.Constant(k) for k in value.keys] if value.kind is dict else list(value.values)
        if isinstance(value, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in value.elts):
            return list(value.elts)
        return None

    def fixed_slice(self, node: ast.Slice) -> slice | None:
        """A part of a list that is the same in every run; None for another."""
        bounds = [None if b is None else (self.number(b),) for b in (node.lower, node.upper, node.step)]
        if any(b is not None and b[0] is None for b in bounds) or bounds[2] == (0,):
            return None
        return slice(*(None if b is None else b[0] for b in bounds))

    def all_steps(self, node: ast.expr) -> list[Value] | None:
        """As `steps`, of any number."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[*bounds], keywords=[]) if 1 <= len(bounds) <= 3:
                numbers = [self.number(b) for b in bounds]
                if any(n is None for n in numbers) or (len(numbers) == 3 and numbers[2] == 0):
                    return None
                counted = range(*(n for n in numbers if n is not None))
                return [self._constant(i, node) for i in counted] if len(counted) <= LONGEST else None
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *start], keywords=[]) if len(start) <= 1:
                steps, first = self.all_steps(inner), self.number(start[0]) if start else 0
                if steps is None or first is None:
                    return None
                return [Group.listed([self._constant(first + i, node), s], tuple) for i, s in enumerate(steps)]
            case ast.Call(func=ast.Name(id="zip"), args=[*parts], keywords=[]) if parts:
                columns = [c for part in parts if (c := self.all_steps(part)) is not None]
                if len(columns) < len(parts):
                    return None
                return [Group.listed(list(row), tuple) for row in zip(*columns, strict=False)]
            case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
                steps = self.all_steps(inner)
                return None if steps is None else steps[::-1]
            case ast.Call(func=ast.Name(id=("list" | "tuple")), args=[inner], keywords=[]):
                return self.all_steps(inner)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=[], keywords=[]) if (
                name in self.layouts and method in ("keys", "values", "items")
            ):
                group = self.group(name)
                keys: list[Value] = [self._constant(k, node) for k in group.keys]
                if method != "items":
                    return keys if method == "keys" else list(group.values)
                return [Group.listed([k, v], tuple) for k, v in zip(keys, group.values, strict=True)]
            case ast.Subscript(value=ast.Attribute() as held, slice=ast.Slice() as part_of):
                whole, part = self.all_steps(held), self.fixed_slice(part_of)
                return None if whole is None or part is None else whole[part]
            case ast.Attribute():
                return self._parts(node)
        if not self.groups_in(node) and not isinstance(node, (ast.List, ast.Tuple)):
            return None
        value = self.value(node)
        return self.elements(value)

    def _parts(self, node: ast.Attribute) -> list[Value] | None:
        try:
            held = attribute_of(self.owner, node)
            count = number_of_parts(held)
        except VariesError:
            return None
        if isinstance(held, (tuple, list)):
            plain = all(isinstance(v, PLAIN) for v in held)
            return [self._constant(v, node) for v in held] if plain else None
        return [part_of(node, index) for index in range(count)]

    def _constant(self, value: Any, at: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Constant(value), at)

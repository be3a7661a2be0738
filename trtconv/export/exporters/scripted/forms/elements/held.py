"""The variables of a function at a line, where those of lists and dictionaries are separate ones."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

from trtconv.export.exporters.scripted.forms.elements.constants import (
    VariesError,
    attribute_of,
    constant_of,
    number_of_parts,
)  # fmt: skip
from trtconv.export.exporters.scripted.forms.elements.groups import Group, Layout, Names, Path, Value
from trtconv.export.exporters.scripted.forms.variables import all_names


class NotSeparableError(Exception):
    """A variable whose list or dictionary has to stay together; None where no variable is to blame."""

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.name = name


class Gone(Enum):
    """Why a variable's elements are not known any more."""

    UNDER_ANOTHER_NAME = "another variable has the same list"
    DIFFERENT_BY_BRANCH = "the branches leave different ones"
    OF_A_STEP = "a step of a loop sets it"


class _Unread(list[Value]):
    """A list that is something, and has a length; its elements may be anything."""

    def __getitem__(self, key: Any) -> Any:
        raise VariesError(str(key))

    def __eq__(self, other: object) -> bool:
        raise VariesError(str(other))


class HeldVariables(ABC):
    """The layouts of the variables that are separated, and what stands in place of others."""

    def __init__(
        self,
        function: ast.FunctionDef,
        owner: Any,
        namespace: Mapping[str, Any],
        never_given: Collection[str],
        together: Collection[str],
    ) -> None:
        self.names = Names(all_names(function))
        self.owner, self.namespace = owner, namespace
        self.together = together
        self.layouts: dict[str, Layout | Gone] = {}
        self.constants: dict[str, ast.expr] = {name: ast.Constant(None) for name in never_given}
        # Statements that have to stand before the one that is being written.
        self.before: list[ast.stmt] = []
        self.count = 0

    def forget(self, name: str) -> None:
        """The variable is written: it is one variable from here on."""
        self.layouts.pop(name, None)
        self.constants.pop(name, None)

    def group(self, name: str) -> Group:
        """What a separated variable holds. Raises NotSeparableError where that is not known."""
        layout = self.layouts[name]
        if isinstance(layout, Gone):
            raise NotSeparableError(name)
        return self.names.group(name, layout)

    def name(self, variable: str, path: Path, at: ast.expr) -> ast.expr:
        """The variable of an element, to be written."""
        return ast.copy_location(ast.Name(self.names.of(variable, path), ast.Store()), at)

    def groups_in(self, node: Value) -> list[str]:
        """The variables of groups that an expression reads."""
        if isinstance(node, Group):
            return sorted(node.all_sources())
        return sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & self.layouts.keys())

    def not_separable(self, node: Value) -> NotSeparableError:
        """The error for an expression that has no form with separate elements."""
        return NotSeparableError(next(iter(self.groups_in(node)), None))

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """An expression, as a group where it makes one."""

    def whole_number(self, node: ast.expr, name: str) -> int:
        """An index into the variable's list. Raises NotSeparableError where it moves."""
        try:
            number = constant_of(node, self.read)
        except VariesError:
            raise NotSeparableError(name) from None
        if type(number) is not int:
            raise NotSeparableError(name)
        return number

    def path_of(self, target: ast.expr) -> tuple[str, Path] | None:
        """The variable and the keys of `states[1]["h"]`; None for an element of something else."""
        keys: list[Any] = []
        while isinstance(target, ast.Subscript):
            keys.insert(0, target.slice)
            target = target.value
        if not isinstance(target, ast.Name) or target.id not in self.layouts:
            return None
        name, layout = target.id, self.layouts[target.id]
        path: list[Any] = []
        for key in keys:
            # What an element is indexed with is none of the group's keys.
            if path and isinstance(layout, Layout) and layout_at(layout, tuple(path)) is None:
                return None
            try:
                path.append(constant_of(key, self.read))
            except VariesError:
                raise NotSeparableError(name) from None
        if isinstance(layout, Gone):
            raise NotSeparableError(name)
        return name, tuple(path)

    def read(self, node: ast.expr) -> Any:
        """What a name or a length comes to. Raises VariesError."""
        match node:
            case ast.Name(id=name) if name in self.layouts:
                return _Unread(self.group(name).values)
            case ast.Name(id=name) if isinstance(constant := self.constants.get(name), ast.Constant):
                return constant.value
            case ast.Call(func=ast.Name(id="len"), args=[held], keywords=[]):
                return self._length(held)
        raise VariesError(ast.unparse(node))

    def _length(self, node: ast.expr) -> int:
        if self.groups_in(node):
            value = self.value(node)
            if isinstance(value, Group):
                return len(value.values)
        return number_of_parts(attribute_of(self.owner, node))

    def number(self, node: ast.expr) -> int | None:
        """A whole number of literals, of the variables, or of an attribute; None for another."""

        def read_attribute(part: ast.expr) -> Any:
            return attribute_of(self.owner, part) if isinstance(part, ast.Attribute) else self.read(part)

        try:
            number = constant_of(node, read_attribute)
        except VariesError:
            return None
        return number if type(number) is int else None


def layout_at(layout: Layout, path: Path) -> Layout | None:
    """The layout of an element; None for one that is no group, or is not there."""
    inner: Layout | None = layout
    for key in path:
        try:
            inner = inner.at(key) if inner is not None else None
        except KeyError:
            return None
    return inner

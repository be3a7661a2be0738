"""Lists and dictionaries whose length and keys are the same at every step: each element is a variable of its own.

A group stands for what an expression makes, with an expression for each element; its layout for what a variable holds,
whose elements are variables named after their positions: `states[1]["h"]` is `states_1_h`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trtconv.export.exporters.scripted.forms.variables import unused

Key = Any
Path = tuple[Key, ...]


@dataclass(frozen=True)
class Layout:
    """The keys of a group in order, each with the layout of its element: None for one that is no group.

    The keys of a list or a tuple are its positions.
    """

    kind: type
    elements: tuple[tuple[Key, Layout | None], ...]

    def at(self, key: Key) -> Layout | None:
        """The element's layout. Raises KeyError for a key that is none of the group's."""
        return dict(self.elements)[self.checked(key)]

    def checked(self, key: Key) -> Key:
        """The key as it stands in the layout, for a position from the end as well. Raises KeyError."""
        if self.kind is not dict and type(key) is int and -len(self.elements) <= key < 0:
            key += len(self.elements)
        if all(k != key or type(k) is not type(key) for k, _ in self.elements):
            raise KeyError(key)
        return key

    def with_element(self, path: Path, element: Layout | None) -> Layout:
        """The layout where that at the path is another; a dictionary may get a new key. Raises KeyError."""
        key, *rest = path
        elements = dict(self.elements)
        if self.kind is not dict or rest or key in elements:
            key = self.checked(key)
        inner = elements.get(key)
        if rest and inner is None:
            raise KeyError(key)
        elements[key] = inner.with_element(tuple(rest), element) if rest and inner is not None else element
        return Layout(self.kind, tuple(elements.items()))


@dataclass
class Group:
    """An expression that makes a list, a dictionary, or a tuple with one of these in it, element by element.

    `sources` are the variables whose lists it is, and not copies of: under another name they would change together.
    """

    keys: list[Key]
    values: list[Value]
    kind: type = list
    sources: tuple[str, ...] = ()

    @classmethod
    def listed(cls, values: list[Value], kind: type = list, sources: tuple[str, ...] = ()) -> Group:
        """A list or a tuple of these."""
        return cls(list(range(len(values))), values, kind, sources)

    @property
    def layout(self) -> Layout:
        """Which elements it has."""
        layouts = (v.layout if isinstance(v, Group) else None for v in self.values)
        return Layout(self.kind, tuple(zip(self.keys, layouts, strict=True)))

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, ast.expr]]:
        """Every element that is no group, with its path."""
        for key, value in zip(self.keys, self.values, strict=True):
            if isinstance(value, Group):
                yield from value.leaves((*path, key))
            else:
                yield (*path, key), value

    def all_sources(self) -> set[str]:
        """The variables whose groups it holds, at any depth."""
        return set(self.sources).union(*(v.all_sources() for v in self.values if isinstance(v, Group)))


Value = ast.expr | Group


def displayed(value: Value, at: ast.expr) -> ast.expr:
    """The group written out at another expression's lines."""
    if not isinstance(value, Group):
        return value
    elements = [displayed(v, at) for v in value.values]
    display: ast.expr
    if value.kind is dict:
        display = ast.Dict([ast.Constant(k) for k in value.keys], elements)
    else:
        display = (ast.Tuple if value.kind is tuple else ast.List)(elements, ast.Load())
    return ast.fix_missing_locations(ast.copy_location(display, at))


def part_of(element: ast.expr, index: int) -> ast.expr:
    """`element[index]`."""
    part = ast.Subscript(copy.deepcopy(element), ast.Constant(index), ast.Load())
    return ast.fix_missing_locations(ast.copy_location(part, element))


class Names:
    """The variables of the elements, none of which has the name of another variable of the function."""

    def __init__(self, used: set[str]) -> None:
        self._used = used
        self._names: dict[tuple[str, Path], str] = {}

    def of(self, variable: str, path: Path) -> str:
        """`states`, (1, 'h') as `states_1_h`, the same each time."""
        if (variable, path) not in self._names:
            name = "_".join([variable, *(str(key) for key in path)])
            name = name if name.isidentifier() else f"{variable}_{len(self._names)}"
            self._names[variable, path] = unused(name, self._used)
        return self._names[variable, path]

    def group(self, variable: str, layout: Layout, path: Path = ()) -> Group:
        """What a variable holds, as an expression."""
        values: list[Value] = []
        for key, inner in layout.elements:
            here = (*path, key)
            if inner is not None:
                values.append(self.group(variable, inner, here))
            else:
                values.append(ast.Name(self.of(variable, here), ast.Load()))
        return Group([k for k, _ in layout.elements], values, layout.kind, (variable,))

"""What the user's files keep for all modules: `functools.lru_cache` on a function, a dictionary at the top of a file.

A mask or a table of frequencies is often made once for each size. A module's FP64 twin, or the tensors without values
of a trace, would leave theirs there for the next run, or find those of FP32; and a symbolic size is no key. So in such
a run a function that remembers its results is the function itself, and a dictionary has in it what it had before the
first run. A name in a file or a class of the user's that such a run gives another value has its own again afterwards.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from trtconv.export.lasting.content import file_of_class
from trtconv.export.module.user_code import is_library
from trtconv.export.sizes.symbolic_keys import SymbolicKeys

if TYPE_CHECKING:
    from torch import nn

# A larger container is a vocabulary, which no run fills.
MOST_ENTRIES = 4096
_REMEMBERING = type(functools.lru_cache(lambda: None))
_MISSING = object()


@dataclass(frozen=True)
class RememberingFunction:
    """A name, in a file, a class or the cell of a closure, of a function that remembers its results."""

    space: Any
    name: str
    member: Any
    plain: Any


@dataclass(frozen=True)
class SharedCaches:
    """Functions that remember their results, containers with what was in them at first, and names of dictionaries.

    `spaces` are the user's files and classes, whose names a run may give other values.
    """

    functions: tuple[RememberingFunction, ...] = ()
    containers: tuple[tuple[Any, Any], ...] = ()
    dictionaries: tuple[tuple[ModuleType | type, str], ...] = ()
    spaces: tuple[ModuleType | type, ...] = ()

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """For the time of the block the caches are as before the first run; then again what they were."""
        before = [(container, container.copy()) for container, _ in self.containers]
        # What grew in the runs is no table of the author's, in which a symbolic size would find nothing.
        grown = {id(c) for c, content in self.containers if len(c) > len(content)}
        named = [(space, name, vars(space).get(name)) for space, name in self.dictionaries]
        filled = [(space, name, value) for space, name, value in named if value is not None and id(value) in grown]
        names = [(space, dict(vars(space))) for space in self.spaces]
        try:
            for container, content in self.containers:
                _fill(container, content)
            for space, name, dictionary in filled:
                setattr(space, name, SymbolicKeys(dictionary))
            for function in self.functions:
                setattr(function.space, function.name, function.plain)
            yield
        finally:
            for space, values in names:
                _restore_names(space, values)
            for function in self.functions:
                setattr(function.space, function.name, function.member)
            for container, content in before:
                _fill(container, content)


def shared_caches(module: nn.Module) -> SharedCaches:
    """Those of the files of a module."""
    functions: list[RememberingFunction] = []
    containers: dict[int, tuple[Any, Any]] = {}
    dictionaries: list[tuple[ModuleType | type, str]] = []
    # A class that a function makes, or whose file nobody imported, has no name in a file.
    kinds = dict.fromkeys(kind for part in module.modules() for kind in type(part).__mro__)
    spaces: list[ModuleType | type] = [kind for kind in kinds if not is_library(file_of_class(kind))]
    libraries: list[ModuleType] = []
    for name, file in files_of(module):
        functions += _remembering(file)
        classes = [v for v in vars(file).values() if issubclass(type(v), type) and v.__module__ == name]
        for kind in classes:
            functions += _remembering(kind)
        if is_library(getattr(file, "__file__", None) or ""):
            libraries.append(file)
        else:
            spaces += [file, *(kind for kind in classes if kind not in kinds)]
    for holder in (*spaces, *libraries):
        for key, value in _plain_names(holder).items():
            if type(value) in (dict, list) and len(value) <= MOST_ENTRIES:
                containers[id(value)] = (value, value.copy())
                dictionaries += [(holder, key)] if type(value) is dict else []
    return SharedCaches(tuple(functions), tuple(containers.values()), tuple(dictionaries), tuple(spaces))


def _plain_names(space: ModuleType | type) -> dict[str, Any]:
    """The names of a file or a class that are values."""
    return {name: value for name, value in vars(space).items() if _is_plain(name, value)}


def _is_plain(name: str, value: Any) -> bool:
    """False for functions, classes, descriptors and modules."""
    # `__builtins__` is a dictionary too. By its type: what stands for a missing package raises when it is asked.
    kind = type(value)
    no_value = name.startswith("__") or issubclass(kind, (type, ModuleType, FunctionType, _REMEMBERING))
    return not no_value and not hasattr(kind, "__get__")


def _restore_names(space: ModuleType | type, values: dict[str, Any]) -> None:
    # An application has hundreds of files: only what is another object is looked at.
    for name in [n for n, v in vars(space).items() if values.get(n, _MISSING) is not v]:
        if _is_plain(name, vars(space)[name]):
            delattr(space, name)
    for name in values.keys() - vars(space).keys():
        setattr(space, name, values[name])


def files_of(module: nn.Module) -> Iterator[tuple[str, ModuleType]]:
    """The files in which the classes of a module and its parts stand, and the user's beside them, by their names."""
    classes = {type(part).__module__ for part in module.modules()}
    written = [getattr(sys.modules.get(name), "__file__", None) for name in classes]
    folders = tuple({f"{Path(f).parent}/" for f in written if isinstance(f, str) and not is_library(f)})
    for name, file in list(sys.modules.items()):
        if not isinstance(file, ModuleType) or name.partition(".")[0] in ("torch", "trtconv"):
            continue
        path = getattr(file, "__file__", None)
        if name in classes or (isinstance(path, str) and path.startswith(folders) and not is_library(path)):
            yield name, file


def _remembering(space: Any) -> Iterator[RememberingFunction]:
    for name, member in list(vars(space).items()):
        wrapped = type(member) in (staticmethod, classmethod)
        function = member.__func__ if wrapped else member
        plain = _plain(function)
        if plain is not None:
            yield RememberingFunction(space, name, member, type(member)(plain) if wrapped else plain)
        # What a decorator put around it calls it by a cell.
        for cell in (getattr(function, "__closure__", None) or ()) if type(function) is FunctionType else ():
            plain = _plain(_content(cell))
            if plain is not None:
                yield RememberingFunction(cell, "cell_contents", cell.cell_contents, plain)


def _plain(function: Any) -> FunctionType | None:
    """What a function that remembers its results calls; None for anything else.

    By its type: whatever else stands in a file may raise when it is asked for an attribute, as what stands for an
    optional package does.
    """
    plain = getattr(function, "__wrapped__", None) if type(function) is _REMEMBERING else None
    return plain if isinstance(plain, FunctionType) else None


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # An empty one.
        return None


def _fill(container: Any, content: Any) -> None:
    container.clear()
    (container.update if type(container) is dict else container.extend)(content)

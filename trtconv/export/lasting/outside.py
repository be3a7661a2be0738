"""What lies outside of a module: names of its files, of their classes, what functions keep, the context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from trtconv.export.lasting.content import file_of_class
from trtconv.export.module.user_code import is_library
from trtconv.export.sizes.shape_caches import same_attributes
from trtconv.export.sizes.shared_caches import files_of

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Slot:
    """A name in a file, a class or a `__dict__`, or what a function keeps, which has none.

    Two are one if their holder is one object. The address stands for it: the cell of a closure is compared by its
    content. `inside`: it belongs to the module.
    """

    holder: Any = field(compare=False)
    address: int
    name: str
    label: str = field(compare=False)
    inside: bool = False

    @classmethod
    def of(cls, holder: Any, name: str, label: str, *, inside: bool = False) -> Slot:
        """The slot of a name, or of none, in what holds it."""
        return cls(holder, id(holder), name, label, inside)

    @property
    def settable(self) -> bool:
        """True for a name that can be given a value."""
        return isinstance(self.holder, (ModuleType, type, dict))

    def put(self, value: Any) -> None:
        """Give the name a value."""
        if isinstance(self.holder, dict):
            self.holder[self.name] = value
        else:
            setattr(self.holder, self.name, value)


@dataclass(frozen=True)
class NamesOutside:
    """The values at one time of names of the files of a module's classes, and of the user's beside them."""

    values: Mapping[Slot, Any]

    @classmethod
    def of(cls, module: nn.Module) -> NamesOutside:
        """The values of now."""
        return cls({slot: value for slot, value in outside_slots(module) if slot.settable})

    @contextmanager
    def put_back(self, module: nn.Module) -> Iterator[None]:
        """For the time of the block names have these values; what was written into those is not taken back."""
        moved = self._moved(module)
        try:
            for slot, _ in moved:
                slot.put(self.values[slot])
            yield
        finally:
            for slot, value in moved:
                slot.put(value)


    def _moved(self, module: nn.Module) -> list[tuple[Slot, Any]]:
        """The names that have other values by now, with those."""
        now = dict(outside_slots(module))
        return [(slot, now[slot]) for slot, value in self.values.items() if slot in now and now[slot] is not value]


@contextmanager
def as_before_trace(module: nn.Module) -> Iterator[None]:
    """After the block attributes, what containers hold and names outside are as before: a trace leaves its symbols."""
    before = NamesOutside.of(module)
    try:
        with same_attributes(module):
            yield
    finally:
        for slot, _ in before._moved(module):
            slot.put(before.values[slot])


def outside_slots(module: nn.Module) -> Iterator[tuple[Slot, Any]]:
    """What lies outside of a module that has a file of the user's, with its value."""
    for _, file in files_of(module):
        path = getattr(file, "__file__", None)
        if isinstance(path, str) and not is_library(path):
            yield from _of_file(file, Path(path).name)
    for kind in {type(part) for part in module.modules()}:
        # One that a function makes has no name in its file.
        if "<locals>" in kind.__qualname__ and not is_library(file_of_class(kind)):
            yield from _of_class(kind, kind.__name__)


def _of_file(file: ModuleType, title: str) -> Iterator[tuple[Slot, Any]]:
    for name, value in list(vars(file).items()):
        # By its type: what stands for a package that is not there raises when it is asked for its class.
        if name.startswith("__") or issubclass(type(value), ModuleType):
            continue
        if issubclass(type(value), type):
            if value.__module__ == file.__name__:
                yield from _of_class(value, name)
        elif type(value) is FunctionType:
            if value.__module__ == file.__name__:
                yield from _of_function(value, name)
        else:
            yield Slot.of(file, name, f"{name}` of `{title}"), value


def _of_class(kind: type, title: str) -> Iterator[tuple[Slot, Any]]:
    for name, value in list(vars(kind).items()):
        plain: Any = value.fget if type(value) is property else value
        plain = plain.__func__ if type(plain) in (staticmethod, classmethod) else plain
        if type(plain) is FunctionType:
            yield from _of_function(plain, f"{title}.{name}")
        elif not name.startswith("__") and not callable(value) and not hasattr(type(value), "__get__"):
            yield Slot.of(kind, name, f"{title}.{name}"), value


def _of_function(function: FunctionType, title: str) -> Iterator[tuple[Slot, Any]]:
    """What a function keeps: in its attributes, its defaults, the cells of its closure."""
    yield Slot.of(function, "", title), (vars(function), function.__defaults__, function.__kwdefaults__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield Slot.of(cell, "", f"{name}` of `{title}"), cell.cell_contents
        except ValueError:
            # An empty one.
            continue

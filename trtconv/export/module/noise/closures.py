"""Copies of a module whose functions see the copy.

`copy.deepcopy` takes a function as it is: `self.gate = lambda x: x * self.scale`, a hook that has the module in its
closure and a patched `forward` go on with the weights, and the dictionaries, of the module that was copied.
"""

from __future__ import annotations

import copy
import functools
import operator
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


def deep_copy(module: nn.Module, memo: dict[int, Any]) -> nn.Module:
    """`copy.deepcopy`, with what functions in attributes and hooks hold of the module being the copy's.

    `memo` is that of `copy.deepcopy`: by identity what is not to be copied. Raises whatever a user's class raises.
    """
    copied = copy.deepcopy(module, memo)
    rebinding = _Rebinding(memo)
    for part in copied.modules():
        for space in (vars(part), *(v for v in vars(part).values() if isinstance(v, dict))):
            for key, value in tuple(space.items()):
                rebound = rebinding.value(value)
                if rebound is not value:
                    space[key] = rebound
        for value in vars(part).values():
            if type(value) is list:
                value[:] = map(rebinding.value, value)
    return copied


class _Rebinding:
    """Functions with the copies, by `memo`, of what they hold."""

    def __init__(self, memo: dict[int, Any]) -> None:
        self._memo = memo
        self._within: list[FunctionType] = []

    def value(self, value: Any) -> Any:
        """A function that holds what was copied, with the copies; any other value itself."""
        if type(value) is functools.partial:
            inner = self.value(value.func)
            return value if inner is value.func else functools.partial(inner, *value.args, **value.keywords)
        # One that calls itself has itself in its closure.
        if type(value) is not FunctionType or any(f is value for f in self._within):
            return value
        self._within.append(value)
        before = (*(value.__closure__ or ()), *(value.__defaults__ or ()))
        cells = tuple(map(self._cell, value.__closure__ or ()))
        defaults = tuple(map(self._held, value.__defaults__ or ()))
        self._within.pop()
        if all(map(operator.is_, (*cells, *defaults), before)):
            return value
        rebound = FunctionType(value.__code__, value.__globals__, value.__name__, defaults or None, cells or None)
        rebound.__kwdefaults__, rebound.__qualname__ = value.__kwdefaults__, value.__qualname__
        rebound.__dict__.update(value.__dict__)
        return rebound

    def _cell(self, cell: CellType) -> CellType:
        try:
            content = cell.cell_contents
        except ValueError:
            return cell
        held = self._held(content)
        return cell if held is content else CellType(held)

    def _held(self, content: Any) -> Any:
        if id(content) in self._memo:
            return self._memo[id(content)]
        if isinstance(content, MethodType) and id(content.__self__) in self._memo:
            return MethodType(content.__func__, self._memo[id(content.__self__)])
        return self.value(content)

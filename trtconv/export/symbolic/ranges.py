"""`range` of symbolic sizes, of which `len` is a size too: `len(range(0, t - 160, 120))` counts chunks."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from trtconv.export.symbolic.sizes import maximum, stays


class _LikeRange(type):
    """Makes `isinstance(x, range)` mean what it says."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is cls or isinstance(instance, builtins.range)


class SymbolicRange(metaclass=_LikeRange):
    """`range` of symbolic numbers, whose length stays one; looped over or indexed it is Python's own."""

    def __new__(cls, *bounds: Any) -> Any:
        """What range(*bounds) would be."""
        if not any(map(stays, bounds)):
            return builtins.range(*bounds)
        return super().__new__(cls)

    def __init__(self, *bounds: Any) -> None:
        self._bounds = bounds

    def length(self) -> Any:
        """How many numbers there are: a symbolic number where the step is a plain one."""
        start, stop, step = (0, *self._bounds, 1) if len(self._bounds) == 1 else (*self._bounds, 1)[:3]
        if type(step) is not int or step == 0:
            return len(self._plain())
        span = stop - start if step > 0 else start - stop
        return maximum((span + abs(step) - 1) // abs(step), 0)

    def _plain(self) -> range:
        return builtins.range(*self._bounds)

    def __len__(self) -> int:
        return len(self._plain())

    def __iter__(self) -> Iterator[int]:
        return iter(self._plain())

    def __getitem__(self, index: Any) -> Any:
        return self._plain()[index]

    def __eq__(self, other: object) -> bool:
        return self._plain() == (other._plain() if isinstance(other, SymbolicRange) else other)

    def __hash__(self) -> int:
        return hash(self._plain())

    def __repr__(self) -> str:
        return repr(self._plain())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)

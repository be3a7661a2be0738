"""Sizes answer as the numbers that they stand for when a module asks for their class.

`isinstance(size, int)` is true in each call, and false for the torch.SymInt that torch.export passes: a module that
tells one number from a pair by it goes another way, or fails. CPython's isinstance looks at `__class__` where the type
does not match (Objects/abstract.c, `object_isinstance`), so that torch.SymInt stays itself for all that look at types.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from trtconv.export.module.user_code import is_machinery, is_standard

# Python's own code that asks for a caller: abstract classes as numbers.Integral, and singledispatch.
_ASKING_FOR_OTHERS = ("abc", "functools", "numbers")


@contextmanager
def sizes_as_numbers() -> Iterator[None]:
    """During the block symbolic sizes are instances of int, float and bool for code of users and their packages."""
    import torch

    classes = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
    for symbol, number in classes.items():
        symbol.__getattribute__ = _attributes(number)
    try:
        yield
    finally:
        for symbol in classes:
            del symbol.__getattribute__


def _attributes(number: type) -> Callable[[Any, str], Any]:
    plain = object.__getattribute__

    def attribute(self: Any, name: str) -> Any:
        return number if name == "__class__" and _is_asked_by_user() else plain(self, name)

    return attribute


def _is_asked_by_user() -> bool:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _ASKING_FOR_OTHERS:
        frame = frame.f_back
    return _is_for_users(frame.f_code.co_filename)


@cache
def _is_for_users(file: str) -> bool:
    """True for files that are neither the machinery's nor Python's."""
    return not (is_machinery(file) or is_standard(file))

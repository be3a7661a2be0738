"""A comparison of sizes where Python wants a number or a key: `(a, b)[t == 9]`, `[1] * (t > 9)`, `{True: a}[t > 9]`.

torch's SymBool is no index. A run with symbols ended there, and what the module does on the other side was never seen.
As an index it is a question like that of an `if`: torch records the answer, with the line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from trtconv.export.module.user_code import is_library


@contextmanager
def comparisons_as_numbers() -> Iterator[None]:
    """Comparisons of symbolic sizes are decided where Python's bool would be 0 or 1, for the time of the block."""
    import torch

    equal = torch.SymBool.__eq__

    def index(comparison: Any) -> int:
        return int(bool(comparison))

    def same(comparison: Any, other: Any) -> Any:
        # Only a dictionary or a list asks that of a truth value that is known.
        return bool(comparison) == other if isinstance(other, (bool, int)) else equal(comparison, other)

    def inverted(comparison: Any) -> int:
        return -index(comparison) - 1

    methods = {
        "__index__": index, "__eq__": same, "__invert__": inverted, "__neg__": lambda c: -index(c), "__pos__": index,
        "__float__": lambda c: float(bool(c)),
    }  # fmt: skip
    with ExitStack() as stack:
        for name, method in methods.items():
            stack.enter_context(mock.patch.object(torch.SymBool, name, method, create=True))
        yield


@contextmanager
def divisions_that_raise() -> Iterator[None]:
    """A division of the user's by a size asks whether that is zero, and raises as Python does, while the block lasts.

    torch writes the quotient and asks nothing, so that what stands in `except ZeroDivisionError` would be lost at the
    one size at which it is meant. A size that is never zero is known as such, and no condition is left of it.
    """
    import torch

    def checked(method: Callable[[Any, Any], Any], reflected: bool) -> Callable[[Any, Any], Any]:
        def divide(own: Any, other: Any) -> Any:
            divisor = own if reflected else other
            if is_moving(divisor) and is_user_code(sys._getframe(1)) and bool(divisor == 0):
                raise ZeroDivisionError("division by zero")
            return method(own, other)

        return divide

    def is_moving(number: Any) -> bool:
        symbolic = isinstance(number, (torch.SymInt, torch.SymFloat))
        return symbolic and not number.node.is_constant() and getattr(number.node, "hint", None) is not None

    with ExitStack() as stack:
        for kind in (torch.SymInt, torch.SymFloat):
            for name in ("truediv", "floordiv", "mod"):
                for method, reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
                    original = getattr(kind, method, None)
                    if original is not None:
                        stack.enter_context(mock.patch.object(kind, method, checked(original, reflected)))
        yield


@contextmanager
def values_in_text() -> Iterator[None]:
    """A number that is read from a tensor is no text while torch.export traces: it is asked for, which torch refuses.

    torch writes the name of a symbol, so that `CODES.get(f"{language.item()}", 1.0)` would look up `u0`, and the file
    would have what stands there for all that is unknown.
    """
    import torch

    def writing(write: Callable[..., str], number: type) -> Callable[..., str]:
        def text(symbol: Any, *specification: str) -> str:
            value = symbol if is_known(symbol) else number(symbol)
            return write(value, *specification) if value is symbol else format(value, *specification)

        return text

    def is_known(symbol: Any) -> bool:
        node = symbol.node
        return node.is_constant() or getattr(node, "hint", None) is not None or not is_user_code(sys._getframe(2))

    with ExitStack() as stack:
        for kind, number in ((torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool)):
            for name in ("__repr__", "__str__", "__format__"):
                method = writing(getattr(kind, name), number)
                stack.enter_context(mock.patch.object(kind, name, method, create=True))
        yield


def is_user_code(frame: Any) -> bool:
    """True for a frame of a file that is no library's."""
    return not is_library(frame.f_code.co_filename)

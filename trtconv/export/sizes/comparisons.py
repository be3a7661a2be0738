"""A comparison of sizes where Python wants a number or a key: `(a, b)[t == 9]`, `[1] * (t > 9)`, `{True: a}[t > 9]`.

torch's SymBool is no index. A run with symbols ended there, and what the module does on the other side was never seen.
As an index it is a question like that of an `if`: torch records the answer, with the line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any
from unittest import mock

from trtconv.export.module.user_code import is_library, is_machinery
from trtconv.export.sizes.exact.fitted import whole_line
from trtconv.export.sizes.number_classes import numbers_of_any_class


@contextmanager
def arithmetic_of_python() -> Iterator[None]:
    """Symbolic sizes are compared, divided and rounded as Python's numbers are, for the time of the block."""
    with (
        comparisons_as_numbers(),
        whole_quotients(),
        divisions_that_raise(),
        rounding_to_tens(),
        numbers_of_any_class(),
    ):
        yield


@contextmanager
def whole_quotients() -> Iterator[None]:
    """`a // b` of floats from sizes is Python's, for the time of the block: 0.5 // 0.1 is 4.0, as 0.1 is over a tenth.

    torch takes the floor of the rounded quotient, 5. Python's takes the remainder, which is exact, from `a` first.
    """
    import torch

    def floor_divide(own: Any, other: Any) -> Any:
        if not isinstance(other, (int, float, torch.SymInt, torch.SymFloat)):
            return NotImplemented
        return whole_quotient(own, other)

    def reflected(own: Any, other: Any) -> Any:
        return floor_divide(other, own) if isinstance(other, (int, float)) else NotImplemented

    plain = torch.SymInt.__floordiv__

    def of_size(own: Any, other: Any) -> Any:
        return whole_quotient(own, other) if isinstance(other, (float, torch.SymFloat)) else plain(own, other)

    with ExitStack() as stack:
        for kind, name, method in (
            (torch.SymFloat, "__floordiv__", floor_divide),
            (torch.SymFloat, "__rfloordiv__", reflected),
            (torch.SymInt, "__floordiv__", of_size),
        ):
            stack.enter_context(mock.patch.object(kind, name, method))
        yield


def whole_quotient(a: Any, b: Any) -> Any:
    """The floor of a quotient of which one side is a float, as CPython has it (`_float_div_mod`)."""
    import torch

    a, b = torch.sym_float(a), torch.sym_float(b)
    whole = whole_line(a, b)
    if whole is not None:
        return torch.sym_float(whole)
    return torch.sym_float(math.floor((a - a % b) / b + 0.5))


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
def rounding_to_tens() -> Iterator[None]:
    """`round(size, -1)` is the nearest multiple of ten, for the time of the block: torch leaves out the digits."""
    import torch

    def rounded(size: Any, digits: int | None = None) -> Any:
        if digits is None or digits >= 0:
            return size
        step = 10**-digits
        # Of two that are as near, the even multiple.
        above, below = (2 * size + step) // (2 * step), -((step - 2 * size) // (2 * step))
        return (above - (above - below) * (above % 2)) * step

    with mock.patch.object(torch.SymInt, "__round__", rounded):
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
            if is_user_code(sys._getframe(1)):
                require_divisor(own if reflected else other)
            return method(own, other)

        return divide

    with ExitStack() as stack:
        for kind in (torch.SymInt, torch.SymFloat):
            for name in ("truediv", "floordiv", "mod"):
                for method, reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
                    original = getattr(kind, method, None)
                    if original is not None:
                        stack.enter_context(mock.patch.object(kind, method, checked(original, reflected)))
        yield


def require_divisor(number: Any) -> None:
    """Raise ZeroDivisionError for a symbolic size that is zero, asking torch; not of one that values decide."""
    import torch

    symbolic = isinstance(number, (torch.SymInt, torch.SymFloat))
    if symbolic and not number.node.is_constant() and _has_hint(number) and bool(number == 0):
        raise ZeroDivisionError("division by zero")


def _has_hint(symbol: Any) -> bool:
    """True for a size; a number that is read from a tensor has none."""
    return getattr(symbol.node, "hint", None) is not None


@contextmanager
def values_in_text() -> Iterator[None]:
    """A number that is read from a tensor is no text while torch.export traces: it is asked for, which torch refuses.

    torch writes the name of a symbol, so that `CODES.get(f"{language.item()}", 1.0)` would look up `u0`, and the file
    would have what stands there for all that is unknown.
    """
    import torch

    def of_values(symbol: Any, frame: FrameType) -> bool:
        return not symbol.node.is_constant() and not _has_hint(symbol)

    with numbers_in_text({torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}, of_values):
        yield


@contextmanager
def numbers_in_text(kinds: Mapping[type, type], chooses: Callable[[Any, FrameType], bool]) -> Iterator[None]:
    """Symbols of these kinds that the user's code writes into a text are numbers there, where `chooses` says so."""

    def writing(write: Callable[..., str], number: type) -> Callable[..., str]:
        def text(symbol: Any, *specification: str, **options: Any) -> str:
            frame = _writing_for(sys._getframe(1))
            if not options and is_user_code(frame) and chooses(symbol, frame):
                return format(number(symbol), *specification)
            return str(write(symbol, *specification, **options))

        return text

    with ExitStack() as stack:
        for kind, number in kinds.items():
            for name in ("__repr__", "__str__", "__format__"):
                method = writing(getattr(kind, name), number)
                stack.enter_context(mock.patch.object(kind, name, method, create=True))
        yield


def _writing_for(frame: FrameType) -> FrameType:
    """The frame for which a library other than torch writes a text, as NumPy does for an array's; else the frame."""
    caller: FrameType | None = frame
    while caller is not None and is_library(caller.f_code.co_filename) and not is_machinery(caller.f_code.co_filename):
        caller = caller.f_back
    return caller or frame


def is_user_code(frame: FrameType) -> bool:
    """True for a frame of a file that is no library's."""
    return not is_library(frame.f_code.co_filename)

"""Sizes beside numbers of other classes: `t == Channels.STEREO` of an IntEnum, `t == Fraction(37)`.

torch's SymInt takes plain numbers alone. Beside any other it knows no answer, and Python falls back on identity: the
comparison is false at every size, and no condition is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest import mock

# The comparisons and the arithmetic of numbers, which a class may do otherwise than the numbers that it is of.
OPERATIONS = (
    "eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv",
    "rfloordiv", "mod", "rmod", "pow", "rpow",
)  # fmt: skip


@contextmanager
def numbers_of_any_class() -> Iterator[None]:
    """Symbolic sizes take numbers of any class as Python's ints and floats do, for the time of the block."""
    import torch
    from torch.fx.experimental import sym_node

    to_node = sym_node.to_node

    def node_of(own: Any, number: Any) -> Any:
        return to_node(own, plain_number(number))

    def equal_to(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def compare(own: Any, other: Any) -> Any:
            return method(own, _equal_number(other) if isinstance(other, (Fraction, Decimal, complex)) else other)

        return compare

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(sym_node, "to_node", node_of))
        for kind in (torch.SymInt, torch.SymFloat):
            for name in ("__eq__", "__ne__"):
                stack.enter_context(mock.patch.object(kind, name, equal_to(getattr(kind, name))))
        yield


def plain_number(number: Any) -> Any:
    """The int or float of an object of a subclass that computes as these do; anything else as it is."""
    for plain in (int, float):
        if isinstance(number, plain) and type(number) not in (plain, bool):
            own = any(getattr(type(number), f"__{n}__") is not getattr(plain, f"__{n}__") for n in OPERATIONS)
            return number if own else plain(number)
    return number


def _equal_number(other: Fraction | Decimal | complex) -> Any:
    """The int or float that equals another number exactly; the number itself where there is none."""
    if isinstance(other, complex):
        return other.real if other.imag == 0 else other
    if isinstance(other, Decimal) and not other.is_finite():
        return float(other)
    if other == int(other):
        return int(other)
    return float(other) if Fraction(float(other)) == Fraction(other) else other

"""Sizes that are known once shapes are: integers, or expressions over the dims of inputs.

A kernel that lies in an engine gets its grid and its arguments from such expressions, which TensorRT evaluates at every
run. The operations are those of TensorRT's dimension expressions, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError


class _Operators:
    """Arithmetic that makes expressions; sizes are never negative."""

    def __add__(self, other: Size) -> Size:
        return operation("sum", self, other)  # type: ignore[arg-type]

    def __radd__(self, other: int) -> Size:
        return operation("sum", other, self)  # type: ignore[arg-type]

    def __sub__(self, other: Size) -> Size:
        return operation("sub", self, other)  # type: ignore[arg-type]

    def __rsub__(self, other: int) -> Size:
        return operation("sub", other, self)  # type: ignore[arg-type]

    def __mul__(self, other: Size) -> Size:
        return operation("prod", self, other)  # type: ignore[arg-type]

    def __rmul__(self, other: int) -> Size:
        return operation("prod", other, self)  # type: ignore[arg-type]

    def __floordiv__(self, other: Size) -> Size:
        return operation("floor_div", self, other)  # type: ignore[arg-type]

    def __rfloordiv__(self, other: int) -> Size:
        return operation("floor_div", other, self)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Dim(_Operators):
    """The dim at `axis` of input number `input`."""

    input: int
    axis: int


@dataclass(frozen=True)
class Expression(_Operators):
    """`name` is a key of `OPERATIONS`."""

    name: str
    left: Size
    right: Size


Size = int | Dim | Expression

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "sum": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "prod": lambda a, b: a * b,
    "max": max,
    "min": min,
    "floor_div": lambda a, b: a // b,
    "ceil_div": lambda a, b: -(-a // b),
    "equal": lambda a, b: int(a == b),
    "less": lambda a, b: int(a < b),
}


def operation(name: str, left: Size, right: Size) -> Size:
    """The operation's value where both sides are known, else the expression without what changes nothing."""
    if isinstance(left, int) and isinstance(right, int):
        return OPERATIONS[name](left, right)
    if name == "prod" and 0 in (left, right):
        return 0
    if (right == 0 and name in ("sum", "sub")) or (right == 1 and name in ("prod", "floor_div", "ceil_div")):
        return left
    if (left == 0 and name in ("sum", "max")) or (left == 1 and name == "prod"):
        return right
    if right == 0 and name == "max":
        return left
    return Expression(name, left, right)


def ceil_div(left: Size, right: Size) -> Size:
    """left / right, rounded up."""
    return operation("ceil_div", left, right)


def round_up(size: Size, to: int) -> Size:
    """The smallest multiple of `to` that is not under `size`."""
    return ceil_div(size, to) * to


def larger(left: Size, right: Size) -> Size:
    """The larger of two."""
    return operation("max", left, right)


def smaller(left: Size, right: Size) -> Size:
    """The smaller of two."""
    return operation("min", left, right)


def equal(left: Size, right: Size) -> Size:
    """1 where both are the same, else 0."""
    return operation("equal", left, right)


def less(left: Size, right: Size) -> Size:
    """1 where left is under right, else 0."""
    return operation("less", left, right)


def divides(divisor: int, size: Size) -> Size:
    """1 where `size` is a multiple of `divisor`, else 0."""
    return equal(size // divisor * divisor, size) if divisor > 1 else 1


def product(sizes: Iterable[Size]) -> Size:
    """All of them multiplied; 1 for none."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def evaluate(size: Size, shapes: Sequence[Sequence[int]]) -> int:
    """The value for these input shapes."""
    if isinstance(size, int):
        return size
    if isinstance(size, Dim):
        return shapes[size.input][size.axis]
    return OPERATIONS[size.name](evaluate(size.left, shapes), evaluate(size.right, shapes))


# Byte counts as people write them: `4GiB`, `512MiB`, `1e9`.
_UNITS = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "kib": 2**10, "m": 10**6, "mb": 10**6, "mib": 2**20,
          "g": 10**9, "gb": 10**9, "gib": 2**30, "t": 10**12, "tb": 10**12, "tib": 2**40}  # fmt: skip
MAX_BYTES = (1 << 63) - 1
_SIZE = re.compile(r"\s*(?P<number>\d{1,30}(?:\.\d{1,30})?(?:e\d{1,2})?)\s*(?P<unit>[A-Za-z]*)\s*\Z", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """`4GiB` is 4294967296. Raises InvalidRequestError for anything else."""
    match = _SIZE.match(text)
    if not match or match["unit"].lower() not in _UNITS:
        raise InvalidRequestError(f"cannot read the size '{text}'", hint="write a number with a unit, e.g. 4GiB")
    count = int(float(match["number"]) * _UNITS[match["unit"].lower()])
    if count > MAX_BYTES:
        raise InvalidRequestError(f"the size '{text}' is over 2^63 bytes", hint="write a smaller one, e.g. 4GiB")
    return count


def format_bytes(count: float) -> str:
    """`61.2 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""

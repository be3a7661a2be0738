"""Whole numbers that Python makes of one size in few steps: `ceil(log2(n))`, `n.bit_length()`, `gcd(n, 12)`.

torch.export knows no logarithm of a size, and FP32 has log2(2**k) beside k. What Python computes rises with the size:
it is the first number and one more for each size at which it rises, a sum of `min(max(n - c, 0), 1)`. A comparison of
such a number, `log10(n) == 3`, is looked at over all sizes and becomes one of the size, `n == 1000`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from typing import Any
from unittest import mock

from trtconv.export.sizes.exact.fitted import reaches
from trtconv.export.sizes.exact.floats import range_of

# The name under which a tensor [] holds the size that it was computed from, and Python's function of it.
_ORIGIN = "_trtconv_origin"
MOST_STEPS = 64
# Sizes whose range is not known, as in a recorded run.
LARGEST_SIZE = 2**31
MOST_DIVISOR = 4096
# Sizes at which a function is looked at one by one, and runs of sizes of which a condition holds.
MOST_LOOKED, MOST_RUNS = 1 << 16, 32
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": operator.eq, "ne": operator.ne, "not_equal": operator.ne, "lt": operator.lt, "less": operator.lt,
    "le": operator.le, "less_equal": operator.le, "gt": operator.gt, "greater": operator.gt, "ge": operator.ge,
    "greater_equal": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "subtract": operator.sub, "mul": operator.mul, "multiply": operator.mul,
    "div": operator.truediv, "truediv": operator.truediv, "true_divide": operator.truediv, "mod": operator.mod,
    "remainder": operator.mod, "floordiv": operator.floordiv, "floor_divide": operator.floordiv, "pow": operator.pow,
    "neg": operator.neg, "negative": operator.neg,
}  # fmt: skip
_IN_PLACE = frozenset(f"i{name}" for name in (*_ARITHMETIC, "and", "or", "xor", "lshift", "rshift"))


def remember(tensor: Any, size: Any, function: Callable[[int], float]) -> Any:
    """The tensor [] that is a function of a size, from which `rounded` gives whole numbers."""
    setattr(tensor, _ORIGIN, (size, function))
    return tensor


def is_remembered(value: Any) -> bool:
    """True for what `remember` gave."""
    return hasattr(value, _ORIGIN)


def rounded(value: Any, to_whole: Callable[[float], int]) -> Any:
    """The whole number that `to_whole` makes of a remembered tensor; None where it has more than `MOST_STEPS` steps."""
    size, function = getattr(value, _ORIGIN)
    return steps_of(size, lambda n: to_whole(function(n)))


def compared(name: str, args: Sequence[Any]) -> Any:
    """A condition on the size for a comparison of a remembered tensor with a number; NotImplemented for others.

    Also where it holds in more than `MOST_RUNS` runs of sizes, or the sizes are too many to be looked at.
    """
    compare = _COMPARISONS.get(name.strip("_"))
    remembered = _of_numbers(compare, args) if compare is not None else None
    return NotImplemented if remembered is None else _condition(*remembered)


def carry(name: str, args: Sequence[Any], named: Mapping[str, Any], result: Any) -> Any:
    """The result of a call, remembered as a function of the size where it is arithmetic on what is and on numbers.

    A call with keywords (`rounding_mode`) is another function. What is written into in another way is none any more.
    """
    if not any(map(is_remembered, args)):
        return result
    core = name.strip("_")
    turned = core not in _ARITHMETIC and core.startswith("r")
    function = _ARITHMETIC.get(core, _ARITHMETIC.get(core[1:]) if core[:1] in ("r", "i") else None)
    plain = function is not None and not named
    remembered = _of_numbers(function, args[::-1] if turned else args) if plain else None
    if remembered is not None:
        return remember(result, *remembered)
    if is_remembered(result) and (name.endswith("_") or core in _IN_PLACE) and any(a is result for a in args):
        delattr(result, _ORIGIN)
    return result


def _of_numbers(function: Any, args: Sequence[Any]) -> tuple[Any, Callable[[int], Any]] | None:
    """The size and the function of it for a call whose arguments are one remembered tensor and numbers; else None."""
    import torch

    remembered = [a for a in args if is_remembered(a)]
    if len(remembered) != 1 or not all(is_remembered(a) or type(a) in (int, float) for a in args):
        return None
    size, of_size = getattr(remembered[0], _ORIGIN)
    if not isinstance(size, torch.SymInt):
        return None
    return size, lambda n: function(*(of_size(n) if is_remembered(a) else a for a in args))


def _condition(size: Any, holds: Callable[[int], bool]) -> Any:
    """Where a function of a size is true, as a condition on the size; NotImplemented for one that is not to be had."""
    low, high = _range(size)
    if high - low >= MOST_LOOKED:
        return NotImplemented
    runs: list[tuple[int, int]] = []
    try:
        for n in range(low, high + 1):
            if holds(n):
                first = runs.pop()[0] if runs and runs[-1][1] == n - 1 else n
                runs.append((first, n))
    except (ArithmeticError, ValueError, TypeError):
        return NotImplemented
    if len(runs) > MOST_RUNS:
        return NotImplemented
    parts = [_between(size, first, last, low, high) for first, last in runs]
    return reduce(operator.or_, parts) if parts else False


def _between(size: Any, first: int, last: int, low: int, high: int) -> Any:
    if first == last:
        return size == first
    if first == low or last == high:
        return True if (first, last) == (low, high) else size <= last if first == low else size >= first
    return (size >= first) & (size <= last)


def steps_of(size: Any, function: Callable[[int], int]) -> Any:
    """`function` of a size, where it does not fall as the size rises; None where it has too many steps or no range."""
    low, high = _range(size)
    steps = _steps(function, low, high)
    if steps is None or (high - low < MOST_LOOKED and not _climbs(function, low, high, steps)):
        return None
    result: Any = function(low)
    for first, jump in steps:
        result = result + jump * reaches(size, first)
    return result


def bit_length(size: Any) -> Any:
    """`n.bit_length()` of a size that is not negative."""
    return steps_of(size, int.bit_length)


def gcd(*numbers: Any) -> Any:
    """math.gcd of a size and whole numbers: the sum of phi(d) over the divisors d that all share (Gauss)."""
    plain = math.gcd(*(n for n in numbers if isinstance(n, int)))
    sizes = [n for n in numbers if not isinstance(n, int)]
    if len(sizes) != 1 or not 0 < plain <= MOST_DIVISOR:
        return math.gcd(*numbers)
    divisors = [d for d in range(1, plain + 1) if plain % d == 0]
    total: Any = 0
    for d in divisors:
        phi = sum(math.gcd(k, d) == 1 for k in range(1, d + 1))
        total = total + phi * (1 - reaches(sizes[0] % d, 1))
    return total


def _climbs(function: Callable[[int], int], low: int, high: int, steps: Sequence[tuple[int, int]]) -> bool:
    """True when the steps give the function at every size: it may fall where it was not looked at."""
    jumps = dict(steps)
    current = function(low)
    for n in range(low, high + 1):
        current += jumps.get(n, 0)
        if function(n) != current:
            return False
    return True


def is_integer(number: Any) -> Any:
    """`float.is_integer` of a remembered tensor, as a condition on the size."""
    if is_remembered(number):
        size, function = getattr(number, _ORIGIN)
        condition = _condition(size, lambda n: float(function(n)).is_integer())
        if condition is not NotImplemented:
            return condition
    raise AttributeError("'Tensor' object has no attribute 'is_integer'")


def patch_methods_of_sizes(stack: ExitStack) -> None:
    """Give sizes `bit_length`, `1 << size` and `astype` while the stack is open: those of torch have none of them."""
    import torch

    for kind in (torch.SymInt, torch.Tensor):
        stack.enter_context(mock.patch.object(kind, "bit_length", bit_length, create=True))
    stack.enter_context(mock.patch.object(torch.Tensor, "is_integer", is_integer, create=True))
    shifted = mock.patch.object(torch.SymInt, "__rlshift__", lambda bits, number: number * 2**bits, create=True)
    stack.enter_context(shifted)
    # NumPy's numbers have it, and `np.round(t * 0.5)` of a size is none of them.
    for kind in (torch.SymInt, torch.SymFloat):
        stack.enter_context(mock.patch.object(kind, "astype", _as_type, create=True))


def _as_type(number: Any, kind: Any, **options: Any) -> Any:
    import numpy as np
    import torch

    return torch.sym_int(number) if np.dtype(kind).kind in "iu" else torch.sym_float(number)


def _range(size: Any) -> tuple[int, int]:
    import torch

    if isinstance(size, torch.Tensor):
        return 1, LARGEST_SIZE
    from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

    expression, env = size.node.expr, size.node.shape_env
    ranges = {symbol: range_of(env, symbol) for symbol in expression.free_symbols}
    if None in ranges.values():
        return 1, LARGEST_SIZE
    bounds = bound_sympy(expression, {symbol: ValueRanges(*r) for symbol, r in ranges.items() if r is not None})
    return max(int(bounds.lower), 0), int(bounds.upper)


def _steps(function: Callable[[int], int], low: int, high: int) -> list[tuple[int, int]] | None:
    """The sizes at which the function rises, each with by how much; None where there are too many."""
    steps: list[tuple[int, int]] = []
    while function(low) != function(high):
        if len(steps) == MOST_STEPS:
            return None
        below, above, current = low, high, function(low)
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if function(middle) == current else (below, middle)
        steps.append((above, function(above) - current))
        low = above
    return steps

"""Whole numbers that Python makes of one size in few steps: `ceil(log2(n))`, `n.bit_length()`, `gcd(n, 12)`.

torch.export knows no logarithm of a size, and FP32 has log2(2**k) beside k. What Python computes rises with the size:
it is the first number and one more for each size at which it rises, a sum of `min(max(n - c, 0), 1)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

from trtconv.export.sizes.exact.floats import range_of

# The name under which a tensor [] holds the size that it was computed from, and Python's function of it.
_ORIGIN = "_trtconv_origin"
MOST_STEPS = 64
# Sizes whose range is not known, as in a recorded run.
LARGEST_SIZE = 2**31
MOST_DIVISOR = 4096


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


def steps_of(size: Any, function: Callable[[int], int]) -> Any:
    """`function` of a size, where it does not fall as the size rises; None where it has too many steps or no range."""
    low, high = _range(size)
    steps = _steps(function, low, high)
    if steps is None:
        return None
    result: Any = function(low)
    for first, jump in steps:
        result = result + jump * _reaches(size, first)
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
        total = total + phi * (1 - _reaches(sizes[0] % d, 1))
    return total


def patch_bits_of_sizes(stack: ExitStack) -> None:
    """Give sizes `bit_length` and `1 << size` while the stack is open: those of torch have neither."""
    import torch

    for kind in (torch.SymInt, torch.Tensor):
        stack.enter_context(mock.patch.object(kind, "bit_length", bit_length, create=True))
    shifted = mock.patch.object(torch.SymInt, "__rlshift__", lambda bits, number: number * 2**bits, create=True)
    stack.enter_context(shifted)


def _reaches(size: Any, first: int) -> Any:
    """1 where the size is `first` or more, and 0 below."""
    import torch

    if isinstance(size, torch.Tensor):
        return (size >= first).to(torch.int64)
    return torch.sym_min(torch.sym_max(size - (first - 1), 0), 1)


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

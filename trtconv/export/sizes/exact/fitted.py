"""Quotients of floats from one size, `t / 16000 // 0.01`, as whole numbers of it while torch traces.

Python takes the remainder from the dividend first, exactly, and torch has no remainder of floats. What Python gives is
known at every size of the range: a line with a few exceptions, as for sizes that a program rounds.
"""

from __future__ import annotations

from typing import Any

from trtconv.core.shape_space.space import DimRange
from trtconv.export.sizes.evaluate import UnreadableError, evaluate_symbolic
from trtconv.export.sizes.exact.floats import range_of
from trtconv.export.sizes.exact.lines import Exact, fit

MOST_LOOKED, MOST_EXCEPTIONS = 1 << 16, 32


def whole_line(dividend: Any, divisor: Any) -> Any:
    """`dividend // divisor` of two SymFloats as a SymInt; None where they are not of one size with a known range.

    None too where more than MOST_EXCEPTIONS sizes are beside the line.
    """
    import numpy as np
    import sympy  # type: ignore[import-untyped]
    import torch

    node = next(v.node for v in (dividend, divisor) if isinstance(v, torch.SymFloat))
    sides = [v.node.expr if isinstance(v, torch.SymFloat) else v for v in (dividend, divisor)]
    symbols = set().union(*(getattr(side, "free_symbols", ()) for side in sides))
    if len(symbols) != 1:
        return None
    symbol = symbols.pop()
    bounds = range_of(node.shape_env, symbol)
    if bounds is None or bounds[1] - bounds[0] >= MOST_LOOKED:
        return None
    low, high = max(bounds[0], 1), bounds[1]
    sizes = np.arange(low, high + 1)
    try:
        with np.errstate(all="ignore"):
            first, second = (evaluate_symbolic(sympy.sympify(side), {symbol: sizes}) for side in sides)
            quotients = np.floor_divide(first.astype(np.float64), second.astype(np.float64))
    except UnreadableError:
        return None
    if not np.isfinite(quotients).all() or abs(quotients).max() > 2**31 - 1:
        return None
    line = fit("", "", DimRange(low, low, high), [int(q) for q in np.broadcast_to(quotients, sizes.shape)])
    if line is None or len(line.exceptions) + len(line.steps) > MOST_EXCEPTIONS:
        return None
    return _along(line, node.shape_env.create_symintnode(symbol, hint=int(node.shape_env.size_hint(symbol))))


def _along(line: Exact, size: Any) -> Any:
    """What the line gives for a symbolic size."""
    import torch

    result = (line.factor * size + line.shift) // line.divisor + line.base
    for n, more in line.beside():
        result = result + more * (1 - torch.sym_min(torch.sym_max(size - n, n - size), 1))
    for n, jump in line.steps:
        result = result + jump * reaches(size, n)
    return result


def reaches(size: Any, first: int) -> Any:
    """1 where the size is `first` or more, and 0 below."""
    import torch

    if isinstance(size, torch.Tensor):
        return (size >= first).to(torch.int64)
    return torch.sym_min(torch.sym_max(size - (first - 1), 0), 1)

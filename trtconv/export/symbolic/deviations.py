"""Variances and standard deviations, exactly zero where all elements are equal.

torch adds up differences from a running mean that starts at the first element (Welford's method), so that a row of one
value has the deviation 0 in every precision. What the exporters write, the mean of (x - mean(x)) ** 2, is as far off
as the mean is rounded: a row of 0.1 has a deviation that is not zero, and what is divided by it is of order one. Here
the first element is taken off before anything is added up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtconv.export.symbolic.sizes import maximum

Handler = Callable[..., Any]


def deviation(*, root: bool, with_mean: bool = False) -> Handler:
    """The handler of `var` or, with `root`, of `std`; with `with_mean` of `var_mean` or `std_mean`."""

    def handle(
        func: Any,
        x: Any,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        import torch

        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if not x.dtype.is_floating_point or x.dim() == 0:
            return NotImplemented
        axes = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
        wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
        first = _first(wide, axes)
        beyond = wide - first
        mean = beyond.mean(axes, keepdim=True)
        count: Any = 1
        for axis in axes:
            count = count * x.shape[axis]
        less = (1 if unbiased else 0) if correction is None else correction
        spread = (beyond - mean).square().sum(axes, keepdim=keepdim) / maximum(count - less, 0)
        spread = (spread.sqrt() if root else spread).to(x.dtype)
        if not with_mean:
            return spread
        middle = (first + mean).to(x.dtype)
        return spread, middle if keepdim else middle.squeeze(axes)

    return handle


def _first(x: Any, axes: list[int]) -> Any:
    """The first element along the axes, each of which keeps a size of one; zero where an axis may be empty and is."""
    import torch

    for axis in axes:
        size = x.shape[axis]
        if isinstance(size, torch.SymInt) and size.node.hint is None:
            # The number of elements that a mask takes, of which torch does not know that there is one.
            ending = torch.zeros([1 if a == axis % x.dim() else s for a, s in enumerate(x.shape)], dtype=x.dtype)
            x = torch.cat([x, ending.to(x.device)], axis)
        x = x.narrow(axis, 0, 1)
    return x

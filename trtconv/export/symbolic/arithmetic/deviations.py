"""Variances and standard deviations, exactly zero where all elements are equal; means of what a mask takes.

torch adds up differences from a running mean that starts at the first element (Welford's method), so that a row of one
value has the deviation 0 in every precision. What the exporters write, the mean of (x - mean(x)) ** 2, is as far off
as the mean is rounded: a row of 0.1 has a deviation that is not zero, and what is divided by it is of order one. Here
the first element is taken off before anything is added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trtconv.export.symbolic.sizes import maximum, may_be_empty, reduced_axes, without_axes

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
        axes = reduced_axes(x, dim)
        wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
        first = _first(wide, axes)
        beyond = wide - first
        mean = beyond.mean(axes, keepdim=True)
        count = math.prod(x.shape[axis] for axis in axes)
        less = (1 if unbiased else 0) if correction is None else correction
        spread = (beyond - mean).square().sum(axes, keepdim=keepdim) / maximum(count - less, 0)
        spread = (spread.sqrt() if root else spread).to(x.dtype)
        if not with_mean:
            return spread
        middle = (first + mean).to(x.dtype)
        return spread, middle if keepdim else without_axes(middle, axes)

    return handle


def _first(x: Any, axes: list[int]) -> Any:
    """One of the elements along the axes, each of which keeps a size of one."""
    if any(may_be_empty(x.shape[axis]) for axis in axes):
        # Of nothing there is no first one; and a maximum of what a mask takes is one over all of its tensor.
        return x.amax(axes, keepdim=True)
    for axis in axes:
        x = x.narrow(axis, 0, 1)
    return x


def mean(func: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of what a mask takes, or of a slice by sizes, which of nothing is NaN: ONNX Runtime's is 0."""
    axes = reduced_axes(x, dim)
    if dtype is not None or not x.dtype.is_floating_point or not any(may_be_empty(x.shape[axis]) for axis in axes):
        return NotImplemented
    return x.sum(axes, keepdim=keepdim) / math.prod(x.shape[axis] for axis in axes)

"""Pooling along one axis over windows that are given by their first and last index.

The window of output i holds the elements j with `start[i] <= j < end[i]`. A sum is a product with a matrix that is
zero outside the windows; several axes are done one after another, for the sums are separable. All operations are in
TensorRT: Range, comparisons, Where, MatMul, ReduceMax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trtconv.export.symbolic.sizes import arange


def _inside(length: Any, start: Any, end: Any, like: Any) -> Any:
    """Boolean [outputs, length]: whether an element lies in an output's window."""
    import torch

    position = arange(length, like).unsqueeze(0)
    return torch.logical_and(position >= start.unsqueeze(1), position < end.unsqueeze(1))


# Halvings of what is summed; windows of more elements than 2**24 are not told from shorter ones.
MOST_HALVINGS = 24


@dataclass(frozen=True)
class Windows:
    """The windows along one axis (counted from the end), and what their sums are divided by: [outputs], or a number."""

    axis: int
    start: Any
    end: Any
    divisor: Any


def average(x: Any, axes: Sequence[Windows]) -> Any:
    """Sums over windows along some axes of x, [N, C, ...], divided by the divisors of all.

    The sums are divided after all are made, as in torch: a mean of whole numbers that is whole comes out whole, which a
    product with shares of a third misses. They are made of elements halved until no sum is larger than a mean, so that
    half precision holds them; halving and doubling lose nothing.
    """
    divisors = []
    for windows in axes:
        count = _column(windows.divisor, x)
        share = _halved(count, x)
        inside = _inside(x.shape[windows.axis], windows.start, windows.end, x).to(x.dtype)
        x = along_axis(x, windows.axis, inside * share)
        divisors.append((count.to(x.dtype) * share).reshape([-1] + [1] * (-1 - windows.axis)))
    for divisor in divisors:
        x = x / divisor
    return x


def _column(divisor: Any, like: Any) -> Any:
    """The divisor as int64 [outputs, 1], or [1, 1] where it is one number."""
    import torch

    if not isinstance(divisor, torch.Tensor):
        divisor = torch.full((), divisor, dtype=torch.int64, device=like.device)
    return divisor.reshape(-1, 1)


def _halved(count: Any, like: Any) -> Any:
    """One, halved until it is at most 1 / count, in the type of `like`: taken from a table, as powers may round."""
    import torch

    steps = [2**i for i in range(MOST_HALVINGS)]
    halvings = (count > torch.tensor(steps, device=like.device)).sum(-1)
    table = torch.tensor([0.5**i for i in range(MOST_HALVINGS + 1)], dtype=torch.float32, device=like.device)
    return table.index_select(0, halvings).to(like.dtype).unsqueeze(-1)


def along_axis(x: Any, axis: int, weights: Any) -> Any:
    """Multiply the axis (counted from the end: -1, -2, -3) with a matrix [outputs, inputs]."""
    import torch

    if axis == -1:
        return torch.matmul(x, weights.transpose(0, 1))
    if axis == -2:
        return torch.matmul(weights, x)
    moved = torch.matmul(x.transpose(axis, -1), weights.transpose(0, 1))
    return moved.transpose(axis, -1)


def maximum(x: Any, axis: int, start: Any, end: Any) -> Any:
    """The largest element of each window along `axis` (counted from the end)."""

    spread = _spread(x, axis, start, end)
    pooled = spread.amax(-1)
    return pooled.transpose(axis, -1) if axis != -1 else pooled


def first_maximum(x: Any, axis: int, start: Any, end: Any) -> tuple[Any, Any]:
    """The largest element of each window along `axis`, and where the first of such stands on that axis."""
    spread = _spread(x, axis, start, end)
    pooled, index = spread.amax(-1), spread.argmax(-1)
    return (pooled.transpose(axis, -1), index.transpose(axis, -1)) if axis != -1 else (pooled, index)


def _spread(x: Any, axis: int, start: Any, end: Any) -> Any:
    """[..., outputs, length]: the axis for each window, -inf outside of it."""
    import torch

    inside = _inside(x.shape[axis], start, end, x)
    last = x.transpose(axis, -1) if axis != -1 else x
    lowest = torch.full((), -torch.inf, dtype=x.dtype, device=x.device)
    return torch.where(inside, last.unsqueeze(-2), lowest)

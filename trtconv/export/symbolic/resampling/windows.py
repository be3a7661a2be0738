"""Pooling along one axis over windows that are given by their first and last index.

The window of output i holds the elements j with `start[i] <= j < end[i]`. The average is a product with a matrix of
weights that is zero outside the windows; several axes are done one after another, for the weights are separable. All
operations are in TensorRT: Range, comparisons, Where, MatMul, ReduceMax.
"""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.sizes import arange


def _inside(length: Any, start: Any, end: Any, like: Any) -> Any:
    """Boolean [outputs, length]: whether an element lies in an output's window."""
    import torch

    position = arange(length, like).unsqueeze(0)
    return torch.logical_and(position >= start.unsqueeze(1), position < end.unsqueeze(1))


def average(x: Any, axis: int, start: Any, end: Any, divisor: Any) -> Any:
    """Sums over windows along `axis`, divided by `divisor` ([outputs], or a number). x is [N, C, ...], start is [o]."""
    weights = _inside(x.shape[axis], start, end, x).to(x.dtype) / divisor_column(divisor, x)
    return along_axis(x, axis, weights)


def divisor_column(divisor: Any, x: Any) -> Any:
    """The divisor as [outputs, 1] in x's dtype, or as it is when it is one number."""
    import torch

    if isinstance(divisor, torch.Tensor):
        return divisor.to(x.dtype).reshape(-1, 1)
    return divisor


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

"""Sums at indices that may meet, in a recorded run: torch's exporter writes ScatterND without a reduction for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.export.symbolic.sizes import is_symbolic


def index_add(func: Any, input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Slices added at an index along one axis."""
    import torch

    if not torch.jit.is_tracing() or input.dim() == 0:
        return NotImplemented
    axis = dim % input.dim()
    addend = source if alpha == 1 else source * alpha
    places = _from_the_start(index.reshape(-1), input.shape[axis])
    spread = places.reshape([-1 if i == axis else 1 for i in range(input.dim())]).expand_as(addend)
    return input.scatter_add(axis, spread.to(torch.int64), addend.to(input.dtype))


def index_put(func: Any, input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Elements or rows added at indices of the first axes; without `accumulate` it stays as it is."""
    import torch

    if not accumulate or not torch.jit.is_tracing() or not _all_whole(indices):
        return NotImplemented
    leading = [input.shape[axis] for axis in range(len(indices))]
    rest = [input.shape[axis] for axis in range(len(indices), input.dim())]
    flat: Any = 0
    for index, size in zip(torch.broadcast_tensors(*indices), leading, strict=True):
        flat = flat * size + _from_the_start(index, size)
    rows = input.reshape([-1, *rest])
    addend = values.to(input.dtype).expand([*flat.shape, *rest]).reshape([-1, *rest])
    spread = flat.reshape([-1, *[1] * len(rest)]).expand_as(addend)
    return rows.scatter_add(0, spread.to(torch.int64), addend).reshape(input.shape)


def put(func: Any, input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Elements written by their index in the flat tensor, which may count from the end."""
    places, flat = (index.reshape(-1),), input.reshape(-1)
    total = index_put(func, flat, places, source.reshape(-1), accumulate)
    if total is NotImplemented:
        total = flat.index_put(places, source.reshape(-1), accumulate)
    return total.reshape(input.shape)


def _all_whole(indices: Sequence[Any]) -> bool:
    import torch

    return bool(indices) and all(isinstance(i, torch.Tensor) and i.dtype in (torch.int64, torch.int32) for i in indices)


def _from_the_start(index: Any, size: Any) -> Any:
    import torch

    return torch.where(index < 0, index + size, index)


def bincount(func: Any, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """`bincount` of whole numbers under a length by size, [minlength]; torch's own has a length by the values.

    A number beyond it would make torch's result longer; the file, which has no such element, does not run there.
    """
    import torch

    if not is_symbolic(minlength):
        return NotImplemented
    if weights is None:
        counted = torch.ones_like(x, dtype=torch.int64)
    else:
        counted = weights if weights.dtype == torch.float32 else weights.to(torch.float64)
    return torch.zeros(minlength, dtype=counted.dtype, device=x.device).index_add(0, x.to(torch.int64), counted)

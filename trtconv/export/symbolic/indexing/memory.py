"""Views by strides: the exporters number the elements of a tensor as if it lay in memory in the order of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.export.symbolic.recording.tracer import unrecorded
from trtconv.export.symbolic.sizes import arange


def stride(func: Any, input: Any, dim: Any = None) -> Any:
    """The strides of a recorded run as products of its sizes; torch gives those of the size that is recorded."""
    import torch

    order = _order_in_memory(input) if torch.jit.is_tracing() else None
    if order is None:
        return NotImplemented
    strides, product = [1] * input.dim(), 1
    for axis in reversed(order):
        strides[axis] = product
        product = product * input.shape[axis]
    return tuple(strides) if dim is None else strides[dim]


def as_strided(func: Any, input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """The same view of the axes in the order in which they lie in memory, and from where the tensor itself begins.

    In a recorded run the elements are gathered, as the exporter takes strides that are numbers only. Where the memory
    has more than the tensor's elements the call stays as it is.
    """
    import torch

    own, order = input.storage_offset(), _order_in_memory(input)
    if order is None:
        return NotImplemented
    offset = 0 if storage_offset is None else storage_offset - own
    if torch.jit.is_tracing():
        return _gathered(input.permute(order), size, stride, offset)
    if storage_offset is not None and bool(own != 0):
        return input.permute(order).clone().as_strided(size, stride, offset)
    return NotImplemented if order == sorted(order) else func(input.permute(order), size, stride, storage_offset)


def _order_in_memory(tensor: Any) -> list[int] | None:
    """The axes from the slowest to the fastest, None where the elements do not lie one behind the other."""
    with unrecorded():
        strides = tensor.stride()
        # Of axes of one the order says nothing; it stays.
        order = sorted(range(tensor.dim()), key=lambda axis: -strides[axis])
        return order if tensor.permute(order).is_contiguous() else None


def _gathered(tensor: Any, size: Sequence[Any], stride: Sequence[Any], offset: Any) -> Any:
    import torch

    places = torch.zeros((), dtype=torch.int64, device=tensor.device) + offset
    for length, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + arange(length, tensor) * step
    return tensor.reshape(-1)[places]

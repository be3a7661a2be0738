"""Views by strides: the exporters number the elements of a tensor as if it lay in memory in the order of its axes."""

from __future__ import annotations

from typing import Any


def as_strided(func: Any, input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """The same view of the axes in the order in which they lie in memory, and from where the tensor itself begins.

    Where the memory has more than the tensor's elements the call stays as it is.
    """
    own = input.storage_offset()
    begins_elsewhere = storage_offset is not None and bool(own != 0)
    if input.is_contiguous() and not begins_elsewhere:
        return NotImplemented
    strides = input.stride()
    in_memory = input.permute(sorted(range(input.dim()), key=lambda axis: -strides[axis]))
    if not in_memory.is_contiguous():
        return NotImplemented
    if begins_elsewhere:
        return in_memory.clone().as_strided(size, stride, storage_offset - own)
    return func(in_memory, size, stride, storage_offset)

"""Elements that are repeated in place as often as a size says."""

from __future__ import annotations

from typing import Any


def repeat_interleave(func: Any, input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Any:
    """`torch.repeat_interleave` by a size: along an axis of its own, which is then one with that of the elements.

    The exporter's form repeats along the axis before it where the number is a size (onnxscript 0.7.2,
    `aten_repeat_interleave_self_int`).
    """
    import torch

    if not isinstance(repeats, torch.SymInt) or not isinstance(input, torch.Tensor):
        return NotImplemented
    x = input.reshape(-1) if dim is None else input
    axis = (dim or 0) % x.ndim
    sizes = list(x.shape)
    apart = x.unsqueeze(axis + 1).expand(*sizes[: axis + 1], repeats, *sizes[axis + 1 :])
    return apart.reshape(*sizes[:axis], sizes[axis] * repeats, *sizes[axis + 1 :])

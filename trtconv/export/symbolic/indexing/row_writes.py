"""A row that is written into an axis of fixed size, as the rows before it, it, and those behind it.

torch.onnx scatters it with an index for each of its elements. TensorRT 8.6 has no implementation of that where the
sides move ("Could not find any implementation for node {ForeignNode[...select_scatter]}", as torchvision pads images).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_END = 2**63 - 1


def translations() -> dict[Any, Callable[..., Any]]:
    """By operator, the function that torch.onnx.export takes for it (`custom_translation_table`)."""
    import torch

    return {torch.ops.aten.select_scatter.default: _select_scatter}


def _select_scatter(x: Any, src: Any, dim: int, index: Any) -> Any:
    from onnxscript import opset18
    from onnxscript.function_libs.torch_lib.ops import core

    size = x.shape[dim] if x.shape is not None else None
    if not isinstance(index, int) or not isinstance(size, int):
        return core.aten_select_scatter(x, src, dim, index)
    axis, index = dim % len(x.shape), index % size

    def rows(first: int, last: int) -> Any:
        bounds = (opset18.Constant(value_ints=[n]) for n in (first, last, axis))
        return opset18.Slice(x, *bounds)

    parts = [rows(0, index)] if index else []
    parts.append(opset18.Unsqueeze(src, opset18.Constant(value_ints=[axis])))
    parts += [rows(index + 1, _END)] if index + 1 < size else []
    return opset18.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]

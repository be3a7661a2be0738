"""What is written into a part of an axis, joined with what stands before and behind it.

torch.onnx scatters it with an index for each row or element. TensorRT 8.6 has no implementation of that where the sides
move ("Could not find any implementation for node {ForeignNode[...select_scatter]}", as torchvision pads images).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_END, _LARGEST = 2**63 - 1, 2**31
# Whose result has the first input's elements, each as often as it will.
_SAME_ELEMENTS = frozenset((
    "Cast", "CastLike", "Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze",
))  # fmt: skip


def translations() -> dict[Any, Callable[..., Any]]:
    """By operator, the function that torch.onnx.export takes for it (`custom_translation_table`)."""
    import torch

    aten = torch.ops.aten
    return {aten.select_scatter.default: _select_scatter, aten.slice_scatter.default: _slice_scatter}


def _select_scatter(x: Any, src: Any, dim: int, index: Any) -> Any:
    """A row of an axis of fixed size; one of an axis that moves is scattered."""
    from onnxscript import opset18
    from onnxscript.function_libs.torch_lib.ops import core

    size = _size(x, dim)
    if not isinstance(index, int) or size is None:
        return core.aten_select_scatter(x, src, dim, index)
    axis, index = dim % len(x.shape), index % size
    row = opset18.Unsqueeze(src, _whole(axis))
    before = [_rows(x, axis, _whole(0), _whole(index))] if index else []
    behind = [_rows(x, axis, _whole(index + 1), _whole(_END))] if index + 1 < size else []
    return _joined([*before, row, *behind], axis)


def _slice_scatter(x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """Rows one behind the other that begin at a number counted from the front; others are scattered."""
    from onnxscript import opset18
    from onnxscript.function_libs.torch_lib.ops import core

    first = 0 if start is None else start
    if x.shape is None or not isinstance(first, int) or first < 0 or step != 1:
        return core.aten_slice_scatter(x, src, dim, start, end, step)
    axis, size = dim % len(x.shape), _size(x, dim)
    to_the_end = end is None or (isinstance(end, int) and end >= (_LARGEST if size is None else size))
    if (first or not to_the_end) and (number := _number_in(x)) is not None:
        return _padded(x, src, axis, first, number)
    before = [_rows(x, axis, _whole(0), _whole(first))] if first else []
    behind = []
    if not to_the_end:
        # As many as there are: an end may lie beyond the axis, or count from the back.
        count = opset18.Shape(src, start=axis, end=axis + 1)
        behind = [_rows(x, axis, opset18.Add(count, _whole(first)) if first else count, _whole(_END))]
    return _joined([*before, src, *behind], axis)


def _padded(x: Any, src: Any, axis: int, first: int, number: float) -> Any:
    """The rows with as many more as the axis of x has, filled with a number: an image on an empty canvas."""
    from onnxscript import opset18

    sizes = [opset18.Shape(v, start=axis, end=axis + 1) for v in (x, src)]
    behind = opset18.Sub(opset18.Sub(*sizes), _whole(first)) if first else opset18.Sub(*sizes)
    rank = len(x.shape)
    pads = [_whole(*[0] * axis, first, *[0] * (rank - 1)), behind]
    pads += [_whole(*[0] * (rank - 1 - axis))] if axis < rank - 1 else []
    return opset18.Pad(src, opset18.Concat(*pads, axis=0), opset18.CastLike(opset18.Constant(value_float=number), src))


def _number_in(x: Any) -> float | None:
    """The number of which all elements are, by the nodes that they come from; None where there is none, or no float."""
    import onnx_ir as ir

    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return None
    while (node := x.producer()) is not None and node.op_type in _SAME_ELEMENTS:
        x = node.inputs[0]
    if node is not None and node.op_type == "ConstantOfShape":
        fill = node.attributes.get("value")
        return 0.0 if fill is None else float(fill.as_tensor().numpy().reshape(-1)[0])
    array = ir.convenience.get_const_tensor(x)
    return float(array.numpy().reshape(-1)[0]) if array is not None and array.size == 1 else None


def _size(x: Any, dim: int) -> int | None:
    size = x.shape[dim] if x.shape is not None else None
    return size if isinstance(size, int) else None


def _rows(x: Any, axis: int, first: Any, last: Any) -> Any:
    from onnxscript import opset18

    return opset18.Slice(x, first, last, _whole(axis))


def _joined(parts: list[Any], axis: int) -> Any:
    from onnxscript import opset18

    return opset18.Concat(*parts, axis=axis) if len(parts) > 1 else opset18.Identity(parts[0])


def _whole(*numbers: int) -> Any:
    from onnxscript import opset18

    return opset18.Constant(value_ints=list(numbers))

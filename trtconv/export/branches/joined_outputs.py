"""The types of outputs that two parts of a space give under one name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.dim_names import axis_name

if TYPE_CHECKING:
    import onnx


def level_outputs(low: onnx.GraphProto, high: onnx.GraphProto) -> None:
    """Give both sides' outputs one size where they say another: that of a side which holds a single size is its own."""
    for one, other in zip(low.output, high.output, strict=True):
        pairs = zip(one.type.tensor_type.shape.dim, other.type.tensor_type.shape.dim, strict=False)
        for index, sides in enumerate(pairs):
            if sides[0] == sides[1]:
                continue
            named = next((d.dim_param for d in sides if d.dim_param), axis_name(one.name, index))
            for dim in sides:
                dim.dim_param = named


def open_dims(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """The type with expressions of one side's dims left out, since the other side may have others."""
    import onnx

    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    for index, dim in enumerate(copy.type.tensor_type.shape.dim):
        if dim.dim_param and not dim.dim_param.isidentifier():
            dim.dim_param = axis_name(value.name, index)
    return copy

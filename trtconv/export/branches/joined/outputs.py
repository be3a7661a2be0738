"""The types of outputs that two parts of a space give under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.model.dim_names import axis_name
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.sizes.evaluate import UnreadableError, evaluate_text
from trtconv.proof.joint_sizes import count_sizes, size_grids

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Dims = list[int | str]
# Where a condition holds, at arrays of sizes.
Holds = Callable[[Mapping[str, "Array"]], "Array"]
# Joint sizes beyond which nothing is said of two sides together.
MOST_SIZES = 1 << 22


def dims_of_all(low: Dims, high: Dims, is_low: Holds, space: ShapeSpace) -> Dims:
    """The dims of an output over the whole space, from those of its two sides: one of both where it says all sizes.

    What a side of one size calls 1 is mostly what the other calls `(H // 14)*(W // 14)`. An empty text is none of them.
    """
    return [one if one == other else _common(one, other, is_low, space) for one, other in zip(low, high, strict=True)]


def _common(low: int | str, high: int | str, is_low: Holds, space: ShapeSpace) -> int | str:
    import numpy as np

    names = list(space)
    if "" in (low, high) or count_sizes(space) > MOST_SIZES:
        return ""
    common = {low, high}
    try:
        for grids in size_grids(space, names):
            below, above = (evaluate_text(str(text), grids) for text in (low, high))
            expected = np.where(is_low(grids), below, above)
            common &= {t for t, v in ((low, below), (high, above)) if np.array_equal(expected, v + 0 * expected)}
    except (UnreadableError, ValueError):
        return ""
    return next((text for text in (high, low) if text in common), "")


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

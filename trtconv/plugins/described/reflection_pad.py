"""Reflection padding of the last two axes, four independent widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.description import (
    FLOAT_TYPES,
    Array,
    Attributes,
    PluginAttribute,
    PluginDescription,
    Shape,
    Tensor,
    require_rank,
)

OP_TYPE = "TrtconvReflectionPad"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """The last two axes grow by their pads, each of which is smaller than the axis."""
    (x,) = inputs
    require_rank(OP_TYPE, x, 2)
    top, left, bottom, right = attributes["pads"]
    grown: list[int | None] = []
    for size, low, high in ((x[-2], top, bottom), (x[-1], left, right)):
        if size is not None and max(low, high) >= max(size, 1):
            raise InvalidRequestError(
                f"{OP_TYPE}: a pad of {max(low, high)} needs an axis longer than that, not {size}",
                hint="reflection does not repeat the border; pad less or pad twice",
            )
        grown.append(None if size is None else size + low + high)
    return ((*x[:-2], *grown),)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Mirror without repeating the border; values are copied, so that the result is exact."""
    (x,) = inputs
    top, left, bottom, right = attributes["pads"]
    height, width = x.shape[-2:]
    rows = reflected(height, top, bottom)
    columns = reflected(width, left, right)
    return (np.ascontiguousarray(x[..., rows[:, None], columns[None, :]]),)


def reflected(size: int, low: int, high: int) -> Array:
    """The source index of every padded position along one axis."""
    index = np.abs(np.arange(-low, size + high))
    return np.where(index >= size, 2 * (size - 1) - index, index) if size else index[:0]


def body(opset: int) -> str:
    """ONNX's Pad; through float32, in which 16-bit values are exact, since runtimes lack the 16-bit kernel."""
    del opset  # the axes input of opset 18 is not needed
    return """
      xf = Cast <to = 1> (x)
      x_shape = Shape (x)
      rank = Shape (x_shape)
      two = Constant <value_ints = [2]> ()
      outer = Sub (rank, two)
      zeros = ConstantOfShape <value = int64[1] {0}> (outer)
      pads = Constant <value_ints: ints = @pads> ()
      halves = Constant <value_ints = [2, 2]> ()
      low, high = Split <axis = 0> (pads, halves)
      all_pads = Concat <axis = 0> (zeros, low, zeros, high)
      padded = Pad <mode = "reflect"> (xf, all_pads)
      y = CastLike (padded, x)
    """


REFLECTION_PAD = PluginDescription(
    op_type=OP_TYPE,
    folder="reflection_pad",
    summary="Reflection padding of the last two axes with 16-byte loads and stores at any alignment.",
    inputs=(Tensor("x", "T", "[..., H, W], rank 2 to 8"),),
    outputs=(Tensor("y", "T", "[..., H + top + bottom, W + left + right]"),),
    attributes=(
        PluginAttribute(
            "pads", "ints", (1, 1, 1, 1), "top, left, bottom, right; each smaller than its axis", 0, 2**31 - 1, length=4
        ),
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=("torch.nn.ReflectionPad2d takes its widths as left, right, top, bottom.",),
)

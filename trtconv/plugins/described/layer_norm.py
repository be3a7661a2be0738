"""Layer normalisation over the last axis, of rows that other plugins write and read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trtconv.plugins.described.moments import normalised
from trtconv.plugins.description import (
    FLOAT_TYPES,
    Array,
    Attributes,
    PluginAttribute,
    PluginDescription,
    Shape,
    Tensor,
    require_channels,
    require_rank,
)

OP_TYPE = "TrtconvLayerNorm"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`y` has the shape of `x`; scale and shift are as long as its last axis."""
    del attributes
    x, scale, shift = inputs
    require_rank(OP_TYPE, x, 1)
    require_channels(OP_TYPE, "scale", scale, x[-1])
    require_channels(OP_TYPE, "shift", shift, x[-1])
    return (x,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Normalise every row by its own mean and (biased) variance, in float64."""
    x, scale, shift = (a.astype(np.float64) for a in inputs)
    if x.size == 0:
        return (inputs[0].copy(),)
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    y = (x - mean) / np.sqrt(variance + attributes["epsilon"]) * scale + shift
    return (y.astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators: float32 inside, mean first and then the squared differences."""
    del opset  # LayerNormalization is there from opset 17 on, and bodies from 15
    return f"""
      xf = Cast <to = 1> (x)
      sf = Cast <to = 1> (scale)
      bf = Cast <to = 1> (shift)
      last = Constant <value_ints = [-1]> ()
      length = Shape <start = -1> (x)
      count = Cast <to = 1> (length){normalised("xf", "last")}
      scaled = Mul (unit, sf)
      shifted = Add (scaled, bf)
      y = CastLike (shifted, x)
    """


LAYER_NORM = PluginDescription(
    op_type=OP_TYPE,
    folder="layer_norm",
    summary="Layer normalisation over the last axis, with scale and shift; x is read once where 2048 channels suffice.",
    inputs=(
        Tensor("x", "T", "[..., C], rank 1 to 8"),
        Tensor("scale", "T", "[C]"),
        Tensor("shift", "T", "[C]"),
    ),
    outputs=(Tensor("y", "T", "shape of x"),),
    attributes=(PluginAttribute("epsilon", "float", 1e-5, "added to the variance", 0.0, 1e30),),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "Sums are float32 and of differences from the row's first value, squares of differences from the mean, so that "
        "a large mean loses nothing.",
        "A row of up to 2048 channels in 16 bits, of up to 1024 in float32, stays in registers if the channels are a "
        "multiple of 16 bytes; others are read three times.",
    ),
)

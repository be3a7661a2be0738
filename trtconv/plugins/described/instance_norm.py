"""Instance normalisation with scale, bias and an optional ReLU (style transfer, segmentation heads)."""

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
    flag,
    require_channels,
    require_rank,
)

OP_TYPE = "TrtconvInstanceNorm"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`y` has the shape of `x`; `scale` and `bias` are as long as axis 1."""
    del attributes
    x, scale, bias = inputs
    require_rank(OP_TYPE, x, 3)
    require_channels(OP_TYPE, "scale", scale, x[1])
    require_channels(OP_TYPE, "bias", bias, x[1])
    return (x,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Normalise every plane by its own mean and (biased) variance, in float64."""
    x, scale, bias = (a.astype(np.float64) for a in inputs)
    if x.size == 0:
        return (inputs[0].copy(),)
    axes = tuple(range(2, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    column = (-1, *(1,) * (x.ndim - 2))
    y = (x - mean) / np.sqrt(variance + attributes["epsilon"]) * scale.reshape(column) + bias.reshape(column)
    if attributes["relu"]:
        y = np.maximum(y, 0.0)
    return (y.astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators: float32 inside, mean first and then the squared differences."""
    del opset  # sums take their axes as an input from opset 13 on, unlike ReduceMean
    return f"""
      xf = Cast <to = 1> (x)
      sf = Cast <to = 1> (scale)
      bf = Cast <to = 1> (bias)
      x_shape = Shape (x)
      lead = Shape <start = 0, end = 2> (x)
      spatial = Shape <start = 2> (x)
      first = Constant <value_ints = [0]> ()
      area = ReduceProd <keepdims = 1> (spatial)
      flat_shape = Concat <axis = 0> (lead, area)
      flat = Reshape <allowzero = 1> (xf, flat_shape)
      count = Cast <to = 1> (area)
      last = Constant <value_ints = [2]> (){normalised("flat", "last")}
      column = Constant <value_ints = [-1, 1]> ()
      scale_column = Reshape (sf, column)
      bias_column = Reshape (bf, column)
      scaled = Mul (unit, scale_column)
      biased = Add (scaled, bias_column)
      positive = Relu (biased)
      flag = Constant <value_int: int = @relu> ()
      use_relu = Cast <to = 9> (flag)
      chosen = Where (use_relu, positive, biased)
      shaped = Reshape <allowzero = 1> (chosen, x_shape)
      y = CastLike (shaped, x)
    """


INSTANCE_NORM = PluginDescription(
    op_type=OP_TYPE,
    folder="instance_norm",
    summary="Instance normalisation with scale, bias and an optional ReLU; x is read once where a plane fits on chip.",
    inputs=(
        Tensor("x", "T", "[N, C, spatial...], rank 3 to 8"),
        Tensor("scale", "S", "[C]"),
        Tensor("bias", "S", "[C]"),
    ),
    outputs=(Tensor("y", "T", "shape of x"),),
    attributes=(
        PluginAttribute("epsilon", "float", 1e-5, "added to the variance", 0.0, 1e30),
        flag("relu", "1 clamps the result at zero"),
    ),
    types=(("T", FLOAT_TYPES), ("S", FLOAT_TYPES)),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "The variance is the biased one, as in torch.nn.InstanceNorm2d without running statistics.",
        "Every warp sums differences from its own mean, parts are combined relative to one another, and the mean is "
        "kept to twice a float's precision, so that a plane with a large offset loses nothing.",
        "A plane of up to 2 MiB stays in the registers of a thread-block cluster on compute capability 9.0 and later, "
        "one of up to 128 KiB in those of a block elsewhere; larger planes are read twice.",
    ),
)

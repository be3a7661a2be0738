"""Depthwise convolution of rows of tokens by 3 x 3 kernels, and GELU (PVTv2 and Mix Transformers have it)."""

from __future__ import annotations

import math
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
    flag,
    require_channels,
    require_rank,
)

OP_TYPE = "TrtconvDepthwiseConv"
SIZE = 3
"""Rows and columns of the kernel."""
MOST_CHANNELS = 1 << 20


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`y` has the shape of `x`, whose channels are as many as the attribute says, and whose rows are whole images."""
    x, weight, bias = inputs
    channels, width = attributes["channels"], attributes["width"]
    require_rank(OP_TYPE, x, 3, 3)
    if x[2] not in (channels, None):
        raise InvalidRequestError(f"{OP_TYPE}: x has {x[2]} channels, and the attribute says {channels}")
    if x[1] is not None and x[1] % width:
        raise InvalidRequestError(f"{OP_TYPE}: {x[1]} pixels are no whole rows of {width}")
    if len(weight) != 3 or any(d not in (e, None) for d, e in zip(weight, (SIZE, SIZE, channels), strict=True)):
        raise InvalidRequestError(f"{OP_TYPE}: weight has shape {weight}, expected [{SIZE}, {SIZE}, {channels}]")
    require_channels(OP_TYPE, "bias", bias, channels)
    return (x,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """The convolution tap by tap and GELU by the error function, in float64."""
    x, weight, bias = (a.astype(np.float64) for a in inputs)
    width = attributes["width"]
    height = x.shape[1] // width
    image = x.reshape(x.shape[0], height, width, x.shape[2])
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = np.broadcast_to(bias, image.shape).copy()
    for i in range(SIZE):
        for j in range(SIZE):
            y += padded[:, i : i + height, j : j + width] * weight[i, j]
    if attributes["gelu"]:
        y *= 0.5 * (1.0 + np.vectorize(math.erf, otypes=[np.float64])(y / math.sqrt(2.0)))
    return (y.reshape(x.shape).astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators, float32 inside: a grouped Conv between Transposes, then GELU where asked for."""
    del opset
    return """
      xf = Cast <to = 1> (x)
      wf = Cast <to = 1> (weight)
      bf = Cast <to = 1> (bias)
      flat_width = Constant <value_int: int = @width> ()
      flat_channels = Constant <value_int: int = @channels> ()
      column = Constant <value_ints = [1]> ()
      width = Reshape (flat_width, column)
      channels = Reshape (flat_channels, column)
      batch = Shape <start = 0, end = 1> (x)
      length = Shape <start = 1, end = 2> (x)
      height = Div (length, width)
      image_shape = Concat <axis = 0> (batch, height, width, channels)
      image = Reshape <allowzero = 1> (xf, image_shape)
      planes = Transpose <perm = [0, 3, 1, 2]> (image)
      kernels = Transpose <perm = [2, 0, 1]> (wf)
      one = Constant <value_ints = [1]> ()
      kernel = Unsqueeze (kernels, one)
      convolved = Conv <group: int = @channels, pads = [1, 1, 1, 1]> (planes, kernel, bf)
      rows = Transpose <perm = [0, 2, 3, 1]> (convolved)
      root = Constant <value_float = 0.70710678> ()
      half = Constant <value_float = 0.5> ()
      unit = Constant <value_float = 1.0> ()
      scaled = Mul (rows, root)
      error = Erf (scaled)
      share = Add (error, unit)
      halved = Mul (rows, half)
      smooth = Mul (halved, share)
      flag = Constant <value_int: int = @gelu> ()
      use_gelu = Cast <to = 9> (flag)
      chosen = Where (use_gelu, smooth, rows)
      x_shape = Shape (x)
      shaped = Reshape <allowzero = 1> (chosen, x_shape)
      y = CastLike (shaped, x)
    """


DEPTHWISE_CONV = PluginDescription(
    op_type=OP_TYPE,
    folder="depthwise_conv",
    summary="Depthwise convolution of rows of tokens by 3 x 3 kernels, and GELU if asked for, in one pass.",
    inputs=(
        Tensor("x", "T", "[N, H * W, C]"),
        Tensor("weight", "T", "[3, 3, C]"),
        Tensor("bias", "T", "[C]"),
    ),
    outputs=(Tensor("y", "T", "shape of x"),),
    attributes=(
        PluginAttribute("channels", "int", 2, "C", 1, MOST_CHANNELS),
        PluginAttribute("width", "int", 1, "W, the pixels beside one another", 1, MOST_CHANNELS),
        flag("gelu", "1 applies GELU to the result"),
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "The convolution has stride 1 and one row and column of zeros on every side. Sums are float32, and GELU is of "
        "the sums before they are rounded; in 16 bits its error function is off by 1.5e-7.",
    ),
)

"""Depthwise convolution and layer normalisation over the channels, channels last (how ConvNeXt's blocks begin)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trtconv.core.errors import InvalidRequestError
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

OP_TYPE = "TrtconvDepthwiseConvLayerNorm"
SIZES = (3, 5, 7)
"""Rows and columns of the kernel."""
MOST_EVEN, MOST_ODD = 2048, 1024
"""Channels that the threads of one block hold: in pairs, or one by one."""


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`y` has the shape of `x`, whose channels are as many as the attribute says; `weight` is square."""
    x, weight, *vectors = inputs
    channels = attributes["channels"]
    require_rank(OP_TYPE, x, 4, 4)
    if channels > MOST_ODD and channels % 2:
        raise InvalidRequestError(f"{OP_TYPE} takes an odd number of channels up to {MOST_ODD}, not {channels}")
    if x[3] not in (channels, None):
        raise InvalidRequestError(f"{OP_TYPE}: x has {x[3]} channels, and the attribute says {channels}")
    sizes = {d for d in weight[:2] if d is not None}
    if len(weight) != 3 or weight[2] not in (channels, None) or len(sizes) > 1 or not sizes <= set(SIZES):
        raise InvalidRequestError(
            f"{OP_TYPE}: weight has shape {weight}, expected [K, K, {channels}], K one of {SIZES}"
        )
    for name, vector in zip(("bias", "scale", "shift"), vectors, strict=True):
        require_channels(OP_TYPE, name, vector, channels)
    return (x,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """The convolution tap by tap and the (biased) moments of every position, in float64."""
    x, weight, bias, scale, shift = (a.astype(np.float64) for a in inputs)
    if x.size == 0:
        return (inputs[0].copy(),)
    size, (height, width) = weight.shape[0], x.shape[1:3]
    pad = size // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    y = np.broadcast_to(bias, x.shape).copy()
    for i in range(size):
        for j in range(size):
            y += padded[:, i : i + height, j : j + width] * weight[i, j]
    y -= y.mean(axis=-1, keepdims=True)
    y /= np.sqrt((y**2).mean(axis=-1, keepdims=True) + attributes["epsilon"])
    return ((y * scale + shift).astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators, float32 inside: a grouped Conv between Transposes, then the moments.

    The Reshape tells inference that the sizes are those of x.
    """
    del opset  # sums take their axes as an input from opset 13 on, unlike ReduceMean
    return f"""
      xf = Cast <to = 1> (x)
      wf = Cast <to = 1> (weight)
      bf = Cast <to = 1> (bias)
      sf = Cast <to = 1> (scale)
      tf = Cast <to = 1> (shift)
      planes = Transpose <perm = [0, 3, 1, 2]> (xf)
      kernels = Transpose <perm = [2, 0, 1]> (wf)
      one = Constant <value_ints = [1]> ()
      two = Constant <value_ints = [2]> ()
      size = Shape <start = 0, end = 1> (weight)
      pad = Div (size, two)
      outer = Constant <value_ints = [0, 0]> ()
      low = Concat <axis = 0> (outer, pad, pad)
      pads = Concat <axis = 0> (low, low)
      padded = Pad (planes, pads)
      kernel = Unsqueeze (kernels, one)
      convolved = Conv <group: int = @channels> (padded, kernel, bf)
      rows = Transpose <perm = [0, 2, 3, 1]> (convolved)
      last = Constant <value_ints = [-1]> ()
      channels = Shape <start = 3> (x)
      count = Cast <to = 1> (channels){normalised("rows", "last")}
      scaled = Mul (unit, sf)
      moved = Add (scaled, tf)
      x_shape = Shape (x)
      shaped = Reshape <allowzero = 1> (moved, x_shape)
      y = CastLike (shaped, x)
    """


DEPTHWISE_CONV_LAYER_NORM = PluginDescription(
    op_type=OP_TYPE,
    folder="depthwise_conv_layer_norm",
    summary="Depthwise convolution, then layer normalisation over the channels, channels last, in one pass.",
    inputs=(
        Tensor("x", "T", "[N, H, W, C]"),
        Tensor("weight", "T", "[K, K, C], K one of 3, 5, 7"),
        Tensor("bias", "T", "[C], added to the convolution"),
        Tensor("scale", "T", "[C], of the normalisation"),
        Tensor("shift", "T", "[C], of the normalisation"),
    ),
    outputs=(Tensor("y", "T", "shape of x"),),
    attributes=(
        PluginAttribute("channels", "int", 2, "C, up to 2048, or 1024 if odd", 1, MOST_EVEN),
        PluginAttribute("epsilon", "float", 1e-6, "added to the variance", 0.0, 1e30),
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "The convolution has stride 1 and zero padding of (K - 1) / 2 on every side. Its result is not rounded before "
        "the normalisation: sums, mean and (biased) variance are float32.",
        "A thread computes a few neighbouring positions of two channels and keeps their sums in registers; the threads "
        "of a block have all channels of a position.",
    ),
)

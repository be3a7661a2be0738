"""Normalisation of whole images as one group, channels last, and PoolFormer's mixing of neighbours behind it."""

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

OP_TYPE = "TrtconvGroupNorm"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`y` has the shape of `x`; scale and shift are as long as its last axis."""
    del attributes
    x, scale, shift = inputs
    require_rank(OP_TYPE, x, 4, 4)
    require_channels(OP_TYPE, "scale", scale, x[-1])
    require_channels(OP_TYPE, "shift", shift, x[-1])
    return (x,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Normalise every image by its own mean and (biased) variance, in float64."""
    x, scale, shift = (a.astype(np.float64) for a in inputs)
    if x.size == 0:
        return (inputs[0].copy(),)
    axes = (1, 2, 3)
    mean = x.mean(axis=axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    unit = (x - mean) / np.sqrt(variance + attributes["epsilon"])
    y = x + (_mean_of_neighbours(unit) - unit) * scale if attributes["mixed"] else unit * scale + shift
    return (y.astype(inputs[0].dtype),)


def _mean_of_neighbours(x: Array) -> Array:
    """Of 3 x 3 positions, those of them that are inside."""
    height, width = x.shape[1:3]
    padded, ones = (np.pad(a, ((0, 0), (1, 1), (1, 1), (0, 0))) for a in (x, np.ones((1, height, width, 1))))
    windows = [(slice(None), slice(i, i + height), slice(j, j + width)) for i in range(3) for j in range(3)]
    return np.asarray(sum(padded[w] for w in windows) / sum(ones[w] for w in windows))


def body(opset: int) -> str:
    """The same in ONNX operators: float32 inside, mean first and then the squared differences."""
    del opset
    return f"""
      xf = Cast <to = 1> (x)
      sf = Cast <to = 1> (scale)
      bf = Cast <to = 1> (shift)
      axes = Constant <value_ints = [1, 2, 3]> ()
      sizes = Shape <start = 1> (x)
      lengths = Cast <to = 1> (sizes)
      count = ReduceProd <keepdims = 0> (lengths){normalised("xf", "axes")}
      planes = Transpose <perm = [0, 3, 1, 2]> (unit)
      pooled = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 0> (planes)
      around = Transpose <perm = [0, 2, 3, 1]> (pooled)
      away = Sub (around, unit)
      weighted = Mul (away, sf)
      mixture = Add (xf, weighted)
      scaled = Mul (unit, sf)
      shifted = Add (scaled, bf)
      flag = Constant <value_int: int = @mixed> ()
      is_mixed = Cast <to = 9> (flag)
      chosen = Where (is_mixed, mixture, shifted)
      y = CastLike (chosen, x)
    """


GROUP_NORM = PluginDescription(
    op_type=OP_TYPE,
    folder="group_norm",
    summary="Normalisation of each image as one group, channels last, or a mixing of neighbours by its deviation.",
    inputs=(
        Tensor("x", "T", "[N, H, W, C]"),
        Tensor("scale", "T", "[C]"),
        Tensor("shift", "T", "[C]; where neighbours are mixed it is not read"),
    ),
    outputs=(Tensor("y", "T", "shape of x"),),
    attributes=(
        PluginAttribute("epsilon", "float", 1e-5, "added to the variance", 0.0, 1e30),
        flag("mixed", "1 gives x + (mean of u over 3 x 3 neighbours - u) * scale, u being x normalised"),
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "Two kernels over all multiprocessors take an image in parts: one finds the moments of each, in 2 KiB of "
        "workspace to an image, the other merges them and reads the image again. From compute capability 9.0 on the "
        "second begins before the first has ended.",
        "One kernel takes images of less than 512 accesses of 16 bytes and, where neighbours are not mixed, images "
        "that the cache does not hold together: from 9.0 on eight blocks take an image, as a cluster, and read it once "
        "where each thread has eight accesses at most; before 9.0 one block does, and in an engine that carries the "
        "kernel, which can have but one, one block takes any image.",
        "Sums are float32, of differences from the image's first value, and squares are about means: of a thread's "
        "values, then of a warp's, a block's and the image's.",
        "The average counts neighbours inside the image alone, as count_include_pad = 0 does.",
    ),
)  # fmt: skip

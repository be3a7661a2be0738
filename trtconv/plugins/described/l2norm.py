"""L2 normalisation over one axis with a learnable scale (SSD's conv4_3 normalisation, F.normalize, embeddings)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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

OP_TYPE = "TrtconvL2Norm"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`y` has the shape of `x`; `scale` is as long as the normalised axis."""
    x, scale = inputs
    require_rank(OP_TYPE, x, int(attributes["axis"]) + 1)
    require_channels(OP_TYPE, "scale", scale, x[attributes["axis"]])
    return (x,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Divide by the norm over `axis` and multiply by `scale`, in float64."""
    x, scale = (a.astype(np.float64) for a in inputs)
    axis, epsilon = attributes["axis"], attributes["epsilon"]
    squares = (x * x).sum(axis=axis, keepdims=True)
    norm = (np.sqrt(squares) + epsilon, np.sqrt(squares + epsilon), np.maximum(np.sqrt(squares), epsilon))
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x / norm[attributes["eps_mode"]] * scale.reshape(-1, *(1,) * (x.ndim - axis - 1))
    return (y.astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators: float32 inside, one rounding at the end."""
    del opset  # the operators used are alike from opset 15 on
    return """
      xf = Cast <to = 1> (x)
      sf = Cast <to = 1> (scale)
      zero = Constant <value_ints = [0]> ()
      one = Constant <value_ints = [1]> ()
      axis_scalar = Constant <value_int: int = @axis> ()
      axis_vector = Unsqueeze (axis_scalar, zero)
      mode = Constant <value_int: int = @eps_mode> ()
      eps = Constant <value_float: float = @epsilon> ()
      squared = Mul (xf, xf)
      total = ReduceSum <keepdims = 1> (squared, axis_vector)
      root = Sqrt (total)
      outside = Add (root, eps)
      shifted = Add (total, eps)
      inside = Sqrt (shifted)
      clamped = Max (root, eps)
      is_outside = Equal (mode, zero)
      is_inside = Equal (mode, one)
      other = Where (is_inside, inside, clamped)
      norm = Where (is_outside, outside, other)
      unit = Div (xf, norm)
      x_shape = Shape (x)
      rank = Shape (x_shape)
      before = Add (axis_vector, one)
      after = Sub (rank, before)
      ones = ConstantOfShape <value = int64[1] {1}> (after)
      minus = Constant <value_ints = [-1]> ()
      scale_shape = Concat <axis = 0> (minus, ones)
      scale_column = Reshape (sf, scale_shape)
      scaled = Mul (unit, scale_column)
      y = CastLike (scaled, x)
    """


L2NORM = PluginDescription(
    op_type=OP_TYPE,
    folder="l2norm",
    summary="L2 normalisation over one axis, times a learnable scale; the sum is in float32, x is read once.",
    inputs=(
        Tensor("x", "T", "[..., C, ...], any rank up to 8, C at `axis`"),
        Tensor("scale", "S", "[C], multiplied after the division"),
    ),
    outputs=(Tensor("y", "T", "shape of x"),),
    attributes=(
        PluginAttribute("axis", "int", 1, "the axis that is normalised, counted from the front", 0, 7),
        PluginAttribute("epsilon", "float", 1e-10, "keeps the division finite", 0.0, 1e30),
        PluginAttribute(
            "eps_mode",
            "int",
            0,
            "where epsilon enters: `outside` x/(sqrt(s)+eps), `inside` x/sqrt(s+eps), `max` x/max(sqrt(s), eps)",
            0,
            2,
            choices=(("outside", 0), ("inside", 1), ("max", 2)),
        ),
    ),
    types=(("T", FLOAT_TYPES), ("S", FLOAT_TYPES)),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "`max` is torch.nn.functional.normalize; `outside` is SSD's L2Norm.",
        "x is read from device memory once, whatever the alignment of its rows, where x is a whole number of 16-byte "
        "granules and a column fits the registers of a block (C up to 512) or, from compute capability 9.0 on, of a "
        "cluster of blocks (up to 4,096). Otherwise C up to 2,048 where planes are aligned to 16 bytes, up to 512 in "
        "fp32 or 256 where they are not; longer columns are read twice.",
    ),
)

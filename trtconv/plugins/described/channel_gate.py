"""The gate of each channel by the means of all planes: squeeze and excitation, without the product by x."""

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
    require_channels,
    require_rank,
)

OP_TYPE = "TrtconvChannelGate"
ACTIVATIONS = ("silu", "relu")
GATES = ("sigmoid", "hard_sigmoid")


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`[N, C, 1, 1]`; the weights are matrices that fit each other and the channels."""
    del attributes
    x, reduce, reduce_bias, expand, expand_bias = inputs
    require_rank(OP_TYPE, x, 4, 4)
    require_channels(OP_TYPE, "reduce_bias", reduce_bias, None)
    require_channels(OP_TYPE, "expand_bias", expand_bias, x[1])
    for name, matrix, expected in (
        ("reduce", reduce, (reduce_bias[0], x[1])),
        ("expand", expand, (x[1], reduce_bias[0])),
    ):
        unequal = any(a is not None and e is not None and a != e for a, e in zip(matrix, expected, strict=False))
        if len(matrix) != 2 or unequal:
            raise InvalidRequestError(f"{OP_TYPE}: {name} has shape {matrix}, expected {expected}")
    return ((*x[:2], 1, 1),)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Mean of each plane, two products and a sigmoid, in float64."""
    x, reduce, reduce_bias, expand, expand_bias = (a.astype(np.float64) for a in inputs)
    hidden = x.mean(axis=(2, 3)) @ reduce.T + reduce_bias
    hidden = hidden * _sigmoid(hidden) if attributes["activation"] == 0 else np.maximum(hidden, 0.0)
    linear = hidden @ expand.T + expand_bias
    gate = _sigmoid(linear) if attributes["gate"] == 0 else np.clip(linear / 6.0 + 0.5, 0.0, 1.0)
    return (gate[:, :, None, None].astype(inputs[0].dtype),)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def body(opset: int) -> str:
    """The same in ONNX operators, float32 inside."""
    del opset
    return """
      xf = Cast <to = 1> (x)
      rf = Cast <to = 1> (reduce)
      rb = Cast <to = 1> (reduce_bias)
      ef = Cast <to = 1> (expand)
      eb = Cast <to = 1> (expand_bias)
      pooled = GlobalAveragePool (xf)
      rows = Flatten <axis = 1> (pooled)
      reducing = Transpose <perm = [1, 0]> (rf)
      reduced = MatMul (rows, reducing)
      hidden = Add (reduced, rb)
      share = Sigmoid (hidden)
      smooth = Mul (hidden, share)
      positive = Relu (hidden)
      kind = Constant <value_int: int = @activation> ()
      bent = Cast <to = 9> (kind)
      active = Where (bent, positive, smooth)
      expanding = Transpose <perm = [1, 0]> (ef)
      expanded = MatMul (active, expanding)
      linear = Add (expanded, eb)
      soft = Sigmoid (linear)
      hard = HardSigmoid <alpha = 0.16666667, beta = 0.5> (linear)
      shape = Constant <value_int: int = @gate> ()
      straight = Cast <to = 9> (shape)
      gates = Where (straight, hard, soft)
      axes = Constant <value_ints = [2, 3]> ()
      image = Unsqueeze (gates, axes)
      y = CastLike (image, x)
    """


CHANNEL_GATE = PluginDescription(
    op_type=OP_TYPE,
    folder="channel_gate",
    summary="Gate of each channel by the means of all planes (squeeze and excitation): mean, two products, sigmoid.",
    inputs=(
        Tensor("x", "T", "[N, C, H, W]"),
        Tensor("reduce", "T", "[R, C]"),
        Tensor("reduce_bias", "T", "[R]"),
        Tensor("expand", "T", "[C, R]"),
        Tensor("expand_bias", "T", "[C]"),
    ),
    outputs=(Tensor("y", "T", "[N, C, 1, 1], by which x is multiplied"),),
    attributes=(
        PluginAttribute(
            "activation", "int", 0, "between the products", 0, 1,
            choices=tuple((a, i) for i, a in enumerate(ACTIVATIONS)),
        ),
        PluginAttribute(
            "gate", "int", 0, "of the second product; hard_sigmoid is x / 6 + 1 / 2 within 0 and 1", 0, 1,
            choices=tuple((g, i) for i, g in enumerate(GATES)),
        ),
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    embeddable=False,
    notes=(
        "Sums, means and products are float32 in every type: a plane of float16 cannot overflow. The order of sums is "
        "the same in every run. It takes three kernels in turn, of which an engine could carry one only.",
        "In 16 bits x may lie channels last in packs of eight (kHWC8), as convolutions write it; y lies the same way.",
    ),
)  # fmt: skip

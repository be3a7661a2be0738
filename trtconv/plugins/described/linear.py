"""A product by a matrix with bias, addend and GELU, by cuBLASLt."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.description import (
    ALLOWS_TF32,
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

OP_TYPE = "TrtconvLinear"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`[..., columns]`; the addend has that shape where there is one, and stands for nothing where not."""
    x, weight, bias, addend = inputs
    require_rank(OP_TYPE, x, 2)
    if len(weight) != 2 or (x[-1] is not None and weight[1] is not None and x[-1] != weight[1]):
        raise InvalidRequestError(f"{OP_TYPE}: weight has shape {weight}, and rows of x have {x[-1]} columns")
    require_channels(OP_TYPE, "bias", bias, weight[0])
    y = (*x[:-1], weight[0])
    expected = y if attributes["added"] else bias
    if len(addend) != len(expected) or any(
        a is not None and e is not None and a != e for a, e in zip(addend, expected, strict=True)
    ):
        raise InvalidRequestError(f"{OP_TYPE}: addend has shape {addend}, expected {expected}")
    return (y,)


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """The product in float64, then GELU."""
    x, weight, bias, addend = (a.astype(np.float64) for a in inputs)
    y = x @ weight.T + bias
    if attributes["added"]:
        y = y + addend
    if attributes["activation"] == 1:
        y *= 0.5 * (1.0 + np.vectorize(math.erf, otypes=[np.float64])(y / math.sqrt(2.0)))
    elif attributes["activation"] == 2:
        y *= 0.5 * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * y**3)))
    return (y.astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators, float32 inside."""
    del opset
    return """
      xf = Cast <to = 1> (x)
      wf = Cast <to = 1> (weight)
      bf = Cast <to = 1> (bias)
      af = Cast <to = 1> (addend)
      turned = Transpose <perm = [1, 0]> (wf)
      product = MatMul (xf, turned)
      biased = Add (product, bf)
      sum = Add (biased, af)
      flag = Constant <value_int: int = @added> ()
      has_addend = Cast <to = 9> (flag)
      linear = Where (has_addend, sum, biased)
      half = Constant <value_float = 0.5> ()
      unit = Constant <value_float = 1.0> ()
      halved = Mul (linear, half)
      root = Constant <value_float = 0.70710678> ()
      scaled = Mul (linear, root)
      error = Erf (scaled)
      error_share = Add (error, unit)
      smooth = Mul (halved, error_share)
      cubic = Constant <value_float = 0.044715> ()
      factor = Constant <value_float = 0.79788456> ()
      square = Mul (linear, linear)
      weighted = Mul (square, cubic)
      above = Add (weighted, unit)
      stretched = Mul (linear, above)
      argument = Mul (stretched, factor)
      tangent = Tanh (argument)
      tangent_share = Add (tangent, unit)
      bent = Mul (halved, tangent_share)
      kind = Constant <value_int: int = @activation> ()
      one = Constant <value_int = 1> ()
      two = Constant <value_int = 2> ()
      by_error = Equal (kind, one)
      by_tangent = Equal (kind, two)
      first = Where (by_error, smooth, linear)
      chosen = Where (by_tangent, bent, first)
      y = CastLike (chosen, x)
    """


LINEAR = PluginDescription(
    op_type=OP_TYPE,
    folder="linear",
    summary="Product of rows by a matrix with bias, and an addend and GELU if asked for, by cuBLASLt.",
    inputs=(
        Tensor("x", "T", "[..., K], rank 2 to 8"),
        Tensor("weight", "T", "[M, K]"),
        Tensor("bias", "T", "[M]"),
        Tensor("addend", "T", "shape of y; where nothing is added it is not read, and is the bias again"),
    ),
    outputs=(Tensor("y", "T", "[..., M]"),),
    attributes=(
        PluginAttribute(
            "activation", "int", 0, "applied to the sum", 0, 2, choices=(("none", 0), ("gelu", 1), ("gelu_tanh", 2))
        ),
        flag("added", "1 adds the addend"),
        ALLOWS_TF32,
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    embeddable=False,
    notes=(
        "It needs libcublasLt.so.13, .12 or .11 on the loader's path where the engine is built and where it runs; "
        "without one TensorRT refuses the engine, and the log says why. It takes 32 MiB of workspace.",
        "Sums are float32, without TF32 unless asked for. At the first call of a shape the algorithms that cuBLASLt's "
        "heuristic names first are timed (while a CUDA graph is captured its first is taken): last digits may differ "
        "by process.",
        "GELU by the error function is a kernel of its own behind the product, of the sum rounded to the element type; "
        "in 16 bits its error function is off by 1.5e-7.",
    ),
)

"""Adaptive average and max pooling of the last two axes, with PyTorch's exact bins for any output size."""

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

OP_TYPE = "TrtconvAdaptivePool"


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """The last two axes become `output_size`; they may not be empty."""
    (x,) = inputs
    require_rank(OP_TYPE, x, 2)
    if 0 in x[-2:]:
        raise InvalidRequestError(f"{OP_TYPE}: the pooled axes of {x} are empty")
    return ((*x[:-2], *attributes["output_size"]),)


def bins(size: int, out: int) -> list[slice]:
    """Bin i covers floor(i * size / out) up to ceil((i + 1) * size / out)."""
    return [slice(i * size // out, -((-(i + 1) * size) // out)) for i in range(out)]


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """Mean or maximum of every bin, in float64."""
    (x,) = inputs
    wide = x.astype(np.float64)
    out_h, out_w = attributes["output_size"]
    take = np.max if attributes["mode"] else np.mean
    y = np.empty((*x.shape[:-2], out_h, out_w), dtype=np.float64)
    for i, rows in enumerate(bins(x.shape[-2], out_h)):
        for j, columns in enumerate(bins(x.shape[-1], out_w)):
            y[..., i, j] = take(wide[..., rows, columns], axis=(-2, -1))
    return (y.astype(x.dtype),)


def body(opset: int) -> str:
    """Gather every bin's rows, reduce, then its columns. Short bins repeat their last index, left out by a mask."""
    rows = _axis_body("h", 0, -2)
    columns = _axis_body("w", 1, -1)
    return f"""
      xf = Cast <to = 1> (x)
      size = Constant <value_ints: ints = @output_size> ()
      nought = Constant <value_float = 0.0> ()
      i0 = Constant <value_int = 0> ()
      i1 = Constant <value_int = 1> ()
      i2 = Constant <value_int = 2> ()
      v0 = Constant <value_ints = [0]> ()
      v1 = Constant <value_ints = [1]> ()
      v2 = Constant <value_ints = [2]> ()
      last = Constant <value_ints = [-1]> ()
      next_to_last = Constant <value_ints = [-2]> ()
      {rows}
      {columns}
      mask_h = Unsqueeze (valid_h, v2)
      rows_of = Gather <axis = -2> (xf, index_h)
      rows_kept = Where (mask_h, rows_of, nought)
      rows_sum = ReduceSum <keepdims = 0> (rows_kept, next_to_last)
      cells_of = Gather <axis = -1> (rows_sum, index_w)
      cells_kept = Where (valid_w, cells_of, nought)
      cells_sum = ReduceSum <keepdims = 0> (cells_kept, last)
      count_hc = Unsqueeze (count_h, v1)
      count = Mul (count_hc, count_w)
      mean = Div (cells_sum, count)
      {_reduce_max("rows_max", "rows_of", -2, opset)}
      max_cells_of = Gather <axis = -1> (rows_max, index_w)
      {_reduce_max("maximum", "max_cells_of", -1, opset)}
      flag = Constant <value_int: int = @mode> ()
      use_max = Cast <to = 9> (flag)
      chosen = Where (use_max, maximum, mean)
      y = CastLike (chosen, x)
    """


def _reduce_max(result: str, value: str, axis: int, opset: int) -> str:
    if opset < 18:
        return f"{result} = ReduceMax <axes = [{axis}], keepdims = 0> ({value})"
    return f"{result} = ReduceMax <keepdims = 0> ({value}, {'last' if axis == -1 else 'next_to_last'})"


def _axis_body(name: str, position: int, axis: int) -> str:
    """Statements that give index_NAME and valid_NAME [out, longest bin] and count_NAME [out] for one axis."""
    end = f", end = {axis + 1}" if axis < -1 else ""
    return f"""
      in_{name} = Shape <start = {axis}{end}> (x)
      out_{name} = Gather <axis = 0> (size, i{position})
      step_{name} = Range (i0, out_{name}, i1)
      begin_{name} = Mul (step_{name}, in_{name})
      first_{name} = Div (begin_{name}, out_{name})
      upto_{name} = Add (begin_{name}, in_{name})
      upto_more_{name} = Add (upto_{name}, out_{name})
      upto_less_{name} = Sub (upto_more_{name}, i1)
      stop_{name} = Div (upto_less_{name}, out_{name})
      counted_{name} = Sub (stop_{name}, first_{name})
      count_{name} = Cast <to = 1> (counted_{name})
      in_scalar_{name} = Squeeze (in_{name}, v0)
      share_{name} = Div (in_scalar_{name}, out_{name})
      longest_{name} = Add (share_{name}, i2)
      offset_{name} = Range (i0, longest_{name}, i1)
      first_column_{name} = Unsqueeze (first_{name}, v1)
      stop_column_{name} = Unsqueeze (stop_{name}, v1)
      place_{name} = Add (first_column_{name}, offset_{name})
      valid_{name} = Less (place_{name}, stop_column_{name})
      final_{name} = Sub (stop_column_{name}, i1)
      index_{name} = Min (place_{name}, final_{name})
    """


ADAPTIVE_POOL = PluginDescription(
    op_type=OP_TYPE,
    folder="adaptive_pool",
    summary="Adaptive average or max pooling with exact bins for any input and output size.",
    inputs=(Tensor("x", "T", "[..., H, W], rank 2 to 8"),),
    outputs=(Tensor("y", "T", "[..., output_size[0], output_size[1]]"),),
    attributes=(
        PluginAttribute("output_size", "ints", (1, 1), "rows and columns of the result", 1, 2**31 - 1, length=2),
        PluginAttribute("mode", "int", 0, "what is taken of a bin", 0, 1, choices=(("average", 0), ("max", 1))),
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=("A NaN in a bin gives NaN in both modes, as in PyTorch.",),
)

"""Attention of several heads with a bias, read from and written to rows that hold head beside head."""

from __future__ import annotations

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
    require_rank,
)

OP_TYPE = "TrtconvAttention"
LARGEST_HEAD = 128
"""The most columns of a head."""
OFFSETS = ("query_offset", "key_offset", "value_offset")


def output_shape(inputs: Sequence[Shape], attributes: Attributes) -> tuple[Shape, ...]:
    """`[B, Lq, heads * size]`; the offsets lie inside the rows, and the bias is one that broadcasts to the scores."""
    width = attributes["heads"] * attributes["size"]
    query, key, value, bias = inputs
    for name, tensor, offset in zip(("query", "key", "value"), inputs[:3], OFFSETS, strict=True):
        require_rank(OP_TYPE, tensor, 3, 3)
        if tensor[2] is not None and tensor[2] < attributes[offset] + width:
            raise InvalidRequestError(
                f"{OP_TYPE}: rows of {name} have {tensor[2]} columns, and the heads end at {attributes[offset] + width}"
            )
    require_rank(OP_TYPE, bias, 4, 4)
    _require_equal("the batch of query and key", query[0], key[0])
    _require_equal("the batch of query and value", query[0], value[0])
    _require_equal("the rows of key and value", key[1], value[1])
    if query[0] is not None and bias[0] is not None and (bias[0] < 1 or query[0] % bias[0]):
        raise InvalidRequestError(f"{OP_TYPE}: a batch of {query[0]} is no multiple of the bias's {bias[0]} groups")
    for axis, size in ((1, attributes["heads"]), (2, query[1]), (3, key[1])):
        if bias[axis] != 1:
            _require_equal(f"axis {axis} of the bias and that of the scores", bias[axis], size)
    return ((query[0], query[1], width),)


def _require_equal(what: str, one: int | None, other: int | None) -> None:
    if one is not None and other is not None and one != other:
        raise InvalidRequestError(f"{OP_TYPE}: {what} differ: {one} and {other}")


def reference(inputs: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    """softmax(scale * query key^T + bias) value of each head, in float64."""
    heads, size = attributes["heads"], attributes["size"]
    width = heads * size
    query, key, value = (
        a[:, :, attributes[o] : attributes[o] + width]
        .astype(np.float64)
        .reshape(*a.shape[:2], heads, size)
        .transpose(0, 2, 1, 3)
        for a, o in zip(inputs[:3], OFFSETS, strict=True)
    )
    batch, rows, keys = query.shape[0], query.shape[2], key.shape[2]
    if 0 in (batch, rows, keys):
        return (np.zeros((batch, rows, width), inputs[0].dtype),)
    scores = attributes["scale"] * (query @ key.transpose(0, 1, 3, 2))
    groups = inputs[3].shape[0]
    scores = scores.reshape(batch // groups, groups, heads, rows, keys) + inputs[3].astype(np.float64)
    scores = scores.reshape(batch, heads, rows, keys)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        y = (weights @ value).transpose(0, 2, 1, 3).reshape(batch, rows, width)
    return (y.astype(inputs[0].dtype),)


def body(opset: int) -> str:
    """The same in ONNX operators, float32 inside."""
    del opset
    heads = "".join(
        f"""
      {name}_f = Cast <to = 1> ({name})
      {name}_at = Constant <value_int: int = @{name}_offset> ()
      {name}_first = Reshape ({name}_at, one)
      {name}_end = Add ({name}_first, width)
      {name}_columns = Slice ({name}_f, {name}_first, {name}_end, last)
      {name}_heads = Reshape ({name}_columns, split)
      {name}_turned = Transpose <perm = [0, 2, {order}]> ({name}_heads)"""
        for name, order in (("query", "1, 3"), ("key", "3, 1"), ("value", "1, 3"))
    )
    return f"""
      one = Constant <value_ints = [1]> ()
      last = Constant <value_ints = [-1]> ()
      same = Constant <value_ints = [0, 0]> ()
      head_count = Constant <value_int: int = @heads> ()
      head_size = Constant <value_int: int = @size> ()
      head_counts = Reshape (head_count, one)
      head_sizes = Reshape (head_size, one)
      width = Mul (head_counts, head_sizes)
      split = Concat <axis = 0> (same, head_counts, head_sizes)
      {heads}
      products = MatMul (query_turned, key_turned)
      factor = Constant <value_float: float = @scale> ()
      scaled = Mul (products, factor)
      shape = Shape (scaled)
      batch = Shape <start = 0, end = 1> (scaled)
      others = Shape <start = 1> (scaled)
      groups = Shape <start = 0, end = 1> (bias)
      each = Div (batch, groups)
      grouped_shape = Concat <axis = 0> (each, groups, others)
      grouped = Reshape <allowzero = 1> (scaled, grouped_shape)
      bias_f = Cast <to = 1> (bias)
      biased = Add (grouped, bias_f)
      scores = Reshape <allowzero = 1> (biased, shape)
      weights = Softmax <axis = -1> (scores)
      results = MatMul (weights, value_turned)
      rows = Transpose <perm = [0, 2, 1, 3]> (results)
      row_counts = Shape <start = 0, end = 2> (rows)
      y_shape = Concat <axis = 0> (row_counts, width)
      joined = Reshape <allowzero = 1> (rows, y_shape)
      y = CastLike (joined, query)
    """


ATTENTION = PluginDescription(
    op_type=OP_TYPE,
    folder="attention",
    summary="Attention of several heads: softmax(scale * query key^T + bias) value, without the scores in memory.",
    inputs=(
        Tensor("query", "T", "[B, Lq, Wq]; head h has the columns query_offset + h * size on"),
        Tensor("key", "T", "[B, Lk, Wk]; may be the tensor of query, with another offset"),
        Tensor("value", "T", "[B, Lk, Wv]; may be the tensor of query, with another offset"),
        Tensor("bias", "T", "[G, heads or 1, Lq or 1, Lk or 1]; element b of the batch takes that of group b mod G"),
    ),
    outputs=(Tensor("y", "T", "[B, Lq, heads * size]"),),
    attributes=(
        PluginAttribute("heads", "int", 1, "number of heads", 1, 65536),
        PluginAttribute("size", "int", 64, "columns of a head", 1, LARGEST_HEAD),
        PluginAttribute("scale", "float", 1.0, "factor of the products of query and key", -1e30, 1e30),
        *(
            PluginAttribute(o, "int", 0, f"the first column of {o.partition('_')[0]} that is used", 0, 2**30)
            for o in OFFSETS
        ),
        ALLOWS_TF32,
    ),
    types=(("T", FLOAT_TYPES),),
    shape=output_shape,
    reference=reference,
    body=body,
    notes=(
        "Scores, exponentials and sums are float32. Products of float16 and bfloat16 are those of the tensor cores; "
        "weights are rounded to the element type, as a Softmax of that type would. Products of float32 are three TF32 "
        "products each, which leave out 2^-22 of a product, and one where TF32 is asked for and the library computes.",
        "A row without a score above -inf is NaN, as ONNX's Softmax says; without any key (Lk = 0) it is 0, as MatMul "
        "says.",
    ),
)

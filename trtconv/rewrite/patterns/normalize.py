"""The arithmetic that normalizations share: (x - mean) / sqrt(variance + epsilon), as nodes and into weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trtconv.rewrite.graph.index import Array, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

# The opset that brought the operator.
LAYER_NORMALIZATION = 17


def normalize(g: Replacement, x: Value, axes: Sequence[int], epsilon: float, dtype: int, compute: int) -> Value:
    """Normalize over `axes`; the statistics are made in `compute`, the result has `dtype` (ONNX element types)."""
    wide = x if dtype == compute else g.cast(x, compute)
    centred = g.sub(wide, g.reduce("ReduceMean", wide, axes))
    variance = g.reduce("ReduceMean", g.mul(centred, centred), axes)
    root = g.sqrt(g.add(variance, g.scalar(epsilon, dtype=compute)))
    result = g.div(centred, root)
    return result if dtype == compute else g.cast(result, dtype)


def root_mean_square(g: Replacement, x: Value, axes: Sequence[int], epsilon: float, dtype: int, compute: int) -> Value:
    """x / sqrt(mean(x * x) + epsilon)."""
    wide = x if dtype == compute else g.cast(x, compute)
    square = g.reduce("ReduceMean", g.mul(wide, wide), axes)
    result = g.div(wide, g.sqrt(g.add(square, g.scalar(epsilon, dtype=compute))))
    return result if dtype == compute else g.cast(result, dtype)


def layer_norm(g: Replacement, x: Value, scale: Value, shift: Value, epsilon: float, dtype: int) -> Value:
    """LayerNormalization over the last axis, as an operator from opset 17 on, which has it; `shift` may be empty."""
    if g.opset >= LAYER_NORMALIZATION:
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)
    scaled = g.mul(normalize(g, x, [-1], epsilon, dtype, FLOAT), scale)
    return scaled if isinstance(shift, str) and not shift else g.add(scaled, shift)


def scale_and_shift(norm: Node, constants: Sequence[Array]) -> tuple[Array, Array]:
    """A BatchNormalization of scale, bias, mean and variance as y = x * scale + shift; FP64, [channels] each."""
    factor, bias, mean, variance = (a.astype(np.float64) for a in constants)
    scale = factor / np.sqrt(variance + norm.attr("epsilon", 1e-5))
    return scale, bias - mean * scale


def along_output_channels(factor: Array, conv: Node, weight: Array) -> Array:
    """Factors by output channel, shaped to multiply the weight of a Conv or ConvTranspose."""
    if conv.op == "Conv":
        return factor.reshape(-1, *[1] * (weight.ndim - 1))
    groups = int(conv.attr("group", 1))
    # ConvTranspose holds [C_in, C_out / groups, ...]; the rows of a group make that group's channels.
    rows = np.repeat(factor.reshape(groups, 1, -1), weight.shape[0] // groups, 1).reshape(weight.shape[0], -1)
    return rows.reshape(*rows.shape, *[1] * (weight.ndim - 2))

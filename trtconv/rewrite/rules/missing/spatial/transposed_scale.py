"""A grouped ConvTranspose and the scale of its channels as one ConvTranspose with scaled weights.

TensorRT 8.6.0 fuses them, and takes the scale of another channel: every element is wrong (measured on an H200: a batch
norm or a Mul by channel behind 2 groups, in one, two and three dimensions, with and without a bias). One group, groups
of one channel, a Mul by one number, an Add, a Div, and a Conv in the place of the ConvTranspose are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.normalize import along_output_channels, scale_and_shift

LARGEST_WEIGHTS = 1 << 24


@dataclass(frozen=True)
class Scaling:
    """What is behind the convolution, [channels] each: y = x * scale + shift."""

    scale: Array
    shift: Array


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match BatchNormalization, or Mul by a constant with an element for each channel, of a grouped ConvTranspose."""
    convolution = next((c for c in (graph.maker(i, "ConvTranspose") for i in node.inputs[:2] if i) if c), None)
    if convolution is None or convolution.attr("group", 1) == 1 or _is_depthwise(graph, convolution):
        return NOT_THIS
    if convolution.output in graph.outputs or len(graph.uses(convolution.output)) > 1:
        return NOT_THIS
    scaling = _scaling(graph, node, convolution)
    if scaling is None:
        return NOT_THIS
    weights = graph.constant(convolution.inputs[1], limit=LARGEST_WEIGHTS)
    bias = graph.constant(convolution.input(2), limit=LARGEST_WEIGHTS) if convolution.input(2) else None
    if weights is None or (bias is None and convolution.input(2)):
        # A Div is not fused.
        rank = len(graph.dims(convolution.inputs[1]) or ())
        return Found((node,), partial(_divide, x=convolution.output, scaling=scaling, rank=rank))
    return Found((convolution, node), partial(_fold, node=convolution, weights=weights, bias=bias, scaling=scaling))


def _is_depthwise(graph: Graph, node: Node) -> bool:
    dims = graph.dims(node.inputs[1])
    return dims is not None and dims[1] == 1 and dims[0] == node.attr("group", 1)


def _scaling(graph: Graph, node: Node, convolution: Node) -> Scaling | None:
    dims = graph.dims(convolution.inputs[1])
    if dims is None or not isinstance(dims[1], int):
        return None
    channels, rank = dims[1] * int(convolution.attr("group", 1)), len(dims)
    if node.op == "BatchNormalization":
        constants = [graph.constant(i, limit=LARGEST_WEIGHTS) for i in node.inputs[1:5]]
        if node.attr("training_mode", 0) or any(c is None or c.shape != (channels,) for c in constants):
            return None
        return Scaling(*scale_and_shift(node, [c for c in constants if c is not None]))
    other = next((i for i in node.inputs if i != convolution.output), "")
    factor = graph.constant(other, limit=LARGEST_WEIGHTS) if other else None
    # A factor of more elements than channels is no scale, and of one element it is right.
    shape = (1,) * (rank - (0 if factor is None else factor.ndim)) + (() if factor is None else factor.shape)
    if factor is None or channels == 1 or shape != (1, channels, *(1,) * (rank - 2)):
        return None
    return Scaling(factor.reshape(-1).astype(np.float64), np.zeros(channels))


def _fold(g: Replacement, node: Node, weights: Array, bias: Array | None, scaling: Scaling) -> Value:
    scaled = (weights.astype(np.float64) * along_output_channels(scaling.scale, node, weights)).astype(weights.dtype)
    shift = scaling.shift + (0.0 if bias is None else bias.astype(np.float64) * scaling.scale)
    constants = [g.const(scaled, "weights")]
    if bias is not None or np.any(shift):
        constants.append(g.const(shift.astype(weights.dtype), "bias"))
    return g.op("ConvTranspose", node.inputs[0], *constants, **node.attributes())


def _divide(g: Replacement, x: str, scaling: Scaling, rank: int) -> Value:
    shape = (1, -1, *(1,) * (rank - 2))
    with np.errstate(divide="ignore"):
        divisor = (1.0 / scaling.scale).astype(np.float32).reshape(shape)
    scaled = g.div(x, g.const(divisor))
    return g.add(scaled, g.const(scaling.shift.astype(np.float32).reshape(shape))) if np.any(scaling.shift) else scaled


RULE = Rule(
    name="transposed-scale",
    why="TensorRT 8.6 scales a grouped ConvTranspose by another channel's scale; scaled weights need none.",
    ops=("BatchNormalization", "Mul"),
    find=find,
    needed=only_tensorrt_8,
    before="BatchNormalization(ConvTranspose(x, w, group=2), scale, bias, mean, variance)",
    after="ConvTranspose(x, w * s, b * s + t, group=2)",
)

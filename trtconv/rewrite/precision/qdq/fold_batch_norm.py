"""A BatchNormalization after a convolution goes into its weights.

TensorRT does that by itself, but not through the Q/DQ pair of a weight: the pair has to hold the folded one. The rule
runs before a graph is quantised, and nowhere else.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.normalize import along_output_channels, scale_and_shift

LIMIT = 1 << 28


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a norm in inference mode, with constants, of what one convolution gives it alone."""
    conv = graph.maker(node.inputs[0], "Conv", "ConvTranspose")
    if conv is None:
        return NOT_THIS
    if node.attr("training_mode", 0) or len([o for o in node.outputs if o]) > 1:
        return Skip("the norm is in training mode")
    if not graph.used_once(node.inputs[0]):
        return Skip("the convolution's result is used elsewhere too")
    names = [conv.inputs[1], *([conv.input(2)] if conv.input(2) else []), *node.inputs[1:5]]
    values = [graph.constant(name, LIMIT) for name in names]
    if any(v is None or v.dtype != np.float32 for v in values):
        return Skip("its weights are not FP32 constants in memory")
    arrays = [v for v in values if v is not None]
    return Found((conv, node), partial(_build, conv=conv, norm=node, arrays=arrays))


def _build(g: Replacement, conv: Node, norm: Node, arrays: list[Array]) -> Value:
    weight, *rest = arrays
    bias = rest.pop(0) if len(rest) == 5 else np.float32(0)
    factor, shift = scale_and_shift(norm, rest)
    folded = weight.astype(np.float64) * along_output_channels(factor, conv, weight)
    offset = bias * factor + shift
    attributes = {a.name: a for a in conv.proto.attribute}
    return g.op(conv.op, conv.inputs[0], folded.astype(np.float32), offset.astype(np.float32), **attributes)


RULE = Rule(
    name="fold-batch-norm",
    why="The Q/DQ pair of a weight has to hold the weight with its norm, since TensorRT folds nothing through it.",
    ops=("BatchNormalization",),
    find=find,
    before="BatchNormalization(Conv(x, w, b), scale, bias, mean, variance)",
    after="Conv(x, w * s, (b - mean) * s + bias), s = scale / Sqrt(variance + epsilon)",
)

"""A convolution by a large kernel that gives few channels, as one in strides that gives a block of pixels at a time.

The last layer of a network that paints an image gives 3 channels. The kernels of TensorRT 8.6 compute at least 32, so
that most of what they do is thrown away: in the style network of the examples at batch 8 (H100, TF32) the last of 16
convolutions took 178 of 908 us. Here it gives the channels of 4 by 4 pixels at once, from a kernel of 12 by 12 in place
of 9 by 9: 78 us, and 856 in all.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Pixels to a side of a block: with 4, of 3 channels 48 come out, and a kernel of 9 by 9 grows to 12 by 12.
BLOCK = 4
MOST_OUTPUTS, LEAST_INPUTS, LEAST_KERNEL = 4, 16, 7


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a plain Conv of images, with constant weights [few, C, k, k]."""
    weight = graph.constant(node.inputs[1], limit=MOST_OUTPUTS * 1024 * 32 * 32)
    if weight is None or weight.ndim != 4 or weight.dtype.kind != "f":
        return NOT_THIS
    outputs, inputs, *kernel = weight.shape
    if outputs > MOST_OUTPUTS or inputs < LEAST_INPUTS or min(kernel) < LEAST_KERNEL:
        return NOT_THIS
    if node.attr("group", 1) != 1 or node.attr("auto_pad", "NOTSET") != "NOTSET":
        return Skip("it has groups or pads by name")
    if any(n != 1 for n in (*node.attr("strides", (1, 1)), *node.attr("dilations", (1, 1)))):
        return Skip("it has strides or gaps of its own")
    bias = graph.constant(node.inputs[2]) if node.input(2) else None
    if node.input(2) and bias is None:
        return Skip("its bias is computed")
    return Found((node,), partial(_build, graph=graph, node=node, weight=weight, bias=bias))


def _build(g: Replacement, graph: Graph, node: Node, weight: Array, bias: Array | None) -> Value:
    x, pads = node.inputs[0], list(node.attr("pads", (0, 0, 0, 0)))
    sizes = (graph.dims(node.output) or (None,) * 4)[2:]
    whole = all(isinstance(s, int) and s % BLOCK == 0 for s in sizes)
    # Further zeros at the end complete the last block; what they give is cut off.
    wider = pads if whole else [*pads[:2], *(p + BLOCK - 1 for p in pads[2:])]
    inputs = [x, g.const(_of_block(weight), "weight")]
    if bias is not None:
        inputs.append(g.const(np.tile(bias, BLOCK * BLOCK), "bias"))
    kernel = [k + BLOCK - 1 for k in weight.shape[2:]]
    blocks = g.op("Conv", *inputs, kernel_shape=kernel, strides=[BLOCK, BLOCK], pads=wider)
    image = g.op("DepthToSpace", blocks, blocksize=BLOCK, mode="DCR")
    if whole:
        return image
    ends = [
        g.add(g.size(x, axis + 2), g.ints(pads[axis] + pads[axis + 2] - weight.shape[axis + 2] + 1)) for axis in (0, 1)
    ]
    return g.slice(image, g.ints(0, 0), g.concat(*ends), (2, 3))


def _of_block(weight: Array) -> Array:
    """The weights [b * b * O, C, k + b - 1, k + b - 1] of a block: the kernel moved to each of its pixels."""
    outputs, inputs, height, width = weight.shape
    blocks = np.zeros((BLOCK, BLOCK, outputs, inputs, height + BLOCK - 1, width + BLOCK - 1), weight.dtype)
    for row in range(BLOCK):
        for column in range(BLOCK):
            blocks[row, column, :, :, row : row + height, column : column + width] = weight
    return blocks.reshape(-1, *blocks.shape[3:])


RULE = Rule(
    name="few-outputs",
    why="TensorRT 8.6 computes 32 channels where a convolution gives 3; a block of pixels at a time it gives 48.",
    ops=("Conv",),
    find=find,
    needed=only_tensorrt_8,
    # The zeros around a moved kernel meet pixels that the kernel does not.
    keeps_infinities=False,
    before="Conv(x[N,C,H,W], w[3,C,9,9])",
    after="DepthToSpace(Conv(x, w[48,C,12,12], strides 4), 4)",
)

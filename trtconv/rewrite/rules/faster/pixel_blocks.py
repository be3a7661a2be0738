"""A convolution of few channels in strides of 4, as one over blocks of 4 by 4 pixels, which are channels then.

So begins PVTv2. For 3 channels TensorRT 8.6 copies the image into a layout of 8: PVTv2-B1 in FP16 at batch 8 took 0.934
ms on an H100, and 0.888 with 48 channels. PoolFormer, whose kernel reaches into three blocks, took 0.734 ms, and 0.742.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.core.precision import FP16
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

BLOCK, MOST_INPUTS, MOST_BLOCKS = 4, 4, 2
LARGEST_WEIGHTS = 1 << 20


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a plain Conv of images [N, few, H, W], H and W known, with a kernel that is wider than its stride."""
    if set(node.attr("strides", (1, 1))) != {BLOCK} or node.attr("group", 1) != 1:
        return NOT_THIS
    weight = graph.constant(node.inputs[1], limit=LARGEST_WEIGHTS)
    if weight is None or weight.ndim != 4 or weight.shape[1] > MOST_INPUTS or min(weight.shape[2:]) <= BLOCK:
        return NOT_THIS
    if set(node.attr("dilations", (1, 1))) != {1} or node.attr("auto_pad", "NOTSET") != "NOTSET":
        return Skip("it has gaps, or pads by name")
    sizes, result = (graph.dims(node.inputs[0]) or (None,) * 4)[2:], (graph.dims(node.output) or (None,) * 4)[2:]
    if any(not isinstance(s, int) or s % BLOCK or s // BLOCK != r for s, r in zip(sizes, result, strict=True)):
        return Skip("height and width are not known as 4 times those of the result")
    pads = node.attr("pads", (0, 0, 0, 0))[:2]
    if max(_reach(k, p)[2] for k, p in zip(weight.shape[2:], pads, strict=True)) > MOST_BLOCKS:
        return Skip("its kernel reaches into three blocks: two thirds of the products would be by zeros")
    blocks = (int(sizes[0] or 0) // BLOCK, int(sizes[1] or 0) // BLOCK)
    return Found((node,), partial(_build, node=node, weight=weight, blocks=blocks))


def _reach(kernel: int, pad: int) -> tuple[int, int, int]:
    """Blocks before the first pixel, where in the first of them the kernel begins, and how many blocks it touches."""
    before = -(-pad // BLOCK)
    first = BLOCK * before - pad
    return before, first, -(-(first + kernel) // BLOCK)


def _build(g: Replacement, node: Node, weight: Array, blocks: tuple[int, int]) -> Value:
    outputs, inputs, *kernel = weight.shape
    pads = [int(p) for p in node.attr("pads", (0, 0, 0, 0))]
    before, first, reach = zip(*(_reach(k, p) for k, p in zip(kernel, pads[:2], strict=True)), strict=True)
    wider = np.zeros((outputs, inputs, BLOCK * reach[0], BLOCK * reach[1]), weight.dtype)
    wider[:, :, first[0] : first[0] + kernel[0], first[1] : first[1] + kernel[1]] = weight
    matrix = wider.reshape(outputs, inputs, reach[0], BLOCK, reach[1], BLOCK).transpose(0, 1, 3, 5, 2, 4)
    channels = inputs * BLOCK * BLOCK
    split = g.reshape(node.inputs[0], -1, inputs, blocks[0], BLOCK, blocks[1], BLOCK)
    x = g.reshape(g.transpose(split, 0, 1, 3, 5, 2, 4), -1, channels, *blocks)
    # As many blocks come out as go in.
    after = [r - 1 - b for r, b in zip(reach, before, strict=True)]
    kernels = g.const(np.ascontiguousarray(matrix.reshape(outputs, channels, *reach)), "weight")
    return g.op("Conv", x, kernels, *node.inputs[2:], kernel_shape=reach, pads=[*before, *after])


RULE = Rule(
    name="pixel-blocks",
    why="TensorRT 8.6 has slow kernels for 3 channels in strides of 4; over blocks of pixels there are 48 channels.",
    ops=("Conv",),
    find=find,
    needed=only_tensorrt_8,
    # The zeros around the kernel meet pixels that it does not.
    keeps_infinities=False,
    precisions=(FP16.name,),
    before="Conv(x[N,3,H,W], w[C,3,7,7], strides 4, pads 3)",
    after="Conv(x[N,48,H/4,W/4], w[C,48,2,2], pads [1,1,0,0]), x of blocks of pixels",
)

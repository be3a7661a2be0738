"""Col2Im as a transposed convolution with one-hot weights."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match two-dimensional blocks of constant size; not stride and dilation together, which TensorRT refuses."""
    block, dims, dtype = graph.ints(node.inputs[2]), graph.dims(node.inputs[0]), graph.dtype(node.inputs[0])
    if block is None or len(block) != 2:
        return Skip("the block is not a constant pair of sizes")
    if dims is None or not isinstance(dims[1], int) or dtype not in (1, 10):
        return Skip("channels or element type are not known")
    strides, dilations = node.attr("strides", [1, 1]), node.attr("dilations", [1, 1])
    if max(strides) > 1 and max(dilations) > 1:
        return Skip("TensorRT has no transposed convolution with both stride and dilation")
    return Found((node,), lambda g: _build(g, node, block, int(dims[1] or 0), dtype))


def _build(g: Replacement, node: Node, block: tuple[int, ...], rows: int, dtype: int) -> Value:
    x, image = node.inputs[0], node.inputs[1]
    strides, dilations = node.attr("strides", [1, 1]), node.attr("dilations", [1, 1])
    pads, taps = node.attr("pads", [0, 0, 0, 0]), block[0] * block[1]
    # Columns per axis: (size + pads - dilation * (block - 1) - 1) / stride + 1.
    extra = [pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1 for i in (0, 1)]
    counts = g.add(g.div(g.add(image, g.ints(*extra)), g.ints(*strides)), g.ints(1, 1))
    grid = g.reshape(x, g.concat(g.gather(g.shape_of(x), g.ints(0), axis=0), g.ints(rows), counts))
    one_hot = np.zeros((rows, 1, taps), np.float16 if dtype == 10 else np.float32)
    one_hot[np.arange(rows), 0, np.arange(rows) % taps] = 1
    weights = g.const(one_hot.reshape(rows, 1, *block))
    spread = g.op(
        "ConvTranspose",
        grid,
        weights,
        group=rows // taps,
        strides=strides,
        dilations=dilations,
        pads=[0, 0, 0, 0],
        output_padding=[s - 1 for s in strides],
        kernel_shape=list(block),
    )
    start = g.ints(*pads[:2])
    # A stride can leave rows at the end that no block covers: pad, so that the cut is always inside.
    margin = [0, 0, 0, 0, 0, 0, *(max(0, pads[i + 2] + strides[i]) for i in (0, 1))]
    padded = g.pad(spread, g.ints(*margin))
    return g.slice(padded, start, g.add(image, start), [2, 3])


RULE = Rule(
    name="col2im",
    why="No TensorRT has Col2Im; a grouped transposed convolution with one-hot weights adds the same values.",
    ops=("Col2Im",),
    find=find,
    before="Col2Im(x, [H, W], [3, 3])",
    after="Slice(ConvTranspose(Reshape(x), one-hot weights))",
    keeps_infinities=False,
)

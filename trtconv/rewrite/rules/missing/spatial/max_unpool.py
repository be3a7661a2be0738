"""MaxUnpool as a scatter into zeros: no TensorRT has it."""

from __future__ import annotations

import numpy as np
from onnx import helper

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

FLOATS = (1, 10)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match MaxUnpool of FP32 or FP16 of known rank, with or without the size of the result."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or dtype not in FLOATS:
        return Skip("rank or element type is not known")
    # Random indices would lie outside; the first few places are inside at every size.
    return Found((node,), lambda g: _build(g, node, rank, dtype), ranges={node.inputs[1]: (0.0, 3.0)})


def _build(g: Replacement, node: Node, rank: int, dtype: int) -> Value:
    x, indices = node.inputs[:2]
    shape = node.input(2) or _inferred(g, node, rank)
    zero = helper.make_tensor("value", dtype, [1], np.zeros(1, np.float32))
    total = g.reduce("ReduceProd", shape, [0])
    flat = g.op("ConstantOfShape", total, value=zero)
    put = g.op("ScatterElements", flat, g.reshape(indices, -1), g.reshape(x, -1), axis=0)
    return g.reshape(put, shape)


def _inferred(g: Replacement, node: Node, rank: int) -> Value:
    """(size - 1) * stride - pads + kernel on each spatial axis."""
    count = rank - 2
    kernel = node.attr("kernel_shape")
    strides, pads = node.attr("strides", [1] * count), node.attr("pads", [0] * (2 * count))
    head = g.gather(g.shape_of(node.inputs[0]), g.ints(0, 1), axis=0)
    spatial = g.gather(g.shape_of(node.inputs[0]), g.ints(*range(2, rank)), axis=0)
    extra = [kernel[i] - pads[i] - pads[count + i] - strides[i] for i in range(count)]
    return g.concat(head, g.add(g.mul(spatial, g.ints(*strides)), g.ints(*extra)))


RULE = Rule(
    name="max-unpool",
    why="No TensorRT has MaxUnpool; ScatterElements puts the same values into zeros.",
    ops=("MaxUnpool",),
    find=find,
    before="MaxUnpool(x, i, kernel_shape=[2,2])",
    after="Reshape(ScatterElements(zeros, Reshape(i), Reshape(x)))",
)

"""MaxUnpool as a scatter into zeros: no TensorRT has it."""

from __future__ import annotations

import numpy as np
from onnx import helper

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node

FLOATS = (1, 10)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match MaxUnpool of FP32 or FP16 of known rank, with or without the size of the result."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if rank is None or dtype not in FLOATS:
        return Skip("rank or element type is not known")
    # Random indices would lie outside; the first few places are inside at every size.
    return Found((node,), lambda b: _build(b, node, rank, dtype), ranges={node.inputs[1]: (0.0, 3.0)})


def _build(b: Builder, node: Node, rank: int, dtype: int) -> str:
    x, indices = node.inputs[:2]
    shape = node.input(2) or _inferred(b, node, rank)
    zero = helper.make_tensor("value", dtype, [1], np.zeros(1, np.float32))
    total = b.reduce("ReduceProd", shape, [0])
    flat = b.op("ConstantOfShape", total, value=zero)
    put = b.op("ScatterElements", flat, b.reshape(indices, -1), b.reshape(x, -1), axis=0)
    return b.op("Reshape", put, shape)


def _inferred(b: Builder, node: Node, rank: int) -> str:
    """(size - 1) * stride - pads + kernel on each spatial axis."""
    count = rank - 2
    kernel = node.attr("kernel_shape")
    strides, pads = node.attr("strides", [1] * count), node.attr("pads", [0] * (2 * count))
    head = b.op("Gather", b.shape_once(node.inputs[0]), b.ints(0, 1), axis=0)
    spatial = b.op("Gather", b.shape_once(node.inputs[0]), b.ints(*range(2, rank)), axis=0)
    extra = [kernel[i] - pads[i] - pads[count + i] - strides[i] for i in range(count)]
    return b.concat(head, b.op("Add", b.op("Mul", spatial, b.ints(*strides)), b.ints(*extra)))


RULE = Rule(
    name="max-unpool",
    why="No TensorRT has MaxUnpool; ScatterElements puts the same values into zeros.",
    ops=("MaxUnpool",),
    find=find,
    before="MaxUnpool(x, i, kernel_shape=[2,2])",
    after="Reshape(ScatterElements(zeros, Reshape(i), Reshape(x)))",
)

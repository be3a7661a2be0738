"""ONNX Runtime's product with weights of a few bits in blocks, as one with weights of floats."""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

LARGEST_WEIGHTS = 1 << 40
BITS = (2, 4, 8)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match constant weights, scales and zero points, in the order of the columns."""
    if node.input(4):
        return Skip("its columns are in an order of their own")
    constants = {n: graph.constant(n, LARGEST_WEIGHTS) for n in node.inputs[1:4] if n}
    if any(value is None for value in constants.values()):
        return Skip("its weights are computed")
    if node.attr("bits", 4) not in BITS:
        return Skip(f"its weights have {node.attr('bits')} bits")
    packed, scales, points = (constants.get(node.input(i)) for i in (1, 2, 3))
    assert packed is not None
    assert scales is not None
    return Found((node,), partial(_build, node=node, packed=packed, scales=scales, points=points))


def _build(g: Replacement, node: Node, packed: Array, scales: Array, points: Array | None) -> Value:
    weights = unpacked_weights(
        packed, scales, points, rows=int(node.attr("N")), columns=int(node.attr("K")), bits=int(node.attr("bits", 4))
    )
    product = g.matmul(node.inputs[0], g.const(np.ascontiguousarray(weights.T)))
    return g.add(product, node.inputs[5]) if node.input(5) else product


def unpacked_weights(
    packed: Array, scales: Array, points: Array | None, *, rows: int, columns: int, bits: int
) -> Array:
    """The weights [rows, columns] in the type of the scales. Blocks begin at each row; low bits come first."""
    levels = _unpacked(packed.reshape(rows, -1), bits)
    blocks = packed.shape[1]
    size = levels.shape[1] // blocks
    middle = np.full((rows, blocks), 1 << (bits - 1), np.float32)
    if points is not None:
        points = _unpacked(points.reshape(rows, -1), bits) if points.dtype == np.uint8 else points.reshape(rows, -1)
        middle = points[:, :blocks].astype(np.float32)
    values = levels.reshape(rows, blocks, size).astype(np.float32) - middle[:, :, None]
    values = values * scales.reshape(rows, blocks, 1).astype(np.float32)
    return values.reshape(rows, -1)[:, :columns].astype(scales.dtype)


def _unpacked(levels: Array, bits: int) -> Array:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (levels[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(parts.reshape(len(levels), -1))


RULE = Rule(
    name="matmul-bits",
    why="No TensorRT has ONNX Runtime's product with packed weights; floats hold the same, in up to 16 times the room.",
    ops=(f"{DOMAIN}::MatMulNBits",),
    find=find,
    before="com.microsoft.MatMulNBits(x, packed, scales, points), bits = 4",
    after="MatMul(x, (levels - points) * scales)",
)

"""MatMulInteger and ConvInteger with the Cast behind them, in FP32, which holds all products of bytes.

Sums are exact below 2^24 and rounded as FP32 sums are beyond, so that only a result that is cast to floats is replaced.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS, INT8, UINT8

FLOAT_OPS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
MOST_ELEMENTS = 1 << 28


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Cast to FP32 of a product of bytes, whose zero points are one number, or one per weight channel."""
    product = graph.maker(node.inputs[0], *FLOAT_OPS)
    if product is None or node.attr("to") != FLOAT:
        return NOT_THIS
    if not graph.used_once(node.inputs[0]):
        return Skip("the whole number is used as such too")
    weights = graph.constant(product.inputs[1], MOST_ELEMENTS)
    if product.input(2) and graph.dims(product.inputs[2]) not in ((), (1,)):
        return Skip("the first operand has a zero point for each row")
    if weights is None and product.input(3) and graph.dims(product.inputs[3]) not in ((), (1,)):
        return Skip("the second operand is not a constant and has a zero point for each column")
    points = graph.constant(product.inputs[3]) if product.input(3) else np.zeros((), np.int8)
    if weights is not None and points is None:
        return Skip("the zero point of the weights is not a constant")
    ranges = {i: _bounds(graph.dtype(i)) for i in product.inputs if i and graph.constant(i) is None}
    return Found((product, node), partial(_build, product=product, weights=weights, points=points), ranges)


def _bounds(dtype: int) -> tuple[float, float]:
    return BYTE_BOUNDS[UINT8 if dtype == UINT8 else INT8]


def _build(g: Replacement, product: Node, weights: Array | None, points: Array | None) -> Value:
    left = _from_zero(g, product.inputs[0], product.input(2))
    right: Any
    if weights is None:
        right = _from_zero(g, product.inputs[1], product.input(3))
    else:
        assert points is not None
        # Of Conv the channels come first, of MatMul last.
        shape = [-1, *[1] * (weights.ndim - 1)] if product.op == "ConvInteger" else [-1]
        whole = weights.astype(np.int32) - points.astype(np.int32).reshape(shape if points.size > 1 else ())
        right = g.const(whole.astype(np.float32), "weights")
    attributes = {a.name: product.attr(a.name) for a in product.proto.attribute}
    return g.op(FLOAT_OPS[product.op], left, right, **attributes)


def _from_zero(g: Replacement, value: Value, point: str) -> Value:
    number = g.cast(value, FLOAT)
    return g.op("Sub", number, g.cast(point, FLOAT)) if point else number


RULE = Rule(
    name="integer-product",
    why="No TensorRT multiplies whole numbers; FP32 holds all products of bytes.",
    ops=("Cast",),
    find=find,
    before="Cast(MatMulInteger(q, w, z), to=float32)",
    after="MatMul(Cast(q) - Cast(z), w as float32)",
)

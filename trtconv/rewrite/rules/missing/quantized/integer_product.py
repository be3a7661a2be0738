"""MatMulInteger and ConvInteger in FP32, which holds all products of bytes.

Sums are exact below 2^24 and rounded as FP32 sums are beyond. Behind a Cast to FP32 that is the rounding of the cast
itself, give or take one; a result that is used as a whole number is summed in two halves where it could be larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS, INT8, UINT8

FLOAT_OPS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
MOST_ELEMENTS = 1 << 28
INT32 = 6
# FP32 holds every whole number up to this.
LARGEST_EXACT = 1 << 24
# The most by which a byte differs from its zero point.
WIDEST = 255
# Weights are LOWER * high + low in two halves, both of few bits.
LOWER = 16


@dataclass(frozen=True)
class ByteProduct:
    """A product of bytes; `weights` are its second operand where that is a constant, `points` their zero points."""

    node: Node
    weights: Array | None
    points: Array | None

    @property
    def from_zero(self) -> Array | None:
        """Constant weights without their zero point, int32."""
        if self.weights is None:
            return None
        assert self.points is not None
        # Of Conv the channels come first, of MatMul last.
        shape = [-1, *[1] * (self.weights.ndim - 1)] if self.node.op == "ConvInteger" else [-1]
        points = self.points.astype(np.int32).reshape(shape if self.points.size > 1 else ())
        whole: Array = self.weights.astype(np.int32) - points
        return whole


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a product of bytes, with the Cast to FP32 behind it where that is its only use.

    Its zero points are one number, or one per weight channel.
    """
    product = node if node.op in FLOAT_OPS else graph.maker(node.inputs[0], *FLOAT_OPS)
    if product is None:
        return NOT_THIS
    only = graph.uses(product.output)[0] if graph.used_once(product.output) else None
    is_cast = only is not None and only.op == "Cast" and only.attr("to") == FLOAT
    if is_cast is (node is product):
        return NOT_THIS
    weights = graph.constant(product.inputs[1], MOST_ELEMENTS)
    if product.input(2) and graph.dims(product.inputs[2]) not in ((), (1,)):
        return Skip("the first operand has a zero point for each row")
    if weights is None and product.input(3) and graph.dims(product.inputs[3]) not in ((), (1,)):
        return Skip("the second operand is not a constant and has a zero point for each column")
    points = graph.constant(product.inputs[3]) if product.input(3) else np.zeros((), np.int8)
    if weights is not None and points is None:
        return Skip("the zero point of the weights is not a constant")
    ranges = {i: _bounds(graph.dtype(i)) for i in product.inputs if i and graph.constant(i) is None}
    bytes_product = ByteProduct(product, weights, points)
    if is_cast:
        return Found((product, node), partial(_in_floats, product=bytes_product), ranges)
    halves = _halves(graph, bytes_product)
    if halves is None:
        return Skip("its sums could be larger than FP32 holds exactly, and are used as whole numbers")
    return Found((product,), partial(_whole, product=bytes_product, halves=halves), ranges)


def _halves(graph: Graph, product: ByteProduct) -> bool | None:
    """Whether sums need two halves to be exact; None where two are too few, or where the length is not known."""
    weights = product.from_zero
    if weights is not None:
        axes = tuple(range(1, weights.ndim)) if product.node.op == "ConvInteger" else (-2,)
        high, low = np.divmod(weights, LOWER)
        sums = [WIDEST * int(np.abs(w).sum(axis=axes if w.ndim > 1 else None).max()) for w in (weights, high, low)]
    else:
        dims = graph.dims(product.node.inputs[1]) or ()
        terms = dims[1:] if product.node.op == "ConvInteger" else dims[-2:-1] or dims
        bounds = [graph.dim_range(d) for d in terms]
        if not bounds or any(b is None for b in bounds):
            return None
        count = math.prod(b[1] for b in bounds if b)
        sums = [WIDEST * WIDEST * count, WIDEST * LOWER * count, WIDEST * LOWER * count]
    if sums[0] < LARGEST_EXACT:
        return False
    return True if max(sums[1:]) < LARGEST_EXACT else None


def _bounds(dtype: int) -> tuple[float, float]:
    return BYTE_BOUNDS[UINT8 if dtype == UINT8 else INT8]


def _in_floats(g: Replacement, product: ByteProduct) -> Value:
    return _multiplied(g, product, *_operands(g, product))


def _whole(g: Replacement, product: ByteProduct, halves: bool) -> Value:
    """The sums as int32; rounded, as some kernels of a convolution multiply by fractions on the way."""
    left, right = _operands(g, product)
    if not halves:
        return g.cast(g.round(_multiplied(g, product, left, right)), INT32)
    lower = g.scalar(LOWER, right)
    high = g.floor(g.div(right, lower))
    parts = [_multiplied(g, product, left, half) for half in (high, g.sub(right, g.mul(high, lower)))]
    upper, rest = (g.cast(g.round(p), INT32) for p in parts)
    return g.add(g.mul(upper, g.scalar(LOWER, dtype=INT32)), rest)


def _multiplied(g: Replacement, product: ByteProduct, left: Value, right: Value) -> Value:
    attributes = {a.name: product.node.attr(a.name) for a in product.node.proto.attribute}
    return g.op(FLOAT_OPS[product.node.op], left, right, **attributes)


def _operands(g: Replacement, product: ByteProduct) -> tuple[Value, Value]:
    node, weights = product.node, product.from_zero
    left = _from_zero(g, node.inputs[0], node.input(2))
    if weights is None:
        return left, _from_zero(g, node.inputs[1], node.input(3))
    return left, g.const(weights.astype(np.float32), "weights")


def _from_zero(g: Replacement, value: Value, point: str) -> Value:
    number = g.cast(value, FLOAT)
    return g.op("Sub", number, g.cast(point, FLOAT)) if point else number


RULE = Rule(
    name="integer-product",
    why="No TensorRT multiplies whole numbers; FP32 holds all products of bytes.",
    ops=("Cast", *FLOAT_OPS),
    find=find,
    before="Cast(MatMulInteger(q, w, z), to=float32)",
    after="MatMul(Cast(q) - Cast(z), w as float32)",
)

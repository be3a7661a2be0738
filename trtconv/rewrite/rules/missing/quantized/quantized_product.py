"""QLinearConv, QLinearMatMul and QGemm: products of bytes with the rounding back to bytes in one operator.

They compute round((x - zx) (w - zw) * (sx * sw / sy)) + zy, saturated, with exact sums. Where values and weights are
int8 with a zero point of 0, this is a product between QuantizeLinear and DequantizeLinear nodes, which TensorRT runs in
INT8. All else is the same arithmetic in FP32: whole numbers, whose sums are exact below 2^24, times one scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS, INT8

MOST_ELEMENTS = 1 << 28
# Quantised operator -> the one in floats, and the places of the scale of the result and of the bias.
FLOAT_OPS = {"QLinearConv": ("Conv", 6, 8), "QLinearMatMul": ("MatMul", 6, -1), "com.microsoft::QGemm": ("Gemm", 7, 6)}


@dataclass(frozen=True)
class QuantizedProduct:
    """A product with its constants: the scales and zero points of both operands and the result, and the int32 bias.

    `weights` is None when the second operand is computed. One that does not round has FP32 results.
    """

    node: Node
    op: str
    scales: tuple[Array, Array, Array]
    points: tuple[Array, Array, Array]
    weights: Array | None
    bias: Array | None
    rounds: bool

    def channelwise(self, values: Array) -> Array:
        """Values of output channels, shaped to be broadcast over weights: of Conv those come first, of others last."""
        if values.size == 1:
            return values.reshape(())
        if self.op == "Conv":
            return values.reshape(-1, *[1] * ((self.weights.ndim if self.weights is not None else 4) - 1))
        return values.reshape((-1, 1) if self.op == "Gemm" and self.node.attr("transB", 0) else (-1,))


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match every product whose scales and zero points are constants, in FP32."""
    op, at, bias_at = FLOAT_OPS[node.key]
    codes = [graph.dtype(node.inputs[i]) for i in (0, 3)]
    if any(code not in BYTE_BOUNDS for code in codes):
        return Skip("its operands are not bytes")
    scales = _constants(graph, (node.inputs[1], node.inputs[4], node.input(at)), np.ones((), np.float32))
    points = _constants(graph, (node.input(2), node.input(5), node.input(at + 1)), np.zeros((), np.int32))
    if scales is None or points is None:
        return Skip("its scales or zero points are not constants")
    if any(s.dtype != np.float32 for s in scales):
        return Skip("its scales are not FP32")
    if any(v.size > 1 for v in (scales[0], points[0], scales[2], points[2])):
        return Skip("its values have a scale or a zero point for each row or channel")
    weights = graph.constant(node.inputs[3], MOST_ELEMENTS)
    if weights is None and (scales[1].size > 1 or points[1].size > 1):
        return Skip("its second operand is computed and has a scale for each column")
    biased = bias_at >= 0 and bool(node.input(bias_at))
    bias = graph.constant(node.input(bias_at)) if biased else None
    if biased and bias is None:
        return Skip("its bias is not a constant")
    rounds = bool(node.input(at))
    product = QuantizedProduct(node, op, scales, points, weights, bias, rounds)
    computed = [i for i in (0, 3) if not graph.is_constant(node.inputs[i])]
    ranges = {node.inputs[i]: BYTE_BOUNDS[codes[i // 3]] for i in computed}
    symmetric = codes == [INT8, INT8] and not points[0].any() and not points[1].any()
    build = _in_int8 if symmetric and rounds else _in_float32
    note = "INT8 by Q/DQ pairs" if build is _in_int8 else "FP32: no TensorRT multiplies bytes with a zero point"
    return Found((node,), partial(build, product=product, code=graph.dtype(node.output)), ranges, note)


def _constants(graph: Graph, names: tuple[str, str, str], absent: Array) -> tuple[Array, Array, Array] | None:
    """Three constants, `absent` for those that are left out; None where one is computed."""
    first, second, third = (graph.constant(name) if name else absent for name in names)
    return None if first is None or second is None or third is None else (first, second, third)


def _in_int8(g: Replacement, product: QuantizedProduct, code: int) -> Value:
    """DequantizeLinear, the product, QuantizeLinear."""
    node, (first, second, last) = product.node, product.scales
    shape = () if second.size == 1 else second.shape
    second = second.reshape(shape)
    axis = 0 if product.op == "Conv" or node.attr("transB", 0) else 1
    left = _dequantised(g, node.inputs[0], first.reshape(()), np.zeros((), np.int8))
    right = _dequantised(g, node.inputs[3], second, np.zeros(shape, np.int8), axis if second.size > 1 else None)
    bias = None if product.bias is None else product.bias.astype(np.float32) * (first.reshape(()) * second)
    value = _product(g, product, left, right, bias)
    return _quantised(g, value, last, product.points[2], code)


def _in_float32(g: Replacement, product: QuantizedProduct, code: int) -> Value:
    """The product of whole numbers, times the three scales as one, and the rounding."""
    node, (first, second, last) = product.node, product.scales
    unit = np.ones((), np.float32)
    left = _dequantised(g, node.inputs[0], unit, product.points[0].reshape(()))
    right: Value
    if product.weights is None:
        right = _dequantised(g, node.inputs[3], unit, product.points[1].reshape(()))
    else:
        whole = product.weights.astype(np.int32) - product.channelwise(product.points[1].astype(np.int32))
        right = g.const(whole.astype(np.float32), "weights")
    value = _product(g, product, left, right, None if product.bias is None else product.bias.astype(np.float32))
    factor: Array = first.reshape(()) * second * np.float32(node.attr("alpha", 1.0)) / last.reshape(())
    if factor.size == 1:
        factor = factor.reshape(())
    elif product.op == "Conv" and product.weights is not None:
        factor = factor.reshape(-1, *[1] * (product.weights.ndim - 2))
    value = g.mul(value, g.const(factor.astype(np.float32), "scale"))
    return _quantised(g, value, unit, product.points[2], code) if product.rounds else value


def _product(g: Replacement, product: QuantizedProduct, left: Value, right: Value, bias: Array | None) -> Value:
    attributes = {a.name: product.node.attr(a.name) for a in product.node.proto.attribute if a.name != "alpha"}
    more = () if bias is None else (g.const(bias, "bias"),)
    return g.op(product.op, left, right, *more, **attributes)


def _dequantised(g: Replacement, value: Value, scale: Array, point: Array, axis: int | None = None) -> Value:
    return g.op("DequantizeLinear", value, g.const(scale, "scale"), g.const(point, "zero_point"), axis=axis)


def _quantised(g: Replacement, value: Value, scale: Array, point: Array, code: int) -> Value:
    """Of the type that the zero point has; without one uint8 would be meant."""
    typed = point.astype(np.int8 if code == INT8 else np.uint8)
    return g.op("QuantizeLinear", value, g.const(scale.reshape(()), "scale"), g.const(typed.reshape(()), "zero_point"))


RULE = Rule(
    name="quantized-product",
    why="No TensorRT has products that round back to bytes; Q/DQ pairs around a product it runs in INT8.",
    ops=tuple(FLOAT_OPS),
    find=find,
    before="QLinearConv(x, sx, zx, w, sw, zw, sy, zy), int8 with zero points of 0",
    after="QuantizeLinear(Conv(DequantizeLinear(x, sx), DequantizeLinear(w, sw)), sy)",
)

"""Arithmetic on int8 in FP32: TensorRT has int8 for quantised values, and takes a constant of it only before a
DequantizeLinear.

Labels with an ignore value of -1, tables of an embedding, activations rounded by hand: all values, their sums and
products are exact in FP32. What leaves -128..127 is wrapped around, as integers do. What lies between a QuantizeLinear
and what takes its scale stays. An int16 that is cast to and on, as of sound, is wrapped likewise.
"""

from __future__ import annotations

from functools import partial

from trtconv.core.model.provenance import rule_of
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.missing.tensor.uint8 import (
    CHOICES,
    COMPARES,
    FILLED,
    FLOAT16,
    INDICES,
    INT32,
    INT64,
    MOVES,
    QUOTIENTS,
    WRAPPED,
    filled,
    in_floats,
)

NAME = "int8"
INT8, LOW, HIGH = 3, -128.0, 127.0
# What half of the numbers of a type are; int16 is nowhere in TensorRT.
INT16 = 5
HALVES = {INT8: 128, INT16: 32768}
SIGNS = ("Neg", "Abs", "Sign")
# -128 // -1 leaves the range, as the absolute value of -128 does.
WRAPPING = (*WRAPPED, *SIGNS, *QUOTIENTS)
QUANTISED = ("DequantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match operators on int8, and casts to int8 and on to something else."""
    if node.key == "Cast":
        return _cast(graph, node)
    if node.key == FILLED:
        return filled(graph, node, INT8)
    # One look is enough: of these operators, all inputs that hold data have one type.
    if graph.dtype(node.inputs[1 if node.op == "Where" else 0]) != INT8:
        return NOT_THIS
    places = [i for i, v in enumerate(node.inputs) if v and graph.dtype(v) == INT8]
    values = [node.inputs[i] for i in places]
    if any(graph.maker(v, "QuantizeLinear") for v in values) or any(
        user.op in QUANTISED for v in node.outputs for user in graph.uses(v)
    ):
        return NOT_THIS
    # TensorRT from 10 on hands int8 on.
    if node.op in MOVES and graph.target.generation != 8 and not any(graph.is_constant(v) for v in values):
        return NOT_THIS
    ranges = {v: (1.0 if i == 1 and node.op in QUOTIENTS else LOW, HIGH) for i, v in zip(places, values, strict=True)}
    quotient = _truncated_remainder if node.op == "Mod" and node.attr("fmod", 0) else _quotient
    build = partial(in_floats, node=node, places=places, dtype=INT8, quotient=quotient, wrapping=WRAPPING, low=LOW)
    return Found((node,), build, ranges=ranges)


def _quotient(g: Replacement, op: str, left: Value, right: Value) -> Value:
    """The quotient without its fraction, or the remainder with the sign of the divisor.

    Half a unit to the outside keeps an inexact division away from the next integer.
    """
    half = g.scalar(0.5, dtype=FLOAT)
    if op == "Div":
        whole = g.floor(g.div(g.add(g.op("Abs", left), half), g.op("Abs", right)))
        return g.mul(whole, g.mul(g.op("Sign", left), g.op("Sign", right)))
    whole = g.floor(g.div(g.add(left, g.mul(half, g.op("Sign", right))), right))
    return g.sub(left, g.mul(whole, right))


def _truncated_remainder(g: Replacement, op: str, left: Value, right: Value) -> Value:
    """The remainder with the sign of the dividend."""
    return g.sub(left, g.mul(_quotient(g, "Div", left, right), right))


def _cast(graph: Graph, node: Node) -> Found | Skip:
    """An int8 or int16 between two casts is then nowhere in the graph."""
    half = HALVES.get(graph.dtype(node.inputs[0]))
    if half is None or any(user.op in QUANTISED for user in graph.uses(node.inputs[0])):
        return NOT_THIS
    first, last = graph.maker(node.inputs[0], "Cast"), node.attr("to")
    if first is None:
        return NOT_THIS
    value = first.inputs[0]
    source = graph.dtype(value)
    if rule_of(first.proto) == NAME:
        # This rule made the cast: what it casts lies between -128 and 127 already.
        return Found((first, node), lambda g: g.cast(value, last), ranges={value: (0.0, 0.0)})
    if source not in (FLOAT, FLOAT16, INT32, INT64):
        return NOT_THIS
    integer = source in (INT32, INT64)
    note = f"numbers outside {-half}..{half - 1} wrap around; what a cast of them gives is not defined"
    whole = source if integer else INT32

    def build(g: Replacement) -> Value:
        shift = g.scalar(half, dtype=whole)
        above = g.add(value if integer else g.cast(value, INT32), shift)
        return g.cast(g.sub(g.mod(above, g.scalar(2 * half, dtype=whole)), shift), last)

    bounds = (-4.0 * half, 5.0 * half) if integer else (-half, half - 1.0)
    return Found((first, node), build, {value: bounds}, "" if integer else note)


RULE = Rule(
    name=NAME,
    why="TensorRT has int8 for quantised values, and no constants of it elsewhere; FP32 holds sums and products.",
    ops=(*MOVES, *CHOICES, *SIGNS, *WRAPPED, *QUOTIENTS, *COMPARES, *INDICES, FILLED, "TopK", "Cast"),
    find=find,
    before="Equal(x, -1), x int8",
    after="Equal(Cast(x, to=float32), -1.0)",
)

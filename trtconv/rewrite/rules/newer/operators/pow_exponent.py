"""Pow of floats whose exponent has another type, which ONNX allows: x ** 3 is often a float to an int64.

What TensorRT before 11 wants is one floating type for both. The exponent is cast where its values survive that; where
they do not (0.1 beside a base in FP16), the base is widened and the result cast back.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

FLOAT16, INT32, INT64 = 10, 6, 7
NUMPY = {FLOAT: np.float32, FLOAT16: np.float16}
# Element types that can be cast to FP32: FP64 is FP32 to TensorRT anyway.
EXPONENTS = (FLOAT, FLOAT16, 11, INT32, INT64)


def needed(target: Target) -> bool:
    """The parsers of 8.6 and 10.1 refuse an integer on either side (their elementwiseCheck)."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a base in FP32 or FP16 and an exponent of another type."""
    base, exponent = (graph.dtype(v) for v in node.inputs)
    if base not in NUMPY or base == exponent:
        return NOT_THIS
    if exponent not in EXPONENTS:
        return Skip("the element type of the exponent is not known, or no number that TensorRT has")
    fixed = graph.constant(node.inputs[1])
    if fixed is not None and _fits(fixed, base):
        return Found((node,), partial(_with_constant, node=node, exponent=fixed, base=base))
    return Found((node,), partial(_in_float32, node=node, base=base, exponent=exponent))


def _fits(exponent: Array, base: int) -> bool:
    """True when the base's type holds every value, those of FP64 as well as FP32 does."""
    wide = exponent.astype(np.float32) if exponent.dtype == np.float64 else exponent
    with np.errstate(over="ignore"):
        return bool(np.array_equal(wide.astype(NUMPY[base]).astype(np.float64), wide.astype(np.float64)))


def _with_constant(g: Replacement, node: Node, exponent: Array, base: int) -> Value:
    return g.pow(node.inputs[0], g.const(exponent.astype(NUMPY[base])))


def _in_float32(g: Replacement, node: Node, base: int, exponent: int) -> Value:
    left, right = (
        value if dtype == FLOAT else g.cast(value, FLOAT)
        for value, dtype in zip(node.inputs, (base, exponent), strict=True)
    )
    power = g.pow(left, right) if exponent not in (INT32, INT64) else _of_whole(g, left, right, node.inputs[1])
    return power if base == FLOAT else g.cast(power, base)


def _of_whole(g: Replacement, base: Value, exponent: Value, whole: Value) -> Value:
    """The power of the magnitude, with the base's sign where the exponent is odd: beyond 2^24 FP32 forgets that."""
    halves = g.mul(g.div(whole, g.scalar(2, like=whole)), g.scalar(2, like=whole))
    odd = g.logical_not(g.equal(whole, halves))
    zero = g.scalar(0.0, dtype=FLOAT)
    negative = g.logical_or(g.less(base, zero), g.less(g.reciprocal(base), zero))
    power = g.pow(g.absolute(base), exponent)
    return g.where(g.logical_and(odd, negative), g.neg(power), power)


RULE = Rule(
    name="pow-exponent",
    why="TensorRT before 11 refuses a power whose exponent is not a float; ONNX allows an int64 beside a float base.",
    ops=("Pow",),
    find=find,
    needed=needed,
    before="Pow(x, 3), 3 int64",
    after="Pow(x, 3.0)",
)

"""Sin and Cos of an argument that was brought into one period: TensorRT 8.6 is off by 0.004 at 1e4.

The period is taken off in four parts (Cody and Waite): 2 pi is split into numbers of at most twelve bits and a rest,
the number of periods into blocks of 4,096 and a rest, so that the products are exact up to 2^24 periods, an argument of
1e8; radiance fields encode places as 2^20 x. Beyond that the spacing of FP32 numbers is longer than the period.
"""

from __future__ import annotations

import math

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

FIRST = 6.28125
SECOND = math.floor((2 * math.pi - FIRST) * 2**17) / 2**17
THIRD = math.floor((2 * math.pi - FIRST - SECOND) * 2**29) / 2**29
REST = 2 * math.pi - FIRST - SECOND - THIRD
PARTS = (FIRST, SECOND, THIRD, REST)
BLOCK = 4096


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match FP32 whose argument was not reduced yet."""
    value = node.inputs[0]
    if graph.dtype(value) != FLOAT:
        return Skip("the element type is not known, or is not FP32")
    if _is_reduced(graph, value):
        return NOT_THIS
    return Found((node,), lambda g: g.op(node.op, reduced(g, value)))


def _is_reduced(graph: Graph, value: str) -> bool:
    last = graph.maker(value, "Sub")
    product = None if last is None else graph.maker(last.inputs[1], "Mul")
    if product is None or graph.maker(product.inputs[0], "Sub") is None:
        return False
    part = graph.scalar(product.inputs[1])
    return part is not None and np.float32(part) == np.float32(REST)


def reduced(g: Replacement, value: Value) -> Value:
    """The argument less the nearest number of whole periods, FP32; beyond 1e7 that may be off by one."""
    periods = g.round(g.mul(value, g.scalar(1 / (2 * math.pi), dtype=FLOAT)))
    blocks = g.mul(g.round(g.mul(periods, g.scalar(1 / BLOCK, dtype=FLOAT))), g.scalar(BLOCK, dtype=FLOAT))
    rest = g.sub(periods, blocks)
    for part in PARTS:
        for count in (blocks, rest):
            value = g.sub(value, g.mul(count, g.scalar(part, dtype=FLOAT)))
    return value


RULE = Rule(
    name="sin-cos",
    why="TensorRT 8.6 computes Sin and Cos of large arguments inexactly (0.004 at 1e4); within one period it is exact.",
    ops=("Sin", "Cos"),
    find=find,
    needed=only_tensorrt_8,
    before="Sin(x)",
    after="Sin(x - 2 pi * Round(x / (2 pi))), 2 pi in four parts, the periods in two",
)

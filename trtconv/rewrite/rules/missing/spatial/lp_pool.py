"""Pools by a p-norm other than those that TensorRT has.

LpPool takes p of 1 and 2 there ("Only L1 and L2 normalization are supported"). GlobalLpPool raises to p without the
absolute value, so that an odd p gives NaN, silently (measured on 8.6.0).
"""

from __future__ import annotations

import math
from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

POWERS = (1, 2)
# Of LpPool; AveragePool has them too.
WINDOW = ("auto_pad", "kernel_shape", "pads", "strides")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an odd p of GlobalLpPool, and a p over 2 of LpPool without dilations and overhang."""
    power, rank = int(node.attr("p", 2)), graph.rank(node.inputs[0])
    whole = node.op == "GlobalLpPool"
    if power % 2 == 0 if whole else power in POWERS:
        return NOT_THIS
    if rank is None or not graph.dtype(node.inputs[0]):
        return Skip("the rank or the element type is not known")
    if not whole and (node.attr("ceil_mode", 0) or any(d != 1 for d in node.attr("dilations") or ())):
        return Skip("its windows have dilations, or the last one hangs over")
    return Found((node,), partial(_build, node=node, power=power, axes=list(range(2, rank)) if whole else []))


def _build(g: Replacement, node: Node, power: int, axes: list[int]) -> Value:
    size = g.absolute(node.inputs[0])
    powers = g.pow(size, g.scalar(power, like=size)) if power > 1 else size
    if axes:
        total = g.reduce("ReduceSum", powers, axes)
    else:
        window = {name: node.attr(name) for name in WINDOW}
        average = g.op("AveragePool", powers, count_include_pad=1, **window)
        total = g.mul(average, g.scalar(math.prod(node.attr("kernel_shape")), like=size))
    return g.pow(total, g.scalar(1 / power, like=size)) if power > 1 else total


RULE = Rule(
    name="lp-pool",
    why="TensorRT pools by the norms 1 and 2 only, and over whole images without absolute values; powers are the same.",
    ops=("LpPool", "GlobalLpPool"),
    find=find,
    before="GlobalLpPool(x), p = 3",
    after="Pow(ReduceSum(Pow(Abs(x), 3)), 1 / 3)",
)

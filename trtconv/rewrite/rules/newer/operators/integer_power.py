"""Pow of integers by a constant: products by repeated squaring, exact where a power through floats rounds."""

from __future__ import annotations

from functools import partial

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT32, INT64 = 6, 7
# From here on even 2 ** e does not fit into the 32 bits in which TensorRT 8.6 keeps every integer.
MOST = 30
REMEDY = "write the power as a product, or compute it in floats: x.float() ** e"


def needed(target: Target) -> bool:
    """The parsers of 8.6 and 10.1 refuse a power of integers (their elementwiseCheck)."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a constant exponent from 0 to 30 that is one number."""
    base, exponent = node.inputs
    if graph.dtype(base) not in (INT32, INT64):
        return NOT_THIS
    power = graph.scalar(exponent)
    if power is None:
        return Skip(f"{graph.target} has no power of integers, and the exponent is not one constant; {REMEDY}")
    if (graph.rank(exponent) or 0) > (graph.rank(base) or 0):
        return Skip("the exponent has more axes than the base")
    if not power.is_integer() or not 0 <= power <= MOST:
        return Skip(f"the exponent {power:g} is not a whole number from 0 to {MOST}; {REMEDY}")
    # The products wrap around where they leave the type; what Pow gives there is not defined.
    bound = max(1, min(9, int((2**31 - 1) ** (1 / power)))) if power else 9
    return Found((node,), partial(_build, node=node, power=int(power)), {base: (-bound, bound)})


def _build(g: Replacement, node: Node, power: int) -> Value:
    square = node.inputs[0]
    dtype = g.dtype(square)
    if power == 0:
        return g.add(g.mul(square, g.scalar(0, dtype=dtype)), g.scalar(1, dtype=dtype))
    product = ""
    while power:
        if power & 1:
            product = g.mul(product, square) if product else square
        power >>= 1
        if power:
            square = g.mul(square, square)
    return product


RULE = Rule(
    name="integer-power",
    why="TensorRT before 11 has no power of integers; products are exact.",
    ops=("Pow",),
    find=find,
    needed=needed,
    before="Pow(i, 5)",
    after="Mul(Mul(Mul(i, i), Mul(i, i)), i)",
)

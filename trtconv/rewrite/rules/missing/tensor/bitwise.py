"""Bit operations on integers as arithmetic."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.extent import largest
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.bits import (
    Kind,
    combine,
    combine_with_mask,
    factors,
    kind_of,
    narrow,
    number,
    shift,
    widen,
)

MOST = 1 << 22
SIGNED = (3, 5, 6, 7)
NAMES = {13: "uint64", 12: "uint32"}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match And, Or, Xor and Not of integers, and shifts; shifts of signed numbers stand between two casts."""
    if node.key == "Cast":
        return _cast_of_shift(graph, node)
    kind = kind_of(graph.dtype(node.inputs[0]), graph.target.generation)
    if kind is None:
        name = NAMES.get(graph.dtype(node.inputs[0]), "unknown type")
        return Skip(f"{graph.target} has no integers that hold {name}")
    if node.key == "BitwiseNot":
        return Found((node,), partial(_not, node=node, kind=kind))
    if node.key == "BitShift":
        return _shift(graph, node, kind)
    mask = graph.operand(node)
    if mask is not None and mask[1].size == 1 and mask[1].ndim <= (graph.rank(mask[0]) or 0):
        return Found((node,), partial(_masked, node=node, value=mask[0], mask=int(mask[1].reshape(-1)[0]), kind=kind))
    count = largest(graph, node.inputs[0])
    if count is not None and count > MOST:
        return Skip(f"{count} values would be taken apart into {kind.low} bits each; a constant mask needs no bits")
    note = f"each bit by itself: takes {kind.low} times the memory of the result"
    return Found((node,), partial(_both, node=node, kind=kind), note=note)


def _not(g: Replacement, node: Node, kind: Kind) -> Value:
    top = -1 if kind.signed else (1 << kind.low) - 1
    return narrow(g, g.sub(number(g, top, kind), widen(g, node.inputs[0], kind)), kind)


def _masked(g: Replacement, node: Node, value: Value, mask: int, kind: Kind) -> Value:
    return narrow(g, combine_with_mask(g, node.op, widen(g, value, kind), mask, kind), kind)


def _both(g: Replacement, node: Node, kind: Kind) -> Value:
    left, right = (widen(g, v, kind) for v in node.inputs)
    return narrow(g, combine(g, node.op, left, right, kind), kind)


def _shift(graph: Graph, node: Node, kind: Kind) -> Found | Skip:
    """A shift of unsigned numbers by a constant."""
    places = graph.constant(node.inputs[1])
    if places is None:
        return Skip("the number of places is not a constant")
    used = graph.uses(node.output)
    if used and all(u.key == "Cast" and isinstance(_cast_of_shift(graph, u), Found) for u in used):
        # The casts around go with it.
        return NOT_THIS
    left = node.attr("direction") == "LEFT"

    def build(g: Replacement) -> Value:
        factor = g.const(factors(places, kind))
        return narrow(g, shift(g, widen(g, node.inputs[0], kind), factor, left, kind), kind)

    return Found((node,), build)


def _cast_of_shift(graph: Graph, node: Node) -> Found | Skip:
    """ONNX shifts unsigned integers only, so exporters put a cast before and after."""
    shift = graph.maker(node.inputs[0], "BitShift")
    if shift is None:
        return NOT_THIS
    first = graph.maker(shift.inputs[0], "Cast")
    places = graph.scalar(shift.inputs[1])
    if first is None or places is None:
        return Skip("it is not a cast value shifted by a constant")
    source = graph.dtype(first.inputs[0])
    if source not in SIGNED or node.attr("to") != source:
        return Skip("the casts around do not go from one signed type and back")
    left = shift.attr("direction") == "LEFT"
    note = "" if left else "negative numbers are shifted arithmetically, as PyTorch does, not as unsigned ones"
    value, ranges = first.inputs[0], {first.inputs[0]: (0.0, 1000.0)}
    return Found((first, shift, node), lambda g: _signed_shift(g, value, int(places), source, left), ranges, note)


def _signed_shift(g: Replacement, value: Value, places: int, dtype: int, left: bool) -> Value:
    factor = g.scalar(1 << places, dtype=dtype)
    if left:
        return g.mul(value, factor)
    # Div truncates; taking the remainder off first makes it floor, as a shift does.
    return g.div(g.sub(value, g.mod(value, factor)), factor)


RULE = Rule(
    name="bitwise",
    why="No TensorRT has bit operations; remainders by powers of two, products and sums give the same integers.",
    ops=("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Cast"),
    find=find,
    before="BitwiseAnd(i, 12); BitwiseOr(i, j); Cast(BitShift(Cast(i), 3, LEFT))",
    after="Mod(i, 16) - Mod(i, 4); ReduceSum(Max(bits of i, bits of j) * powers); Mul(i, 8)",
)

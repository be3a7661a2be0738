"""Bit operations on integers as arithmetic, where a constant makes them one."""

from __future__ import annotations

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip

SIGNED = (3, 5, 6, 7)
UNSIGNED = (2, 4, 12, 13)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match BitwiseNot, BitwiseAnd with 2^n - 1, and shifts by a constant between two casts."""
    if node.key == "Cast":
        return _cast_of_shift(graph, node)
    dtype = graph.dtype(node.inputs[0])
    if dtype not in SIGNED:
        return Skip("TensorRT does not compute with unsigned integers")
    if node.key == "BitwiseNot":
        return Found((node,), lambda b: b.op("Sub", b.scalar(-1, dtype=dtype), node.inputs[0]))
    found = graph.operand(node)
    if found is None or found[1].size != 1:
        return Skip("the other operand is not one constant number")
    value, number = found[0], int(found[1].reshape(-1)[0])
    if number <= 0 or number & (number + 1):
        return Skip(f"the mask {number} is not 2^n - 1")
    return Found((node,), lambda b: b.op("Mod", value, b.scalar(number + 1, dtype=dtype)))


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
    return Found((first, shift, node), lambda b: _shift(b, value, int(places), source, left), ranges, note)


def _shift(b: Builder, value: str, places: int, dtype: int, left: bool) -> str:
    factor = b.scalar(1 << places, dtype=dtype)
    if left:
        return b.op("Mul", value, factor)
    # Div truncates; taking the remainder off first makes it floor, as a shift does.
    return b.op("Div", b.op("Sub", value, b.op("Mod", value, factor)), factor)


RULE = Rule(
    name="bitwise",
    why="No TensorRT has bit operations; Mod, Mul and Div by powers of two give the same integers.",
    ops=("BitwiseAnd", "BitwiseNot", "Cast"),
    find=find,
    before="BitwiseAnd(i, 7); Cast(BitShift(Cast(i), 3, LEFT))",
    after="Mod(i, 8); Mul(i, 8)",
)

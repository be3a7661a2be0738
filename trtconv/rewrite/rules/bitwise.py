"""Bit operations on integers as arithmetic, where a constant makes them one."""

from __future__ import annotations

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import Found, Rule, Skip

INTEGERS = (2, 3, 5, 6, 7, 12, 13)
SIGNED = {3: 8, 5: 16, 6: 32, 7: 64}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match BitwiseNot, BitwiseAnd with 2^n - 1, and shifts by a constant."""
    dtype = graph.dtype(node.inputs[0])
    if dtype not in INTEGERS:
        return Skip("the element type is not known")
    if node.key == "BitwiseNot":
        if dtype not in SIGNED:
            return Skip("the complement of an unsigned type")
        return Found((node,), lambda b: b.op("Sub", b.scalar(-1, dtype=dtype), node.inputs[0]))
    found = graph.operand(node)
    if found is None or found[1].size != 1:
        return Skip("the other operand is not one constant number")
    value, number = found[0], int(found[1].reshape(-1)[0])
    if node.key == "BitwiseAnd":
        if number <= 0 or number & (number + 1):
            return Skip(f"the mask {number} is not 2^n - 1")
        return Found((node,), lambda b: b.op("Mod", value, b.scalar(number + 1, dtype=dtype)))
    if value != node.inputs[0]:
        return Skip("a constant is shifted by a computed number")
    return Found((node,), lambda b: _shift(b, node, number, dtype))


def _shift(b: Builder, node: Node, places: int, dtype: int) -> str:
    factor = b.scalar(1 << places, dtype=dtype)
    if node.attr("direction") == "LEFT":
        return b.op("Mul", node.inputs[0], factor)
    if dtype not in SIGNED:
        return b.op("Div", node.inputs[0], factor)
    # Div truncates; taking the remainder off first floors, as a shift does.
    rest = b.op("Mod", node.inputs[0], factor)
    return b.op("Div", b.op("Sub", node.inputs[0], rest), factor)


RULE = Rule(
    name="bitwise",
    why="No TensorRT has bit operations; Mod, Mul and Div by powers of two give the same integers.",
    ops=("BitwiseAnd", "BitwiseNot", "BitShift"),
    find=find,
    before="BitwiseAnd(i, 7); BitShift(i, 3, RIGHT)",
    after="Mod(i, 8); Div(i, 8)",
)

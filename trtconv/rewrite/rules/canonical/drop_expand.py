"""Expand to the shape of the value that it is then combined with: the broadcast of the operator says the same."""

from __future__ import annotations

from functools import partial
from typing import Any

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.sizes import dim_size, same_dim, size_element

BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "And", "Or", "Xor", "Equal", "Less", "Greater")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a binary node one of whose inputs is expanded to the shape of the other."""
    if len(node.inputs) != 2:
        return NOT_THIS
    missed = NOT_THIS
    for side in (0, 1):
        expand, other = graph.maker(node.inputs[side], "Expand"), node.inputs[1 - side]
        if expand is None:
            continue
        if not _own(graph, expand, other):
            missed = Skip("the shape that it is expanded to is not known to be that of the other operand")
            continue
        inputs = [expand.inputs[0] if i == side else v for i, v in enumerate(node.inputs)]
        attributes = node.attributes()
        return Found((expand, node), partial(_rebuilt, op=node.op, inputs=inputs, attributes=attributes))
    return missed


def _rebuilt(g: Replacement, op: str, inputs: list[Value], attributes: dict[str, Any]) -> Value:
    return g.op(op, *inputs, **attributes)


def _own(graph: Graph, expand: Node, other: str) -> bool:
    """True when each size is that of the other operand, or 1."""
    rank, before = graph.rank(other), graph.rank(expand.inputs[0])
    length = (graph.dims(expand.inputs[1]) or (None,))[0]
    if rank is None or before is None or before > rank:
        return False
    shape = graph.maker(graph.behind(expand.inputs[1])[0], "Shape")
    if shape is not None and shape.inputs[0] == other and not shape.attr("start") and shape.attr("end") is None:
        return True
    if not isinstance(length, int) or length > rank:
        return False
    for axis in range(length):
        size = size_element(graph, expand.inputs[1], axis)
        if size is None:
            return False
        own = dim_size(graph, other, axis + rank - length)
        if size.is_constant and size.add not in (1, own.add if own.is_constant else 1):
            return False
        if not size.is_constant and not (size.is_dim and same_dim(graph, size, own)):
            return False
    return True


RULE = Rule(
    name="drop-expand",
    why="The operator broadcasts by itself; without the copy, patterns such as x / norm(x) * scale are seen.",
    ops=BINARY,
    find=find,
    before="Mul(x, Expand(scale, Shape(x)))",
    after="Mul(x, scale)",
)

"""The larger and the smaller of int64 numbers, also beyond int32.

ONNX Runtime's Max, Min and Clip compare the lower halves of two int64 numbers with their sign where the upper halves
are equal: of 3,000,000,000 and 5 the larger is 5 (measured with 1.31 on x86). Its Less and Where have no such fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, replace_nodes

if TYPE_CHECKING:
    import onnx

INT64 = 7
# In a serialized node: the field op_type, its length, its letters.
OPERATORS = (b'"\x03Max', b'"\x03Min', b'"\x04Clip')
# Outputs of the first are int64 whatever comes in; those of the others have the type of their first input.
WHOLE = frozenset(("ArgMax", "ArgMin", "NonZero", "Shape", "Size"))
FOLLOWERS = frozenset(
    ("Abs", "Add", "Clip", "Concat", "Div", "Expand", "Flatten", "Gather", "GatherElements", "Identity", "Max", "Min",
     "Mod", "Mul", "Neg", "ReduceMax", "ReduceMin", "ReduceSum", "Reshape", "Slice", "Squeeze", "Sub", "Tile",
     "Transpose", "Unsqueeze")
)  # fmt: skip


def has_extremes(model: bytes) -> bool:
    """A glance at a serialized model: may it hold such an operator?"""
    return any(operator in model for operator in OPERATORS)


def with_exact_extremes(model: onnx.ModelProto) -> bool:
    """Write these operators of int64 with Less and Where, in place; True when there was one.

    Sizes are far from these numbers: a model without int64 among its inputs stays as it is.
    """
    if all(v.type.tensor_type.elem_type != INT64 for v in model.graph.input):
        return False
    wide: set[str] = set()
    return sum([_write(graph, wide) for graph in graphs_of(model.graph)]) > 0


def _write(graph: onnx.GraphProto, wide: set[str]) -> bool:
    """Write those of one graph; `wide` are the names of int64 values, of the graphs around it too."""
    wide.update(v.name for v in graph.input if v.type.tensor_type.elem_type == INT64)
    wide.update(t.name for t in graph.initializer if t.data_type == INT64)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if _gives_int64(node, wide):
            wide.update(node.output)
        extreme = node.op_type in ("Max", "Min", "Clip") and node.output[0] in wide
        nodes += _pairs(node) if extreme else [node]
    changed = any(a is not b for a, b in zip(nodes, graph.node, strict=False)) or len(nodes) != len(graph.node)
    if changed:
        replace_nodes(graph, nodes)
    return changed


def _gives_int64(node: onnx.NodeProto, wide: set[str]) -> bool:
    if node.op_type in WHOLE:
        return True
    if node.op_type in ("Cast", "Constant"):
        kinds = {a.name: a for a in node.attribute}
        value = kinds.get("value")
        return ("to" in kinds and kinds["to"].i == INT64) or (value is not None and value.t.data_type == INT64)
    index = 1 if node.op_type == "Where" else 0
    return (node.op_type in FOLLOWERS or index == 1) and len(node.input) > index and node.input[index] in wide


def _pairs(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes of one operator: a choice for each pair, the last of which has its name and output."""
    from onnx import helper

    kinds = ("Max", "Min") if node.op_type == "Clip" else (node.op_type,) * len(node.input)
    others = [(kind, other) for kind, other in zip(kinds, node.input[1:], strict=False) if other]
    value, nodes = node.input[0], []
    for number, (kind, other) in enumerate(others):
        below, result = f"{node.output[0]}/below_{number}", f"{node.output[0]}/extreme_{number}"
        first, second = (other, value) if kind == "Max" else (value, other)
        nodes.append(helper.make_node("Less", [value, other], [below]))
        nodes.append(helper.make_node("Where", [below, first, second], [result]))
        value = result
    if not nodes:
        return [node]
    nodes[-1].output[0], nodes[-1].name = node.output[0], node.name
    return nodes

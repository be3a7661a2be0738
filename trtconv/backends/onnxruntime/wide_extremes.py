"""The larger and the smaller of int64 numbers, also beyond int32, and their signs.

ONNX Runtime's Max, Min, Clip, Sign, ReduceMax and ReduceMin compare the lower halves of two int64 numbers with their
sign where the upper halves are equal: of 3,000,000,000 and 5 the larger is 5, and the sign of 2**31 is -1 (measured
with 1.31 on x86). Its Less, Where and TopK have no such fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trtconv.backends.onnxruntime.axes import INT64, whole_constants, written_axes
from trtconv.core.model.bodies import graphs_of, replace_nodes
from trtconv.core.model.opset import opset_of

if TYPE_CHECKING:
    import onnx

# In a serialized node: the field op_type, its length, its letters.
OPERATORS = (b'"\x03Max', b'"\x03Min', b'"\x04Clip', b'"\x04Sign', b'"\x09ReduceMax', b'"\x09ReduceMin')
AXES_INPUT_OF_SQUEEZE = 13
REDUCTIONS = ("ReduceMax", "ReduceMin")
# Outputs of the first are int64 whatever comes in; those of the others have the type of their first input.
WHOLE = frozenset(("ArgMax", "ArgMin", "NonZero", "Shape", "Size"))
FOLLOWERS = frozenset(
    ("Abs", "Add", "Clip", "Concat", "Div", "Expand", "Flatten", "Gather", "GatherElements", "Identity", "Max", "Min",
     "Mod", "Mul", "Neg", "ReduceMax", "ReduceMin", "ReduceSum", "Reshape", "Sign", "Slice", "Squeeze", "Sub", "Tile",
     "Transpose", "Unsqueeze")
)  # fmt: skip


def has_extremes(model: bytes) -> bool:
    """A glance at a serialized model: may it hold such an operator?"""
    return any(operator in model for operator in OPERATORS)


def with_exact_extremes(model: onnx.ModelProto) -> bool:
    """Write these operators of int64 with Less, Where and TopK, in place; True when there was one.

    Sizes are far from these numbers: a model without int64 among its inputs stays as it is.
    """
    if all(v.type.tensor_type.elem_type != INT64 for v in model.graph.input):
        return False
    wide: set[str] = set()
    newer = opset_of(model) >= AXES_INPUT_OF_SQUEEZE
    return sum([_write(graph, wide, newer) for graph in graphs_of(model.graph)]) > 0


def _write(graph: onnx.GraphProto, wide: set[str], newer: bool) -> bool:
    """Write those of one graph; `wide` are the names of int64 values, of the graphs around it too."""
    wide.update(v.name for v in graph.input if v.type.tensor_type.elem_type == INT64)
    wide.update(t.name for t in graph.initializer if t.data_type == INT64)
    constants = whole_constants(graph)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if _gives_int64(node, wide):
            wide.update(node.output)
        nodes += _exact(node, constants, newer) if node.output[0] in wide else [node]
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


def _exact(node: onnx.NodeProto, constants: Mapping[str, tuple[int, ...]], newer: bool) -> list[onnx.NodeProto]:
    if node.op_type in ("Max", "Min", "Clip"):
        return _pairs(node)
    if not newer:
        return [node]
    if node.op_type == "Sign":
        return _sign(node)
    return _first_of_ranked(node, constants) if node.op_type in REDUCTIONS else [node]


def _sign(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    from onnx import helper

    x, y = node.input[0], node.output[0]
    whole = {n: helper.make_node("Constant", [], [f"{y}/{n}"], value_int=n) for n in (-1, 0, 1)}
    zero, one, minus = (f"{y}/{n}" for n in (0, 1, -1))
    return [
        *whole.values(),
        helper.make_node("Less", [x, zero], [f"{y}/below"]),
        helper.make_node("Less", [zero, x], [f"{y}/above"]),
        helper.make_node("Where", [f"{y}/above", one, zero], [f"{y}/positive"]),
        helper.make_node("Where", [f"{y}/below", minus, f"{y}/positive"], [y], node.name),
    ]


def _first_of_ranked(node: onnx.NodeProto, constants: Mapping[str, tuple[int, ...]]) -> list[onnx.NodeProto]:
    """The first of TopK, axis by axis. Axes that are computed, and all axes of a result of the same rank, stay."""
    from onnx import helper

    axes = written_axes(node, constants)
    flags = {a.name: a.i for a in node.attribute}
    keepdims = flags.get("keepdims", 1)
    if axes is None or (not axes and (keepdims or flags.get("noop_with_empty_axes", 0))):
        return [node]
    x, y = node.input[0], node.output[0]
    nodes = [helper.make_node("Constant", [], [f"{y}/one"], value_ints=[1])]
    if not axes:
        nodes.append(helper.make_node("Constant", [], [f"{y}/row"], value_ints=[-1]))
        nodes.append(helper.make_node("Reshape", [x, f"{y}/row"], [f"{y}/flat"]))
        axes, x = (0,), f"{y}/flat"
    for axis in axes:
        ranked = f"{y}/of_axis_{axis}"
        largest = int(node.op_type == "ReduceMax")
        nodes.append(
            helper.make_node("TopK", [x, f"{y}/one"], [ranked, f"{ranked}/index"], axis=axis, largest=largest, sorted=0)
        )
        x = ranked
    if keepdims:
        nodes.append(helper.make_node("Identity", [x], [y], node.name))
    else:
        nodes.append(helper.make_node("Constant", [], [f"{y}/axes"], value_ints=axes))
        nodes.append(helper.make_node("Squeeze", [x, f"{y}/axes"], [y], node.name))
    return nodes


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

"""Conditions by which a graph leaves a part out when the values decided on no rows at all.

torchvision writes `if boxes.numel() == 0: return nothing` before its suppression. At fixed sizes that part gives no
rows by itself, as it counts those that it was given; so the condition goes, and with it an If that no TensorRT builds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import helper, numpy_helper

from trtconv.core.model.bodies import leading_to, nodes_before, replace_nodes
from trtconv.core.model.opset import opset_of
from trtconv.rewrite.fixed_rows.walk import Walk
from trtconv.rewrite.graph.branches import write_out
from trtconv.rewrite.graph.concrete import run_node

SMALL = 64
PUT_TOGETHER = ("Concat", "Squeeze", "Unsqueeze")
PASSED = ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape")


@dataclass(frozen=True)
class EmptyGuard:
    """An If that was decided: its outputs, and the value whose rows (or all elements: axis None) it counted."""

    outputs: tuple[str, ...]
    value: str
    axis: int | None

    def holds(self, walk: Walk) -> bool:
        """True where the value has rows, and each output no rows when that has none."""
        state = walk.of(self.value)
        if state is None or self.axis not in (None, state.axis):
            return False
        rows = [walk.of(o) for o in self.outputs]
        return all(r is not None and walk.descends(state.count, r.count) for r in rows)


def without_empty_guards(model: onnx.ModelProto, births: tuple[str, ...]) -> tuple[onnx.ModelProto, list[EmptyGuard]]:
    """A copy with the part for some rows where each such If stands; the model itself where there is none.

    `births` are the operators that decide rows.
    """
    makers = {o: n for n in model.graph.node for o in n.output if o}
    numbers = {t.name: t for t in model.graph.initializer}
    numbers |= {n.output[0]: n.attribute[0].t for n in model.graph.node if _holds_tensor(n)}
    decided = {
        index: guard
        for index, node in enumerate(model.graph.node)
        if node.op_type == "If" and (guard := _guard(node, makers, numbers, births)) is not None
    }
    if not decided:
        return model, []
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph, nodes = copy.graph, list[onnx.NodeProto]()
    for index, node in enumerate(model.graph.node):
        if index in decided:
            first = len(graph.initializer)
            part = write_out(graph, node, decided[index][1], f"rows{index}")
            numbers |= {t.name: t for t in graph.initializer[first:]}
            nodes += _plain(part, numbers, opset_of(model))
        else:
            nodes.append(node)
    guards = [guard for guard, _ in decided.values()]
    # What the conditions were computed by is of no use now.
    replace_nodes(graph, leading_to(nodes, [*(o.name for o in graph.output), *(g.value for g in guards)]))
    return copy, guards


def _holds_tensor(node: onnx.NodeProto) -> bool:
    return bool(node.op_type == "Constant" and node.attribute[0].HasField("t"))


def _plain(
    nodes: Iterable[onnx.NodeProto], numbers: Mapping[str, onnx.TensorProto], opset: int
) -> Iterator[onnx.NodeProto]:
    """The nodes of a part, those that only put numbers together as constants: nobody folded them in a body."""
    constants = {n: numpy_helper.to_array(t) for n, t in numbers.items() if _is_small(t)}
    for node in nodes:
        if _holds_tensor(node):
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type in PUT_TOGETHER and all(i in constants for i in node.input if i):
            [array] = run_node(node, [constants.get(i) for i in node.input], opset)
            constants[node.output[0]] = array
            value = numpy_helper.from_array(array)
            node = helper.make_node("Constant", [], [node.output[0]], name=node.name, value=value)
        yield node


def _is_small(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_location != onnx.TensorProto.EXTERNAL and math.prod(tensor.dims) <= SMALL)


def _guard(
    node: onnx.NodeProto,
    makers: dict[str, onnx.NodeProto],
    numbers: dict[str, onnx.TensorProto],
    births: tuple[str, ...],
) -> tuple[EmptyGuard, onnx.GraphProto] | None:
    """The guard that an If is, and the branch for some rows."""
    empty_branch = {"Equal": "then_branch", "Greater": "else_branch"}
    test = _behind(node.input[0], makers)
    if test is not None and test.op_type == "Not":
        empty_branch = {"Equal": "else_branch", "Greater": "then_branch"}
        test = _behind(test.input[0], makers)
    if test is None or test.op_type not in empty_branch or _integer(test.input[1], makers, numbers) != 0:
        return None
    counted = _counted(test.input[0], makers, numbers)
    if counted is None or not any(n.op_type in births for n in nodes_before(counted[0], makers)):
        return None
    branches = {a.name: a.g for a in node.attribute if a.HasField("g")}
    empty = branches.pop(empty_branch[test.op_type])
    [body] = branches.values()
    constants = {t.name: t for t in empty.initializer}
    constants |= {n.output[0]: n.attribute[0].t for n in empty.node if _holds_tensor(n)}
    if any(o.name not in constants or 0 not in constants[o.name].dims for o in empty.output):
        return None
    return EmptyGuard(tuple(node.output), *counted), body


def _behind(name: str, makers: dict[str, onnx.NodeProto]) -> onnx.NodeProto | None:
    """The node that a value comes from, through casts and changes of rank."""
    node = makers.get(name)
    while node is not None and node.op_type in PASSED:
        node = makers.get(node.input[0])
    return node


def _integer(name: str, makers: dict[str, onnx.NodeProto], numbers: dict[str, onnx.TensorProto]) -> int | None:
    """A single constant, or None."""
    tensor, node = numbers.get(name), makers.get(name)
    while tensor is None and node is not None and node.op_type in PASSED:
        name = node.input[0]
        tensor, node = numbers.get(name), makers.get(name)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor)
    return int(array.reshape(-1)[0]) if array.size == 1 else None


def _counted(
    name: str, makers: dict[str, onnx.NodeProto], numbers: dict[str, onnx.TensorProto]
) -> tuple[str, int | None] | None:
    """Of which value a number counts the elements (axis None) or the size of one axis."""
    node = _behind(name, makers)
    if node is None:
        return None
    if node.op_type == "Size":
        return node.input[0], None
    shape = _behind(node.input[0], makers) if node.op_type in ("ReduceProd", "Gather") else None
    if shape is None or shape.op_type != "Shape" or shape.attribute:
        return None
    if node.op_type == "ReduceProd":
        return shape.input[0], None
    axis = _integer(node.input[1], makers, numbers)
    return None if axis is None or axis < 0 else (shape.input[0], axis)

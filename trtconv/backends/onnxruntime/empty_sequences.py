"""Recurrent layers over nothing, which end in an error where ONNX Runtime would end the process; and the batch first.

Its GRU, LSTM and RNN divide the work of no rows among threads and call std::terminate, whatever called them. Here such
a node reads its sequence in a shape that comes from a Gather whose index is out of bounds just there.

Of `layout` it takes 0 alone; with 1, where the batch is the first axis, its inputs and outputs are transposed here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, replace_nodes

if TYPE_CHECKING:
    import onnx

KINDS = ("GRU", "LSTM", "RNN")
# In a serialized node: the field op_type, its length, its letters.
OPERATORS = tuple(b'"' + bytes([len(kind)]) + kind.encode() for kind in KINDS)
LABEL = "runs over an empty sequence"
GUARD = re.compile(rf"'?([^'\n]*) {LABEL}")


def holds_recurrences(model: bytes) -> bool:
    """A glance at a serialized model: may it hold a recurrent node?"""
    return any(mark in model for mark in OPERATORS)


def with_guarded_recurrences(model: onnx.ModelProto) -> bool:
    """Guard each recurrent node, and put its steps first, in place; True when there was one."""
    return sum(_guard_graph(graph) for graph in list(graphs_of(model.graph))) > 0


def empty_sequence(message: str) -> str:
    """The node that ran over nothing, if that is what ONNX Runtime's error is about, else nothing."""
    match = GUARD.search(message)
    return match[1].strip() if match else ""


def _guard_graph(graph: onnx.GraphProto) -> int:
    nodes, guarded = [], 0
    for node in graph.node:
        if node.op_type in KINDS and node.domain in ("", "ai.onnx"):
            nodes += _guards(node)
            before, after = _steps_first(node)
            nodes += [*before, node, *after]
            guarded += 1
        else:
            nodes.append(node)
    if guarded:
        replace_nodes(graph, nodes)
    return guarded


def _guards(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes that the sequence passes through on its way to the layer, which reads what comes out of them."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    stem, sequence = f"{next(o for o in node.output if o)}/guard", node.input[0]
    names = [f"{stem}/{part}" for part in ("shape", "elements", "some", "none", "index", "one", "passed", "same", "x")]
    shape, elements, some, none, index, one, passed, same, x = names
    node.input[0] = x
    return [
        helper.make_node("Shape", [sequence], [shape]),
        helper.make_node("Size", [sequence], [elements]),
        helper.make_node("Cast", [elements], [some], to=TensorProto.BOOL),
        helper.make_node("Not", [some], [none]),
        helper.make_node("Cast", [none], [index], to=TensorProto.INT64),
        helper.make_node("Constant", [], [one], value=numpy_helper.from_array(np.ones(1, np.int64))),
        helper.make_node("Gather", [one, index], [passed], name=f"{node.name or node.output[0]} {LABEL}"),
        helper.make_node("Mul", [shape, passed], [same]),
        helper.make_node("Reshape", [sequence, same], [x]),
    ]


def _steps_first(node: onnx.NodeProto) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """The Transposes before and behind a node of layout 1, which reads and writes those of layout 0 from then on."""
    from onnx import helper

    layout = next((a for a in node.attribute if a.name == "layout"), None)
    if layout is None or layout.i == 0:
        return [], []
    node.attribute.remove(layout)
    before, after = [], []
    for index in (0, 5, 6):
        if index < len(node.input) and node.input[index]:
            turned = f"{node.input[index]}/of/{next(filter(None, node.output))}/steps_first"
            before.append(helper.make_node("Transpose", [node.input[index]], [turned], perm=[1, 0, 2]))
            node.input[index] = turned
    for index, name in enumerate(node.output):
        if name:
            # Y is [steps, directions, batch, hidden], the last states are [directions, batch, hidden].
            node.output[index] = f"{name}/steps_first"
            perm = [1, 0, 2] if index else [2, 0, 1, 3]
            after.append(helper.make_node("Transpose", [node.output[index]], [name], perm=perm))
    return before, after

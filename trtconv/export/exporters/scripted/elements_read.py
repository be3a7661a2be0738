"""Elements of a list that a loop filled, read one by one, as rows of the scan output that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trtconv.core.model.bodies import bodies_of, replace_nodes, values_read

if TYPE_CHECKING:
    import onnx


class ListStart(Protocol):
    """What is known of the list that was filled."""

    @property
    def start(self) -> onnx.NodeProto:
        """The node whose inputs are its first elements."""


def reads_elements(node: onnx.NodeProto, name: str) -> bool:
    """True where a node, or those in its bodies, take elements of the list, or ask how many there are."""
    if node.op_type in ("SequenceAt", "SequenceLength"):
        return list(node.input).count(name) == 1 and node.input[0] == name
    readers = [n for body in bodies_of(node) for n in body.node if name in values_read(n)]
    handed_on = any(o.name == name for body in bodies_of(node) for o in body.output)
    return bool(readers) and name not in node.input and not handed_on and all(reads_elements(n, name) for n in readers)


def read_elements(graph: onnx.GraphProto, name: str, filled: ListStart, stacked: str) -> None:
    """Write what reads the list `name` as reads of `stacked` [steps, ...] behind the first elements, in place."""
    import numpy as np
    import onnx

    if not any(name in values_read(node) for node in graph.node):
        return
    zero, rows, whole = f"{name}_zero", f"{name}_rows", stacked
    value = onnx.numpy_helper.from_array(np.array([0], np.int64), zero)
    new = [onnx.helper.make_node("Constant", [], [zero], zero, value=value)]
    firsts = [f"{rows}_{position}" for position in range(len(filled.start.input))]
    for element, first in zip(filled.start.input, firsts, strict=True):
        new.append(onnx.helper.make_node("Unsqueeze", [element, zero], [first], first))
    if firsts:
        whole = rows
        new.append(onnx.helper.make_node("Concat", [*firsts, stacked], [whole], whole, axis=0))
    _replace_reads(graph, name, whole)
    nodes = list(graph.node)
    behind = next(i for i, n in enumerate(nodes) if stacked in n.output) + 1
    replace_nodes(graph, [*nodes[:behind], *new, *nodes[behind:]])


def _replace_reads(graph: onnx.GraphProto, name: str, whole: str) -> None:
    import numpy as np
    import onnx

    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        for body in bodies_of(node):
            _replace_reads(body, name, whole)
        if name not in node.input:
            nodes.append(node)
        elif node.op_type == "SequenceAt":
            nodes.append(onnx.helper.make_node("Gather", [whole, node.input[1]], node.output, node.name, axis=0))
            nodes[-1].doc_string = node.doc_string
        else:
            sizes, first = f"{node.output[0]}_sizes", f"{node.output[0]}_axis"
            value = onnx.numpy_helper.from_array(np.array(0, np.int64), first)
            nodes.append(onnx.helper.make_node("Constant", [], [first], first, value=value))
            nodes.append(onnx.helper.make_node("Shape", [whole], [sizes], sizes))
            nodes.append(onnx.helper.make_node("Gather", [sizes, first], node.output, node.name, axis=0))
    replace_nodes(graph, nodes)

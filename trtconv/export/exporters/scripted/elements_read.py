"""Elements of a list that a loop filled, read one by one, as rows of the scan output that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of, replace_nodes, values_read

if TYPE_CHECKING:
    import onnx


def reads_elements(node: onnx.NodeProto, name: str) -> bool:
    """True where a node, or those in its bodies, take elements of the list, or ask how many there are."""
    if node.op_type in ("SequenceAt", "SequenceLength"):
        return list(node.input).count(name) == 1 and node.input[0] == name
    readers = [n for body in bodies_of(node) for n in body.node if name in values_read(n)]
    handed_on = any(o.name == name for body in bodies_of(node) for o in body.output)
    return bool(readers) and name not in node.input and not handed_on and all(reads_elements(n, name) for n in readers)


def rows_behind(firsts: Sequence[str], stacked: str, name: str) -> tuple[list[onnx.NodeProto], str]:
    """Nodes that put the rows `stacked` [steps, ...] behind the first elements, named after `name`; what they give."""
    import onnx

    if not firsts:
        return [], stacked
    zero, whole = f"{name}_first", f"{name}_rows"
    rows = [f"{name}_row_{position}" for position in range(len(firsts))]
    nodes = [axis_constant(zero, 0)]
    nodes += [
        onnx.helper.make_node("Unsqueeze", [element, zero], [row], row)
        for element, row in zip(firsts, rows, strict=True)
    ]
    return [*nodes, onnx.helper.make_node("Concat", [*rows, stacked], [whole], whole, axis=0)], whole


def axis_constant(name: str, axis: int) -> onnx.NodeProto:
    """A node that gives the axis [1]."""
    import numpy as np
    import onnx

    value = onnx.numpy_helper.from_array(np.array([axis], np.int64), name)
    return onnx.helper.make_node("Constant", [], [name], name, value=value)


def flatten_steps(graph: onnx.GraphProto, stacked: str) -> str:
    """Add, in place, the rows `stacked` [steps, elements, ...] as rows [steps * elements, ...]; gives their name."""
    import numpy as np
    import onnx

    flat = f"{stacked}_flat"
    end = onnx.numpy_helper.from_array(np.array([np.iinfo(np.int64).max], np.int64), f"{flat}_end")
    new = [
        onnx.helper.make_node("Shape", [stacked], [f"{flat}_sizes"], f"{flat}_sizes"),
        axis_constant(f"{flat}_start", 2),
        onnx.helper.make_node("Constant", [], [end.name], end.name, value=end),
        onnx.helper.make_node("Slice", [f"{flat}_sizes", f"{flat}_start", end.name], [f"{flat}_rest"], f"{flat}_rest"),
        axis_constant(f"{flat}_rows", -1),
        onnx.helper.make_node("Concat", [f"{flat}_rows", f"{flat}_rest"], [f"{flat}_shape"], f"{flat}_shape", axis=0),
        onnx.helper.make_node("Reshape", [stacked, f"{flat}_shape"], [flat], flat),
    ]
    nodes = list(graph.node)
    behind = next(i for i, n in enumerate(nodes) if stacked in n.output) + 1
    replace_nodes(graph, [*nodes[:behind], *new, *nodes[behind:]])
    return flat


def read_elements(graph: onnx.GraphProto, name: str, firsts: Sequence[str], stacked: str) -> None:
    """Write what reads the list `name` as reads of `stacked` [steps, ...] behind the first elements, in place."""
    if not any(name in values_read(node) for node in graph.node):
        return
    new, whole = rows_behind(firsts, stacked, name)
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

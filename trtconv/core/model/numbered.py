"""Graphs whose values are numbered instead of named: equal for equal parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of

if TYPE_CHECKING:
    import onnx


def number_values(graph: onnx.GraphProto, numbers: dict[str, str], ordered: bool = False) -> None:
    """Number the values in the order in which nodes use them, in bodies too, and drop what only people read.

    Inputs and constants are listed in the order of their numbers: that in which they were found says nothing.
    """
    graph.name = graph.doc_string = ""
    for node in graph.node:
        node.name = node.doc_string = ""
        del node.metadata_props[:]
        node.input[:] = [number_of(numbers, i) for i in node.input]
        node.output[:] = [number_of(numbers, o) for o in node.output]
        for body in bodies_of(node):
            number_values(body, numbers)
    for item in (*graph.input, *graph.initializer, *graph.output, *graph.value_info):
        item.name = number_of(numbers, item.name)
        item.doc_string = ""
    graph.initializer.sort(key=lambda t: t.name)
    if ordered:
        graph.input.sort(key=lambda v: v.name)


def number_of(numbers: dict[str, str], name: str) -> str:
    """The number of a value, which it gets here where it has none; that of no value is empty."""
    return numbers.setdefault(name, f"v{len(numbers)}") if name else ""

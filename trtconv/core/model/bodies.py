"""The graphs inside a graph: the bodies of If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.HasField("g") else attribute.graphs


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph, and all graphs inside it."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from graphs_of(body)

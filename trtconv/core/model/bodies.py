"""The graphs inside a graph: the bodies of If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        if node.attribute:  # most nodes of a large graph have none
            for body in bodies_of(node):
                yield from graphs_of(body)


def walk_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and those of their bodies; the depth is bounded by the reader of protobuf messages."""
    for node in nodes:
        yield node
        if node.attribute:
            for body in bodies_of(node):
                yield from walk_nodes(body.node)


def computing_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of a graph that compute something, which is what counts of nodes count everywhere.

    A Constant holds data, like an initializer; the bodies of If, Loop and Scan are not entered.
    """
    return [n for n in graph.node if n.op_type != "Constant"]


def replace_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Give the graph these nodes, in this order; they may be its own."""
    # The nodes are copied before those that they come from are removed.
    copies = [type(n).FromString(n.SerializeToString()) for n in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def values_read(node: onnx.NodeProto) -> tuple[str, ...]:
    """The values that a node reads, those that its bodies take from outside included; each once, in order."""
    names = dict.fromkeys(n for n in node.input if n)
    for body in bodies_of(node):
        names |= dict.fromkeys(values_captured(body))
    return tuple(names)


def nodes_before(name: str, makers: Mapping[str, onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes that a value is worked out by; `makers` are those of a graph by output."""
    waiting, visited = [name], {name}
    while waiting:
        node = makers.get(waiting.pop())
        if node is None:
            continue
        yield node
        for read in set(values_read(node)) - visited:
            visited.add(read)
            waiting.append(read)


def leading_to(nodes: Sequence[onnx.NodeProto], names: Iterable[str]) -> list[onnx.NodeProto]:
    """Of nodes in their order those that any of these values needs."""
    needed, needed_nodes = set(names), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed_nodes.append(node)
            needed.update(values_read(node))
    return needed_nodes[::-1]


def values_read_in(graph: onnx.GraphProto) -> set[str]:
    """The values that nodes of a graph and of its bodies read, and that these give out."""
    outputs = {v.name for g in graphs_of(graph) for v in g.output}
    return outputs.union(*(node.input for node in walk_nodes(graph.node)))


def drop_unread(graph: onnx.GraphProto, names: Iterable[str]) -> None:
    """Remove those of the initializers of these names, in bodies too, that nothing reads any longer.

    The default of an input stays: without it the input would have to be given.
    """
    inputs = {v.name for g in graphs_of(graph) for v in g.input}
    unread = {*names} - values_read_in(graph) - inputs
    for g in graphs_of(graph):
        for tensor in [t for t in g.initializer if t.name in unread]:
            g.initializer.remove(tensor)


def values_captured(body: onnx.GraphProto) -> tuple[str, ...]:
    """The values that a body takes from outside, those of the bodies inside it included; each once, in order."""
    own = {v.name for v in body.input} | {t.name for t in body.initializer}
    names: dict[str, None] = {}
    for node in body.node:
        names |= dict.fromkeys(n for n in values_read(node) if n not in own)
        own.update(node.output)
    names |= dict.fromkeys(v.name for v in body.output if v.name not in own)
    return tuple(names)

"""Nodes renamed, copied and put in order."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import (
    bodies_of,
    drop_unread,
    graphs_of,
    replace_nodes,
    values_read,
    values_read_in,
)
from trtconv.core.model.names import free_name, numbered_names
from trtconv.export.branches.joined.numbering import is_joined, record_of

if TYPE_CHECKING:
    import onnx


class FreeNames:
    """Names for values and nodes that are called as they were, or with a number behind it where that is taken."""

    def __init__(self, reserved: Collection[str]) -> None:
        self.reserved = reserved
        self.values: set[str] = set()
        self.nodes: set[str] = set()

    def new(self, name: str) -> str:
        """The name of a value: a reserved one is given once, to the value that is called so."""
        numbered = (n for n in numbered_names(name) if n not in self.values and n not in self.reserved)
        chosen = name if name not in self.values else next(numbered)
        self.values.add(chosen)
        return chosen

    def call(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """The node, named; one without a name is called by its first output."""
        node.name = free_name(node.name or node.output[0], self.nodes)
        return node


class CrossingError(Exception):
    """What is chosen first on one side comes after it on the other."""


def rename_values(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename what a node and its bodies read and give, in place."""
    node.input[:] = [names.get(i, i) for i in node.input]
    node.output[:] = [names.get(o, o) for o in node.output]
    for body in bodies_of(node):
        for inner in body.node:
            rename_values(inner, names)
        for value in body.output:
            value.name = names.get(value.name, value.name)


def copy_of(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node of its own."""
    copy = type(node)()
    copy.CopyFrom(node)
    return copy


def in_order(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Each after what it reads. Raises CrossingError for a ring."""
    makers = {o: i for i, n in enumerate(nodes) for o in n.output if o}
    order: dict[int, None] = {}
    entered: set[int] = set()
    for start in range(len(nodes)):
        stack: list[tuple[int, Iterator[str]]] = []
        if start not in order:
            entered.add(start)
            stack.append((start, iter(values_read(nodes[start]))))
        while stack:
            index, reads = stack[-1]
            following = next((makers[r] for r in reads if r in makers and makers[r] not in order), None)
            if following is None:
                order[index] = None
                stack.pop()
            elif following in entered:
                raise CrossingError
            else:
                entered.add(following)
                stack.append((following, iter(values_read(nodes[following]))))
    return [nodes[i] for i in order]


def drop_unread_values(graph: onnx.GraphProto) -> None:
    """Remove nodes that nothing reads, in branches too, and outputs of joined Ifs: ONNX Runtime fails at such an If."""
    changed = True
    while changed:
        changed = False
        read = values_read_in(graph)
        for part in list(graphs_of(graph)):
            for node in (n for n in part.node if is_joined(n)):
                changed |= _drop_outputs(node, read)
            remaining = [n for n in part.node if read.intersection(n.output)]
            if len(remaining) < len(part.node):
                replace_nodes(part, remaining)
                changed = True
    drop_unread(graph, [t.name for t in graph.initializer])


def _drop_outputs(node: onnx.NodeProto, read: set[str]) -> bool:
    unread = [i for i, name in enumerate(node.output) if name not in read]
    if not unread or len(unread) == len(node.output):
        return False
    record = record_of(node)
    sizes = json.loads(record.value)
    for index in reversed(unread):
        del node.output[index]
        for attribute in node.attribute:
            del attribute.g.output[index]
        for dims in sizes.values():
            del dims[index]
    record.value = json.dumps(sizes)
    return True

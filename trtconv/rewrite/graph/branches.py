"""Writing a branch of an If out in the graph around it."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import helper

from trtconv.core.model.bodies import bodies_of, replace_nodes

# The attributes of an If, by the answer of its condition.
BRANCHES = {True: "then_branch", False: "else_branch"}


def branch_of(node: onnx.NodeProto, answer: bool) -> onnx.GraphProto:
    """The branch of an If that is taken at an answer."""
    return next(a.g for a in node.attribute if a.name == BRANCHES[answer])


def index_of(graph: onnx.GraphProto, node: onnx.NodeProto) -> int:
    """Where the node with the outputs of `node` stands in a graph."""
    return next(i for i, n in enumerate(graph.node) if n.output == node.output)


def up_to_branch(model: onnx.ModelProto, index: int, answer: bool) -> onnx.ModelProto:
    """A copy of a model up to the If at an index, with a branch in its place; types that were recorded are left out."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    node = changed.graph.node[index]
    written = write_out(changed.graph, node, branch_of(node, answer), f"branch{index}")
    replace_nodes(changed.graph, [*changed.graph.node[:index], *written])
    del changed.graph.value_info[:]
    return changed


def write_out(
    graph: onnx.GraphProto, node: onnx.NodeProto, branch: onnx.GraphProto, prefix: str
) -> list[onnx.NodeProto]:
    """The nodes of a branch under names of their own, the last ones under those of the If's outputs."""
    names: dict[str, str] = {}
    for tensor in branch.initializer:
        names[tensor.name] = f"{prefix}/{tensor.name}"
        weight = graph.initializer.add()
        weight.CopyFrom(tensor)
        weight.name = names[tensor.name]
    inner_names = {o for n in branch.node for o in n.output if o}
    names |= {o: f"{prefix}/{o}" for o in inner_names}
    extra = []
    for outer, inner in zip(node.output, branch.output, strict=True):
        if inner.name in inner_names and names[inner.name].startswith(f"{prefix}/"):
            names[inner.name] = outer
        else:
            source = names.get(inner.name, inner.name)
            extra.append(helper.make_node("Identity", [source], [outer], name=f"{prefix}/{outer}/identity"))
    nodes = [_renamed(n, names, prefix) for n in branch.node]
    return [*nodes, *extra]


def _renamed(node: onnx.NodeProto, names: dict[str, str], prefix: str) -> onnx.NodeProto:
    copied = _copied(node)
    copied.name = f"{prefix}/{node.name}" if node.name else ""
    _rename(copied, names)
    return copied


def rename_read(body: onnx.GraphProto, names: dict[str, str]) -> None:
    """Let a body read other values from outside; what it defines itself hides one of the same name."""
    outside = {n: new for n, new in names.items() if n not in _defined(body)}
    for node in body.node:
        _rename(node, outside)
    for value in body.output:
        value.name = outside.get(value.name, value.name)


def _rename(node: onnx.NodeProto, names: dict[str, str]) -> None:
    node.input[:] = [names.get(i, i) for i in node.input]
    node.output[:] = [names.get(o, o) for o in node.output]
    for body in bodies_of(node):
        rename_read(body, names)


def _defined(body: onnx.GraphProto) -> set[str]:
    return set(_defined_names(body))


def _defined_names(body: onnx.GraphProto) -> Iterator[str]:
    yield from (v.name for v in body.input)
    yield from (t.name for t in body.initializer)
    yield from (o for n in body.node for o in n.output)


def _copied(node: onnx.NodeProto) -> onnx.NodeProto:
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    return copied

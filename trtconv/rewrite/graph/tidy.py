"""What is left over after the rules: nodes and constants that nobody uses, constants that are there twice."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import onnx

from trtconv.core.model.bodies import bodies_of
from trtconv.core.targets import Target
from trtconv.rewrite.graph.index import Graph
from trtconv.rewrite.graph.splice import remove_dead, rewire, write_back


@dataclass(frozen=True)
class Leftovers:
    """How many dead nodes, constants that were there twice and constants that nobody used were taken out."""

    dead: int = 0
    merged: int = 0
    unused: int = 0

    @property
    def hid_patterns(self) -> bool:
        """True when rules may see something now that they could not see before."""
        return bool(self.dead or self.merged)

    def notes(self) -> list[str]:
        """In words, for the ledger."""
        counts = (
            (self.dead, "nodes that nobody used were removed"),
            (self.merged, "constants that were there twice were merged"),
            (self.unused, "constants that nobody used were removed"),
        )
        return [f"{count} {phrase}" for count, phrase in counts if count]


def tidy(model: onnx.ModelProto, target: Target) -> Leftovers:
    """Remove leftovers in place."""
    if not _has_leftovers(model.graph):
        return Leftovers()
    graph = Graph(model.graph, {}, opset=1, target=target)
    # Innermost first: what a body no longer takes from around it may be dead there.
    dead = 0
    while removed := sum(remove_dead(g, list(g.nodes.values())) for g in reversed(list(graph.scopes()))):
        dead += removed
        if not graph.with_bodies:
            break
        write_back(graph)
        graph = Graph(model.graph, {}, opset=1, target=target)
    merged = _merge_duplicates(graph)
    named = {*graph.inputs, *graph.outputs}
    unused = [n for n in graph.initializers if not graph.users.get(n) and n not in named]
    leftovers = Leftovers(dead, merged, 0 if merged else len(unused))
    if leftovers != Leftovers():
        write_back(graph)
    return leftovers


def _has_leftovers(graph: onnx.GraphProto) -> bool:
    """A quick look over the lists, so that a tidy model is not indexed for nothing."""
    used = {o.name for o in graph.output}
    # From the end, so that what a node makes was either used by now or never is.
    for node in reversed(graph.node):
        if used.isdisjoint(node.output) or (node.attribute and any(bodies_of(node))):
            return True
        used.update(node.input)
    sizes = [(t.data_type, tuple(t.dims)) for t in graph.initializer]
    return len(set(sizes)) < len(sizes) or any(t.name not in used for t in graph.initializer)


def captured_names(graph: Graph) -> frozenset[str]:
    """Names that bodies take from the main graph."""
    return frozenset(n for node in graph.nodes.values() for n in node.implicit)


def _merge_duplicates(graph: Graph) -> int:
    """Let the users of equal constants in memory use the first one; return how many became free."""
    groups: dict[tuple[object, ...], list[onnx.TensorProto]] = {}
    captured, named = captured_names(graph), {*graph.inputs, *graph.outputs}
    for tensor in graph.initializers.values():
        external = tensor.data_location == onnx.TensorProto.EXTERNAL
        if external or tensor.name in captured or tensor.name in named:
            continue
        groups.setdefault((tensor.data_type, tuple(tensor.dims)), []).append(tensor)
    merged = 0
    for tensors in groups.values():
        first: dict[bytes, str] = {}
        for tensor in tensors if len(tensors) > 1 else ():
            original = first.setdefault(_content(tensor), tensor.name)
            if original != tensor.name and graph.users.get(tensor.name):
                rewire(graph, tensor.name, original)
                merged += 1
    return merged


def _content(tensor: onnx.TensorProto) -> bytes:
    bare = onnx.TensorProto()
    bare.CopyFrom(tensor)
    bare.ClearField("name")
    bare.ClearField("doc_string")
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()

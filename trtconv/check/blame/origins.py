"""Which line of the PyTorch code an output, or a node that a message names, comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import beside
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import Origin, origin_of
from trtconv.core.report import OutputComparison

if TYPE_CHECKING:
    import onnx

# `ONNX Runtime fails at run time in Reshape '/head/Reshape': ...`, and its own `Name: '...'`.
_NAMED_NODE = re.compile(r"(?:Name: ?| in \w+ )'([^']+)'")


def graph_of(subject: Path) -> Path | None:
    """The ONNX file that a subject is, or was built from."""
    stem = beside(subject, "").name
    places = [subject] if subject.suffix == ".onnx" else [subject.with_name(stem + s) for s in (".trt.onnx", ".onnx")]
    return next((p for p in places if p.exists()), None)


def origins_of(subject: Path, comparisons: Iterable[OutputComparison]) -> dict[str, dict[str, str]]:
    """Node, module and source of every output that differs; empty when no ONNX file is there to ask."""
    bad = [c for c in comparisons if not c.passed]
    path = graph_of(subject) if bad else None
    if path is None:
        return {}
    try:
        graph = load_model(path).graph
    except TrtconvError:
        return {}
    makers = {name: node for node in graph.node for name in node.output}
    named = {node.name: node for node in graph.node if node.name}
    origins = {}
    for comparison in bad:
        name_match = _NAMED_NODE.search(comparison.reason)
        node = named.get(name_match[1]) if name_match else makers.get(comparison.output)
        if node is not None and comparison.output not in origins:
            origin = nearest_origin(node, makers)
            origins[comparison.output] = {"node": node.name, "module": origin.module, "source": origin.source}
    return origins


def named_node(model: onnx.ModelProto, ort_message: str) -> tuple[str, Origin] | None:
    """Name and origin of the node that ONNX Runtime's message names."""
    name_match = _NAMED_NODE.search(ort_message)
    node = next((n for n in model.graph.node if n.name == name_match[1]), None) if name_match else None
    if node is None:
        return None
    return node.name, nearest_origin(node, {name: n for n in model.graph.node for name in n.output})


def nearest_origin(node: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> Origin:
    """The origin of a node, or of the nearest node before it that has a source line."""
    waiting, visited = [node], {id(node)}
    for current in waiting:
        origin = origin_of(current)
        if origin.source:
            return origin
        before = [makers[i] for i in current.input if i in makers and id(makers[i]) not in visited]
        visited.update(map(id, before))
        waiting += before
    return origin_of(node)

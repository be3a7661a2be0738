"""Values that a graph reads or gives back and that nothing in it or around it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of

if TYPE_CHECKING:
    import onnx


def require_given_values(model: onnx.ModelProto, malformed: Callable[[str], Exception]) -> None:
    """Raise `malformed` for a value that nothing gives. The order of nodes is free: ONNX Runtime sorts them."""
    _require(model.graph, frozenset(), malformed)
    for function in model.functions:
        available = {*function.input, *(o for n in function.node for o in n.output)}
        _require_nodes(function.node, frozenset(available), malformed)


def _require(graph: onnx.GraphProto, around: frozenset[str], malformed: Callable[[str], Exception]) -> None:
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer} | {o for n in graph.node for o in n.output}
    available = around | own
    _require_nodes(graph.node, available, malformed)
    for value in graph.output:
        if value.name not in available:
            raise malformed(f"the output '{value.name}' is given by no node, input or initializer")


def _require_nodes(
    nodes: Iterable[onnx.NodeProto], available: frozenset[str], malformed: Callable[[str], Exception]
) -> None:
    for node in nodes:
        for name in node.input:
            if name and name not in available:
                what = f"the node {node.op_type} '{node.name or next(iter(node.output), '')}' reads '{name}', which no"
                raise malformed(f"{what} node, input or initializer gives")
        if node.attribute:
            for body in bodies_of(node):
                _require(body, available, malformed)

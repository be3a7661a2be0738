"""What a target accepts and computes wrongly: a graph that still holds such a node is not handed on."""

from __future__ import annotations

import onnx

from trtconv.core.errors import UnsupportedError
from trtconv.core.targets import Target
from trtconv.rewrite.engine import describe
from trtconv.rewrite.facts import index_model, opset_of
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.opset import GRID_MODES, REDUCTIONS
from trtconv.rewrite.result import Skipped

# A bound of Slice that is clamped still lies beyond every axis.
CLAMPED_RIGHT = ("Slice", "Constant", "Identity")


def refuse_silently_wrong(model: onnx.ModelProto, target: Target, skipped: list[Skipped]) -> None:
    """Raise UnsupportedError for the first node that TensorRT 8.6 would take and compute wrongly."""
    if target.generation != 8:
        return
    graph = index_model(model, target)
    for scope in graph.scopes():
        for node in list(scope.nodes.values()):
            problem = silently_wrong(scope, node)
            if problem:
                reasons = [s.reason for s in skipped if s.node == node.name and s.reason]
                raise UnsupportedError(
                    f"{describe(node)}: {target} {problem}, without a word",
                    hint="choose a newer target, or change the module there",
                    details=[f"no rewrite: {r}" for r in reasons],
                    where=node.origin.source or None,
                )
    if opset_of(model) > target.max_opset:
        raise UnsupportedError(f"the graph has opset {opset_of(model)}, {target} reads at most {target.max_opset}")


def _over_32_bits(graph: Graph, name: str) -> bool:
    """True for an integer constant with a value that 32 bits do not hold."""
    if graph.dtype(name) != onnx.TensorProto.INT64:
        return False
    values = graph.ints(name)
    return values is not None and any(not -(1 << 31) <= v < 1 << 31 for v in values)


def silently_wrong(graph: Graph, node: Node) -> str:
    """What TensorRT 8.6 does with a node that it takes and gets wrong; empty for the others."""
    if node.domain:
        return ""
    if node.op in REDUCTIONS and node.input(1):
        return "ignores the axes input and reduces over all axes"
    if node.op == "Shape" and (node.attr("start", 0) or node.attr("end") is not None):
        return "ignores start and end and gives the whole shape"
    if node.op == "Resize" and node.attr("antialias", 0):
        return "ignores antialiasing"
    if node.op == "Resize" and node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "ignores the aspect ratio policy"
    if node.op in ("ScatterND", "ScatterElements") and node.attr("reduction", "none") != "none":
        return "drops the reduction and overwrites"
    if node.op not in CLAMPED_RIGHT and any(_over_32_bits(graph, i) for i in node.inputs if i):
        return "clamps 64-bit integers to 32 bits"
    if node.op == "GridSample" and node.attr("mode") in GRID_MODES:
        return f"takes mode '{node.attr('mode')}' for nearest"
    return ""

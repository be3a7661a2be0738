"""Saying a whole graph in an older opset, node by node; `onnx.version_converter` has gaps on the way down.

A node stays as it is when its schema in the older opset has its inputs and attributes. Where only the spelling
changed it is restated; everything else is an obstacle, and then the graph keeps its opset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import onnx
from onnx import helper

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

REDUCTIONS = (
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
)
GRID_MODES = {"linear": "bilinear", "cubic": "bicubic"}
# Attributes that came later and that say nothing where the value is this one; others do not exist in older opsets.
NEUTRAL = {
    "saturate": 1,
    "round_mode": "up",
    "block_size": 0,
    "output_dtype": 0,
    "ceil_mode": 0,
    "precision": 0,
    "keep_aspect_ratio_policy": "stretch",
    "antialias": 0,
    "noop_with_empty_axes": 0,
}


@dataclass(frozen=True)
class Restated:
    """How to make a node in the older opset; one value per output.

    `unchanged` nodes are written alike in both opsets, but their definition has a newer version, so that it has to
    be shown that they compute the same.
    """

    build: Callable[[Replacement], tuple[Value, ...]]
    unchanged: bool = False


@dataclass(frozen=True)
class Obstacle:
    """Why a node cannot be said in the older opset."""

    reason: str


def restate(graph: Graph, node: Node, opset: int) -> Restated | Obstacle | None:
    """How to say one node of the default domain in `opset`; None when it can stay as it is."""
    if node.domain:
        return None
    try:
        schema = onnx.defs.get_schema(node.op, opset, "")
    except onnx.defs.SchemaError:
        return Obstacle(f"{node.op} came after opset {opset}")
    wrong = _wrong_type(graph, node, schema)
    if wrong:
        return Obstacle(f"{node.op} does not take {wrong} in opset {opset}")
    if node.op == "DFT":
        return Obstacle("the axis of DFT became an input with another default")
    if node.op in REDUCTIONS and (node.input(1) or node.attr("noop_with_empty_axes", 0)):
        return _axes_as_attribute(graph, node)
    if node.op == "GridSample" and node.attr("mode") in GRID_MODES:
        if graph.rank(node.inputs[0]) not in (None, 4):
            return Obstacle("GridSample of volumes came with opset 20")
        return _copied(node, {"mode": GRID_MODES[node.attr("mode")]})
    if len([i for i in node.inputs if i]) > schema.max_input:
        return Obstacle(f"{node.op} has {len(node.inputs)} inputs, in opset {opset} at most {schema.max_input}")
    later = [a.name for a in node.proto.attribute if a.name not in schema.attributes]
    meant = [n for n in later if not _says_nothing(node, n)]
    if meant:
        # Rules write axes otherwise where nothing else stands in their way.
        name = min(meant, key=lambda n: n == "axes")
        shown = f"{name} = {_shown(node.attr(name))}"
        return Obstacle(f"{node.op} has the attribute {shown}, which came after opset {opset}")
    if later:
        return _copied(node, dict.fromkeys(later))
    same = onnx.defs.get_schema(node.op, graph.opset, "").since_version == schema.since_version
    return None if same else replace(_copied(node, {}), unchanged=True)


def _wrong_type(graph: Graph, node: Node, schema: onnx.defs.OpSchema) -> str:
    """The element type of an input that the older form does not take, or nothing."""
    for index, name in enumerate(node.inputs):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)] if schema.inputs else None
        number = graph.dtype(name) if name else 0
        if formal is None or not number:
            continue
        kind = f"tensor({onnx.TensorProto.DataType.Name(number).lower()})"
        if kind not in formal.types:
            return str(onnx.TensorProto.DataType.Name(number).lower())
    return ""


def _shown(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value


def _says_nothing(node: Node, name: str) -> bool:
    value = node.attr(name)
    if name == "dilations":
        return all(v == 1 for v in value)
    if name == "num_outputs":
        return False
    return name in NEUTRAL and value == NEUTRAL[name]


def _copied(node: Node, changed: dict[str, object]) -> Restated:
    """The same node with some attributes changed, or left out (None)."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.proto.attribute}
    attributes.update(changed)
    return Restated(lambda g: g.ops(node.op, len(node.outputs), *node.inputs, **attributes))


def _axes_as_attribute(graph: Graph, node: Node) -> Restated | Obstacle | None:
    axes = graph.ints(node.inputs[1]) if node.input(1) else ()
    if axes is None:
        return Obstacle(f"the axes of {node.op} are computed while the model runs")
    if not axes:
        if node.attr("noop_with_empty_axes", 0):
            return Restated(lambda g: (_of_single_elements(g, node),))
        return Restated(lambda g: (g.op(node.op, node.inputs[0], keepdims=node.attr("keepdims", 1)),))
    return Restated(lambda g: (g.op(node.op, node.inputs[0], axes=list(axes), keepdims=node.attr("keepdims", 1)),))


def _of_single_elements(g: Replacement, node: Node) -> Value:
    """What a reduction gives of each element by itself: it still squares, or takes the amount or the logarithm."""
    value = node.inputs[0]
    if node.op == "ReduceSumSquare":
        return g.mul(value, value)
    if node.op in ("ReduceL1", "ReduceL2"):
        return g.op("Abs", value)
    return g.op("Log", value) if node.op == "ReduceLogSum" else g.identity(value)

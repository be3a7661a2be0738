"""BF16 in ONNX: convolutions, poolings and norms take it since opset 22, so a graph of an older one is restated.

From opset 13 on only a few operators changed otherwise (ONNX's changelog of operators): axes of reductions became an
input at 18, Split wants the number of its parts there, GridSample renamed its modes at 20, RoiAlign got another default
at 16. TensorRT reads opset 22 since 10.x; 8.6 has no BF16.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import helper

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.bodies import graphs_of
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS, Graph, Node
from trtconv.rewrite.lowering.opset import GRID_MODES, REDUCTIONS

OPSET = 22
IR_VERSION = 10
OLDEST = 13
AXES_INPUT = 18


def require_raisable(root: Graph) -> None:
    """Raise InvalidRequestError naming the nodes that opset 22 says differently in a way not restated here."""
    obstacles = [(n, w) for g in root.scopes() for n in g.nodes.values() if (w := _obstacle(n, root.opset))]
    if root.opset < OLDEST:
        raise InvalidRequestError(
            f"BF16 needs a graph of opset {OPSET}, and this one has opset {root.opset}",
            hint=f"export the module with opset {OLDEST} or later",
        )
    if obstacles:
        node, why = obstacles[0]
        raise InvalidRequestError(
            f"BF16 needs a graph of opset {OPSET}, and {node.key} '{node.name}' cannot be brought there: {why}",
            hint=f"export the module with opset {OPSET}",
            details=[f"{n.key} '{n.name}': {w}" for n, w in obstacles[1:]],
            where=node.origin.source or None,
        )


def _obstacle(node: Node, opset: int) -> str:
    if node.key == "GroupNormalization" and opset < 21:
        return "scale and bias had another shape before opset 21"
    if node.key == "DFT" and opset < 20:
        return "its axis became an input at opset 20"
    if node.key == "BatchNormalization" and opset < 14 and len(node.outputs) > 1:
        return "its training outputs changed at opset 14"
    return ""


def raise_opset(model: onnx.ModelProto) -> None:
    """Restate a model of opset 13 to 21 in opset 22, in place; `require_raisable` was asked before."""
    entry = next(o for o in model.opset_import if o.domain in DEFAULT_DOMAINS)
    axes: dict[tuple[int, ...], str] = {}
    used_names = {name for graph in graphs_of(model.graph) for name in _names(graph)}
    for graph in graphs_of(model.graph):
        for node in graph.node:
            if node.domain in DEFAULT_DOMAINS:
                _restate(node, entry.version, axes, used_names)
    for values, name in axes.items():
        model.graph.initializer.append(helper.make_tensor(name, onnx.TensorProto.INT64, [len(values)], values))
    entry.version = OPSET
    model.ir_version = max(model.ir_version, IR_VERSION)


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (v.name for v in graph.input)
    yield from (t.name for t in graph.initializer)
    for node in graph.node:
        yield from node.output


def _restate(node: onnx.NodeProto, opset: int, axes: dict[tuple[int, ...], str], used_names: set[str]) -> None:
    attributes = {a.name: a for a in node.attribute}
    if node.op_type in REDUCTIONS and opset < AXES_INPUT and "axes" in attributes:
        values = tuple(attributes["axes"].ints)
        node.attribute.remove(attributes["axes"])
        if values not in axes:
            axes[values] = unused_name("axes_" + "_".join(map(str, values)), used_names)
        node.input.append(axes[values])
    elif node.op_type == "Split" and opset < AXES_INPUT and len([i for i in node.input if i]) == 1:
        node.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
    elif node.op_type == "GridSample" and opset < 20:
        _set(node, attributes, "mode", "bilinear", {new: old for old, new in GRID_MODES.items()})
    elif node.op_type == "RoiAlign" and opset < 16:
        _set(node, attributes, "coordinate_transformation_mode", "output_half_pixel", {})


def _set(
    node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], name: str, default: str, renamed: dict[str, str]
) -> None:
    value = attributes[name].s.decode() if name in attributes else default
    if name in attributes:
        node.attribute.remove(attributes[name])
    node.attribute.append(helper.make_attribute(name, renamed.get(value, value)))


def unused_name(base: str, used_names: set[str]) -> str:
    """`base`, with a number where it is taken; the name counts as used from then on."""
    name, count = base, 1
    while name in used_names:
        count += 1
        name = f"{base}_{count}"
    used_names.add(name)
    return name

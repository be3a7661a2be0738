"""Ifs whose branches cost little: both are computed, and a Where takes one.

Measured with 8.6 on an H200: a ViT whose If interpolates its table of positions, and Conv-TasNet, whose If pads the
signal, end the build with "Could not find any implementation for node {ForeignNode[...]}", and with a Where they build
and equal the module. TensorRT-RTX 1.7 builds both forms.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import TensorProto, helper, numpy_helper

from trtconv.core.model.bodies import replace_nodes
from trtconv.core.model.inference import inferred_types, without_weights
from trtconv.proof.probes.decisions import BLIND, INTEGERS, depend_on_values
from trtconv.rewrite.graph.branches import BRANCHES, branch_of, index_of, write_out

# What a branch may do to values; of what it works out from sizes and weights there is little, whatever it is.
MOVING = {
    *("Identity", "Pad", "Slice", "Concat", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand"),
    *("Tile", "Split", "Gather", "Cast", "Shape", "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Relu", "Clip", "Where"),
    *("MaxPool", "AveragePool"),
}
MOST_ON_VALUES = 8
MOST_NODES = 512
WITH_BODIES = {"Loop", "Scan"}
SELECTED = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT32, TensorProto.INT64}


def costs_little(model: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    """True for an If of the main graph both of whose branches may be computed at each run."""
    types = inferred_types(without_weights(model))
    if not all(types.get(name) in SELECTED for name in node.output):
        return False
    moving = {o for n in depend_on_values(model.graph) for o in n.output} | {v.name for v in model.graph.input}
    moving -= {t.name for t in model.graph.initializer}
    weights = {t.name: t for t in model.graph.initializer}
    return all(_is_little(branch_of(node, answer), moving, types, weights) for answer in BRANCHES)


def _is_little(
    branch: onnx.GraphProto, moving: set[str], types: Mapping[str, int], weights: Mapping[str, onnx.TensorProto]
) -> bool:
    moving = set(moving)
    weights = {**weights, **{t.name: t for t in branch.initializer}}
    count = on_values = 0
    for node in branch.node:
        count += 1
        if node.op_type == "If":
            # It is selected itself, once it stands in the main graph.
            if not all(_is_little(branch_of(node, answer), moving, types, weights) for answer in BRANCHES):
                return False
            moving.update(node.output)
            continue
        if node.domain or node.op_type in WITH_BODIES or _may_divide_by_zero(node, types, weights):
            return False
        if node.op_type not in BLIND and any(i in moving for i in node.input):
            on_values += 1
            moving.update(node.output)
            if node.op_type not in MOVING:
                return False
    return count <= MOST_NODES and on_values <= MOST_ON_VALUES


def _may_divide_by_zero(
    node: onnx.NodeProto, types: Mapping[str, int], weights: Mapping[str, onnx.TensorProto]
) -> bool:
    """A whole number by one that a branch may guard: a process ends by that."""
    if node.op_type not in ("Div", "Mod") or types.get(node.input[0]) not in INTEGERS:
        return False
    divisor = weights.get(node.input[1])
    return divisor is None or not numpy_helper.to_array(divisor).all()


def select(model: onnx.ModelProto, node: onnx.NodeProto, prefix: str) -> list[onnx.NodeProto]:
    """Put both branches of an If of the main graph in its place, with a Where for each output; the nodes written."""
    nodes: list[onnx.NodeProto] = []
    sides = {True: "then", False: "else"}
    for answer, side in sides.items():
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.output[:] = [f"{prefix}{side}/{name}" for name in node.output]
        nodes += write_out(model.graph, copy, branch_of(node, answer), f"{prefix}{side}")
    for name in node.output:
        parts = [node.input[0], *(f"{prefix}{side}/{name}" for side in sides.values())]
        chosen = helper.make_node("Where", parts, [name], f"{prefix}{name}")
        chosen.metadata_props.extend(node.metadata_props)
        nodes.append(chosen)
    graph = model.graph
    index = index_of(graph, node)
    replace_nodes(graph, [*graph.node[:index], *nodes, *graph.node[index + 1 :]])
    return nodes

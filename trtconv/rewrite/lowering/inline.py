"""Local functions written out at their calls: rules match across them, and TensorRT 8.6 has no functions."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.functions import imported_opsets, opset_domain
from trtconv.core.model.provenance import MODULE_KEY, SOURCE_KEY, origin_of

# Bodies of trtconv's own plugins stay: they let ONNX Runtime run the node, they are not what is built.
PLUGIN_DOMAIN = "trtconv"


def inline_functions(model: onnx.ModelProto) -> tuple[onnx.ModelProto, int]:
    """The model without local functions, and how many there were. Nodes get the module and line of their call."""
    from onnx import inliner

    functions = [f for f in model.functions if f.domain != PLUGIN_DOMAIN]
    if not functions:
        return model, 0
    plugin_functions = [(f.domain, f.name) for f in model.functions if f.domain == PLUGIN_DOMAIN]
    calls = {(f.domain, f.name) for f in functions}
    owners = {
        output: node
        for node in model.graph.node
        if (node.domain, node.op_type) in calls
        for output in node.output
        if output
    }
    old = {output for node in model.graph.node for output in node.output} - set(owners)
    model = _in_one_opset(_with_defaults(model, functions))
    result = inliner.inline_selected_functions(model, plugin_functions, exclude=True)
    _give_origins(result.graph, owners, old)
    if not plugin_functions:
        del result.functions[:]
    return result, len(functions)


def _with_defaults(model: onnx.ModelProto, functions: Sequence[onnx.FunctionProto]) -> onnx.ModelProto:
    """The model with each call's missing attributes written at the call: ONNX's inliner forgets a function's defaults.

    A default that a function has for an attribute which it hands on is the same in the call inside.
    """
    defaults = {(f.domain, f.name, f.overload): list(f.attribute_proto) for f in functions if f.attribute_proto}
    if not defaults:
        return model
    filled = type(model)()
    filled.CopyFrom(model)
    for nodes in (filled.graph.node, *(f.node for f in filled.functions)):
        for call in walk_nodes(nodes):
            present = {a.name for a in call.attribute}
            missing = [a for a in defaults.get((call.domain, call.op_type, call.overload), ()) if a.name not in present]
            call.attribute.extend(missing)
    return filled


def _in_one_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with functions in its own opset, for the inliner takes no others.

    Where that would change what an operator does, the model was refused when it was read (`require_one_meaning`).
    """
    outer = imported_opsets(model)
    if all(outer.get(d, v) == v for f in model.functions for d, v in imported_opsets(f).items()):
        return model
    settled = type(model)()
    settled.CopyFrom(model)
    for function in settled.functions:
        for entry in function.opset_import:
            entry.version = outer.get(opset_domain(entry.domain), entry.version)
    return settled


def _give_origins(graph: onnx.GraphProto, owners: dict[str, onnx.NodeProto], old: set[str]) -> None:
    """The nodes of a call stand in a row that ends with the one that makes the call's last output."""
    row: list[onnx.NodeProto] = []
    for node in graph.node:
        if any(o in old for o in node.output):
            row = []
            continue
        row.append(node)
        call = next((owners[o] for o in node.output if o in owners), None)
        if call is None:
            continue
        origin = origin_of(call)
        for inlined in row:
            if not origin_of(inlined):
                pairs = ((MODULE_KEY, origin.module), (SOURCE_KEY, origin.source))
                for key, value in pairs:
                    if value:
                        inlined.metadata_props.add(key=key, value=value)
        row = []

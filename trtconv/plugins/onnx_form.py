"""A plugin as ONNX sees it: the node that a rewrite emits, the function body, and the evaluator's operator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.functions import changed_operators, opset_domain
from trtconv.core.model.opset import opset_of
from trtconv.core.text.fields import Fields
from trtconv.core.text.json_text import parse_json
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE, Array, Attributes, PluginDescription

if TYPE_CHECKING:
    import onnx

LOWEST_OPSET = 15
"""Function bodies use Shape with start and end, and CastLike, which came with opset 15."""

SIGNATURE_KEY = "trtconv.signature"
"""Metadata of a function: the tensors' type variables, so that a model with a user's plugin says all about it."""

OPSET_VERSION = 1
"""The version of the `trtconv` domain in a model's opset_import."""


def node_attributes(plugin: PluginDescription, **attributes: Any) -> dict[str, Any]:
    """Every attribute of the ONNX node, defaults written out, for onnx.helper.make_node or a graph-surgeon node.

    `plugin_version` and `plugin_namespace` are string attributes, since TensorRT before 10.10 looks only at them.
    Raises InvalidRequestError for an attribute that is unknown or out of range.
    """
    checked = plugin.checked_attributes(attributes)
    values = {k: list(v) if isinstance(v, tuple) else v for k, v in checked.items()}
    return {**values, "plugin_version": plugin.version, "plugin_namespace": NAMESPACE}


def require_arity(plugin: PluginDescription, inputs: int, outputs: int) -> None:
    """Raise InvalidRequestError when the plugin has another number of inputs or outputs."""
    if (inputs, outputs) != (len(plugin.inputs), len(plugin.outputs)):
        raise InvalidRequestError(
            f"{plugin.op_type} takes {len(plugin.inputs)} inputs and gives {len(plugin.outputs)} outputs, "
            f"not {inputs} and {outputs}"
        )


def make_node(
    plugin: PluginDescription, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attribute_values: Any
) -> onnx.NodeProto:
    """The plugin's ONNX node in domain `trtconv`. Raises InvalidRequestError for wrong inputs or attributes."""
    from onnx import helper

    require_arity(plugin, len(inputs), len(outputs))
    attributes = node_attributes(plugin, **attribute_values)
    node: onnx.NodeProto = helper.make_node(
        plugin.op_type, list(inputs), list(outputs), name=name, domain=NAMESPACE, **attributes
    )
    return node


def function_proto(plugin: PluginDescription, opset: int) -> onnx.FunctionProto:
    """The plugin as an ONNX function whose body is valid in `opset`, so that ONNX Runtime runs models with the node.

    Raises InvalidRequestError for an opset under 15.
    """
    from onnx import helper, parser

    if opset < LOWEST_OPSET:
        raise InvalidRequestError(
            f"{plugin.op_type} has a function body from opset {LOWEST_OPSET} on, not in opset {opset}",
            hint="export with opset 17 or later",
        )
    names = ", ".join([*(a.name for a in plugin.attributes), "plugin_version", "plugin_namespace"])
    tensors = ", ".join(t.name for t in plugin.inputs)
    results = ", ".join(t.name for t in plugin.outputs)
    text = (
        f'<domain: "{NAMESPACE}", opset_import: ["" : {opset}]>\n'
        f"{plugin.op_type} <{names}> ({tensors}) => ({results}) {{{plugin.body(opset)}}}"
    )
    function: onnx.FunctionProto = parser.parse_function(text)
    # Nodes from elsewhere may leave attributes out, so that each has its default here too.
    del function.attribute[:]
    defaults = node_attributes(plugin)
    function.attribute_proto.extend(helper.make_attribute(name, value) for name, value in defaults.items())
    function.doc_string = plugin.summary
    types = {name: list(allowed) for name, allowed in plugin.types}
    slots = {"inputs": [t.type for t in plugin.inputs], "outputs": [t.type for t in plugin.outputs], "types": types}
    function.metadata_props.add(key=SIGNATURE_KEY, value=json.dumps(slots))
    return function


def signature_of(function: onnx.FunctionProto) -> dict[str, Any] | None:
    """`inputs` and `outputs` (type variables) and `types` (variable to NumPy names) of a plugin's function body."""
    text = next((p.value for p in function.metadata_props if p.key == SIGNATURE_KEY), None)
    if text is None:
        return None
    try:
        fields = Fields(parse_json(text))
        table = fields.table("types")
        types = {name: table.texts(name) for name in table.names()}
        inputs, outputs = fields.texts("inputs"), fields.texts("outputs")
        unknown = {*inputs, *outputs} - {*types}
        if unknown:
            raise ValueError(f"it does not say which types {min(unknown)} may be")
        return {"inputs": inputs, "outputs": outputs, "types": types}
    except ValueError as error:
        raise InvalidRequestError(
            f"the body of the plugin '{function.name}' has a damaged signature: {error}", hint="make the model again"
        ) from error


def used_plugins(model: onnx.ModelProto) -> tuple[PluginDescription, ...]:
    """The plugins of which the main graph or one of its subgraphs has a node, in registry order."""
    op_types = {node.op_type for node in walk_nodes(model.graph.node) if node.domain == NAMESPACE}
    return tuple(p for p in PLUGINS if p.op_type in op_types)


def add_functions(
    model: onnx.ModelProto, plugins: Iterable[PluginDescription] = (), bodies: Iterable[onnx.FunctionProto] = ()
) -> None:
    """Give the model the function body of each plugin that it uses, and the opset import of the domain.

    `plugins` are descriptions beside trtconv's own. The body of a plugin of which there is no description is taken
    from the model itself or from `bodies`.
    """
    from onnx import helper

    opset = opset_of(model, LOWEST_OPSET)
    described = {p.op_type: p for p in (*PLUGINS, *plugins)}
    undescribed = {f.name: f for f in (*model.functions, *bodies) if f.domain == NAMESPACE and f.name not in described}
    used = {node.op_type for node in walk_nodes(model.graph.node) if node.domain == NAMESPACE}
    functions = [function_proto(p, opset) for name, p in described.items() if name in used]
    functions += [_in_opset(f, opset) for name, f in undescribed.items() if name in used]
    remove_functions(model)
    model.functions.extend(functions)
    if functions and not any(o.domain == NAMESPACE for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid(NAMESPACE, OPSET_VERSION))
    # Attribute defaults of functions came with IR 9.
    model.ir_version = max(model.ir_version, 9) if functions else model.ir_version


def _in_opset(function: onnx.FunctionProto, opset: int) -> onnx.FunctionProto:
    """The body said to be of another opset, where no operator in it changed between the two; else as it is."""
    from onnx import FunctionProto

    copy = FunctionProto()
    copy.CopyFrom(function)
    if not changed_operators(copy, {"": opset}):
        for entry in copy.opset_import:
            entry.version = opset if opset_domain(entry.domain) == "" else entry.version
    return copy


def remove_functions(model: onnx.ModelProto) -> None:
    """Take the function bodies out: TensorRT 9.0 to 10.6 prefer a body to a plugin, and 8.6 knows no functions."""
    others = [f for f in model.functions if f.domain != NAMESPACE]
    del model.functions[:]
    model.functions.extend(others)


def evaluator_operators() -> list[type[Any]]:
    """One class per plugin for onnx.reference.ReferenceEvaluator(new_ops=...), by the NumPy reference."""
    return [_operator(plugin) for plugin in PLUGINS]


def _operator(plugin: PluginDescription) -> type[Any]:
    from onnx.reference.op_run import OpRun

    def run(self: Any, *inputs: Array, **attributes: Any) -> tuple[Array, ...]:
        del self
        return plugin.evaluate(inputs, _declared(plugin, attributes))

    return type(plugin.op_type, (OpRun,), {"op_domain": NAMESPACE, "_run": run})


def _declared(plugin: PluginDescription, attributes: Attributes) -> dict[str, Any]:
    names = {a.name for a in plugin.attributes}
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in attributes.items() if k in names and v is not None}

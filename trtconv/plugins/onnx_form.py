"""A plugin as ONNX sees it: the node that a rewrite emits, the function body, and the evaluator's operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.description import NAMESPACE, Array, Attributes, PluginDescription
from trtconv.plugins.registry import PLUGINS

if TYPE_CHECKING:
    import onnx

LOWEST_OPSET = 15
"""Function bodies use Shape with start and end, and CastLike, which came with opset 15."""

OPSET_VERSION = 1
"""The version of the `trtconv` domain in a model's opset_import."""


def node_attributes(plugin: PluginDescription, **given: Any) -> dict[str, Any]:
    """Every attribute of the ONNX node, defaults written out, for onnx.helper.make_node or a graph-surgeon node.

    `plugin_version` and `plugin_namespace` are string attributes, since TensorRT before 10.10 looks only at them.
    Raises InvalidRequestError for an attribute that is unknown or out of range.
    """
    checked = plugin.checked_attributes(given)
    values = {k: list(v) if isinstance(v, tuple) else v for k, v in checked.items()}
    return {**values, "plugin_version": plugin.version, "plugin_namespace": NAMESPACE}


def make_node(
    plugin: PluginDescription, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **given: Any
) -> onnx.NodeProto:
    """The plugin's ONNX node in domain `trtconv`. Raises InvalidRequestError for wrong inputs or attributes."""
    from onnx import helper

    if len(inputs) != len(plugin.inputs) or len(outputs) != len(plugin.outputs):
        raise InvalidRequestError(
            f"{plugin.op_type} takes {len(plugin.inputs)} inputs and gives {len(plugin.outputs)} outputs, "
            f"not {len(inputs)} and {len(outputs)}"
        )
    attributes = node_attributes(plugin, **given)
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
    return function


def used_plugins(model: onnx.ModelProto) -> tuple[PluginDescription, ...]:
    """The plugins of which the main graph or one of its subgraphs has a node, in registry order."""
    found = {node.op_type for node in _nodes(model.graph) if node.domain == NAMESPACE}
    return tuple(p for p in PLUGINS if p.op_type in found)


def add_functions(model: onnx.ModelProto) -> None:
    """Give the model the function body of each plugin that it uses, and the opset import of the domain."""
    from onnx import helper

    remove_functions(model)
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), LOWEST_OPSET)
    plugins = used_plugins(model)
    model.functions.extend(function_proto(p, opset) for p in plugins)
    if plugins and not any(o.domain == NAMESPACE for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid(NAMESPACE, OPSET_VERSION))
    # Attribute defaults of functions came with IR 9.
    model.ir_version = max(model.ir_version, 9) if plugins else model.ir_version


def remove_functions(model: onnx.ModelProto) -> None:
    """Take the function bodies out: TensorRT 9.0 to 10.6 prefer a body to a plugin, and 8.6 knows no functions."""
    kept = [f for f in model.functions if f.domain != NAMESPACE]
    del model.functions[:]
    model.functions.extend(kept)


def evaluator_operators() -> list[type[Any]]:
    """One class per plugin for onnx.reference.ReferenceEvaluator(new_ops=...), by the NumPy reference."""
    return [_operator(plugin) for plugin in PLUGINS]


def _operator(plugin: PluginDescription) -> type[Any]:
    from onnx.reference.op_run import OpRun

    def run(self: Any, *inputs: Array, **given: Any) -> tuple[Array, ...]:
        del self
        return plugin.evaluate(inputs, _declared(plugin, given))

    return type(plugin.op_type, (OpRun,), {"op_domain": NAMESPACE, "_run": run})


def _declared(plugin: PluginDescription, given: Attributes) -> dict[str, Any]:
    names = {a.name for a in plugin.attributes}
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in given.items() if k in names and v is not None}


def _nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    nodes = list(graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            for subgraph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                nodes.extend(_nodes(subgraph))
    return nodes

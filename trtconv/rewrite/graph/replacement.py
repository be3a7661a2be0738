"""The graph-surgeon graph in which a rule builds what stands in the place of its match.

Its inputs are `gs.Variable`s of the values that enter, typed and shaped where the index knows; its outputs are what the
rule's `build` returned. Rules call `layer`, or the operators as methods; `export` turns the graph into the nodes and
constants that `splice` puts into the model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx
import onnx_graphsurgeon as gs
from onnx import numpy_helper
from onnx_graphsurgeon.exporters.onnx_exporter import OnnxExporter

from trtconv.rewrite.graph.index import Array, ContentKey, Graph, content_key
from trtconv.rewrite.graph.operators import OperatorGraph, Value, numpy_dtype, onnx_dtype

if TYPE_CHECKING:
    from trtconv.plugins.description import PluginDescription

# What a rule's build returns: one value per output of the root, "" for one that nobody uses.
Values: TypeAlias = Value | Sequence[Value]


class Replacement(OperatorGraph):
    """A graph-surgeon graph whose names start with the replaced value's name and the rule's.

    A string among the inputs of `layer` is the name of a value of the graph around; a string among the outputs begins
    the name of a new tensor, as in graph-surgeon.
    """

    def __init__(self, index: Graph, stem: str, opset: int | None = None) -> None:
        super().__init__(opset=opset or index.opset)
        self.index, self.stem = index, stem
        self.constants: list[gs.Constant] = []
        self._values: dict[str, gs.Variable] = {}
        self._by_content: dict[ContentKey, gs.Tensor] = {}
        self._taken: set[str] = set()

    def unique_name(self, stem: str) -> str:
        """A name that neither this graph nor the one around has."""
        base = name = f"{self.stem}/{stem}"
        count = 1
        while name in self.index.names or name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name

    def _generate_name(self, prefix: str, *_: Any) -> str:
        return self.unique_name(prefix)

    def value(self, name: str) -> gs.Tensor:
        """The tensor of a value of the graph around, one for each name."""
        if name not in self._values:
            facts = self.index.type(name)
            shape = None if facts.dims is None else list(facts.dims)
            self._values[name] = gs.Variable(name, dtype=numpy_dtype(facts.dtype), shape=shape)
            self.inputs.append(self._values[name])
        return self._values[name]

    def layer(self, inputs: Any = None, outputs: Any = None, *args: Any, **kwargs: Any) -> Any:
        """graph-surgeon's `layer`; returns the list of output tensors."""
        kwargs.setdefault("name", self.unique_name(str(kwargs.get("op") or args[0])))
        entering = [self.tensor(i) if isinstance(i, str) else i for i in inputs or ()]
        return super().layer(entering, outputs, *args, **kwargs)

    def plugin(self, plugin: str | PluginDescription, *inputs: Value, **attributes: Any) -> gs.Tensor:
        """Add a plugin's node, made from its description, and return its first output.

        `plugin` is the op type of one of trtconv's plugins, or the description of one of the user's own.
        """
        from trtconv.plugins.described.registry import find_plugin
        from trtconv.plugins.description import NAMESPACE
        from trtconv.plugins.onnx_form import node_attributes, require_arity

        described = find_plugin(plugin) if isinstance(plugin, str) else plugin
        if not isinstance(plugin, str):
            self.index.plugins[plugin.op_type] = plugin
        require_arity(described, len(inputs), len(described.outputs))
        values = node_attributes(described, **attributes)
        return self.ops(described.op_type, len(described.outputs), *inputs, domain=NAMESPACE, **values)[0]

    def const(self, array: Array, what: str = "const") -> gs.Tensor:
        """A constant; an equal small one that either graph has already is used again."""
        tensor = numpy_helper.from_array(array)
        key = content_key(tensor)
        if key in self._by_content:
            return self._by_content[key]
        if key in self.index.pool:
            return self.value(self.index.pool[key])
        constant = self._by_content[key] = super().const(array, what)
        self.constants.append(constant)
        return constant


@dataclass(frozen=True)
class Exported:
    """A replacement as ONNX: its nodes in order, new constants, and the name of each output ("" where none is).

    `dtypes` are the ONNX element types of the values that its nodes give, as far as they are known.
    """

    nodes: list[onnx.NodeProto]
    constants: list[onnx.TensorProto]
    outputs: tuple[str, ...]
    opset: int
    dtypes: Mapping[str, int]


def build_replacement(
    index: Graph, stem: str, build: Callable[[Replacement], Values], opset: int | None = None
) -> Exported:
    """Call a rule's `build` on a new graph and export the graph. Raises TypeError for what is not a tensor."""
    replacement = Replacement(index, stem, opset)
    # graph-surgeon logs to stdout, which belongs to results.
    with redirect_stdout(sys.stderr):
        result = build(replacement)
    values = [result] if isinstance(result, (str, gs.Tensor)) else list(result)
    replacement.outputs = [replacement.tensor(v) for v in values]
    return export(replacement)


def export(replacement: Replacement) -> Exported:
    """The nodes and constants of a replacement, in graph-surgeon's own export of each."""
    constants = {id(c): c for c in replacement.constants}
    for node in replacement.nodes:
        node.name = node.name or replacement.unique_name(node.op)
        constants.update((id(t), t) for t in node.inputs if isinstance(t, gs.Constant))
    constants.update((id(t), t) for t in replacement.outputs if isinstance(t, gs.Constant))
    # A tensor that a rule made without `layer` may have a name that is taken, in this graph or around it.
    names: set[str] = set()
    for tensor in (*constants.values(), *(t for n in replacement.nodes for t in n.outputs)):
        if tensor.name and (tensor.name in replacement.index.names or tensor.name in names):
            tensor.name = replacement.unique_name(tensor.name)
        names.add(tensor.name)
    return Exported(
        [export_node(n) for n in replacement.nodes],
        [OnnxExporter.export_tensor_proto(c) for c in constants.values()],
        tuple(t.name for t in replacement.outputs),
        replacement.opset,
        {t.name: onnx_dtype(t.dtype) for n in replacement.nodes for t in n.outputs if t.dtype is not None},
    )


def export_node(node: gs.Node) -> onnx.NodeProto:
    """A node as ONNX. Attributes that were copied as messages stay as they are: not every kind has a Python value."""
    messages = {k: v for k, v in node.attrs.items() if isinstance(v, onnx.AttributeProto)}
    if not messages:
        return OnnxExporter.export_node(node)
    plain = gs.Node(node.op, node.name, {k: v for k, v in node.attrs.items() if k not in messages}, domain=node.domain)
    proto = OnnxExporter.export_node(plain)
    proto.input.extend(t.name for t in node.inputs)
    proto.output.extend(t.name for t in node.outputs)
    proto.attribute.extend(messages.values())
    return proto

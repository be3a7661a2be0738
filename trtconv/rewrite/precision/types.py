"""The element type of every value, scope by scope, from the operators' schemas: no shapes, no weights, no inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import defs

from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE, PluginDescription
from trtconv.plugins.onnx_form import signature_of
from trtconv.rewrite.graph.index import Graph, Node

FLOAT = onnx.TensorProto.FLOAT
CONTROL = ("If", "Loop", "Scan")
_NAMES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip
# Ops whose output type is an attribute, with the type when it is left out (0: that of the input).
_BY_ATTRIBUTE = {
    "Cast": ("to", 0),
    "EyeLike": ("dtype", 0),
    "RandomNormal": ("dtype", FLOAT),
    "RandomUniform": ("dtype", FLOAT),
    "RandomNormalLike": ("dtype", 0),
    "RandomUniformLike": ("dtype", 0),
    "Bernoulli": ("dtype", 0),
    "Multinomial": ("dtype", 6),
    "HannWindow": ("output_datatype", FLOAT),
    "HammingWindow": ("output_datatype", FLOAT),
    "BlackmanWindow": ("output_datatype", FLOAT),
    "MelWeightMatrix": ("output_datatype", FLOAT),
}


@dataclass(frozen=True)
class TypeSlot:
    """One input or output as its operator declares it: type variable (or fixed type) and the types it allows."""

    variable: str
    allowed: frozenset[str]

    @property
    def fixed(self) -> int:
        """The element type when the operator allows exactly one, else 0."""
        return _element(next(iter(self.allowed))) if len(self.allowed) == 1 else 0


UNKNOWN = TypeSlot("", frozenset())


@dataclass(frozen=True)
class OperatorSignature:
    """The slots of an operator. A variadic tail repeats the last slot."""

    inputs: tuple[TypeSlot, ...]
    outputs: tuple[TypeSlot, ...]

    def input(self, index: int) -> TypeSlot:
        """The slot of an input."""
        return _at(self.inputs, index)

    def output(self, index: int) -> TypeSlot:
        """The slot of an output."""
        return _at(self.outputs, index)


def _at(slots: tuple[TypeSlot, ...], index: int) -> TypeSlot:
    return slots[min(index, len(slots) - 1)] if slots else UNKNOWN


def _element(text: str) -> int:
    inner = text.removeprefix("tensor(").removesuffix(")")
    return _NAMES.get(inner, 0) if text.startswith("tensor(") else 0


@dataclass
class Signatures:
    """Signatures by operator in the model's opset, each looked up once. Plugins of trtconv have theirs as well.

    Those of a user's plugins stand in the metadata of their bodies, which are among the model's `functions`.
    """

    opset: int
    functions: Sequence[onnx.FunctionProto] = ()
    _known: dict[tuple[str, str], OperatorSignature | None] = field(default_factory=dict)

    def of(self, node: Node) -> OperatorSignature | None:
        """The signature of a node's operator; None for one that neither ONNX nor trtconv defines."""
        key = (node.domain, node.op)
        if key not in self._known:
            self._known[key] = self._look_up(*key)
        return self._known[key]

    def _look_up(self, domain: str, op: str) -> OperatorSignature | None:
        if domain:
            plugin = next((p for p in PLUGINS if p.op_type == op and domain == NAMESPACE), None)
            return self._from_body(domain, op) if plugin is None else _plugin_signature(plugin)
        try:
            schema = defs.get_schema(op, self.opset, "")
        except defs.SchemaError:
            return None
        return OperatorSignature(
            *(tuple(TypeSlot(f.type_str, frozenset(f.types)) for f in s) for s in (schema.inputs, schema.outputs))
        )

    def _from_body(self, domain: str, op: str) -> OperatorSignature | None:
        function = next((f for f in self.functions if (f.domain, f.name) == (domain, op)), None)
        recorded = None if function is None else signature_of(function)
        return None if recorded is None else _signature(recorded["types"], recorded["inputs"], recorded["outputs"])


def _plugin_signature(plugin: PluginDescription) -> OperatorSignature:
    return _signature(dict(plugin.types), [t.type for t in plugin.inputs], [t.type for t in plugin.outputs])


def _signature(types: Mapping[str, Sequence[str]], inputs: Sequence[str], outputs: Sequence[str]) -> OperatorSignature:
    onnx_names = {"float32": "float"}
    allowed = {v: frozenset(f"tensor({onnx_names.get(n, n)})" for n in names) for v, names in types.items()}
    return OperatorSignature(*(tuple(TypeSlot(v, allowed[v]) for v in slots) for slots in (inputs, outputs)))


class ElementTypes:
    """The ONNX element type of every value; 0 for what is not a tensor or is not known."""

    def __init__(self, root: Graph, signatures: Signatures) -> None:
        self._signatures = signatures
        self._known: dict[int, dict[str, int]] = {}
        self._fill(root)

    def of(self, graph: Graph, name: str) -> int:
        """The type of a value as seen from a scope."""
        scope: Graph | None = graph
        while scope is not None:
            scope_types = self._known.get(id(scope), {})
            if name in scope_types:
                return scope_types[name]
            scope = scope.parent
        return 0

    def knows(self, graph: Graph, name: str) -> bool:
        """True when something before this point makes the value."""
        scope: Graph | None = graph
        while scope is not None and name not in self._known.get(id(scope), {}):
            scope = scope.parent
        return scope is not None

    def is_float(self, graph: Graph, name: str) -> bool:
        """True for an FP32 value."""
        return bool(name) and self.of(graph, name) == FLOAT

    def _fill(self, graph: Graph) -> None:
        scope_types = self._known[id(graph)] = {}
        for value in graph.proto.input:
            scope_types[value.name] = value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else 0
        scope_types.update({n: t.data_type for n, t in graph.initializers.items()})
        scope_types.update({t.values.name: t.values.data_type for t in graph.proto.sparse_initializer})
        for node in graph.nodes.values():
            _require_sorted(self, graph, node)
            for body in node.bodies:
                self._fill(body)
            for index, name in enumerate(node.outputs):
                if name:
                    scope_types[name] = self._output(graph, node, index) or graph.dtype(name)

    def _output(self, graph: Graph, node: Node, index: int) -> int:
        if node.op in CONTROL and not node.domain and node.bodies:
            # Loop's body gives the condition first.
            names = node.bodies[0].outputs[1 if node.op == "Loop" else 0 :]
            return self.of(node.bodies[0], names[index]) if index < len(names) else 0
        if node.op in ("Constant", "ConstantOfShape"):
            return _constant_type(node)
        if not node.domain and node.op in _BY_ATTRIBUTE:
            name, default = _BY_ATTRIBUTE[node.op]
            return int(node.attr(name) or default or (self.of(graph, node.input(0))))
        signature = self._signatures.of(node)
        if signature is None:
            return graph.dtype(node.outputs[index]) or self.of(graph, node.input(0))
        slot = signature.output(index)
        if slot.fixed or not slot.allowed:
            return slot.fixed
        for position, name in enumerate(node.inputs):
            if name and signature.input(position).variable == slot.variable:
                return self.of(graph, name)
        # Statistics of normalizations: their type is `stash_type`, FP32 when it is left out.
        return int(node.attr("stash_type", FLOAT)) if "tensor(float)" in slot.allowed else 0


def _require_sorted(types: ElementTypes, graph: Graph, node: Node) -> None:
    for name in node.inputs:
        if name and not types.knows(graph, name):
            raise InvalidRequestError(
                f"node '{node.name}' uses '{name}', which no node before it makes",
                hint="ONNX wants the nodes in order: sort the graph, or export the model again",
            )


def _constant_type(node: Node) -> int:
    attributes = {a.name: a for a in node.proto.attribute}
    if "value" in attributes:
        return int(attributes["value"].t.data_type)
    if "sparse_value" in attributes:
        return int(attributes["sparse_value"].sparse_tensor.values.data_type)
    kinds = {"value_int": 7, "value_ints": 7, "value_string": 8, "value_strings": 8}
    return next((k for n, k in kinds.items() if n in attributes), FLOAT)

"""The graph again with its new types: every node once, casts where two types meet, constants in the type of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.provenance import RULE_KEY
from trtconv.core.precision import TYPED
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.constants import Constants, Use, constant_as, constant_node, defining_scope
from trtconv.rewrite.precision.half import FLOAT, WeightCounts
from trtconv.rewrite.precision.opset import unused_name
from trtconv.rewrite.precision.slots import AS_IT_IS, Slots, slots_of
from trtconv.rewrite.precision.state import PrecisionPlan

RULE = "precision"
NAMES = {p.onnx: p.name for p in TYPED}


@dataclass
class Written:
    """What one scope has so far: the types and names of its values, the casts, and the protobuf that is filled."""

    graph: Graph
    into: onnx.GraphProto
    outer: Written | None = None
    types: dict[str, int] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    casts: dict[tuple[str, Use], str] = field(default_factory=dict)


class Writer:
    """Writes all scopes of one model. `casts` counts inserted Cast nodes, `weights` what became of the constants."""

    def __init__(self, plan: PrecisionPlan, root: Graph, into: onnx.GraphProto, *, keep_io: bool) -> None:
        self._plan, self._root, self._into, self._keep_io = plan, root, into, keep_io
        self._bounds: list[str] = []
        self._names = set(root.names)
        self._nodes = {str(n.proto.name) for g in root.scopes() for n in g.nodes.values()}
        self._slots: dict[int, Slots] = {}
        self._constants = Constants()
        self.casts, self.weights = 0, WeightCounts()
        self._find_uses(root)

    def _find_uses(self, graph: Graph) -> None:
        for node in graph.nodes.values():
            slots = self._slots[id(node)] = slots_of(self._plan, graph, node)
            for name, slot_type in zip(node.inputs, slots.inputs, strict=True):
                if slot_type != AS_IT_IS:
                    self._use_constant(graph, name, slot_type)
            for body in node.bodies:
                self._find_uses(body)
                for name in body.outputs:
                    if self._plan.types.is_float(body, name):
                        self._use_constant(body, name, self._body_type(node))
        if graph.parent is None:
            for name in graph.outputs:
                if self._plan.types.is_float(graph, name):
                    self._use_constant(graph, name, self._io_type())

    def _use_constant(self, graph: Graph, name: str, use_type: int) -> None:
        scope = defining_scope(graph, name)
        tensor = None if scope is None else scope.constant_tensor(name)
        if scope is not None and tensor is not None and tensor.data_type == FLOAT:
            self._constants.add_use((id(scope), name), Use(use_type))

    def _io_type(self) -> int:
        return FLOAT if self._keep_io else self._plan.to.onnx

    def _body_type(self, node: Node) -> int:
        return FLOAT if id(node) in self._plan.fp32_reasons else self._plan.to.onnx

    def write(self) -> None:
        """Write the main graph."""
        into = self._into
        scope = Written(self._root, into)
        copy_fields(self._root.proto, into, without=("node", "initializer", "value_info"))
        if not self._keep_io:
            for value in into.input:
                if self._plan.types.is_float(self._root, value.name):
                    scope.types[value.name] = value.type.tensor_type.elem_type = self._plan.to.onnx
        self._write_nodes(scope)
        for value in into.output:
            if self._plan.types.is_float(self._root, value.name):
                value.type.tensor_type.elem_type = self._io_type()
        self._write_rest(scope)

    def _write_body(self, node: Node, body: Graph, into: onnx.GraphProto, outer: Written) -> None:
        scope = Written(body, into, outer)
        copy_fields(body.proto, into, without=("node", "initializer", "value_info"))
        self._write_nodes(scope)
        body_type = self._body_type(node)
        for value in into.output:
            if self._plan.types.is_float(body, value.name):
                value.name = self._value(scope, value.name, body_type, node)
                if value.type.HasField("tensor_type"):
                    value.type.tensor_type.elem_type = body_type
            else:
                value.name = self._current(scope, value.name)[0]
        self._write_rest(scope)

    def _write_nodes(self, scope: Written) -> None:
        for node in scope.graph.nodes.values():
            if node.key == "Constant" and self._plan.types.is_float(scope.graph, node.output):
                self._write_constant(scope, node)
                continue
            slots = self._slots[id(node)]
            inputs = [
                self._value(scope, n, t, node) if n else "" for n, t in zip(node.inputs, slots.inputs, strict=True)
            ]
            copy = _without_bodies(node.proto)
            self._retype(scope, node, copy, slots)
            copy.input[:] = inputs
            copy.output[:], after = self._outputs(scope, node, slots)
            scope.into.node.append(copy)
            for internal, name, use in after:
                self._cast(scope, internal, name, use, node)

    def _retype(self, scope: Written, node: Node, copy: onnx.NodeProto, slots: Slots) -> None:
        """Attributes that say a type; bodies."""
        half = self._plan.to.onnx
        if node.key == "Cast":
            self._retype_cast(scope, node, copy, slots)
        if node.key == "ConstantOfShape" and slots.outputs[0] == half:
            value = node.attr("value") or helper.make_tensor("value", FLOAT, [1], [0.0])
            del copy.attribute[:]
            copy.attribute.append(helper.make_attribute("value", constant_as(value, Use(half), "", self._plan.to)[0]))
        for body, target in zip(node.bodies, bodies_of(copy), strict=True):
            self._write_body(node, body, target, scope)

    def _retype_cast(self, scope: Written, node: Node, copy: onnx.NodeProto, slots: Slots) -> None:
        to = next(a for a in copy.attribute if a.name == "to")
        to.i = slots.outputs[0] or to.i
        reads_float = slots.inputs[0] == AS_IT_IS and self._plan.types.is_float(scope.graph, node.inputs[0])
        if reads_float and self._current(scope, node.inputs[0])[1] == to.i:
            # The model casts half to the same half: ONNX Runtime 1.22 refuses some of these.
            copy.op_type = "Identity"
            del copy.attribute[:]

    def _outputs(self, scope: Written, node: Node, slots: Slots) -> tuple[list[str], list[tuple[str, str, Use]]]:
        """Names of the outputs, and the casts that give outputs of the model their type."""
        names, after = list(node.outputs), []
        for index, (name, kind) in enumerate(zip(node.outputs, slots.outputs, strict=True)):
            if kind == AS_IT_IS:
                continue
            scope.types[name] = kind
            if scope.outer is None and name in scope.graph.outputs and kind != self._io_type():
                names[index] = scope.renamed[name] = self._fresh(f"{name}_{NAMES[kind]}")
                after.append((names[index], name, Use(self._io_type())))
                scope.casts[name, Use(self._io_type())] = name
        return names, after

    def _write_constant(self, scope: Written, node: Node) -> None:
        tensor = scope.graph.constant_tensor(node.output)
        assert tensor is not None, node.name
        key = (id(scope.graph), node.output)
        self._constants.name(key, Use(FLOAT), self._fresh, self._plan.to.name)
        for number, (use, name) in enumerate(self._constants.variants(key)):
            value, counts = constant_as(tensor, use, "", self._plan.to)
            self.weights += counts
            constant = constant_node(node, value, name)
            if number:
                constant.name = self._fresh_node(f"{node.name}_{NAMES[use.type]}")
            scope.into.node.append(constant)

    def _write_rest(self, scope: Written) -> None:
        """Initializers, and what was known of the values."""
        for tensor in scope.graph.proto.initializer:
            key = (id(scope.graph), tensor.name)
            if tensor.data_type != FLOAT or key not in self._constants.uses:
                scope.into.initializer.add().CopyFrom(tensor)
                continue
            self._constants.name(key, Use(FLOAT), self._fresh, self._plan.to.name)
            for use, name in self._constants.variants(key):
                value, counts = constant_as(tensor, use, name, self._plan.to)
                self.weights += counts
                scope.into.initializer.append(value)
        for value in scope.graph.proto.value_info:
            value_info = scope.into.value_info.add()
            value_info.CopyFrom(value)
            value_info.name = scope.renamed.get(value.name, value.name)
            constant_types = {n: u.type for u, n in self._constants.variants((id(scope.graph), value.name))}
            kind = scope.types.get(value.name) or constant_types.get(value.name)
            if kind:
                value_info.type.tensor_type.elem_type = kind

    def _current(self, scope: Written, name: str) -> tuple[str, int]:
        """Name and type under which a value is known here."""
        ancestor: Written | None = scope
        while ancestor is not None:
            if name in ancestor.types or name in ancestor.renamed:
                return ancestor.renamed.get(name, name), ancestor.types.get(name, FLOAT)
            ancestor = None if name in ancestor.graph.inputs or name in ancestor.graph.makers else ancestor.outer
        return name, FLOAT

    def _value(self, scope: Written, name: str, target_type: int, user: Node) -> str:
        """The name of a value in the type that is wanted; a cast is added once for each scope and use."""
        plan = self._plan
        if not plan.types.is_float(scope.graph, name):
            return name
        home = defining_scope(scope.graph, name)
        if home is not None:
            return self._constants.name((id(home), name), Use(target_type), self._fresh, plan.to.name)
        current, kind = self._current(scope, name)
        if target_type in (AS_IT_IS, kind):
            return current
        use = Use(target_type, target_type == plan.to.onnx and self._may_overflow(scope.graph, name))
        ancestor: Written | None = scope
        while ancestor is not None:
            if (name, use) in ancestor.casts:
                return ancestor.casts[name, use]
            ancestor = None if name in ancestor.graph.makers or name in ancestor.graph.inputs else ancestor.outer
        scope.casts[name, use] = self._fresh(f"{name}_{NAMES[target_type]}")
        self._cast(scope, current, scope.casts[name, use], use, user)
        return scope.casts[name, use]

    def _may_overflow(self, graph: Graph, name: str) -> bool:
        """True for a value that a constant made too large: it saturates instead of becoming infinite."""
        scope: Graph | None = graph
        while scope is not None and name not in scope.makers:
            scope = None if name in scope.inputs else scope.parent
        reason = None if scope is None else self._plan.fp32_reasons.get(id(scope.makers[name]))
        return reason is not None and reason.kind == "overflow"

    def _cast(self, scope: Written, source: str, target: str, use: Use, owner: Node) -> None:
        if use.saturated:
            bounded = self._fresh(f"{source}_bounded")
            scope.into.node.append(self._clip(source, bounded, owner))
            source = bounded
        name = self._fresh_node(f"{source}/to_{NAMES[use.type]}")
        scope.into.node.append(_owned(helper.make_node("Cast", [source], [target], name=name, to=use.type), owner))
        self.casts += 1

    def _clip(self, source: str, target: str, owner: Node) -> onnx.NodeProto:
        """The range of half precision; the bounds are attributes before opset 11."""
        low, high = -self._plan.to.largest, self._plan.to.largest
        if self._root.opset < 11:
            return _owned(helper.make_node("Clip", [source], [target], name=target, min=low, max=high), owner)
        if not self._bounds:
            self._bounds = [self._fresh(f"{RULE}_lowest"), self._fresh(f"{RULE}_highest")]
            for name, value in zip(self._bounds, (low, high), strict=True):
                self._into.initializer.append(helper.make_tensor(name, FLOAT, [], [value]))
        return _owned(helper.make_node("Clip", [source, *self._bounds], [target], name=target), owner)

    def _fresh(self, base: str) -> str:
        return unused_name(base, self._names)

    def _fresh_node(self, base: str) -> str:
        return unused_name(base, self._nodes)


def copy_fields(source: Any, target: Any, without: Sequence[str]) -> None:
    """Copy the fields of a message except some; also those that only a newer ONNX has."""
    for descriptor, value in source.ListFields():
        if descriptor.name in without:
            continue
        if hasattr(value, "extend"):
            getattr(target, descriptor.name).extend(value)
        elif descriptor.message_type is None:
            setattr(target, descriptor.name, value)
        else:
            getattr(target, descriptor.name).CopyFrom(value)


def _without_bodies(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for body in bodies_of(copy):
        body.Clear()
        body.SetInParent()
    return copy


def _owned(node: onnx.NodeProto, owner: Node) -> onnx.NodeProto:
    """A new node with the place in the user's code of the node that needs it."""
    node.metadata_props.extend(p for p in owner.proto.metadata_props if p.key != RULE_KEY)
    node.metadata_props.add(key=RULE_KEY, value=RULE)
    return node

"""What graph-surgeon's import and export drop, put back: metadata, doc strings, annotations, rare attributes and types.

The model is also sent through graph-surgeon without the script. What comes out of the script alike was not touched,
and is replaced by the original message, with everything that graph-surgeon does not know. What was touched keeps what
it can: a node its metadata, doc string and the attributes that graph-surgeon has no form for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
import onnx_graphsurgeon as gs
from onnx import numpy_helper

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.provenance import MODULE_KEY, RULE_KEY, SOURCE_KEY, origin_of

# What graph-surgeon writes itself; every other field of these messages is copied.
_OWN_FIELDS = {
    "model": {"graph", "functions", "opset_import", "ir_version", "producer_name", "producer_version"},
    "graph": {"node", "initializer", "sparse_initializer", "input", "output", "value_info", "name", "doc_string"},
    "node": {"input", "output", "name", "op_type", "domain", "attribute"},
}


@dataclass(frozen=True)
class Twin:
    """A node of the model, what graph-surgeon makes of it untouched, and its graph-surgeon node."""

    original: onnx.NodeProto
    plain: onnx.NodeProto
    node: gs.Node
    bodies: Mapping[str, Scope]


@dataclass(frozen=True)
class Scope:
    """A graph of the model, untouched and after graph-surgeon; `name` is empty for the main graph."""

    original: onnx.GraphProto
    plain: onnx.GraphProto
    twins: tuple[Twin, ...]
    name: str = ""


@dataclass(frozen=True)
class GraphChange:
    """A node, or a constant, that the script changed, took out (`after` is None) or put in (`before` is None)."""

    scope: str
    before: Any
    after: Any


@dataclass
class Changes:
    """What a script changed, in bodies too; `removed` and `added` are those of the main graph, bodies left out."""

    all: list[GraphChange] = field(default_factory=list)
    removed: list[onnx.NodeProto] = field(default_factory=list)
    added: list[onnx.NodeProto] = field(default_factory=list)


def without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose initializers have no values: enough to see what graph-surgeon does with the rest."""
    bare = onnx.ModelProto()
    _copy_fields(model, bare, {"graph"})
    _copy_fields(model.graph, bare.graph, {"initializer"})
    for tensor in model.graph.initializer:
        bare.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    return bare


def without_rare_types(graph: onnx.GraphProto) -> None:
    """Take types that graph-surgeon cannot write (of sequences and optionals) out of a graph, bodies included."""
    infos = [v for v in graph.value_info if v.type.HasField("tensor_type")]
    if len(infos) < len(graph.value_info):
        copies = [onnx.ValueInfoProto.FromString(v.SerializeToString()) for v in infos]
        graph.ClearField("value_info")
        graph.value_info.extend(copies)
    for node in graph.node:
        for body in bodies_of(node):
            without_rare_types(body)


def scope_of(original: onnx.GraphProto, plain: onnx.GraphProto, graph: gs.Graph, name: str = "") -> Scope:
    """Pair the nodes of a graph with those of its untouched round trip and with graph-surgeon's, right after import."""
    twins = []
    for before, after, node in zip(original.node, plain.node, graph.nodes, strict=True):
        where = f"{name}/{node.name or before.output[0]}" if name else node.name or before.output[0]
        own, other = ({a.name: a.g for a in p.attribute if a.HasField("g")} for p in (before, after))
        bodies = {k: scope_of(own[k], other[k], node.attrs[k], where) for k in own if k in other}
        twins.append(Twin(before, after, node, bodies))
    return Scope(original, plain, tuple(twins), name)


def carry_model(original: onnx.ModelProto, plain: onnx.ModelProto, exported: onnx.ModelProto) -> None:
    """Put back what belongs to the model as a whole, and functions that were not touched."""
    _copy_fields(original, exported, _OWN_FIELDS["model"])
    for name in ("producer_name", "producer_version"):
        if not getattr(exported, name):
            exported.ClearField(name)
    untouched = {_bytes(p): o for p, o in zip(plain.functions, original.functions, strict=True)}
    for function in exported.functions:
        if (source := untouched.get(_bytes(function))) is not None:
            function.CopyFrom(source)


def carry_graph(scope: Scope, exported: onnx.GraphProto, graph: gs.Graph, rule: str, changes: Changes) -> None:
    """Put back what was dropped from a graph and the bodies in it; write down what is not as it was."""
    _copy_fields(scope.original, exported, _OWN_FIELDS["graph"])
    _carry_constants(scope, exported, changes)
    untouched = {_bytes(t.plain): t for t in scope.twins}
    identical = {id(t.node): t for t in scope.twins}
    makers = {o: t for t in scope.twins for o in t.original.output if o}
    gone = {id(t): t for t in scope.twins}
    pending: list[tuple[onnx.NodeProto, gs.Node]] = []
    for proto, node in zip(exported.node, graph.nodes, strict=True):
        twin = untouched.get(_bytes(proto))
        if twin is None:
            pending.append((proto, node))
        else:
            proto.CopyFrom(twin.original)
            gone.pop(id(twin), None)
    # A node that is still there keeps its twin before one that took over its output's name.
    sources = {id(n): gone.pop(id(identical.get(id(n))), None) for _, n in pending}
    for proto, node in pending:
        twin = sources[id(node)]
        if twin is None:
            twin = gone.pop(id(next((makers[o] for o in proto.output if o in makers), None)), None)
        _carry_node(proto, node, twin, scope, rule, changes)
    for twin in gone.values():
        changes.all.append(GraphChange(scope.name, twin.original, None))
        if not scope.name:
            changes.removed.append(twin.original)
    _carry_types(scope, exported, [p for p, _ in pending])
    _give_origins(exported)


def _carry_node(
    proto: onnx.NodeProto, node: gs.Node, twin: Twin | None, scope: Scope, rule: str, changes: Changes
) -> None:
    """A node that is not as it was: what it keeps of the one that it was, and its bodies."""
    shallow = True
    if twin is not None:
        own = _OWN_FIELDS["node"] if twin.original.op_type == proto.op_type else {*_OWN_FIELDS["node"], "doc_string"}
        _copy_fields(twin.original, proto, own)
        if twin.original.op_type == proto.op_type:
            written = {a.name for a in (*twin.plain.attribute, *proto.attribute)}
            proto.attribute.extend(a for a in twin.original.attribute if a.name not in written)
        shallow = _without_bodies(proto) != _without_bodies(twin.original)
        for attribute in proto.attribute:
            if attribute.HasField("g") and attribute.name in twin.bodies and attribute.name in node.attrs:
                carry_graph(twin.bodies[attribute.name], attribute.g, node.attrs[attribute.name], rule, changes)
    if not scope.name:
        changes.added.append(proto)
        if twin is not None:
            changes.removed.append(twin.original)
    if shallow:
        changes.all.append(GraphChange(scope.name, None if twin is None else twin.original, proto))
        other_props = [p for p in proto.metadata_props if p.key != RULE_KEY]
        del proto.metadata_props[:]
        proto.metadata_props.extend([*other_props, onnx.StringStringEntryProto(key=RULE_KEY, value=rule)])


def _without_bodies(node: onnx.NodeProto) -> bytes:
    bare = onnx.NodeProto(name=node.name, op_type=node.op_type, domain=node.domain)
    bare.input.extend(node.input)
    bare.output.extend(node.output)
    bare.attribute.extend(sorted((a for a in node.attribute if not a.HasField("g")), key=lambda a: a.name))
    return _bytes(bare)


def _carry_constants(scope: Scope, exported: onnx.GraphProto, changes: Changes) -> None:
    """Constants whose values are as they were are the original messages; others are changes."""
    before = {t.name: t for t in scope.original.initializer}
    for tensor in exported.initializer:
        source = before.get(tensor.name)
        if source is None or tensor.SerializeToString() == source.SerializeToString():
            continue
        if _equal(tensor, source):
            tensor.CopyFrom(source)
        else:
            changes.all.append(GraphChange(scope.name, source, tensor))
    # A constant that only an annotation uses hangs on no node, so that graph-surgeon never saw it.
    present = {t.name for t in exported.initializer}
    annotated = {p.value for a in exported.quantization_annotation for p in a.quant_parameter_tensor_names}
    exported.initializer.extend(t for n, t in before.items() if n in annotated and n not in present)


def _equal(one: onnx.TensorProto, other: onnx.TensorProto) -> bool:
    if (one.data_type, list(one.dims)) != (other.data_type, list(other.dims)):
        return False
    if onnx.TensorProto.EXTERNAL in (one.data_location, other.data_location):
        return False
    return bool(numpy_helper.to_array(one).tobytes() == numpy_helper.to_array(other).tobytes())


def _carry_types(scope: Scope, exported: onnx.GraphProto, changed: list[onnx.NodeProto]) -> None:
    """Types that were not touched are the original messages, but for what may have another type now."""
    makers = {o for n in exported.node for o in n.output}
    stale = _downstream(exported, {o for n in changed for o in n.output if o})
    for name in ("input", "output", "value_info"):
        before = {v.name: v for v in getattr(scope.original, name)}
        plain = {v.name: _bytes(v) for v in getattr(scope.plain, name)}
        infos = list(getattr(exported, name))
        if name == "value_info":
            # A body gets types of values around it, which were not there.
            infos = [v for v in infos if plain.get(v.name) != _bytes(v) or v.name in before.keys() - stale]
        for info in infos:
            if plain.get(info.name) == _bytes(info):
                info.CopyFrom(before[info.name])
            elif info.name in before:
                info.doc_string = before[info.name].doc_string
        listed = {v.name for v in getattr(exported, name)}
        if name == "value_info":
            infos += [v for n, v in before.items() if n not in plain and n in makers - stale - listed]
        if name == "input":
            # Files before IR 4 list their constants among the inputs.
            constants = {t.name for t in exported.initializer} - listed
            infos += [v for n, v in before.items() if n in constants]
        copies = [type(v).FromString(v.SerializeToString()) for v in infos]
        exported.ClearField(name)
        getattr(exported, name).extend(copies)


def _downstream(graph: onnx.GraphProto, names: set[str]) -> set[str]:
    """These values and all that follow from them."""
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    reached, waiting = set(names), list(names)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            fresh = [o for o in user.output if o and o not in reached]
            reached.update(fresh)
            waiting += fresh
    return reached


def _give_origins(graph: onnx.GraphProto) -> None:
    """A new node gets the module and line of the nearest node that follows from it, else of one that it uses."""
    producers = {o: n for n in graph.node for o in n.output if o}
    users = {i: n for n in graph.node for i in n.input if i}
    for node in reversed(graph.node):
        _take_origin(node, [users[o] for o in node.output if o in users])
    for node in graph.node:
        _take_origin(node, [producers[i] for i in node.input if i in producers])


def _take_origin(node: onnx.NodeProto, near: list[onnx.NodeProto]) -> None:
    if origin_of(node) or all(p.key != RULE_KEY for p in node.metadata_props):
        return
    source = next((n for n in near if origin_of(n)), None)
    if source is not None:
        node.metadata_props.extend(p for p in source.metadata_props if p.key in (MODULE_KEY, SOURCE_KEY))


def _copy_fields(source: Any, target: Any, without: set[str]) -> None:
    """Copy the fields of a message that are set, replacing those of the target."""
    for descriptor, value in source.ListFields():
        if descriptor.name in without:
            continue
        target.ClearField(descriptor.name)
        if isinstance(value, (str, bytes, int, float)):
            setattr(target, descriptor.name, value)
        else:
            getattr(target, descriptor.name).MergeFrom(value)


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))

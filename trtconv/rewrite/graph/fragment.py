"""Cutting a match out of its graph: two small models, before and after, with the same inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from trtconv.core.model.bodies import walk_nodes
from trtconv.rewrite.graph.index import Graph, Node, ValueType
from trtconv.rewrite.graph.replacement import Exported

if TYPE_CHECKING:
    from trtconv.plugins.description import PluginDescription

# Sizes and indices are computed from shapes; a cut through them would feed arbitrary numbers where only those that
# belong to the shapes make sense. So the cut moves up along these ops until it meets a tensor.
SHAPE_ARITHMETIC = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "Div", "Equal",
    "Expand", "Floor", "Gather", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min",
    "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "Reshape", "Round", "Shape", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Tile",
    "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
MAX_CONTEXT = 256
LARGE_WEIGHT = 1 << 22
# By which two tensors of one size may differ as protobufs: their names and shapes.
NAME_BYTES = 4096


@dataclass(frozen=True)
class FragmentInput:
    """A value that enters the cut. `weight` is one that stands in for a constant that is large or on disk."""

    name: str
    type: ValueType
    weight: bool = False


@dataclass(frozen=True)
class Fragment:
    """Before and after as models, and what enters both. `outputs` are named alike on both sides.

    `dtypes` are the element types that the graph gives the outputs, 0 where it does not say.
    """

    before: onnx.ModelProto
    after: onnx.ModelProto
    inputs: tuple[FragmentInput, ...]
    outputs: tuple[str, ...]
    dtypes: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Cut:
    nodes: list[onnx.NodeProto]
    constants: list[onnx.TensorProto]
    inputs: dict[str, FragmentInput]


def cut(graph: Graph, matched: Sequence[Node], replacement: Exported) -> Fragment:
    """Make the two models. The opset of the one after is the replacement's."""
    root = matched[-1]
    used = [bool(o) and (bool(graph.users.get(o)) or o in graph.outputs) for o in root.outputs]
    pairs = [(o, v) for o, v, is_used in zip(root.outputs, replacement.outputs, used, strict=False) if is_used]
    # What was computed of a large weight can be compared with nothing but that weight.
    largest = max((t.ByteSize() for t in replacement.constants), default=0)
    limit = max(LARGE_WEIGHT, largest + NAME_BYTES)
    before = _close(graph, [n.proto for n in sorted(matched, key=lambda n: n.order)], [], limit=limit)
    staying = [n.proto for n in _staying(matched, replacement)]
    after = _close(graph, [*staying, *replacement.nodes], list(replacement.constants), [v for _, v in pairs], limit)
    return _fragment((graph, graph), (before, after), pairs, replacement.opset)


def _staying(matched: Sequence[Node], replacement: Exported) -> list[Node]:
    """The matched nodes before the root whose values the replacement uses as they are, in order."""
    names = {i for n in replacement.nodes for i in n.input} | set(replacement.outputs)
    nodes: list[Node] = []
    for node in sorted(matched[:-1], key=lambda n: n.order, reverse=True):
        if names.intersection(node.outputs):
            nodes.insert(0, node)
            names.update(node.inputs)
    return nodes


def cut_between(before: Graph, removed: Sequence[Node], after: Graph, added: Sequence[Node]) -> Fragment:
    """The same of two graphs: `added` stand in `after` where `removed` stand in `before`, under the same names."""
    inside = {id(n) for n in added}
    names = dict.fromkeys(o for n in removed for o in n.outputs if o)
    used = [o for o in names if o in after.outputs or any(id(u) not in inside for u in after.uses(o))]
    first = _close(before, [n.proto for n in removed], [])
    last = _close(after, [n.proto for n in added], [], free=used)
    return _fragment((before, after), (first, last), [(o, o) for o in used], after.opset)


def _fragment(
    graphs: tuple[Graph, Graph], cuts: tuple[_Cut, _Cut], pairs: Sequence[tuple[str, str]], opset: int
) -> Fragment:
    before, after = cuts
    inputs = {**before.inputs, **{k: v for k, v in after.inputs.items() if k not in before.inputs}}
    outputs = [o for o, _ in pairs]
    aliases = [helper.make_node("Identity", [v], [_after(o)]) for o, v in pairs]
    first = _model(graphs[0], before, before.nodes, outputs, inputs, graphs[0].opset)
    last = _model(graphs[1], after, [*after.nodes, *aliases], [_after(o) for o in outputs], inputs, opset)
    return Fragment(first, last, tuple(inputs.values()), tuple(outputs), tuple(graphs[0].dtype(o) for o in outputs))


def _after(output: str) -> str:
    return f"{output}/after"


def _close(
    graph: Graph,
    nodes: list[onnx.NodeProto],
    constants: list[onnx.TensorProto],
    free: Iterable[str] = (),
    limit: int = LARGE_WEIGHT,
) -> _Cut:
    """Add to `nodes` what their values need: constants, and the shape arithmetic above them.

    Constants of more bytes than `limit`, or on disk, become inputs.
    """
    computed = {o for n in nodes for o in n.output} | {t.name for t in constants}
    inputs: dict[str, FragmentInput] = {}
    held = {t.name: t for t in constants}
    above: dict[int, tuple[int, Node]] = {}
    waiting = [i for n in nodes for i in (*n.input, *_captures(graph, n))] + [f for f in free if f not in computed]
    while waiting:
        name = waiting.pop()
        if not name or name in computed or name in inputs or name in held:
            continue
        tensor = graph.constant_tensor(name)
        if tensor is not None and _is_weight(tensor, limit):
            inputs[name] = FragmentInput(name, ValueType(tensor.data_type, tuple(tensor.dims)), weight=True)
        elif tensor is not None:
            held[name] = onnx.TensorProto()
            held[name].CopyFrom(tensor)
            held[name].name = name
        elif (maker := _context_maker(graph, name)) is not None and len(above) < MAX_CONTEXT:
            above[id(maker[1])] = maker
            computed.update(maker[1].outputs)
            waiting += maker[1].inputs
        else:
            inputs[name] = FragmentInput(name, graph.type(name))
    # Scopes further out come first (their level is higher), since those inside may use what they make.
    context = [n.proto for _, n in sorted(above.values(), key=lambda maker: (-maker[0], maker[1].order))]
    return _Cut([*context, *nodes], list(held.values()), inputs)


def _is_weight(tensor: onnx.TensorProto, limit: int) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.ByteSize() > limit)


def _captures(graph: Graph, proto: onnx.NodeProto) -> list[str]:
    """What a node's bodies take from around, in an order that does not depend on the hash seed."""
    maker = graph.maker(next((o for o in proto.output if o), ""))
    return sorted(maker.implicit) if maker is not None and maker.proto is proto else []


def _context_maker(graph: Graph, name: str) -> tuple[int, Node] | None:
    """The node that computes a size or an index and how many scopes out; None where a real tensor begins."""
    scope: Graph | None = graph
    level = 0
    while scope is not None and name not in scope.makers and name not in scope.inputs:
        scope, level = scope.parent, level + 1
    node = None if scope is None else scope.makers.get(name)
    if node is None or scope is None or node.key not in SHAPE_ARITHMETIC or node.bodies:
        return None
    facts = scope.type(name)
    integer = facts.dtype in (6, 7, 9)
    flat = facts.dims is not None and len(facts.dims) <= 1
    is_context = (flat and (integer or _from_shape(scope, node))) or node.key in ("Range", "Shape", "Size")
    return (level, node) if is_context else None


def _from_shape(graph: Graph, node: Node, depth: int = 12) -> bool:
    """True when a small float follows from a shape."""
    for _ in range(depth):
        if node.key in ("Shape", "Size"):
            return True
        follow = next((m for i in node.inputs if (m := graph.maker(i)) is not None and m.key in SHAPE_ARITHMETIC), None)
        if follow is None:
            return False
        node = follow
    return False


def _model(
    graph: Graph,
    part: _Cut,
    nodes: list[onnx.NodeProto],
    outputs: list[str],
    inputs: dict[str, FragmentInput],
    opset: int,
) -> onnx.ModelProto:
    proto = onnx.GraphProto(name="fragment")
    proto.node.extend(nodes)
    proto.initializer.extend(part.constants)
    for item in inputs.values():
        dims_or_none = item.type.dims
        dims = None if dims_or_none is None else [d if isinstance(d, int) else None for d in dims_or_none]
        proto.input.append(helper.make_tensor_value_info(item.name, item.type.dtype, dims))
    for name in outputs:
        proto.output.append(onnx.ValueInfoProto(name=name))
    domains = {n.domain for n in nodes} - {"", "ai.onnx"}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in sorted(domains))]
    ir = min(10, onnx.IR_VERSION)
    model = helper.make_model(proto, opset_imports=imports, ir_version=ir, producer_name="trtconv")
    return with_plugin_bodies(model, graph.plugins.values(), graph.functions)


def with_plugin_bodies(
    model: onnx.ModelProto, plugins: Iterable[PluginDescription] = (), bodies: Iterable[onnx.FunctionProto] = ()
) -> onnx.ModelProto:
    """Give the model the function bodies of exactly the plugins that it uses, in place: ONNX Runtime runs it then.

    `plugins` are the user's own; `bodies` are of those of which only the body is known, beside the model's own.
    """
    from trtconv.plugins.description import NAMESPACE
    from trtconv.plugins.onnx_form import add_functions

    used = _uses_domain(model.graph, NAMESPACE)
    if used or any(f.domain == NAMESPACE for f in model.functions):
        add_functions(model, plugins, bodies)
    if not used:
        other_imports = [o for o in model.opset_import if o.domain != NAMESPACE]
        if len(other_imports) != len(model.opset_import):
            del model.opset_import[:]
            model.opset_import.extend(other_imports)
    return model


def _uses_domain(graph: onnx.GraphProto, domain: str) -> bool:
    """True when a node of the graph or of one of its bodies is of the domain."""
    return any(n.domain == domain for n in walk_nodes(graph.node))

"""A model with an If on a condition by sizes, whose branches are two exported models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.dim_names import declared_dims
from trtconv.core.model.file import load_model, set_metadata
from trtconv.core.model.inference import infer, without_weights
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.model.size_nodes import SizeWriter
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.guard_split import GuardCut, condition_nodes
from trtconv.export.branches.joined.alignment import align
from trtconv.export.branches.joined.cuts import Cut
from trtconv.export.branches.joined.merging import Merging
from trtconv.export.branches.joined.nodes import CrossingError, drop_unread_values, rename_values
from trtconv.export.branches.joined.numbering import Numbering
from trtconv.export.branches.joined.outputs import CommonDims, level_outputs, open_dims
from trtconv.export.branches.joined.sides import DeclaredTensor, Side, types_of
from trtconv.export.exporters.trace import Trace

if TYPE_CHECKING:
    import onnx

# The value that chooses a branch.
IS_LOW = "trtconv_is_low"


def write_whole(part: Path, trace: Trace, output: Path) -> None:
    """Write the model of a part of the space as one for the whole space of `trace`."""
    model = load_model(part, weights=True)
    opened = [open_dims(value) for value in model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(opened)
    set_metadata(model, SPACE_KEY, str(trace.space))
    output.write_bytes(model.SerializeToString(deterministic=True))


def join(low: Path, high: Path, cut: Cut | GuardCut, trace: Trace, output: Path, *, nested: bool = False) -> None:
    """Write a model that runs `low` up to the cut and `high` above it. Equal weights are kept once."""
    import onnx

    models = [load_model(low, weights=True), load_model(high, weights=True)]
    types = [_types(m, trace.space) for m in models]
    is_low = cut.holds_at if isinstance(cut, Cut) else cut.guard.holds_at
    texts = {d for declared in types for t in declared.values() for d in t.dims if isinstance(d, str) and d}
    # A side of one size of a dim calls it a number.
    common = CommonDims(is_low, trace, {*texts, *trace.space})
    outputs = zip(*(m.graph.output for m in models), strict=True)
    whole_dims = [common.of(*(declared_dims(v) for v in pair)) for pair in outputs]
    level_outputs(*(m.graph for m in models))
    shared: dict[str, onnx.TensorProto] = {}
    bodies: list[tuple[onnx.GraphProto, dict[str, DeclaredTensor]]] = []
    for name, model, declared in zip(("low", "high"), models, types, strict=True):
        renamed = _share_weights(model.graph, shared, name)
        body, own = _body(model.graph, name, renamed)
        bodies.append((body, {own.get(n, n): t for n, t in declared.items()}))
    graph = onnx.GraphProto(name="main")
    whole = models[1 if isinstance(cut, Cut) else 0].graph
    graph.input.extend(whole.input)
    _move_axes(graph, trace)
    graph.output.extend(open_dims(v) for v in whole.output)
    for value, dims in zip(graph.output, whole_dims, strict=True):
        for axis, dim in zip(value.type.tensor_type.shape.dim, dims, strict=True):
            if isinstance(dim, int):
                axis.dim_value = dim
            elif dim:
                axis.dim_param = dim
    graph.initializer.extend(shared.values())
    conditions = _condition(cut, trace, graph)
    numbering = Numbering(shared.values())
    for body, _ in bodies:
        numbering.add(body.node)
    sides = [Side(body, declared, shared, numbering) for body, declared in bodies]
    merging, names = _merge(sides, conditions, graph, common, nested=nested)
    graph.node.extend([*conditions, *merging.nodes])
    _call_outputs(graph, names)
    drop_unread_values(graph)
    _declare(graph, merging.types)
    model = models[0]
    model.graph.CopyFrom(graph)
    set_metadata(model, SPACE_KEY, str(trace.space))
    output.write_bytes(model.SerializeToString(deterministic=True))


def _merge(
    sides: list[Side], conditions: list[onnx.NodeProto], graph: onnx.GraphProto, common: CommonDims, *, nested: bool
) -> tuple[Merging, list[str]]:
    """Both sides in one; what differs is chosen at the outputs alone where it is interlocked."""
    import onnx

    for merge, apart in ((True, False), (True, True), (False, False)):
        scratch = onnx.GraphProto()
        writer = SizeWriter((), scratch, "trtconv_sizes_")
        merging = Merging(align(sides[0], sides[1], common, merge=merge), IS_LOW, conditions, writer, nested)
        try:
            names = merging.merge(apart=apart)
        except CrossingError:
            continue
        present = {t.name for t in graph.initializer}
        graph.initializer.extend(t for t in scratch.initializer if t.name not in present)
        return merging, names
    raise AssertionError("two sides that share nothing have an order")


def _move_axes(graph: onnx.GraphProto, trace: Trace) -> None:
    """Name the dynamic axes of the inputs: in a part that holds one size of a dim they are not dynamic."""
    dims = {s.name: s.dims for s in trace.specs}
    for value in graph.input:
        for axis, dim in zip(value.type.tensor_type.shape.dim, dims.get(value.name, ()), strict=False):
            if isinstance(dim, str) and axis.HasField("dim_value") and trace.space[dim].min < trace.space[dim].max:
                axis.dim_param = dim


def _share_weights(graph: onnx.GraphProto, shared: dict[str, onnx.TensorProto], side: str) -> dict[str, str]:
    """Put the weights among the shared ones; those that differ from one of their name get a name of their own."""
    renamed = {}
    names = {*shared, *(t.name for t in graph.initializer)}
    # The name of an output is the If's, also where a side gives a constant.
    outputs = {v.name for v in graph.output}
    for tensor in graph.initializer:
        old = tensor.name
        if old in outputs or (old in shared and shared[old].SerializeToString() != tensor.SerializeToString()):
            # No slash: of two parts with a `k`, one may hold it as a weight and the other as a value, `high/k`.
            new = f"{side}:{old}"
            while new in names:
                new = f"{side}:{new}"
            names.add(new)
            tensor.name = renamed[old] = new
        shared[tensor.name] = tensor
    return renamed


def _types(model: onnx.ModelProto, space: ShapeSpace) -> dict[str, DeclaredTensor]:
    """The types of a model's values; the TorchScript exporter does not record them."""
    types = types_of(model.graph)
    if all(name in types for node in model.graph.node for name in node.output if name):
        return types
    inferred = types_of(infer(without_weights(model)).graph)
    # Inference makes up names for sizes that it does not know.
    plain = {
        name: DeclaredTensor(t.element, tuple(d if isinstance(d, int) or d in space else "" for d in t.dims))
        for name, t in inferred.items()
    }
    return plain | types


def _call_outputs(graph: onnx.GraphProto, names: list[str]) -> None:
    """Give the values that the outputs are the outputs' names."""
    import onnx

    renamed: dict[str, str] = {}
    makers = {o for n in graph.node for o in n.output}
    for value, name in zip(graph.output, names, strict=True):
        if name in makers and name not in renamed:
            renamed[name] = value.name
        else:
            source = renamed.get(name, name)
            graph.node.append(onnx.helper.make_node("Identity", [source], [value.name], f"{value.name}/output"))
    for node in graph.node:
        rename_values(node, renamed)


def _declare(graph: onnx.GraphProto, types: Mapping[str, DeclaredTensor]) -> None:
    """Record the types of values of the main graph."""
    import onnx

    outputs = {v.name for v in graph.output}
    for name in [o for n in graph.node for o in n.output if o in types and o not in outputs]:
        if types[name].element:
            dims = [d or None for d in types[name].dims]
            graph.value_info.append(onnx.helper.make_tensor_value_info(name, types[name].element, dims))


def _body(graph: onnx.GraphProto, side: str, renamed: dict[str, str]) -> tuple[onnx.GraphProto, dict[str, str]]:
    """The graph with the side's prefix on its values, which stand by name beside it; inputs and weights are outside."""
    import onnx

    # A part that was joined itself has values with the prefix of its own sides.
    own = {name: f"{side}/{name}" for node in walk_nodes(graph.node) for name in node.output if name}
    own.update(renamed)
    body = onnx.GraphProto(name=side)
    for node in graph.node:
        copy = body.node.add()
        copy.CopyFrom(node)
        copy.name = f"{side}/{node.name}" if node.name else ""
        rename_values(copy, own)
    outside = {t.name for t in graph.initializer} | {v.name for v in graph.input}
    for value in graph.output:
        out = body.output.add()
        out.CopyFrom(open_dims(value))
        out.name = own.get(value.name, value.name)
        if out.name in outside:
            # A branch gives what a node of its own makes.
            source, out.name = out.name, f"{side}/{value.name}/output"
            body.node.append(onnx.helper.make_node("Identity", [source], [out.name], out.name))
    return body, own


def _condition(cut: Cut | GuardCut, trace: Trace, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    if isinstance(cut, GuardCut):
        return condition_nodes(cut, trace.specs, trace.space, graph, IS_LOW)
    writer = SizeWriter(trace.specs, graph, "trtconv_cut_")
    writer.expression(f"{cut.dim} <= {cut.last}")
    writer.nodes[-1].output[0] = IS_LOW
    return writer.nodes

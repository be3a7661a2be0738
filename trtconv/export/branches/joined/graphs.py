"""A model with an If on a condition by sizes, whose branches are two exported models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.dim_names import declared_dims
from trtconv.core.model.file import load_model, set_metadata
from trtconv.core.model.provenance import BRANCH_SIZES_KEY, SPACE_KEY
from trtconv.export.branches.guard_split import GuardCut, condition_nodes
from trtconv.export.branches.joined.cuts import Cut
from trtconv.export.branches.joined.outputs import dims_of_all, level_outputs, open_dims
from trtconv.export.exporters.trace import Trace

if TYPE_CHECKING:
    import onnx

# The value that chooses a branch.
IS_LOW = "trtconv_is_low"


def join(low: Path, high: Path, cut: Cut | GuardCut, trace: Trace, output: Path, *, nested: bool = False) -> None:
    """Write a model that runs `low` up to the cut and `high` above it. Equal weights are kept once."""
    import onnx

    models = [load_model(low, weights=True), load_model(high, weights=True)]
    is_low = cut.holds_at if isinstance(cut, Cut) else cut.guard.holds_at
    sides = [[declared_dims(v) for v in m.graph.output] for m in models]
    whole_dims = [dims_of_all(one, other, is_low, trace.space) for one, other in zip(*sides, strict=True)]
    sizes = {
        branch: [[dim or own for dim, own in zip(*pair, strict=True)] for pair in zip(whole_dims, side, strict=True)]
        for branch, side in zip(("then", "else"), sides, strict=True)
    }
    level_outputs(*(m.graph for m in models))
    shared: dict[str, onnx.TensorProto] = {}
    bodies: list[onnx.GraphProto] = []
    before: list[onnx.NodeProto] = []
    for name, model in zip(("low", "high"), models, strict=True):
        renamed = _share_weights(model.graph, shared, name)
        body = _body(model.graph, name, renamed)
        if not nested and any(n.op_type == "If" for n in body.node):
            before += body.node
            body = _handing_on(body)
        bodies.append(body)
    graph = onnx.GraphProto(name="main")
    whole = models[1 if isinstance(cut, Cut) else 0].graph
    graph.input.extend(whole.input)
    _move_axes(graph, trace)
    graph.output.extend(open_dims(v) for v in whole.output)
    for value, dims in zip(graph.output, whole_dims, strict=True):
        for axis, dim in zip(value.type.tensor_type.shape.dim, dims, strict=True):
            if isinstance(dim, str) and dim:
                axis.dim_param = dim
    graph.initializer.extend(shared.values())
    graph.node.extend([*before, *_condition(cut, trace, graph)])
    names = [v.name for v in graph.output]
    chosen = onnx.helper.make_node("If", [IS_LOW], names, "branch", then_branch=bodies[0], else_branch=bodies[1])
    chosen.metadata_props.add(key=BRANCH_SIZES_KEY, value=json.dumps(sizes))
    graph.node.append(chosen)
    model = models[0]
    model.graph.CopyFrom(graph)
    set_metadata(model, SPACE_KEY, str(trace.space))
    output.write_bytes(model.SerializeToString(deterministic=True))


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


def _body(graph: onnx.GraphProto, side: str, renamed: dict[str, str]) -> onnx.GraphProto:
    """The graph as a branch: its values get the side's prefix; inputs and weights are those outside."""
    import onnx

    own = {name: f"{side}/{name}" for node in graph.node for name in node.output if name}
    own.update(renamed)
    body = onnx.GraphProto(name=side)
    for node in graph.node:
        copy = body.node.add()
        copy.CopyFrom(node)
        copy.name = f"{side}/{node.name}"
        copy.output[:] = [own.get(n, n) for n in node.output]
        copy.input[:] = [own.get(n, n) for n in node.input]
        for inside in bodies_of(copy):
            _rename_inside(inside, own, side)
    outside = {t.name for t in graph.initializer} | {v.name for v in graph.input}
    for value in graph.output:
        out = body.output.add()
        out.CopyFrom(open_dims(value))
        out.name = own.get(value.name, value.name)
        if out.name in outside:
            # A branch gives what a node of its own makes.
            source, out.name = out.name, f"{side}/{value.name}/output"
            body.node.append(onnx.helper.make_node("Identity", [source], [out.name], out.name))
    return body


def _handing_on(body: onnx.GraphProto) -> onnx.GraphProto:
    """A branch that gives the outputs of `body`, whose nodes stand outside of it."""
    import onnx

    passing = onnx.GraphProto(name=body.name)
    for value in body.output:
        out = passing.output.add()
        out.CopyFrom(value)
        out.name = f"{value.name}/chosen"
        passing.node.append(onnx.helper.make_node("Identity", [value.name], [out.name], out.name))
    return passing


def _rename_inside(graph: onnx.GraphProto, outer: dict[str, str], side: str) -> None:
    """The same for a graph inside: a part that was joined itself has values with the prefix of its own sides."""
    own = {**outer, **{name: f"{side}/{name}" for node in graph.node for name in node.output if name}}
    for node in graph.node:
        node.input[:] = [own.get(n, n) for n in node.input]
        node.output[:] = [own.get(n, n) for n in node.output]
        for inside in bodies_of(node):
            _rename_inside(inside, own, side)
    for value in graph.output:
        value.name = own.get(value.name, value.name)


def _condition(cut: Cut | GuardCut, trace: Trace, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    import onnx

    if isinstance(cut, GuardCut):
        return condition_nodes(cut, trace.specs, trace.space, graph, IS_LOW)
    spec = next(s for s in trace.specs if cut.dim in s.dims)
    make, tensor = onnx.helper.make_node, onnx.helper.make_tensor
    # A side may have been joined itself, so the constants are called after their cut.
    axis, last = f"trtconv_axis_of_{cut.dim}", f"trtconv_{cut.dim}_{cut.last}"
    initializer_names = {t.name for t in graph.initializer}
    constants = ((axis, spec.dims.index(cut.dim)), (last, cut.last))
    graph.initializer.extend(tensor(n, 7, [], [v]) for n, v in constants if n not in initializer_names)
    return [
        make("Shape", [spec.name], ["trtconv_shape"], "branch_shape"),
        make("Gather", ["trtconv_shape", axis], ["trtconv_size"], "branch_size", axis=0),
        make("LessOrEqual", ["trtconv_size", last], [IS_LOW], "branch_test"),
    ]

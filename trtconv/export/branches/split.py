"""A branch on the size of one dim: each side is exported for its part of the range, and an If joins them.

torch.export says for which sizes its trace holds ("H = Dim('H', max=40)"). The range is cut there, both parts are
exported, and the condition on the size becomes the condition of an ONNX If.

An If within an If does not build with TensorRT-RTX 1.7 (Myelin fails a check), so a part that was cut itself stands
before the If that chooses it, whose branch only hands it on. Its branches then also run at sizes of the other part,
for nothing; where they cannot, the Ifs are nested.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.file import load_model, set_metadata
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.export.branches.guard_split import GuardCut, NoConditionError, condition_nodes, find_guard
from trtconv.export.branches.guards import Region, sizes_within
from trtconv.export.branches.joined_outputs import level_outputs, open_dims
from trtconv.export.exporters.finish import StaticAxisError
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.undefined_sizes import sizes_of

if TYPE_CHECKING:
    import onnx

Export = Callable[[Trace, Path, int | None], ExportCandidate]
Retrace = Callable[[dict[str, int], ShapeSpace], Trace]
DEEPEST = 4
# A dim of at most so many sizes may be cut at any of them.
FEW = 8
SPECIALIZED = re.compile(r"You marked (?:\d+\*)?(?P<name>\w+) as dynamic but .* constant \((?P<size>\d+)\)")
# Sizes at each end and in the middle of a dim at which a joined model is run.
TRIED = 4
# Joint sizes at which cuts turn, at which it is run too.
MOST_TURNS = 64


class CannotSplitError(Exception):
    """The branch is not one on the size of a single dim."""


@dataclass(frozen=True)
class Cut:
    """The range of `dim` falls into sizes up to `last`, and those above."""

    dim: str
    last: int

    def __str__(self) -> str:
        return f"for {self.dim} up to {self.last}"

    @property
    def turn(self) -> dict[str, int]:
        """A size at which it turns."""
        return {self.dim: self.last}

    def halves(self, space: ShapeSpace) -> tuple[ShapeSpace, ShapeSpace]:
        """The space below and above the cut."""
        whole = space[self.dim]
        values = list(whole.values())
        low, high = [v for v in values if v <= self.last], [v for v in values if v > self.last]
        if not low or not high:
            raise CannotSplitError(f"{self.dim} is not cut at {self.last}")
        parts = (DimRange(v[0], min(max(whole.opt, v[0]), v[-1]), v[-1], whole.multiple) for v in (low, high))
        first, second = (space.merged(ShapeSpace(((self.dim, p),))) for p in parts)
        return first, second


def find_cut(text: str, space: ShapeSpace) -> Cut:
    """Read torch.export's suggested fixes. Raises CannotSplitError when they are not one bound of one dim.

    One of few sizes, or the lowest of many, may be one that torch takes for a constant: it is then a part of its own.
    """
    bounds: dict[str, dict[str, int]] = {}
    for name, values in re.findall(r"^\s*(\w+) = Dim\('\w+'((?:, (?:min|max)=\d+)+)\)", text, re.MULTILINE):
        bounds[name] = {k: int(v) for k, v in re.findall(r"(min|max)=(\d+)", values)}
    for name, limits in bounds.items():
        unit = name.removesuffix("_unit")
        scale = space[unit].multiple if unit != name and unit in space else 1
        dim_name = unit if unit in space else name
        if dim_name not in space:
            continue
        if limits.get("max", space[dim_name].max) * scale < space[dim_name].max:
            return Cut(dim_name, limits["max"] * scale)
        if limits.get("min", 0) * scale > space[dim_name].min:
            return Cut(dim_name, limits["min"] * scale - 1)
    fixed = SPECIALIZED.search(text)
    name = fixed["name"].removesuffix("_unit") if fixed else ""
    # At its lowest size a dim less a window is 1, which torch takes for a case of its own: traced there, it is fixed.
    if fixed and name in space and (1 < len(space[name].values()) <= FEW or int(fixed["size"]) == space[name].min):
        size = int(fixed["size"])
        return Cut(name, size if size == space[name].min else size - 1)
    raise CannotSplitError("the branch does not depend on the size of one dim alone")


def export_split(
    export: Export,
    retrace: Retrace,
    trace: Trace,
    sizes: Callable[[ShapeSpace], dict[str, int]],
    output: Path,
    opset: int | None,
    depth: int = 0,
    cuts: Sequence[Cut] = (),
    turns: list[dict[str, int]] | None = None,
) -> ExportCandidate:
    """A candidate for the whole space of `trace`, cut at each of the `cuts` given.

    `turns` gathers the sizes at which the parts' own cuts turn. Raises what `export` raises, and CannotSplitError.
    """
    try:
        if not cuts:
            return export(trace, output, opset)
    except StaticAxisError:
        raise
    except Exception as error:
        if "Constraints violated" not in str(error) or depth >= DEEPEST:
            raise
        condition = _find_condition(str(error), trace.space, trace.region)
    parts: list[Trace] = []
    chosen: Cut | GuardCut = cuts[0] if cuts else condition
    if isinstance(chosen, Cut):
        for space in chosen.halves(trace.space):
            within = sizes_within(space, trace.region, sizes(space))
            if within is not None:
                parts.append(replace(retrace(within, space), region=trace.region))
        if len(parts) == 1:
            # All of the region lies on one side of the cut.
            return export_split(export, retrace, parts[0], sizes, output, opset, depth, cuts[1:], turns)
    else:
        space = chosen.other_space(trace.space)
        there = () if chosen.only else ((chosen.guard, False),)
        other = retrace({**dict(trace.sizes), **dict(chosen.elsewhere)}, space)
        parts += [
            replace(trace, region=(*trace.region, (chosen.guard, True))),
            replace(other, region=(*trace.region, *there)),
        ]
    inner: list[dict[str, int]] = []
    candidates = []
    for side, part in zip(("low", "high"), parts, strict=True):
        side_folder = output.parent / side
        side_folder.mkdir(exist_ok=True)
        path = side_folder / output.name
        candidates.append(export_split(export, retrace, part, sizes, path, opset, depth + 1, cuts[1:], inner))
    inner.append(chosen.turn)
    join(candidates[0].model, candidates[1].model, chosen, trace, output)
    if not _runs(output, trace, inner):
        join(candidates[0].model, candidates[1].model, chosen, trace, output, nested=True)
    if turns is not None:
        turns += inner
    note = f"one graph {chosen} and one {'above' if isinstance(chosen, Cut) else 'elsewhere'}, joined by an If"
    notes = (*candidates[0].notes, *candidates[1].notes, note)
    return replace(
        candidates[0], model=output, sizes=trace.sizes, seconds=sum(m.seconds for m in candidates), notes=notes
    )


def _runs(model: Path, trace: Trace, turns: list[dict[str, int]]) -> bool:
    """True unless the model fails at a size of the cut dims: a branch may not be defined outside of its part.

    Looked at are sizes of each dim alone, and those at which the cuts turn joined with each other.
    """
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    if sum(n.op_type == "If" for n in load_model(model).graph.node) < 2:
        return True
    runner = OnnxRuntimeRunner(model, threads=1, rounded=True)
    base = dict(trace.sizes)
    points = [{**base, name: size} for name, rng in trace.space.dims for size in sizes_of(rng, TRIED)]
    turning = [sorted({base[n], *(t[n] for t in turns if n in t)}) for n in base]
    points += [
        dict(zip(base, sizes, strict=True)) for sizes in itertools.islice(itertools.product(*turning), MOST_TURNS)
    ]
    try:
        for sizes in points:
            runner(sample_inputs(trace.specs, SamplePoint("split", tuple(sizes.items()))))
    except TrtconvError:
        return False
    return True


def _find_condition(text: str, space: ShapeSpace, region: Region) -> Cut | GuardCut:
    """Where torch's message says that the space falls into two. Raises CannotSplitError."""
    try:
        return find_cut(text, space)
    except CannotSplitError as error:
        try:
            return find_guard(text, space, region)
        except NoConditionError as reason:
            raise CannotSplitError(str(reason)) from error


def join(low: Path, high: Path, cut: Cut | GuardCut, trace: Trace, output: Path, *, nested: bool = False) -> None:
    """Write a model that runs `low` up to the cut and `high` above it. Equal weights are kept once."""
    import onnx

    models = [load_model(low, weights=True), load_model(high, weights=True)]
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
    graph.initializer.extend(shared.values())
    graph.node.extend([*before, *_condition(cut, trace, graph)])
    names = [v.name for v in graph.output]
    graph.node.append(
        onnx.helper.make_node("If", ["trtconv_is_low"], names, "branch", then_branch=bodies[0], else_branch=bodies[1])
    )
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
        return condition_nodes(cut, trace.specs, trace.space, graph, "trtconv_is_low")
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
        make("LessOrEqual", ["trtconv_size", last], ["trtconv_is_low"], "branch_test"),
    ]

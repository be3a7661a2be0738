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
from dataclasses import replace
from pathlib import Path

from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.guard_split import GuardCut, NoConditionError, cut_of_one_size, find_guard
from trtconv.export.branches.guards import Region, sizes_within, unproved_guards
from trtconv.export.branches.joined.cuts import CannotSplitError, Cut
from trtconv.export.branches.joined.graphs import join, write_whole
from trtconv.export.exporters.finish import StaticAxisError
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.undefined_sizes import sizes_of

Export = Callable[[Trace, Path, int | None], ExportCandidate]
Uncovered = Callable[[Path, ShapeSpace, Cut, dict[str, int]], int | None]
Retrace = Callable[[dict[str, int], ShapeSpace], Trace]
DEEPEST = 4
# A dim of at most so many sizes may be cut at any of them.
FEW = 8
SPECIALIZED = re.compile(r"You marked (?:\d+\*)?(?P<name>\w+) as dynamic but .* constant \((?P<size>\d+)\)")
# Sizes at each end and in the middle of a dim at which a joined model is run.
TRIED = 4
# Joint sizes at which cuts turn, at which it is run too.
MOST_TURNS = 64


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
    uncovered: Uncovered = lambda model, low, cut, above: cut.last,
) -> ExportCandidate:
    """A candidate for the whole space of `trace`, cut at each of the `cuts` given.

    `uncovered` gives the last size below a cut at which the graph above it is not right. `turns` gathers the sizes at
    which the parts' own cuts turn. Raises what `export` raises, and CannotSplitError.
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

    def narrowed(space: ShapeSpace) -> Trace | None:
        within = sizes_within(space, trace.region, sizes(space))
        return None if within is None else replace(retrace(within, space), region=trace.region)

    parts: list[Trace] = []
    chosen: Cut | GuardCut = cuts[0] if cuts else condition
    if isinstance(chosen, Cut):
        parts += [part for space in chosen.halves(trace.space) if (part := narrowed(space)) is not None]
        if len(parts) == 1:
            # All of the region lies on one side of the cut.
            return export_split(export, retrace, parts[0], sizes, output, opset, depth, cuts[1:], turns, uncovered)
    else:
        space = chosen.other_space(trace.space)
        other = retrace({**dict(trace.sizes), **dict(chosen.elsewhere)}, space)
        # Where the trace was a case of its own, the guard holds elsewhere.
        region = (*trace.region, (chosen.guard, True))
        within = sizes_within(trace.space, region, dict(trace.sizes)) or dict(trace.sizes)
        holding = trace if within == dict(trace.sizes) else retrace(within, trace.space)
        parts += [
            replace(holding, region=region),
            replace(other, region=(*trace.region, *chosen.other_region())),
        ]
    inner: list[dict[str, int]] = []

    def export_side(side: str, part: Trace) -> ExportCandidate:
        side_folder = output.parent / side
        side_folder.mkdir(exist_ok=True)
        path = side_folder / output.name
        return export_split(export, retrace, part, sizes, path, opset, depth + 1, cuts[1:], inner, uncovered)

    high = export_side("high", parts[1])
    if isinstance(chosen, Cut):
        last = uncovered(high.model, parts[0].space, chosen, dict(parts[1].sizes))
        if last != chosen.last:
            low = None if last is None else narrowed(Cut(chosen.dim, last).halves(trace.space)[0])
            if last is None or low is None:
                if turns is not None:
                    turns += inner
                write_whole(high.model, trace, output)
                note = f"the graph for {chosen.dim} above {chosen.last} is right below, too"
                return replace(high, model=output, notes=(*high.notes, note))
            chosen, parts[0] = Cut(chosen.dim, last), low
    candidates = [export_side("low", parts[0]), high]
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
        fixed = SPECIALIZED.search(text)
        try:
            if fixed is not None and not unproved_guards(text):
                return cut_of_one_size(fixed["name"].removesuffix("_unit"), int(fixed["size"]), space, region)
            return find_guard(text, space, region)
        except NoConditionError as reason:
            raise CannotSplitError(str(reason)) from error

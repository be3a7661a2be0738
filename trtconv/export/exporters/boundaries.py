"""Comparing a file with the module where the file decides: on the boundaries of its roundings and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.file import external_files, load_model
from trtconv.core.model.provenance import SOURCE_KEY
from trtconv.core.tensors import value_ranges
from trtconv.core.text.listing import list_first
from trtconv.export.exporters.attempt import Attempt, ExportTask, compared_at_samples
from trtconv.export.exporters.scripted.fed_comparisons import samples_as_fed
from trtconv.proof.points import BOUNDARY
from trtconv.proof.probes.boundaries import Boundaries
from trtconv.proof.probes.integer_boundaries import Turn, integer_turns, probe_comparisons
from trtconv.proof.reference import ReferenceSample

# A larger graph is not copied for this.
MOST_BYTES = 1 << 29
MOST_NAMED = 3
# Sizes of other paths through the module at which the boundaries are looked for too.
MOST_SIZES = 8


def probed(job: ExportTask, attempt: Attempt, sizes: Sequence[Mapping[str, int]] = ()) -> tuple[ExportTask, Attempt]:
    """The attempt compared at the boundaries of its decisions too; the points made for it are samples from then on.

    A threshold that the module chooses by a size is another one on another path, so that the boundaries are also fed
    at `sizes`, those of a sample on each path. Inputs that a user's function makes are left as they are.
    """
    if attempt.candidate is None or attempt.verdict is None or attempt.runs is None:
        return job, attempt
    if job.request.source.sample is not None:
        return job, attempt
    before = sum(s.point.values == BOUNDARY for s in job.samples.items)
    model = load_model(attempt.candidate.model)
    small = _is_small(model, attempt.candidate.model)
    samples, notes = _of_graph(job, model, sizes, before) if small else ([], ())
    # Scripts of the user's own have loops, too.
    if attempt.way.scripts or any(node.op_type == "Loop" for node in walk_nodes(model.graph.node)):
        samples += samples_as_fed(job, before + len(samples))
    candidate = replace(attempt.candidate, notes=(*attempt.candidate.notes, *notes))
    return compared_at_samples(job, replace(attempt, candidate=candidate), samples)


def probed_at(job: ExportTask, attempt: Attempt, sizes: Sequence[Mapping[str, int]]) -> tuple[ExportTask, Attempt]:
    """An attempt that was probed, at the boundaries of its decisions at further sizes of samples, too."""
    if not sizes or attempt.candidate is None or attempt.runs is None or job.request.source.sample is not None:
        return job, attempt
    before = sum(s.point.values == BOUNDARY for s in job.samples.items)
    model = load_model(attempt.candidate.model)
    small = _is_small(model, attempt.candidate.model)
    samples = _at_sizes(job, model, sizes, before, integer_turns(model.graph)) if small else []
    return compared_at_samples(job, attempt, samples)


def _is_small(model: onnx.ModelProto, path: Path) -> bool:
    return not external_files(model) and path.stat().st_size <= MOST_BYTES


def _at_sizes(
    job: ExportTask, model: onnx.ModelProto, sizes: Sequence[Mapping[str, int]], before: int, turns: Sequence[Turn]
) -> list[ReferenceSample]:
    """Samples at the boundaries at each of the sizes, numbered after so many before them."""
    samples: list[ReferenceSample] = []
    bounds = value_ranges(job.request.inputs)
    for other in _on_each_path(job, sizes):
        probes = probe_comparisons(model, other.inputs, open_graph, bounds, turns)
        samples += probes.samples(job.runner, other.point, before + len(samples))
    return samples


def _of_graph(
    job: ExportTask, model: onnx.ModelProto, sizes: Sequence[Mapping[str, int]], before: int
) -> tuple[list[ReferenceSample], tuple[str, ...]]:
    """Samples at the boundaries of the decisions in the file's graph, and a note on those that were not reached."""
    first = job.samples.items[0]
    bounds = value_ranges(job.request.inputs)
    # Tables of weights are read for them, so once.
    turns = integer_turns(model.graph)
    probes = probe_comparisons(model, first.inputs, open_graph, bounds, turns)
    if not probes.feeds and not probes.decisions:
        return [], ()
    samples = probes.samples(job.runner, first.point, before)
    if any(not turn.other for turn in turns):
        # A norm, a spread or a maximum of the one row that stands out shows where nothing stands beside it.
        sizes = [*sizes, _smallest(job)]
    samples += _at_sizes(job, model, sizes, before + len(samples), turns)
    return samples, _missed_in_words(probes, model)


def _smallest(job: ExportTask) -> dict[str, int]:
    """The sizes of the sample of random values with the fewest elements."""
    samples = [s for s in job.samples.items if s.point.values == "random"]
    return min(samples, key=lambda s: sum(v.size for v in s.inputs.values())).point.sizes


def _on_each_path(job: ExportTask, sizes: Sequence[Mapping[str, int]]) -> list[ReferenceSample]:
    """The first sample at each of these sizes but those of the first sample of all."""
    first, *others = job.samples.items
    by_sizes = {frozenset(s.point.dims): s for s in reversed(others) if s.point.values == "random"}
    dims = dict.fromkeys(frozenset({**dict(job.sizes), **one}.items()) for one in sizes)
    return [by_sizes[d] for d in dims if d in by_sizes and d != frozenset(first.point.dims)][:MOST_SIZES]


def open_graph(model: onnx.ModelProto) -> OnnxRuntimeRunner:
    """Raises TrtconvError when ONNX Runtime cannot run it."""
    return OnnxRuntimeRunner(model.SerializeToString(), rounded=True)


def _missed_in_words(probes: Boundaries, model: onnx.ModelProto) -> tuple[str, ...]:
    if not probes.missed:
        return ()
    sources = {n.name: next((p.value for p in n.metadata_props if p.key == SOURCE_KEY), "") for n in model.graph.node}
    places = list(dict.fromkeys(sources.get(n) or f"node '{n}'" for n in probes.missed))
    return (f"{probes}; no input was found that changes the one at {list_first(places, MOST_NAMED)}",)

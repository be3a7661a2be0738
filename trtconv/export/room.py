"""The export room: load the module, try exporters, prove one against the module, write the files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import beside, creating_folder, manifest_path, require_writable
from trtconv.core.errors import AccuracyError, InvalidRequestError, did_you_mean
from trtconv.core.files.conversion_stamp import FilesRead
from trtconv.core.files.earlier import telling_of_earlier
from trtconv.core.files.output_paths import MODEL, require_distinct, require_replaceable
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.files.set_lock import locked_set
from trtconv.core.processors import seldom_collected
from trtconv.core.progress import Progress
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.shape_space.padding import MODES
from trtconv.core.tensors import require_ranges
from trtconv.export.result import ExportResult
from trtconv.proof.sizes import elements, traced_sizes

if TYPE_CHECKING:
    from trtconv.export.exporters.attempt import ExportTask
    from trtconv.export.exporters.choice import ChosenExport
    from trtconv.export.lasting.notes import FirstState

# Sample points, the smallest, at which it is watched which functions a module runs.
MOST_WATCHED = 4
EXPORTERS = ("auto", "dynamo", "torchscript")


@dataclass(frozen=True)
class Clock:
    """Wall seconds by step."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the block to the step `name`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started


@seldom_collected()
def export_model(request: ExportRequest, progress: Progress) -> ExportResult:
    """Export the module to ONNX and prove the file equal to it at the sample points.

    Writes the model, the reference and the manifest; nothing is written when it fails. Raises AccuracyError when no
    exporter gives a file that equals the module, InvalidRequestError for a request that does not fit the module,
    TrtconvError with the user's line when the module cannot be exported.
    """
    started = time.monotonic()
    _check(request)
    require_writable(request.output)
    require_replaceable(request.output, MODEL)
    outputs = (request.output, beside(request.output, ".reference.safetensors"), manifest_path(request.output))
    require_distinct(outputs, request.source.files)
    progress.stage("export")
    clock = Clock()
    with clock.step("import"):
        from trtconv.export.module.source import require_named, require_torch

        if request.source.live is None and not request.source.spec.endswith(".pt2"):
            # Told before torch is loaded, which takes seconds.
            require_named(request.source.spec, request.source.base, "factory")
        require_torch()
        from trtconv.export.module.quiet import collected_noise
    with (
        locked_set(request.output),
        telling_of_earlier([request.output]),
        collected_noise() as noise,
        FilesRead() as opened,
        _workplace(request.output) as folder,
    ):
        result = _export(request, progress, folder, clock, opened)
    for line in noise.lines:
        progress.note(line)
    clock.seconds["total"] = time.monotonic() - started
    return ExportResult(
        result.model,
        result.reference,
        result.manifest,
        result.exporter,
        result.space,
        result.points,
        result.comparisons,
        result.notes,
        tuple(noise.lines),
        dict(clock.seconds),
        result.sizes,
    )


def _check(request: ExportRequest) -> None:
    if request.exporter not in EXPORTERS:
        raise InvalidRequestError(f"unknown exporter '{request.exporter}'", hint="one of " + ", ".join(EXPORTERS))
    clash = next((s.name for s in request.inputs if s.name in request.output_names), None)
    if clash is not None:
        raise InvalidRequestError(f"--output-names gives '{clash}', which is an input", hint="choose another name")
    if not request.inputs:
        raise _no_inputs(request.source)
    require_ranges(request.inputs, request.space)
    if request.pad_to_multiple and request.pad_to_multiple not in MODES:
        raise InvalidRequestError(
            f"unknown way to pad '{request.pad_to_multiple}'{did_you_mean(request.pad_to_multiple, MODES)}",
            hint="one of " + ", ".join(MODES),
        )
    if request.opset is not None and not 13 <= request.opset <= 23:
        raise InvalidRequestError(f"opset {request.opset} is not supported", hint="use an opset from 13 to 23")


def _no_inputs(source: ModuleSource) -> InvalidRequestError:
    """What to add. Raises for a module that is not there, which comes first."""
    if source.live:
        hint = 'add inputs={"NAME": "DTYPE[D0,D1,...]"}, or example tensors by name'
    else:
        from trtconv.export.module.source import load_module, require_torch

        require_torch()
        load_module(source)
        hint = f"add --input NAME:DTYPE[D0,D1,...] for each; `trtconv init {source.spec}` runs the module to see which"
    return InvalidRequestError("no inputs are given", hint=hint)


@contextmanager
def _workplace(output: Path) -> Iterator[Path]:
    # Beside the output, so that moving a large file there is only a rename.
    with (
        creating_folder(output.parent),
        private_temporary_folder("export", beside=output.parent) as folder,
    ):
        yield Path(folder)


def _export(request: ExportRequest, progress: Progress, folder: Path, clock: Clock, opened: FilesRead) -> ExportResult:
    from trtconv.export.branches.by_size.instructions import functions_run
    from trtconv.export.exporters.attempt import ExportTask
    from trtconv.export.lasting.files import blaming_tables_in_files, notes_on_files
    from trtconv.export.lasting.lazy_parameters import require_shapes
    from trtconv.export.lasting.notes import notes_on_lasting_state
    from trtconv.export.lasting.same_tensors import notes_on_same_tensors
    from trtconv.export.module.imported_files import imported_files
    from trtconv.export.module.outputs import renaming_notes
    from trtconv.export.module.padded_runner import PaddedRunner
    from trtconv.export.observed import load_observed, observe, run_at_points
    from trtconv.export.rounded_forms import notes_on_forms
    from trtconv.export.sizes.identity import numbers_by_identity
    from trtconv.export.sizes.undefined_sizes import padded_choice, resolve_undefined_sizes
    from trtconv.export.turned_masks import notes_on_masks
    from trtconv.export.write import write_artifacts

    with clock.step("load"):
        progress.phase("loading the module")
        observed = load_observed(request)
    runner, make, notes = observed.runner, observed.make, list(observed.notes)
    inner, padding = request, None
    if request.align or request.pad_to_multiple:
        with clock.step("sizes"):
            progress.phase("looking for sizes at which the module raises")
            settled = resolve_undefined_sizes(request, runner, make)
        inner, padding = settled.request, settled.padding
        notes.append(settled.note)
    with clock.step("module"):
        samples = observe(observed, inner, progress)
        require_shapes(observed.module)
    if not request.output_names:
        notes += renaming_notes(runner.written_names, list(samples.items[0].outputs), runner.names)
    sizes = traced_sizes(inner.space, inner.inputs)
    job = ExportTask(inner, runner, samples, make, tuple(sizes.items()), folder, progress, clock.seconds)
    with blaming_tables_in_files(observed.files, request.source.base):
        choice = _choose_repeatable(job, clock, observed.first)
    if padding is None:
        request = inner
        with clock.step("masks"):
            notes += notes_on_masks(job, choice, observed.untouched.attributes)
    with clock.step("state"):
        lasting = notes_on_lasting_state(runner, observed.first, choice.samples, make)
        notes += lasting or notes_on_same_tensors(runner, observed.first, choice.samples, make)
    notes += notes_on_files(observed.files, request.source.base)
    if padding is not None:
        with clock.step("padding"):
            progress.phase("padding the inputs")
            padded = run_at_points(PaddedRunner(runner, padding), request, make, progress)
            choice = padded_choice(choice, request, padding, padded)
    notes += [*choice.samples.notes, *choice.notes, *notes_on_forms(choice.candidate.model, request.source.base)]
    with clock.step("write"):
        imported = imported_files(observed.module, request.source)
        smallest = sorted(choice.samples.items, key=lambda s: elements(inner.inputs, s.point))[:MOST_WATCHED]
        runs = [partial(runner, sample.inputs) for sample in smallest]
        notes += numbers_by_identity(imported, request.source.base, lambda: functions_run(runs))
        sources = {*opened.outside(folder), *imported}
        write_artifacts(request, choice, notes, sources)
    return ExportResult(
        request.output,
        beside(request.output, ".reference.safetensors"),
        manifest_path(request.output),
        choice.candidate.exporter,
        request.space,
        choice.samples.points,
        choice.verdict.comparisons,
        tuple(notes),
        sizes=choice.sizes,
    )


def _choose_repeatable(job: ExportTask, clock: Clock, first: FirstState) -> ChosenExport:
    """The file that equals the module, which has to compute the same after many calls."""
    from trtconv.export.exporters.choice import choose
    from trtconv.export.lasting.notes import lasting_state
    from trtconv.export.lasting.outside import as_before_trace
    from trtconv.export.module.noise.repeatable import require_same_after_many_calls

    cheapest, module = job.samples.cheapest, job.runner.module
    try:
        with as_before_trace(module):
            choice = choose(job)
    except AccuracyError as error:
        # A file cannot equal what changes from call to call; that is then the cause to tell.
        require_same_after_many_calls(job.runner, cheapest)
        states = lasting_state(job.runner, first, job.samples, job.make)
        if not states:
            raise
        raise AccuracyError(
            f"{states[0]}, and the file cannot be shown equal: {error.message}",
            hint="an engine keeps nothing from call to call: compute it in each call, or take it as an input",
            details=error.details,
            where=error.where,
        ) from error
    with clock.step("module"):
        require_same_after_many_calls(job.runner, cheapest)
    return choice

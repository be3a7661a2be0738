"""A recorded run is judged where values leave torch: other values may lead the module another way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.effort import Effort
from trtconv.core.errors import TrtconvError
from trtconv.core.report import OutputComparison
from trtconv.export.branches.explain import find_fork
from trtconv.export.branches.further_values import further_inputs, numbers_in_code
from trtconv.export.branches.value_exits import Exit, exits_in_words, value_exits
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.export.module.user_code import Frame
from trtconv.proof.noise.pinned import near_numbers
from trtconv.proof.noise.rounding import moved
from trtconv.proof.points import BOUNDARY
from trtconv.proof.proving import ProofVerdict, prove
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import with_probes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Seconds for further values; a small module is run some hundred times in them. The numbers of the code come first: the
# first of them are tried however large the module is.
SECONDS, LEAST_INPUTS = 4.0, 12
DRAWN = 12
# What asks for the class of a value.
CLASS_ASKED = re.compile(r"\b(?:isinstance|issubclass|type|singledispatch\w*|isscalar)\b|__class__|\bcase\s+[\w.]+\(")
Allow = Callable[[ExportTask, Attempt], tuple[ExportTask, Attempt]]


def check_value_branches(job: ExportTask, result: Attempt, allow: Allow) -> tuple[ExportTask, Attempt]:
    """A file with a note on the branches by value in it; no longer equal where other values show one.

    torch.export refuses to trace a branch by value, TorchScript records what the values led to, however they left
    torch. Outputs may be equal by chance where another way is taken: an image of zeros stays one whether it is divided
    by 255 or not. `allow` measures the module's own rounding where a file differs.

    torch.export passes over a tensor that is made a text, which has no values there, and over a question for the class
    of a number, which is a symbol's there.
    """
    items = job.samples.items
    if result.way.exporter == "torchscript":
        looked_at = [s.inputs for s in items if s is items[0] or (s.point.values != "random" and not s.point.advisory)]
        exits = value_exits(job.runner, looked_at)
    else:
        exits = value_exits(job.runner, [items[0].inputs])
        if not asks_for_classes(frame[0] for frame in exits):
            exits = {f: e for f, e in exits.items() if e.shown}
    if not exits or result.candidate is None or result.verdict is None:
        return job, result
    run = OnnxRuntimeRunner(result.candidate.model, rounded=True)
    for sample in items:
        if sample.point.advisory or sample.point.values == "random":
            continue
        if result.way.exporter == "torchscript" and (verdict := _flipped(job, run, sample)) is not None:
            return job, replace(result, verdict=replace(verdict, comparisons=result.verdict.comparisons))
        usual = job.make(replace(sample.point, values="random"))
        if find_fork(job.runner, usual, sample.inputs) is None:
            continue
        name, expected = next(iter(sample.outputs.items()))
        reason = "the module goes another way through its lines there"
        failure = OutputComparison(name, str(sample.point), False, reason, tuple(expected.shape), ())
        return job, replace(result, verdict=replace(result.verdict, failure=failure, at=sample.point))
    if job.request.source.sample is None:
        job, result = _compared_further(job, result, run, exits, allow)
    candidate = result.candidate
    if not result.equal or candidate is None:
        return job, result
    notes = exits_in_words(exits, job.request.source.base)
    return job, replace(result, candidate=replace(candidate, notes=(*candidate.notes, *notes)))


def _flipped(job: ExportTask, run: OnnxRuntimeRunner, sample: ReferenceSample) -> ProofVerdict | None:
    """The difference at a sample for which a value that the module reads is another one as soon as the inputs move.

    `layers[int(torch.equal(q, k))]` at equal inputs: that moved inputs lead to other layers is no noise, for a file
    holds those of one value. It computes there what the module does beside that point, and not at it. None elsewhere.
    """

    def compared(inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> ProofVerdict:
        floors = job.samples.floors_at(sample.point, outputs)
        there = replace(sample, inputs=inputs, outputs=outputs, floors=floors)
        return prove(lambda: run, [there], job.request.tolerance)

    if compared(sample.inputs, sample.outputs).equal:
        return None
    # With what it loses against FP64, without what moved inputs do.
    measured = with_probes(job.samples, job.runner, [sample])
    verdict = prove(lambda: run, measured.items[-1:], job.request.tolerance)
    if verdict.equal:
        return None
    own = value_exits(job.runner, [sample.inputs])
    for seed, least in enumerate((1e-30, 1e-6)):
        beside = moved(sample.inputs, seed, least)
        others = value_exits(job.runner, [beside])
        if own.keys() == others.keys() and all(own[f].is_alike(others[f]) for f in own):
            continue
        try:
            outputs = job.runner(beside)
        except TrtconvError:
            continue
        if compared(beside, outputs).equal:
            return verdict
    return None


def asks_for_classes(files: Iterable[str]) -> bool:
    """True where the code of a file that reads values asks for classes."""
    return any(CLASS_ASKED.search(Path(f).read_text("utf-8", "replace")) for f in set(files) if Path(f).is_file())


def _compared_further(
    job: ExportTask, result: Attempt, run: OnnxRuntimeRunner, exits: Mapping[Frame, Exit], allow: Allow
) -> tuple[ExportTask, Attempt]:
    """The first further input at which the file differs is a sample from then on. `run` is the file."""
    if result.verdict is None:
        return job, result
    job.progress.phase("trying other values where the module reads them")
    effort = Effort(SECONDS, LEAST_INPUTS)
    specs, first = job.request.inputs, job.samples.items[0].point
    random = [job.make(replace(first, seed=first.seed + 1 + i)) for i in range(DRAWN)]
    numbers = numbers_in_code(exits, job.runner.module)
    # A program of torch.export that shows no values decides by them in the graph alone, where `boundaries` pins what is
    # compared as it is fed: what a filter makes of a flat image has the noise of its sums.
    reads = result.way.exporter == "torchscript" or any(e.shown for e in exits.values())
    for number, feed in enumerate(further_inputs(specs, random, numbers)):
        if not effort.step():
            break
        point = replace(first, label=f"other-values-{number + 1}", values=BOUNDARY)
        try:
            outputs = job.runner(feed)
        except TrtconvError:
            continue
        pinned = {n: near_numbers(v, numbers) for n, v in feed.items() if v.dtype.kind == "f" and reads}
        sample = ReferenceSample(point, feed, outputs, job.samples.floors_at(point, outputs), pinned)
        if prove(lambda: run, [sample], job.request.tolerance).equal:
            continue
        measured = with_probes(job.samples, job.runner, [sample])
        verdict = prove(lambda: run, measured.items[-1:], job.request.tolerance)
        if verdict.equal:
            continue
        differing = replace(result, verdict=replace(verdict, comparisons=result.verdict.comparisons))
        if find_fork(job.runner, random[0], feed) is not None:
            return replace(job, samples=measured), differing
        allowed_job, allowed = allow(replace(job, samples=measured), differing)
        if not allowed.equal:
            return allowed_job, allowed
    return job, result

"""Allowing a file what the module itself loses by rounding, where the two differ by little."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from trtconv.core.model.file import load_structure
from trtconv.core.tolerance import Tolerance
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.export.exporters.trace import ExportCandidate
from trtconv.proof.original import Run
from trtconv.proof.proving import compare_at, prove
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import with_rounding, without_breakdown

ORDERING = ("TopK", "NonMaxSuppression", "Unique")
# A file that needs less than this share of what is allowed needs no further measurements of the module's noise.
CLEARLY = 0.5


def allow_for_rounding(job: ExportTask, result: Attempt) -> tuple[ExportTask, Attempt]:
    """Where a file differs by little, measure how far the module's own FP32 is from its FP64, and compare again.

    The product form of cdist, for one, is off by 1e-3 where two rows are equal; no file can be held to less.
    """
    for _ in range(len(job.samples.items)):
        verdict, runs = result.verdict, result.runs
        if verdict is None or verdict.at is None or verdict.failure is None or result.candidate is None or runs is None:
            return job, result
        if verdict.failure.max_abs is None:
            return job, result
        if verdict.failure.max_abs == float("inf"):
            measured = without_breakdown(job.samples, verdict.at, job.runner)
        else:
            job.progress.phase(f"measuring the module's own rounding at {verdict.at}")
            enough = partial(passes_clearly, runs, tolerance=job.request.tolerance)
            measured = with_rounding(job.samples, verdict.at, job.runner, puts_in_order(result.candidate), enough)
        if measured is None:
            return job, result
        job = replace(job, samples=measured)
        result = replace(result, verdict=prove(runs.opened, measured.items, job.request.tolerance))
        if result.verdict is not None and result.verdict.at == verdict.at:
            return job, result
    return job, result


def passes_clearly(run: Run, sample: ReferenceSample, tolerance: Tolerance | None) -> bool:
    """True when a file is equal at a sample, and not by a hair: another draw of the noise would change nothing."""
    return all(c.passed and (c.max_share or 0.0) <= CLEARLY for c in compare_at(run, sample, tolerance))


def puts_in_order(candidate: ExportCandidate) -> bool:
    """True when the file sorts: which of two equal elements comes first is said nowhere."""
    return any(n.op_type in ORDERING for n in load_structure(candidate.model).graph.node)

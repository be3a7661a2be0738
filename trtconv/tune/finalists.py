"""From the best candidate of each precision to the one that ships: judged on data that the search never saw, timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from trtconv.core.errors import AccuracyError, OverBudgetError, TrtconvError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.model.file import save_model
from trtconv.core.precision import FP32
from trtconv.core.progress import Progress
from trtconv.proof.halving import largest_that_holds
from trtconv.tune.candidates import Candidate
from trtconv.tune.contract import Contract
from trtconv.tune.engine_layers import EngineLayers
from trtconv.tune.measure import WORST, Examiner, MetricScore
from trtconv.tune.search import SearchResult
from trtconv.tune.speed import Stopwatch

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# How often the most sensitive group is given back when the judging part says otherwise than the search part. Each look
# at the judging part wears it out a little, so that there are few.
GIVEN_BACK = 4


@dataclass(frozen=True)
class Finalist:
    """A candidate on the judging part; `seconds` None where nothing was timed, `layers` as the engine tells them."""

    candidate: Candidate
    measured: MetricScore
    holds: bool
    cost: float
    seconds: float | None = None
    layers: EngineLayers = field(default_factory=EngineLayers)
    failure: str = ""


@dataclass(frozen=True)
class TuneVerdict:
    """The finalist that ships, all that were judged, and FP32 itself on the judging part."""

    chosen: Finalist
    judged: tuple[Finalist, ...]
    baseline: Finalist


def judge(
    examiner: Examiner,
    contract: Contract,
    results: Sequence[SearchResult],
    progress: Progress,
    stopwatch: Stopwatch | None,
) -> TuneVerdict:
    """Judge the best of each precision and choose.

    With a stopwatch the fastest one that keeps the contract ships, and it has to be faster than FP32; without one that
    which moves the fewest bytes. Raises AccuracyError when none keeps the contract, OverBudgetError when none that
    does is faster; both name the best candidate.
    """
    reference = examiner.baseline("judging")
    baseline = Finalist(Candidate(), reference, True, examiner.models.cost(Candidate()))
    if stopwatch is not None:
        baseline = _timed(examiner, contract, baseline.candidate, stopwatch, progress)
    judged = [f for result in results for f in _finalists_of(result, examiner, contract, stopwatch, progress)]
    return TuneVerdict(_chosen(judged, baseline, contract, results), tuple(judged), baseline)


def _finalists_of(
    result: SearchResult, examiner: Examiner, contract: Contract, stopwatch: Stopwatch | None, progress: Progress
) -> Iterator[Finalist]:
    """The best candidate of a precision, judged, and smaller ones after it until one keeps the contract."""
    candidate = result.best
    for _ in range(1 + GIVEN_BACK):
        if candidate is None or not candidate.groups:
            return
        progress.phase(f"judging {candidate}")
        finalist = (
            _emulated(examiner, contract, candidate)
            if stopwatch is None
            else _timed(examiner, contract, candidate, stopwatch, progress)
        )
        yield finalist
        if finalist.holds:
            return
        if stopwatch is not None and _emulated(examiner, contract, candidate).holds:
            progress.note(f"the engine of {candidate} is wrong or missing, and its graph is right: looking for where")
            yield from _without_guilty(examiner, contract, candidate, stopwatch, progress)
            return
        if finalist.failure:
            return
        candidate = candidate.without(result.most_sensitive(candidate))


def _without_guilty(
    examiner: Examiner, contract: Contract, candidate: Candidate, stopwatch: Stopwatch, progress: Progress
) -> list[Finalist]:
    """Parts of a candidate whose graph is right, down to what the builder gets right."""

    def measure(groups: tuple[str, ...]) -> Finalist:
        return _timed(examiner, contract, replace(candidate, groups=groups), stopwatch, progress)

    return largest_that_holds(candidate.groups, measure, lambda f: f.holds)


def _chosen(
    judged: Sequence[Finalist], baseline: Finalist, contract: Contract, results: Sequence[SearchResult]
) -> Finalist:
    holding = [f for f in judged if f.holds]
    if not holding:
        raise _missed(judged, baseline, contract, results)
    if baseline.seconds is None:
        return min(holding, key=lambda f: f.cost)
    fastest = min(holding, key=lambda f: f.seconds or float("inf"))
    if fastest.seconds is not None and fastest.seconds < baseline.seconds:
        return fastest
    raise OverBudgetError(
        f"no candidate that keeps the contract ({contract}) is faster than fp32: the best, {fastest.candidate}, takes "
        f"{1e3 * (fastest.seconds or 0.0):.3g} ms against {1e3 * baseline.seconds:.3g} ms",
        hint="build fp32, or try other precisions; nothing was written",
        details=[_line(f, baseline) for f in judged],
    )


def _missed(
    judged: Sequence[Finalist], baseline: Finalist, contract: Contract, results: Sequence[SearchResult]
) -> TrtconvError:
    """The error where nothing keeps the contract, with what came nearest."""
    if any(not r.complete for r in results) and not judged:
        return OverBudgetError(
            "the budget ended before any candidate kept the contract", hint="run again to go on, with more --minutes"
        )
    tried = [t for r in results for t in r.trials]
    if judged:
        best = max(judged, key=lambda f: f.measured.value)
        nearest, value, part = best.candidate, best.measured.value, "judging"
    elif tried:
        trial = max(tried, key=lambda t: t.value)
        nearest, value, part = trial.candidate, trial.value, "search"
    else:
        return AccuracyError(f"no candidate keeps the contract ({contract})", hint="nothing was written")
    return AccuracyError(
        f"no candidate keeps the contract ({contract}): the best, {nearest}, reaches {contract.metric.name} "
        f"{value:.4g} on the {part} part, and fp32 {baseline.measured.value:.4g}",
        hint="allow a larger --max-drop, add precisions, or train with quantisation; nothing was written",
        details=[_line(f, baseline) for f in judged],
    )


def _line(finalist: Finalist, baseline: Finalist) -> str:
    time = f", {1e3 * finalist.seconds:.3g} ms" if finalist.seconds is not None else ""
    drop = baseline.measured.value - finalist.measured.value
    return finalist.failure or f"{finalist.candidate}: {finalist.measured.value:.4g}, a drop of {drop:.3g}{time}"


def _emulated(examiner: Examiner, contract: Contract, candidate: Candidate) -> Finalist:
    measured = examiner.measure(candidate, "judging")
    holds = contract.holds(measured.value, examiner.baseline("judging").value)
    return Finalist(candidate, measured, holds, examiner.models.cost(candidate))


def _timed(
    examiner: Examiner, contract: Contract, candidate: Candidate, stopwatch: Stopwatch, progress: Progress
) -> Finalist:
    """The engine's own outputs are judged: a builder's mistake is not a drop that emulation would show."""
    cost = examiner.models.cost(candidate)
    progress.phase(f"{stopwatch.name} of {candidate}")
    with private_temporary_folder("candidate") as folder:
        path = Path(folder) / "model.onnx"
        save_model(_copy(examiner.models.build(candidate)), path)
        precision = candidate.precision if candidate.groups else FP32.name
        try:
            timed = stopwatch.open(path, precision, examiner.opt_inputs("judging"))
        except TrtconvError as error:
            if not candidate.groups:
                raise
            nothing = MetricScore(WORST, -200.0)
            return Finalist(candidate, nothing, False, cost, failure=f"{candidate}: {error.message}")
        try:
            measured = examiner.judge(examiner.run(timed.run, "judging"), "judging")
        finally:
            timed.close()
    holds = not candidate.groups or contract.holds(measured.value, examiner.baseline("judging").value)
    return Finalist(candidate, measured, holds, cost, timed.seconds, timed.layers)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    """Saving a large model moves its weights out of it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy

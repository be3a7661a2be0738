"""`check_model`: the room's one public function."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.check.blame.find import ModuleOutputs, blame
from trtconv.check.blame.origins import graph_of, origins_of
from trtconv.check.compare.engine_files import engine_layers, engine_problems, ledger_problems
from trtconv.check.compare.fast_tanh import FastTanh, fast_tanh_of
from trtconv.check.compare.intermediates import (
    MOST_BYTES_FOR_A_PICTURE,
    TensorDifference,
    exported_beside,
    heat_by_module,
    tensor_differences,
)
from trtconv.check.compare.original import OriginalSamples
from trtconv.check.compare.power import check_power, power_findings
from trtconv.check.compare.precision import arithmetic_of
from trtconv.check.compare.reference_fit import (
    nan_findings,
    nan_outputs,
    reference_binding,
    require_common_output,
    require_outputs,
    within_profiles,
)
from trtconv.check.compare.samples import ComparedSamples, samples_for
from trtconv.check.compare.sources import SourceVerdict, compare_sources
from trtconv.check.compare.subjects import Subject, is_engine, open_subject
from trtconv.check.environment import environment
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import MissingDependencyError, TrtconvError, UnsupportedError
from trtconv.core.files.digest import sha256_file
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.report import ENGINE_NOT_RUN, CheckReport, Finding, OutputComparison
from trtconv.core.requests import CheckRequest
from trtconv.core.tolerance import NO_LIMITS
from trtconv.proof.allowance import Arithmetic, allowances
from trtconv.proof.comparison import compare_outputs, shows_nothing
from trtconv.proof.power.idle import IdleOutputs
from trtconv.proof.power.points import TellingSamples
from trtconv.proof.power.result import PowerResult
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    from trtconv.check.compare.samples import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]
    Judge = Callable[[ReferenceSample, Mapping[str, Array]], tuple[OutputComparison, ...]]


def check_model(
    request: CheckRequest, progress: Progress | None = None, *, module_runner: ModuleRunner | None = None,
    module_outputs: ModuleOutputs | None = None, original: OriginalSamples | None = None, heat: bool = False,
) -> CheckReport:  # fmt: skip
    """Run the subject at every sample point and compare it with the reference, `module_runner` or `original`.

    An engine that this machine cannot run gives a report without comparisons and a finding that says why; it is an
    error unless `request.allow_unrunnable`. When the subject differs, `blame` says where: the inner tensors of the
    rewritten graph are compared with those of the exported one beside it, and those of the exported one with
    `module_outputs` (the submodules' outputs at some inputs). With `heat` a graph's are compared in any case.
    Raises InvalidRequestError for a missing or foreign reference.
    """
    progress = progress or SilentProgress()
    started = time.monotonic()
    live = module_runner is not None or original is not None
    bound, recorded = _bound(request, live)
    if any(f.level == "error" for f in bound):
        return replace(_not_compared(request, bound), extras=recorded)
    try:
        subject = open_subject(request.subject, request.plugins, foreign=request.foreign, code=request.code)
    except (MissingDependencyError, UnsupportedError) as error:
        if not is_engine(request.subject):
            raise
        return replace(_unrunnable(request, error, bound), extras=recorded)
    read = partial(samples_for, request, subject, module_runner, original)
    arithmetic = arithmetic_of(request.subject)
    watch = _Watch(request, arithmetic, fast_tanh_of(subject, arithmetic))
    with closing(subject):
        reference = read()
        comparison = _compare(request, subject, reference, watch, progress)
        layers = engine_layers(subject) if heat else []
        warned = tuple(Finding("warning", "environment", text) for text in subject.warnings)
    equal = bool(comparison.outputs) and not comparison.differs
    power = _power(request, watch, lambda: read().samples, time.monotonic() - started, progress) if equal else None
    idle = _idle_findings(watch, comparison, power) if equal else ()
    differences = _inner_differences(request, subject.kind, comparison, heat, progress)
    blamed = blame(request, comparison.telling, differences, module_outputs) if comparison.differs else None
    findings = (*reference.findings, *([blamed] if blamed else []), *comparison.findings, *idle, *bound, *warned)
    extras = {
        **_facts(request, comparison, reference.label, arithmetic),
        "heat": heat_by_module(differences),
        "layers": layers,
        **recorded,
        "power": power.as_dict() if power is not None else {},
    }
    return _report(request, subject, reference, comparison, findings, extras, time.monotonic() - started)


def _report(
    request: CheckRequest, subject: Subject, reference: ComparedSamples, comparison: _Comparison,
    findings: tuple[Finding, ...], extras: Mapping[str, Any], seconds: float,
) -> CheckReport:  # fmt: skip
    return CheckReport(
        subject=str(request.subject),
        subject_kind=subject.kind,
        reference=reference.label,
        runner=subject.runner,
        tolerance=request.tolerance or NO_LIMITS,
        comparisons=comparison.outputs,
        advisory=comparison.advisory,
        findings=findings,
        seconds=seconds,
        environment=environment(engine=subject.kind == "engine"),
        extras={k: v for k, v in extras.items() if v},
        original=reference.original,
    )


def _bound(request: CheckRequest, live: bool) -> tuple[tuple[Finding, ...], dict[str, Any]]:
    """What keeps the subject from being compared with its reference, or is to be told; what the report records of it.

    `live` originals are run again, and need not be those that the reference was made of.
    """
    if request.subject.exists():
        engine = is_engine(request.subject)
        problems = (
            engine_problems(request.subject, request.reference, foreign=request.foreign)
            if engine
            else ledger_problems(request.subject)
        )
        if problems:
            return problems, {}
    findings = _binding(request) if not live or request.reference else ()
    sources = SourceVerdict("") if live else compare_sources(request)
    return (*sources.findings, *findings), {"sources": sources.as_dict()} if sources.status else {}


def _power(
    request: CheckRequest,
    watch: _Watch,
    read: Callable[[], Iterable[ReferenceSample]],
    seconds: float,
    progress: Progress,
) -> PowerResult | None:
    """The power of a check that took `seconds`: a fifth of them, or what the request allows it."""
    if not request.power:
        return None
    progress.phase("putting faults in")
    return check_power(request, watch.judge, watch.telling.chosen(), read, max(request.power_seconds, 0.2 * seconds))


def _idle_findings(watch: _Watch, comparison: _Comparison, power: PowerResult | None) -> tuple[Finding, ...]:
    random = (c for c in comparison.outputs if c.point in watch.random)
    if watch.idle.without_numbers:
        message = "no output holds a finite number at any point: that NaN and infinities stay what they are is no proof"
        hint = "load real weights (--weights), or give inputs at which the module computes numbers (--sample)"
        return (Finding("error", "accuracy", message, hint),)
    return tuple(power_findings(power, watch.idle.idle(), shows_nothing(random)))


class _Watch:
    """Looks at samples on their way: which ones faults are tried at, and whether outputs say anything."""

    def __init__(self, request: CheckRequest, arithmetic: Arithmetic, tanh: FastTanh | None) -> None:
        self.judge: Judge = lambda sample, actual: _judged(request, sample, actual, arithmetic, tanh)
        self.telling, self.idle = TellingSamples(), IdleOutputs(self.judge)
        self.random: set[str] = set()

    def passing(
        self, samples: Iterable[ReferenceSample], profiles: tuple[Mapping[str, Any], ...]
    ) -> Iterator[ReferenceSample]:
        """The same samples; those inside the profiles were looked at."""
        for sample in samples:
            if within_profiles(sample, profiles):
                self.telling.offer(sample)
                self.idle.offer(sample)
                self.random |= {str(sample.point)} if sample.point.values == "random" else set()
            yield sample


def _inner_differences(
    request: CheckRequest, kind: str, comparison: _Comparison, heat: bool, progress: Progress
) -> tuple[TensorDifference, ...]:
    """The differences of inner tensors, where something is wrong or a picture of them is wanted and affordable."""
    small = kind == "onnx" and request.subject.stat().st_size <= MOST_BYTES_FOR_A_PICTURE
    if not (comparison.differs or (heat and small)):
        return ()
    return tuple(_differences(request, comparison, progress))


def _facts(request: CheckRequest, comparison: _Comparison, reference: str, arithmetic: Arithmetic) -> dict[str, Any]:
    """What the report says of files and outputs besides the comparisons."""
    return {
        "origins": origins_of(request.subject, comparison.outputs),
        "tolerances": {name: asdict(t) for name, t in request.outputs},
        "arithmetic": str(arithmetic),
        "files": _files(request, reference),
    }


def _files(request: CheckRequest, reference: str) -> dict[str, str]:
    """SHA-256 of what was compared with what, by which an attestation knows of which files a report is."""
    paths = {"subject": request.subject, "reference": Path(reference)}
    return {role: sha256_file(path) for role, path in paths.items() if path.is_file()}


def _binding(request: CheckRequest) -> tuple[Finding, ...]:
    """Findings where the reference is not the subject's, or where nothing records what an engine was built from."""
    if not request.subject.exists():
        return ()
    if is_engine(request.subject) and request.foreign and not manifest_path(request.subject).exists():
        message = f"'{request.subject}' has no manifest: only its outputs were compared, not what it was built from"
        return (Finding("warning", "usage", message, "build it with `trtconv build`"),)
    return reference_binding(request.subject, request.reference)


def _unrunnable(request: CheckRequest, error: TrtconvError, bound: tuple[Finding, ...]) -> CheckReport:
    level = "note" if request.allow_unrunnable else "error"
    finding = Finding(level, "environment", f"{ENGINE_NOT_RUN}: {error.message}", error.hint or "")
    return _not_compared(request, (*bound, finding))


def _not_compared(request: CheckRequest, findings: tuple[Finding, ...]) -> CheckReport:
    engine = is_engine(request.subject)
    return CheckReport(
        subject=str(request.subject),
        subject_kind="engine" if engine else "onnx",
        reference=str(request.reference or ""),
        runner="none",
        tolerance=request.tolerance or NO_LIMITS,
        comparisons=(),
        findings=findings,
        environment=environment(engine=engine),
    )


@dataclass(frozen=True)
class _Comparison:
    """The comparisons at the points; `telling` is the sample at which to look inside."""

    outputs: tuple[OutputComparison, ...]
    advisory: tuple[OutputComparison, ...]
    findings: tuple[Finding, ...]
    telling: ReferenceSample | None

    @property
    def differs(self) -> bool:
        return any(not c.passed for c in self.outputs)


def _compare(
    request: CheckRequest,
    subject: Subject,
    reference: ComparedSamples,
    watch: _Watch,
    progress: Progress,
) -> _Comparison:
    compared: list[OutputComparison] = []
    telling_sample: ReferenceSample | None = None
    advisory: list[OutputComparison] = []
    findings: list[Finding] = []
    nan_points: dict[str, list[str]] = defaultdict(list)
    for sample in watch.passing(reference.samples, subject.profiles):
        require_outputs(sample, (name for name, _ in request.outputs))
        if not within_profiles(sample, subject.profiles):
            findings.append(Finding("note", "usage", f"{sample.point} is outside the engine's profiles; not compared"))
            continue
        progress.phase(str(sample.point))
        for name in nan_outputs(sample):
            nan_points[name].append(str(sample.point))
        results = _compare_at(watch, subject, sample)
        (advisory if sample.point.advisory else compared).extend(results)
        telling_sample = _more_telling(telling_sample, sample, results, compared)
    findings += nan_findings(nan_points, reference.original)
    if not compared:
        findings.append(Finding("error", "usage", "nothing was compared", "is the reference inside the profiles?"))
    return _Comparison(tuple(compared), tuple(advisory), tuple(findings), telling_sample)


def _more_telling(
    before: ReferenceSample | None,
    sample: ReferenceSample,
    results: tuple[OutputComparison, ...],
    compared: list[OutputComparison],
) -> ReferenceSample | None:
    """The sample at which to look inside: one that differs before one that does not, then the smaller one."""
    if sample.point.advisory:
        return before
    failed = {c.point for c in compared if not c.passed}
    here = any(not r.passed for r in results)
    if before is None or (here and str(before.point) not in failed):
        return sample
    smaller = sum(a.size for a in sample.inputs.values()) < sum(a.size for a in before.inputs.values())
    return sample if smaller and here == (str(before.point) in failed) else before


def _differences(
    request: CheckRequest, comparison: _Comparison, progress: Progress
) -> tuple[TensorDifference, ...]:
    graph, sample = graph_of(request.subject), comparison.telling
    exported = exported_beside(graph) if graph is not None else None
    if graph is None or exported is None or sample is None:
        return ()
    progress.phase("inner tensors")
    return tensor_differences(graph, exported, sample, request.tolerance, judged=comparison.differs)


def _compare_at(watch: _Watch, subject: Subject, sample: ReferenceSample) -> tuple[OutputComparison, ...]:
    label = str(sample.point)
    try:
        actual = subject.run(sample.inputs)
    except TrtconvError as error:
        return tuple(
            OutputComparison(name, label, False, error.message, tuple(expected.shape), ())
            for name, expected in sample.outputs.items()
        )
    require_common_output(subject, sample, actual)
    return watch.judge(sample, actual)


def _judged(
    request: CheckRequest,
    sample: ReferenceSample,
    actual: Mapping[str, Array],
    arithmetic: Arithmetic,
    tanh: FastTanh | None,
) -> tuple[OutputComparison, ...]:
    """The one comparison of a check, of the subject's outputs and of those of a graph with a fault."""
    allowed = allowances(sample, request.tolerance, dict(request.outputs), arithmetic)
    results = compare_outputs(str(sample.point), sample.outputs, actual, allowed)
    named = request.tolerance not in (None, NO_LIMITS)
    if tanh is None or named or not any(not r.passed and r.max_abs is not None for r in results):
        return results
    followed = {n: a for n, a in tanh.added(sample, allowed).items() if n not in dict(request.outputs)}
    return compare_outputs(str(sample.point), sample.outputs, actual, {**allowed, **followed})

"""`trtconv bench`: how long a file takes at the sample points, beside ONNX Runtime and torch, in ratios."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.runtime.latency import Latency, clock_state, measure_engine, percentiles
from trtconv.check.compare.reference_fit import find_reference, require_fit, within_profiles
from trtconv.check.compare.subjects import is_engine, open_subject
from trtconv.core.artifacts import beside, require_file
from trtconv.core.errors import (
    InvalidRequestError,
    MissingDependencyError,
    TrtconvError,
    UnsupportedError,
    did_you_mean,
)
from trtconv.core.files.digest import sha256_file
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.text.brief import brief_repr
from trtconv.core.trust.trust import NO_CODE, EngineCode
from trtconv.proof.reference import ReferenceSample, read_reference_info, read_samples

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

DEFAULT_POINTS = ("min", "opt", "max")


@dataclass(frozen=True)
class BenchReport:
    """All latencies, the reasons for those that could not be measured, and the state of the clocks before and after.

    `subject_sha256` ties it to the file that was measured. `warnings` are those of opening and running the engine: it
    was tuned on another GPU, say.
    """

    subject: str
    latencies: tuple[Latency, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    clocks: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
    subject_sha256: str = ""

    __repr__ = brief_repr

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; seconds as they are."""
        return {
            "subject": self.subject,
            "subject_sha256": self.subject_sha256,
            "latencies": [entry.as_dict() for entry in self.latencies],
            "failed": dict(self.failed),
            "warnings": list(self.warnings),
            "clocks": [dict(c) for c in self.clocks],
        }


def bench_model(
    subject: Path,
    *,
    reference: Path | None = None,
    points: Sequence[str] = DEFAULT_POINTS,
    seconds: float = 1.0,
    module: Callable[..., Any] | None = None,
    plugins: tuple[Path, ...] = (),
    progress: Progress | None = None,
    code: EngineCode = NO_CODE,
) -> BenchReport:
    """Measure a file at named points of its reference.

    An engine is measured with and without a CUDA graph, beside its ONNX file in ONNX Runtime when that is there: on the
    GPU where ONNX Runtime has CUDA, else on the CPU. With `module`, torch's three modes are measured too. Raises
    InvalidRequestError for a point that the reference does not have, and what opening the file raises.
    """
    progress = progress or SilentProgress()
    require_file(subject, "model")
    path = find_reference(subject, reference)
    samples = chosen_samples(path, points)
    before = clock_state()
    latencies: list[Latency] = []
    failed: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    if is_engine(subject):
        measured, warnings = _engine_latencies(subject, samples, plugins, code, seconds, progress)
        latencies += measured
        graph = subject.with_name(beside(subject, ".onnx").name)
        latencies += _beside_engine(graph, samples, seconds, progress) if graph.exists() else []
    else:
        opened = open_subject(subject)
        require_fit(opened, read_reference_info(path), path)
        opened.close()
        latencies += _onnx_latencies(subject, samples, seconds, progress)
    if module is not None:
        torch_latencies, failed = _torch_latencies(module, samples, seconds, progress)
        latencies += torch_latencies
    clocks = (before, clock_state())
    return BenchReport(str(subject), tuple(latencies), failed, warnings, clocks, sha256_file(subject))


def chosen_samples(path: Path, points: Sequence[str]) -> list[ReferenceSample]:
    """The samples with the requested labels; where a label was merged into an equal point, that point stands for it."""
    info = read_reference_info(path)
    labels = [p.label for p in info.points]
    sizes = {which: info.space.pick(which) for which in DEFAULT_POINTS}
    point_labels = []
    for name in points:
        same = [p.label for p in info.points if p.sizes == sizes.get(name) and p.values == "random"]
        if name not in labels and not same:
            raise InvalidRequestError(
                f"the reference has no point '{name}'{did_you_mean(name, labels)}", hint="one of " + ", ".join(labels)
            )
        point_labels.append(name if name in labels else same[0])
    return [s for s in read_samples(path) if s.point.label in point_labels]


def _engine_latencies(
    subject: Path,
    samples: Iterable[ReferenceSample],
    plugins: tuple[Path, ...],
    code: EngineCode,
    seconds: float,
    progress: Progress,
) -> tuple[list[Latency], tuple[str, ...]]:
    """The latencies, and what the engine gave to warn of."""
    from trtconv.backends.select import backend_of

    session = backend_of(subject).load(subject, plugins=plugins, code=code)
    try:
        latencies = []
        for sample in samples:
            if not within_profiles(sample, session.profiles):
                progress.warn(f"{sample.point} is outside the engine's profiles; not measured")
                continue
            for graph in (False, True):
                progress.phase(f"engine at {sample.point}")
                label = sample.point.label
                try:
                    one = measure_engine(session, sample.inputs, point=label, cuda_graph=graph, seconds=seconds)
                except UnsupportedError as error:
                    # A graph cannot hold every engine (loops in 8.6, sizes that depend on data).
                    progress.warn(f"engine + CUDA graph at {label}: {error.message}; not measured")
                    continue
                latencies.append(one)
        for text in session.warnings:
            progress.warn(text)
        return latencies, session.warnings
    finally:
        session.close()


def _beside_engine(model: Path, samples: list[ReferenceSample], seconds: float, progress: Progress) -> list[Latency]:
    from trtconv.backends.onnxruntime.latency import measure_onnxruntime

    try:
        return [measure_onnxruntime(model, s.inputs, point=s.point.label, seconds=seconds) for s in samples]
    except MissingDependencyError as error:
        progress.note(error.message)
        return _onnx_latencies(model, samples, seconds, progress)


def _onnx_latencies(
    model: Path, samples: Iterable[ReferenceSample], seconds: float, progress: Progress
) -> list[Latency]:
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    runner = OnnxRuntimeRunner(model, optimize=True)
    latencies = []
    for sample in samples:
        progress.phase(f"ONNX Runtime at {sample.point}")
        times = wall_times(runner, sample.inputs, seconds)
        spread = percentiles(times)
        batch = _batch(sample.inputs)
        latencies.append(
            Latency("ONNX Runtime (CPU)", sample.point.label, batch, spread, spread, batch / spread.median)
        )
    return latencies


def wall_times(run: Callable[..., object], inputs: Mapping[str, Array], seconds: float) -> list[float]:
    """Wall seconds of single runs: two to warm up, then until `seconds` are over but at least five."""
    run(inputs)
    run(inputs)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - start)
    return times


def _torch_latencies(
    module: Callable[..., Any], samples: Iterable[ReferenceSample], seconds: float, progress: Progress
) -> tuple[list[Latency], dict[str, str]]:
    from trtconv.backends.runtime.torch_latency import measure_torch

    latencies: list[Latency] = []
    failed: dict[str, str] = {}
    for sample in samples:
        progress.phase(f"torch at {sample.point}")
        try:
            measured, problems = measure_torch(
                module, sample.inputs, point=sample.point.label, batch=_batch(sample.inputs), seconds=seconds
            )
        except TrtconvError as error:
            return latencies, {"torch": error.message}
        latencies += measured
        failed.update(problems)
    return latencies, failed


def _batch(inputs: Mapping[str, Array]) -> int:
    shape = next(iter(inputs.values())).shape if inputs else ()
    return int(shape[0]) if shape else 1

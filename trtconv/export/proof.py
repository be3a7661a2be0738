"""Comparing an exported file with the module at the sample points."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.report import OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.comparison import compare_outputs
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceSample


@dataclass(frozen=True)
class Verdict:
    """The comparisons made, in the order of the points, until the first that failed; advisory ones apart."""

    comparisons: tuple[OutputComparison, ...]
    failure: OutputComparison | None
    at: SamplePoint | None
    seconds: float
    advisory: tuple[OutputComparison, ...] = ()

    @property
    def equal(self) -> bool:
        """True when nothing differs."""
        return self.failure is None

    @property
    def worst(self) -> float:
        """The largest absolute error seen at a point that counts."""
        return max((c.max_abs for c in self.comparisons if c.max_abs is not None), default=0.0)


def prove(model: Path, samples: Sequence[ReferenceSample], tolerance: Tolerance, *, thorough: bool = False) -> Verdict:
    """Run the file in ONNX Runtime at every sample and compare. Stops at the first failure unless `thorough`."""
    started = time.monotonic()
    comparisons: list[OutputComparison] = []
    advisory: list[OutputComparison] = []
    failure, at = None, None
    try:
        runner = OnnxRuntimeRunner(model)
    except TrtconvError as error:
        return _refused(error, samples[0], started)
    for sample in samples:
        results = compare_at(runner, sample, tolerance)
        if sample.point.advisory:
            advisory += results
            continue
        comparisons += results
        bad = next((r for r in results if not r.passed), None)
        if bad is not None and failure is None:
            failure, at = bad, sample.point
            if not thorough:
                break
    return Verdict(tuple(comparisons), failure, at, time.monotonic() - started, tuple(advisory))


def compare_at(
    runner: OnnxRuntimeRunner, sample: ReferenceSample, tolerance: Tolerance
) -> tuple[OutputComparison, ...]:
    """Run the file at one sample and compare its outputs; a run that fails counts as a difference of each."""
    label = str(sample.point)
    try:
        actual = runner(sample.inputs)
    except TrtconvError as error:
        return tuple(
            OutputComparison(name, label, False, error.message, tuple(want.shape), ())
            for name, want in sample.outputs.items()
        )
    return compare_outputs(label, sample.outputs, actual, tolerance, rounding=sample.rounding)


def _refused(error: TrtconvError, sample: ReferenceSample, started: float) -> Verdict:
    name, want = next(iter(sample.outputs.items()))
    failed = OutputComparison(name, str(sample.point), False, error.message, tuple(want.shape), ())
    return Verdict((failed,), failed, sample.point, time.monotonic() - started)

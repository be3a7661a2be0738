"""What a candidate does on a part of the data: its metric, and how far its outputs are from those of FP32."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.core.data.samples import Sample, batches
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.precision.qdq.ranges import threads_for
from trtconv.rewrite.precision.qdq.step import decibels
from trtconv.tune.candidates import Candidate, CandidateModels
from trtconv.tune.metrics.metric import Metric
from trtconv.tune.state import SearchState

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

Run = Callable[[Mapping[str, "Array"]], Mapping[str, "Array"]]
FOLDS = 10
WORST = -1e30


@dataclass(frozen=True)
class MetricScore:
    """`value` is the metric; `decibels` the signal over the noise against FP32, of the worst output.

    `folds` are the metric's values on ten disjoint tenths of the part: how far they scatter says what a drop means.
    """

    value: float
    decibels: float
    folds: tuple[float, ...] = ()

    def scatter(self, other: MetricScore) -> float:
        """The standard error of the difference of two metrics, from the folds; 0.0 where there are too few."""
        if len(self.folds) != len(other.folds) or len(self.folds) < 2:
            return 0.0
        differences = np.subtract(self.folds, other.folds)
        return float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


class OutOfTime(Exception):
    """The budget in minutes is spent."""


class Examiner:
    """Measures candidates on the search and the judging part, by emulation on the CPU; nothing is measured twice."""

    def __init__(
        self,
        models: CandidateModels,
        metric: Metric,
        parts: Mapping[str, Sequence[Sample]],
        specs: Sequence[TensorSpec],
        space: ShapeSpace,
        state: SearchState,
        minutes: float | None = None,
    ) -> None:
        self.models, self.metric = models, metric
        self._parts, self._specs, self._space, self.state = parts, specs, space, state
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._expected: dict[str, dict[str, list[Array]]] = {}
        self._threads = threads_for(models.model)
        self.passes = 0

    def baseline(self, part: str) -> MetricScore:
        """FP32 itself. Raises InvalidRequestError where its metric is not a number."""
        measured = self.measure(Candidate(), part)
        if measured.value == WORST:
            raise InvalidRequestError(
                f"{self.metric.name} of the fp32 model is NaN or infinite", hint="look at the metric and the labels"
            )
        return measured

    def measure(self, candidate: Candidate, part: str) -> MetricScore:
        """Run a candidate over a part. Raises OutOfTime when the budget is spent, but not for the FP32 baseline."""
        name = f"{part}/{candidate.key}"
        earlier = self.state.get(name)
        if earlier is not None:
            return MetricScore(earlier["value"], earlier["decibels"], tuple(earlier["folds"]))
        if candidate.groups and part == "search":
            self.require_time()
        outputs = self._outputs(candidate, part)
        measured = self.judge(outputs, part)
        self.passes += 1
        self.state.put(name, asdict(measured))
        return measured

    def opt_inputs(self, part: str) -> Mapping[str, Array]:
        """One batch at the opt size."""
        return next(batches(self._parts[part], self._specs, self._space, opt=True)).inputs

    def require_time(self) -> None:
        """Raise OutOfTime when the budget is spent."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise OutOfTime

    def judge(self, outputs: Mapping[str, Sequence[Array]], part: str) -> MetricScore:
        """The metric of outputs that a candidate, or an engine, gave for a part."""
        labels = [s.label for s in self._parts[part]]
        expected = self._reference(part)
        worst = min((decibels(_flat(expected[n]), _flat(outputs[n])) for n in outputs if n in expected), default=-200.0)
        folds = []
        for fold in range(FOLDS if len(labels) >= 2 * FOLDS else 0):
            rows = range(fold, len(labels), FOLDS)
            folds.append(
                self.metric.compute({n: [a[i] for i in rows] for n, a in outputs.items()}, [labels[i] for i in rows])
            )
        return MetricScore(_finite(self.metric.compute(outputs, labels)), worst, tuple(_finite(f) for f in folds))

    def noise_floor(self) -> float:
        """Decibels of FP32 against itself, with ONNX Runtime's own fusions: what no candidate is to be blamed for."""
        from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

        if self.models.model.ByteSize() > 1 << 30:
            return 140.0
        fused = OnnxRuntimeRunner(self.models.model.SerializeToString(), optimize=True, threads=self._threads)
        outputs, expected = self.run(fused, "search"), self._reference("search")
        fused.close()
        return min((decibels(_flat(expected[n]), _flat(outputs[n])) for n in expected), default=0.0)

    def run(self, run: Run, part: str) -> dict[str, list[Array]]:
        """Outputs by name, one array per sample. Raises InvalidRequestError for a network without a batch axis."""
        collected: dict[str, list[Array]] = {}
        for batch in batches(self._parts[part], self._specs, self._space):
            rows = len(next(iter(batch.inputs.values())))
            for name, array in run(batch.inputs).items():
                if array.ndim and array.shape[0] == rows:
                    collected.setdefault(name, []).extend(array[: batch.count])
        complete = {n: a for n, a in collected.items() if len(a) == len(self._parts[part])}
        if not complete:
            raise InvalidRequestError(
                "no output has one row per sample along axis 0", hint="a metric is computed from rows"
            )
        return complete

    def _outputs(self, candidate: Candidate, part: str) -> Mapping[str, Sequence[Array]]:
        if not candidate.groups:
            return self._reference(part)
        runner = emulated_runner(self.models.build(candidate), threads=self._threads)
        try:
            return self.run(runner, part)
        finally:
            runner.close()

    def _reference(self, part: str) -> dict[str, list[Array]]:
        if part not in self._expected:
            runner = emulated_runner(self.models.model, threads=self._threads)
            self._expected[part] = self.run(runner, part)
            runner.close()
        return self._expected[part]


def _finite(value: float) -> float:
    """A metric of outputs that are NaN may be NaN: it is worse than any other."""
    return value if np.isfinite(value) else WORST


def _flat(arrays: Sequence[Array]) -> Array:
    return np.concatenate([np.asarray(a, np.float64).reshape(-1) for a in arrays])

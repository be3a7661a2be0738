"""Comparing a model with the original at the sample points."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.report import OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import ONNX_RUNTIME, Arithmetic, allow, allowances
from trtconv.proof.comparison import compare_bits, compare_outputs, first_failure
from trtconv.proof.noise.noise_floor import profile
from trtconv.proof.noise.rounding import graph_errors
from trtconv.proof.original import Run
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Bytes of outputs that a model's runs may hold on to.
MOST_REMEMBERED = 1 << 29


@dataclass(frozen=True)
class ProofVerdict:
    """The comparisons made, in the order of the points, until the first that failed; advisory ones apart.

    `refusal` is why a model could not be opened: nothing was compared then, and the failure says the same.
    """

    comparisons: tuple[OutputComparison, ...]
    failure: OutputComparison | None
    at: SamplePoint | None
    seconds: float
    advisory: tuple[OutputComparison, ...] = ()
    refusal: TrtconvError | None = None

    @property
    def equal(self) -> bool:
        """True when nothing differs."""
        return self.failure is None

    @property
    def worst(self) -> float:
        """The largest absolute error seen at a point that counts."""
        return max((c.max_abs for c in self.comparisons if c.max_abs is not None), default=0.0)


@dataclass
class RememberedRuns:
    """A model that is opened once and run once with each inputs: what is allowed may be measured and compared again.

    Outputs beyond `MOST_REMEMBERED` bytes in all are not kept, and the model is run again for those. Raises what
    `open_model` raises, and TrtconvError when a run fails.
    """

    open_model: Callable[[], Run]
    _run: Run | None = None
    _outputs: dict[int, tuple[Mapping[str, Array], dict[str, Array]]] = field(default_factory=dict)
    _left: int = MOST_REMEMBERED

    def opened(self) -> RememberedRuns:
        """This, once the model is open."""
        self.model()
        return self

    def model(self) -> Run:
        """The open model itself, whose runs are not remembered."""
        if self._run is None:
            self._run = self.open_model()
        return self._run

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """What the model gives, from an earlier run with the very same inputs if there was one."""
        # The inputs are kept, so that no others get their identity.
        known_inputs, outputs = self._outputs.get(id(inputs), (None, {}))
        if known_inputs is not None:
            return outputs
        outputs = self.model()(inputs)
        size = sum(v.nbytes for v in outputs.values())
        if size <= self._left:
            self._left -= size
            self._outputs[id(inputs)] = inputs, outputs
        return outputs


def prove(
    open_model: Callable[[], Run],
    samples: Sequence[ReferenceSample],
    tolerance: Tolerance | None = None,
    *,
    thorough: bool = False,
) -> ProofVerdict:
    """Open a model, run it at every sample and compare. Stops at the first failure unless `thorough`."""
    started = time.monotonic()
    comparisons: list[OutputComparison] = []
    advisory: list[OutputComparison] = []
    failure, at = None, None
    try:
        run = open_model()
    except TrtconvError as error:
        return _refused(error, samples[0], started)
    for sample in samples:
        results = compare_at(run, sample, tolerance)
        if sample.point.advisory:
            advisory += results
            continue
        comparisons += results
        bad = next((r for r in results if not r.passed), None)
        if bad is not None and failure is None:
            failure, at = bad, sample.point
            if not thorough:
                break
    return ProofVerdict(tuple(comparisons), failure, at, time.monotonic() - started, tuple(advisory))


def compare_at(
    run: Run,
    sample: ReferenceSample,
    tolerance: Tolerance | None = None,
    per_output: Mapping[str, Tolerance] | None = None,
    arithmetic: Arithmetic = ONNX_RUNTIME,
) -> tuple[OutputComparison, ...]:
    """Run a model at one sample and compare its outputs; a run that fails counts as a difference of each."""
    label = str(sample.point)
    try:
        actual = run(sample.inputs)
    except TrtconvError as error:
        return tuple(
            OutputComparison(name, label, False, error.message, tuple(expected.shape), ())
            for name, expected in sample.outputs.items()
        )
    return compare_outputs(label, sample.outputs, actual, allowances(sample, tolerance, per_output, arithmetic))


def compare_defined(run: Run, sample: ReferenceSample) -> tuple[OutputComparison, ...]:
    """The same for the elements that the original defines: where it makes NaN, anything is equal."""

    def spared(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {n: without_undefined(sample.outputs.get(n), v) for n, v in run(inputs).items()}

    return compare_at(spared, sample)


def without_undefined(expected: Array | None, actual: Array) -> Array:
    """An output with NaN wherever the original has it."""
    import numpy as np

    if expected is None or expected.shape != actual.shape or (expected.dtype.kind, actual.dtype.kind) != ("f", "f"):
        return actual
    return np.where(np.isnan(expected), expected, actual)


def compare_graphs(
    point: str,
    before: Run,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    tolerance: Tolerance | None = None,
) -> tuple[OutputComparison, ...]:
    """Compare what two graphs give for the same inputs; `before` gave `expected`, and its noise is measured on demand.

    FP64 is not to be had of every graph, so the noise is how far the outputs move with inputs that move by rounding.
    Most rewrites agree to the last bits, and nothing more is run for them.
    """
    equal = {n: compare_bits(n, point, v, actual[n]) for n, v in expected.items() if n in actual}
    if len(equal) == len(expected) and all(equal.values()):
        return tuple(result for result in equal.values() if result is not None)
    strict = {n: allow(v, profile([v], [_zeros(v)]).floor(v), tolerance) for n, v in expected.items()}
    results = compare_outputs(point, expected, actual, strict)
    failure = first_failure(results)
    if failure is None or failure.max_abs is None or (tolerance is not None and tolerance.rtol is not None):
        return results
    errors = graph_errors(before, inputs, expected)
    floors = {n: profile([v], [errors.get(n)]).floor(v, errors.get(n), random=False) for n, v in expected.items()}
    return compare_outputs(point, expected, actual, {n: allow(v, floors[n], tolerance) for n, v in expected.items()})


def _zeros(array: Array) -> Array:
    import numpy as np

    return np.zeros(array.shape, np.float32)


def _refused(error: TrtconvError, sample: ReferenceSample, started: float) -> ProofVerdict:
    name, expected = next(iter(sample.outputs.items()))
    failed = OutputComparison(name, str(sample.point), False, error.message, tuple(expected.shape), ())
    return ProofVerdict((failed,), failed, sample.point, time.monotonic() - started, refusal=error)

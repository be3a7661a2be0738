"""What an infinity in an input changes, and what values do whose squares leave FP32: notes, no refusals.

A file makes NaN of an infinity where the module leaves the element out. And torch adds up much in FP64 that a file has
in FP32, so that deviations, lengths and quotients of 1e20 or 1e-25 are numbers in one and infinite or 0 in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.errors import TrtconvError
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.proof.comparison import describe_failure
from trtconv.proof.points import SamplePoint
from trtconv.proof.probes.masks import MASK_KINDS, structured_mask
from trtconv.proof.probes.values import INFINITE_KINDS
from trtconv.proof.proving import RememberedRuns, compare_at, compare_defined
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import with_probes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Where the one infinity of an input stands, in shares of its elements. Which NaN a maximum passes on depends on where
# it is met, and attention leaves out what a mask hides.
PLACES = (0.0, 0.5, 1.0)
# The share of the elements that are infinite at last, of either sign.
MANY = 0.6

# How much further on a NaN is tried.
SHIFTS = (1, 6)
# What the inputs are multiplied by, on both sides of the root of FP32's range.
FAR = (1e20, 1e-25)
# Seconds after which no further sizes are tried with them; the first are, however large the module is.
SECONDS = 2.0
# By this share of its largest number an output may be off before the module's own noise is measured.
UNSUSPICIOUS = 1e-3


def far_notes(job: ExportTask, result: Attempt) -> tuple[str, ...]:
    """Notes on how an equal file differs at infinities, at NaN and at very large or small inputs."""
    return (*spread_infinities(job, result), *nan_differences(job, result), *far_differences(job, result))


def spread_infinities(job: ExportTask, result: Attempt) -> tuple[str, ...]:
    """A note where a file differs at an infinite input value, in elements of which the module makes no NaN."""
    for probe in job.samples.items:
        if probe.point.values not in INFINITE_KINDS or result.runs is None:
            continue
        for sample in (probe, *_moved(job, probe)):
            worse = next((c for c in compare_defined(result.runs, sample) if not c.passed), None)
            if worse is not None:
                return (f"with an infinity in an input the file differs: {describe_failure(worse)}",)
    return ()


def nan_differences(job: ExportTask, result: Attempt) -> tuple[str, ...]:
    """A note where a file differs with a NaN in an input: maxima pass over it in ONNX Runtime and on GPUs.

    Not where it is the first that they look at, so it is also tried elsewhere.
    """
    for probe in job.samples.items:
        if probe.point.values != "nan" or result.runs is None:
            continue
        for sample in (probe, *(s for shift in SHIFTS if (s := _shifted(job, probe, shift)) is not None)):
            worse = next((c for c in compare_at(result.runs, sample, job.request.tolerance) if not c.passed), None)
            if worse is not None:
                differs = f"the file differs: {describe_failure(worse)}"
                return (f"with a NaN among its inputs, or of its own making, {differs}",)
    return ()


def _shifted(job: ExportTask, probe: ReferenceSample, shift: int) -> ReferenceSample | None:
    """The same point with each NaN as many elements further on; None where the module is undefined there."""
    import numpy as np

    inputs = {}
    for name, values in probe.inputs.items():
        flat = values.reshape(-1)
        numbers = np.where(np.isnan(flat), flat.dtype.type(0.5), flat) if flat.dtype.kind == "f" else flat
        gone = np.roll(np.isnan(flat), shift) if flat.dtype.kind == "f" else np.zeros(flat.shape, bool)
        inputs[name] = np.where(gone, flat.dtype.type("nan"), numbers).reshape(values.shape) if gone.any() else values
    try:
        outputs = job.runner(inputs)
    except TrtconvError:
        return None
    return replace(probe, inputs=inputs, outputs=outputs, floors=job.samples.floors_at(probe.point, outputs))


def _moved(job: ExportTask, probe: ReferenceSample) -> Iterator[ReferenceSample]:
    """The same point with one infinity in each input, at another place, and beside masks of each form; last with many.

    Where two meet (`atan2` of both, their difference) one in each input shows nothing.
    """
    import numpy as np

    chance = np.random.default_rng(probe.point.seed)
    for index, share in enumerate((*PLACES, None)):
        inputs = {}
        for name, values in probe.inputs.items():
            moved = np.array(values)
            if moved.dtype.kind == "f" and np.isinf(moved).any():
                flat = moved.reshape(-1)
                infinity = flat[np.isinf(flat)][0]
                flat[np.isinf(flat)] = 0.5
                if share is None:
                    flat[:] = np.where(chance.random(flat.size) < MANY, np.copysign(infinity, flat), flat)
                else:
                    flat[int(share * (flat.size - 1))] = infinity
            elif moved.dtype.kind == "b" and moved.size:
                moved = structured_mask(MASK_KINDS[index % len(MASK_KINDS)], moved)
            inputs[name] = moved
        try:
            outputs = job.runner(inputs)
        except TrtconvError:
            # The module is undefined there.
            continue
        yield replace(probe, inputs=inputs, outputs=outputs, floors=job.samples.floors_at(probe.point, outputs))


def far_differences(job: ExportTask, result: Attempt) -> tuple[str, ...]:
    """A note where a file differs at very large or small inputs, in elements that are numbers in the module.

    Inputs with a range of values are left as they are where that is outside of it.
    """
    if result.runs is None:
        return ()
    ranges = {s.name: s.value_range for s in job.request.inputs}
    effort = Effort(SECONDS, len(FAR))
    for sample in _telling_sizes(job):
        for factor in FAR:
            if not effort.step():
                return ()
            scaled = {n: _scaled(v, factor, ranges.get(n)) for n, v in sample.inputs.items()}
            far = {n: v for n, v in scaled.items() if v is not None}
            point = replace(sample.point, label=f"values of {factor:g}", values="far")
            worse = _worse_there(job, result.runs, point, {**sample.inputs, **far}) if far else []
            if worse:
                return (f"with values of {factor:g} in its inputs the file differs: {'; '.join(worse)}",)
    return ()


def _scaled(values: Array, factor: float, limits: tuple[float, float] | None) -> Array | None:
    """FP32 values times a factor; None where they leave their range, and for other types."""
    if values.dtype.name != "float32" or not values.size:
        return None
    scaled: Array = values * values.dtype.type(factor)
    if limits is not None and not (limits[0] <= scaled.min() and scaled.max() <= limits[1]):
        return None
    return scaled


def _worse_there(job: ExportTask, runs: RememberedRuns, point: SamplePoint, inputs: Mapping[str, Array]) -> list[str]:
    """What differs at these inputs, in words; nothing where the module is undefined there."""
    try:
        outputs = job.runner(inputs)
    except TrtconvError:
        return []
    there = ReferenceSample(point, inputs, outputs)
    if not any(_apart(v, runs(inputs).get(n)) for n, v in outputs.items()):
        return []
    measured = with_probes(job.samples, job.runner, [there]).items[-1]
    numbers = replace(measured, outputs={n: _numbers(v) for n, v in outputs.items()})
    return [describe_failure(c) for c in compare_defined(runs, numbers) if not c.passed]


def _telling_sizes(job: ExportTask) -> list[ReferenceSample]:
    """The smallest inputs of more than one element along each axis that may have more, and those with a dim of one.

    Of one element a deviation is 0, and torch takes a norm without a square.
    """
    longer = {n for n, r in job.request.space.dims if r.max > 1}
    single = {n for n, r in job.request.space.dims if r.min == 1}

    def cost(sample: ReferenceSample) -> int:
        return sum(v.nbytes for v in sample.inputs.values())

    def alone(sample: ReferenceSample, names: Iterable[str]) -> int:
        return sum(sample.point.sizes.get(n) == 1 for n in names)

    random = [s for s in job.samples.items if s.point.values == "random"]
    chosen = [min(random, key=lambda s: (alone(s, longer), cost(s)))]
    for name in sorted(single):
        of_one = [s for s in random if s.point.sizes.get(name) == 1]
        if of_one and not any(s.point.sizes.get(name) == 1 for s in chosen):
            chosen.append(min(of_one, key=lambda s: (alone(s, longer - {name}), cost(s))))
    return chosen


def _numbers(values: Array) -> Array:
    """NaN for what is infinite."""
    import numpy as np

    return np.where(np.isfinite(values), values, np.nan).astype(values.dtype) if values.dtype.kind == "f" else values


def _apart(expected: Array, actual: Array | None) -> bool:
    """True where an output is off by more than a share of its largest number, or has another shape."""
    import numpy as np

    if actual is None or actual.shape != expected.shape:
        return True
    defined = np.isfinite(expected) if expected.dtype.kind == "f" else np.ones(expected.shape, bool)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))[defined]
    largest = float(np.abs(expected[defined].astype(np.float64)).max(initial=0.0))
    return not bool((distance <= UNSUSPICIOUS * largest).all())

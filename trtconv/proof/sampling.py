"""The original's inputs and outputs at the sample points, with its noise floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import EndlessError, InvalidRequestError, TrtconvError
from trtconv.core.tensors import TensorSpec
from trtconv.proof.noise.breakdown import breaks_down
from trtconv.proof.noise.noise_floor import (
    NoiseFloor,
    OutputProfile,
    noise_floors,
    output_profiles,
)
from trtconv.proof.noise.pinned import exact_at, measured_at
from trtconv.proof.noise.rounding import (
    TIES,
    flush_errors,
    has_flips,
    jump_errors,
    larger,
    measured_errors,
    own_errors,
)
from trtconv.proof.noise_notes import notes_on_noise
from trtconv.proof.original import MODULE, Counting, MakeInputs, Original, Run
from trtconv.proof.points import SamplePoint
from trtconv.proof.probes.stability import probe_floor
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sizes import OPERATIONS_PER_SECOND, Budget, affordable, input_bytes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Errors = Mapping[SamplePoint, Mapping[str, "Array"]]

# With more bytes of weights than this the noise is measured at the cheapest points only: FP64 on a CPU takes a
# multiple of FP32's time, ViT-B there longer than exporting it.
MEASURED_EVERYWHERE = 64 << 20
# Likewise where the points with special values take more operations: where a file differs there, they are measured.
MEASURED_WORK = 1e11
# Of all that running the original at the points costs, FP64 runs may be as much again as this share (by bytes of
# inputs); points with random values are measured from the cheapest on, at least two of them.
SHARE_IN_FP64 = 0.5
FEWEST_MEASURED = 2


@dataclass(frozen=True)
class Samples:
    """The samples in the order of the points, with notes on points that were changed or left out.

    `errors` are the measured rounding errors by point and output, `profiles` what they say of each output.
    """

    items: tuple[ReferenceSample, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    errors: Errors = field(default_factory=dict)
    profiles: Mapping[str, OutputProfile] = field(default_factory=dict)

    @property
    def points(self) -> tuple[SamplePoint, ...]:
        """The points that were run."""
        return tuple(s.point for s in self.items)

    @property
    def cheapest(self) -> ReferenceSample:
        """The one with random values whose inputs are the smallest."""
        random = [s for s in self.items if s.point.values == "random"]
        return min(random, key=lambda s: sum(v.nbytes for v in s.inputs.values()))

    def floors_at(
        self, point: SamplePoint, outputs: Mapping[str, Array], errors: Mapping[str, Array] | None = None
    ) -> dict[str, NoiseFloor]:
        """The floor of outputs at any point, also one that is not among these."""
        return {
            n: self.profiles[n].floor(v, (errors or {}).get(n), random=point.values == "random")
            for n, v in outputs.items()
            if n in self.profiles
        }


@dataclass(frozen=True)
class Watch:
    """What is told while an original is run at its points: each point, and the first sample that cost little."""

    point: Callable[[int, int], None] = lambda count, total: None
    first: Callable[[ReferenceSample], None] = lambda sample: None


def run_samples(
    original: Original,
    specs: Sequence[TensorSpec],
    points: Sequence[SamplePoint],
    make: MakeInputs,
    only_random: bool,
    budget: Budget,
    *,
    label: str = MODULE,
    watch: Watch = Watch(),
) -> Samples:
    """Run the original at the points that fit the budget; the first point (the traced size) tells what a run costs.

    `only_random` leaves out zero, large and other special values, for inputs that a user's function makes. `label` is
    what notes call the original. What `watch` raises is passed on: who refuses an original need not run it everywhere.
    Raises InvalidRequestError for one whose outputs are empty at every point.
    """
    started = time.monotonic()
    candidates = [p for p in points if p.values == "random" or not only_random]
    first, work = _counted(original, candidates[0], make)
    rate = work / max(1, input_bytes(specs, candidates[0]))
    chosen, notes = affordable(candidates, specs, rate, budget)
    by_cost = sorted(chosen, key=lambda p: (p.values != "random", input_bytes(specs, p)))
    run: dict[SamplePoint, ReferenceSample] = {candidates[0]: first}
    refused: dict[SamplePoint, str] = {}
    for turn, point in enumerate(by_cost):
        watch.point(turn, len(by_cost))
        try:
            if point not in run:
                run[point] = _run(original, point, make)
        except TrtconvError as error:
            # What a module does with NaN or 1e4 is its own affair, where no user would give such values.
            if point.values == "random":
                raise
            refused[point] = "does not end" if isinstance(error, EndlessError) else "raises"
        if turn == 0:
            watch.first(run[point])
    notes += tuple(f"not compared at {p}: {label} itself {refused[p]} there" for p in chosen if p in refused)
    items = tuple(run[p] for p in dict.fromkeys((candidates[0], *chosen)) if p in run)
    samples = Samples(items, notes + _without_elements(items, label))
    errors = _measure(original, samples, specs, rate)
    samples = with_floors(replace(samples, errors=errors))
    notes = (*samples.notes, *notes_on_noise(samples.items, label))
    return replace(samples, notes=notes, seconds=time.monotonic() - started)


def _without_elements(items: Sequence[ReferenceSample], label: str) -> tuple[str, ...]:
    """Notes on outputs that are empty wherever the original ran. Raises InvalidRequestError where all of them are."""
    empty = [n for n in items[0].outputs if not any(s.outputs[n].size for s in items)]
    if empty and len(empty) == len(items[0].outputs):
        message = f"{label} gives no elements at any of {len(items)} points: comparing nothing proves nothing"
        is_empty = any(not v.size for v in items[0].inputs.values())
        hint = "its inputs have elements: look at what makes the output empty, an argument or a size of its own"
        if is_empty:
            hint = "give sizes over 0 with --input and --dynamic"
        raise InvalidRequestError(message, hint=hint)
    return tuple(f"output '{n}' has no elements at any point; nothing of it was compared" for n in empty)


def with_floors(samples: Samples) -> Samples:
    """The samples with the floors that their measured errors give."""
    profiles = _profiles(samples.items, samples.errors)
    items = tuple(_with_floor(s, samples.errors.get(s.point, {}), profiles) for s in samples.items)
    return replace(samples, items=items, profiles=profiles)


def _profiles(items: Sequence[ReferenceSample], errors: Errors) -> dict[str, OutputProfile]:
    random = [s.point.values == "random" for s in items]
    return output_profiles([s.outputs for s in items], [errors.get(s.point, {}) for s in items], random)


def _with_floor(
    sample: ReferenceSample, errors: Mapping[str, Array], profiles: Mapping[str, OutputProfile]
) -> ReferenceSample:
    floors = {}
    for name, values in sample.outputs.items():
        if name in profiles and sample.point.probes:
            floors[name] = probe_floor(profiles[name], values, errors.get(name))
        elif name in profiles:
            random = sample.point.values == "random"
            floors[name] = profiles[name].floor(values, errors.get(name), random=random)
    return replace(sample, floors=floors)


def with_probes(samples: Samples, original: Original, more: Sequence[ReferenceSample]) -> Samples:
    """The samples with more points, whose noise is measured."""
    exact = original.exact()
    errors = {
        s.point: measured_errors(measured_at(original, s), exact_at(exact, s), s.inputs, s.outputs) for s in more
    }
    return with_floors(replace(samples, items=(*samples.items, *more), errors={**samples.errors, **errors}))


def _run(original: Original, point: SamplePoint, make: MakeInputs) -> ReferenceSample:
    inputs = make(point)
    return ReferenceSample(point, inputs, original(inputs))


def _counted(original: Original, point: SamplePoint, make: MakeInputs) -> tuple[ReferenceSample, float]:
    """A sample with the floating point operations that its run took; of an original that cannot count, by the clock."""
    if isinstance(original, Counting):
        inputs = make(point)
        outputs, work = original.counted(inputs)
        return ReferenceSample(point, inputs, outputs), work
    started = time.monotonic()
    sample = _run(original, point, make)
    return sample, OPERATIONS_PER_SECOND * (time.monotonic() - started)


def _measure(
    original: Original, samples: Samples, specs: Sequence[TensorSpec], work_per_byte: float
) -> dict[SamplePoint, dict[str, Array]]:
    """The errors at the points that are worth their cost."""
    exact = original.exact()
    errors: dict[SamplePoint, dict[str, Array]] = {}
    for sample in _worth_measuring(original, samples.items, specs, work_per_byte):
        sample_errors = measured_errors(original, exact, sample.inputs, sample.outputs)
        if sample.point.values in TIES and has_flips(sample_errors, sample.outputs):
            # Some elements are decisions; others of their kind show when the inputs move by less than they are exact.
            sample_errors = larger(sample_errors, jump_errors(original, sample.inputs, sample.outputs))
        if sample.point.values == "denormal":
            sample_errors = larger(sample_errors, flush_errors(original, sample.inputs, sample.outputs))
        errors[sample.point] = sample_errors
    return errors


def _worth_measuring(
    original: Original, items: Sequence[ReferenceSample], specs: Sequence[TensorSpec], work_per_byte: float
) -> list[ReferenceSample]:
    """Special values always for small originals; points with random values from the cheapest on, within a share."""
    cost = {s.point: input_bytes(specs, s.point) for s in items}
    special = sum(cost[s.point] for s in items if s.point.values != "random")
    small = original.weight_bytes <= MEASURED_EVERYWHERE and special * work_per_byte <= MEASURED_WORK
    left = SHARE_IN_FP64 * sum(cost.values())
    random = sorted((s for s in items if s.point.values == "random"), key=lambda s: cost[s.point])
    chosen = [s for s in items if small and s.point.values not in ("random", "nan")]
    for turn, sample in enumerate(random):
        left -= cost[sample.point]
        if turn < FEWEST_MEASURED or (small and left >= 0):
            chosen.append(sample)
    return chosen


def with_rounding(
    samples: Samples,
    at: SamplePoint,
    original: Original,
    sorts: bool = False,
    enough: Callable[[ReferenceSample], bool] = lambda _: False,
) -> Samples | None:
    """The samples with the original's own noise measured at a point; None when that tells nothing new.

    At ties it is also how far the outputs jump when the inputs move by less than they are exact: with all inputs
    zero, which elements a top-k takes is an accident. The measurements end with the first after which the sample is
    `enough`.
    """
    index = next((i for i, s in enumerate(samples.items) if s.point == at), None)
    if index is None:
        return None
    sample, before, measured = samples.items[index], samples.errors.get(at, {}), samples
    after = sample
    for errors in own_errors(original, sample, before, sorts):
        measured = replace(samples, errors={**samples.errors, at: errors})
        if at.values == "random":
            measured = replace(measured, profiles=_profiles(samples.items, measured.errors))
        after = _with_floor(sample, errors, measured.profiles)
        if enough(after):
            break
    if at.values == "random":
        measured = with_floors(measured)
    else:
        # Errors at special values are no part of what holds at the other points.
        measured = replace(measured, items=(*samples.items[:index], after, *samples.items[index + 1 :]))
    grown = [n for n, f in after.floors.items() if _grew(f, sample.floors.get(n))]
    if not grown:
        return None
    shown = ", ".join(f"'{n}' {after.floors[n].largest:.2g}" for n in grown)
    return replace(measured, notes=(*samples.notes, f"at {at} the module's own noise was measured: {shown}"))


def _grew(after: NoiseFloor, before: NoiseFloor | None) -> bool:
    import numpy as np

    return before is None or bool(np.any(after.error > before.error))


def without_breakdown(samples: Samples, at: SamplePoint, original: Original) -> Samples | None:
    """The samples without a point of special values at which the original itself leaves FP32's range; else None."""
    sample = next((s for s in samples.items if s.point == at), None)
    if sample is None or at.values == "random" or not breaks_down(original, sample.inputs, sample.outputs):
        return None
    note = f"not compared at {at}: the module's own FP32 outputs are not finite there, though FP64 ones are"
    items = tuple(s for s in samples.items if s.point != at)
    return with_floors(replace(samples, items=items, notes=(*samples.notes, note)))


def measured_sample(original: Run, sample: ReferenceSample) -> ReferenceSample:
    """A single sample with its floor, where the original can be measured."""
    exact = getattr(original, "exact", None)
    if exact is None:
        return sample
    errors = measured_errors(original, exact(), sample.inputs, sample.outputs)  # type: ignore[arg-type]
    floors, _ = noise_floors([sample.outputs], [errors], [sample.point.values == "random"])
    return replace(sample, floors=floors[0])

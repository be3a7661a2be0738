"""Measuring what an original loses by computing in its own precision, element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.proof.noise.pinned import measured_at
from trtconv.proof.original import (
    Branching,
    Gated,
    Logistic,
    Original,
    Perturbing,
    Reordering,
    Resampling,
    Run,
    Stepping,
    Summing,
    widened,
)
from trtconv.proof.points import BOUNDARY
from trtconv.proof.statistics.columns import are_whole

if TYPE_CHECKING:
    import numpy as np

    from trtconv.proof.reference import ReferenceSample

    Array = np.ndarray[Any, np.dtype[Any]]

# What torch raises for a module that insists on FP32 somewhere.
UNABLE = (TrtconvError, RuntimeError, TypeError, NotImplementedError, AttributeError)
SEEDS = 3
# Of a file that differs by little. Three draws leave out an element of a hundred, which came out well in each.
MANY_SEEDS = 12
ULPS = 4.0
# Values at which equal elements are ties: which of them a sort takes is an accident.
TIES = ("zeros", "denormal")
# Rounding in an original's own precision is of the size of what one unit at its inputs does, a few times more or less.
# A change that is this many times its rounding, at most elements, is what the function does with another input.
SENSITIVITY = 64.0
ENOUGH_ELEMENTS = 16


def measured_errors(
    original: Original, exact: Run | None, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> dict[str, Array]:
    """By output |own precision - FP64|, float32 of the output's shape.

    Where FP64 is not to be had, the spread under perturbations of weights and inputs by one unit in the last place.
    Where it interpolates, also its error with coordinates that others round otherwise; of recurrent layers that with
    gates as others compute them. Of outputs without a finite element nothing is run: a difference to them is none.
    """
    import numpy as np

    if exact is not None and outputs and not any(_has_numbers(v) for v in outputs.values()):
        return {n: np.zeros(v.shape, np.float32) for n, v in outputs.items()}
    errors = {} if exact is None else rounding_errors(exact, inputs, outputs)
    # What it is in FP64 by a branch for doubles says nothing of its rounding.
    if has_flips(errors, outputs) and isinstance(original, Branching) and original.is_another_in_fp64(inputs):
        errors, exact = {}, None
    if errors and exact is not None:
        resampled = original.resampled(exact) if isinstance(original, Resampling) else ()
        # What one side tells of a value that is not rounded to steps, the others tell too.
        stepped = any(are_whole(v) for v in outputs.values()) or (isinstance(original, Stepping) and original.steps)
        sides = len(resampled) if stepped else 1
        for run in (*resampled[:sides], *(original.inexact(exact) if isinstance(original, Gated) else ())):
            errors = larger(errors, rounding_errors(run, inputs, outputs))
    missing = [n for n, v in outputs.items() if v.dtype in (np.float16, np.float32) and n not in errors]
    if missing:
        spread = spread_errors(original, inputs, outputs)
        errors |= {n: spread[n] for n in missing if n in spread}
    return errors


def _has_numbers(output: Array) -> bool:
    import numpy as np

    return output.dtype not in (np.float16, np.float32) or bool(np.isfinite(output).any())


def rounding_errors(exact: Run, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """By output |own precision - FP64|; empty when the original cannot be run in FP64, without what stayed FP32 there.

    Elements that are not finite on either side are left out: an overflow is not rounding and is compared as it is.
    """
    import numpy as np

    try:
        precise = exact(widened(inputs))
    except UNABLE:
        return {}
    errors = {}
    for name, value in outputs.items():
        other = precise.get(name)
        if other is None or other.shape != value.shape or value.dtype.kind not in "fiub":
            continue
        if value.dtype.kind == "f" and (value.dtype.itemsize > 4 or other.dtype != np.float64):
            continue
        # `finfo(dtype).min` as a filling is another number in FP64, and no rounding.
        counted = np.abs(other.astype(np.float64)) <= np.finfo(np.float32).max if value.dtype.kind == "f" else True
        errors[name] = np.where(counted, _difference(other, value), np.float32(0.0))
    return errors


def spread_errors(original: Original, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """By output its largest change when weights and inputs move by up to one unit in their last place."""
    return _largest(spreads(original, inputs, outputs))


def spreads(
    original: Original, inputs: Mapping[str, Array], outputs: Mapping[str, Array], count: int = SEEDS, ulps: float = 1.0
) -> Iterator[dict[str, Array]]:
    """The changes of `spread_errors` with inputs moved by `ulps`, run by run; an empty one last where a run fails."""
    runs = (partial(original.perturbed(seed) or original, moved(inputs, seed, ulps=ulps)) for seed in range(count))
    return _changes_by(runs, outputs, UNABLE)


def _changes_by(
    runs: Iterable[Callable[[], dict[str, Array]]], outputs: Mapping[str, Array], unable: tuple[type[Exception], ...]
) -> Iterator[dict[str, Array]]:
    """What each run changes; an empty one last where one fails."""
    for run in runs:
        try:
            yield _changes(run(), outputs)
        except unable:
            yield {}
            return


def own_errors(
    original: Original, sample: ReferenceSample, before: Mapping[str, Array] | None = None, sorts: bool = False
) -> Iterator[dict[str, Array]]:
    """The errors of an original at a sample, by output, from what costs least on; each holds those before it.

    Errors like those `before` are left out. `sorts` says that equal elements are put into an order: of ties at a probe
    that is an accident, of a boundary not.
    """
    errors = dict(before or {})
    for change in _own_changes(measured_at(original, sample), sample, errors, sorts):
        if _adds(change, errors):
            errors = larger(errors, change)
            yield errors


def _own_changes(
    original: Original, sample: ReferenceSample, before: Mapping[str, Array], sorts: bool
) -> Iterator[dict[str, Array]]:
    first, exact = before, original.exact()
    if not before:
        first = measured_errors(original, exact, sample.inputs, sample.outputs)
        yield dict(first)
    # One draw of the rounding leaves out the elements that came out well in it: few at random values, and most where
    # an original is ill conditioned (a softmax of large values).
    flips = has_flips(first, sample.outputs)
    changes = spreads(original, sample.inputs, sample.outputs, MANY_SEEDS)
    first_changes = list(islice(changes, 1))
    sensitive: set[str] = set()
    # Elsewhere the elements of an output are alike, and may all be right by chance.
    at_random = sample.point.values == "random" and not sample.point.probes
    if exact is not None and at_random and sensitive_outputs(first, first_changes):
        first_changes += islice(changes, SEEDS - 1)
        sensitive = sensitive_outputs(first, first_changes)
    for change in chain(first_changes, changes):
        flips = flips or has_flips(change, sample.outputs)
        yield {n: e for n, e in change.items() if n not in sensitive}
    if exact is not None and isinstance(original, Logistic):
        yield rounding_errors(original.logistic(exact), sample.inputs, sample.outputs)
    if sample.point.values == "random":
        if flips:
            yield from order_changes(original, sample, ties=False)
        return
    if exact is not None and isinstance(original, Summing):
        yield rounding_errors(original.resummed(exact), sample.inputs, sample.outputs)
    # Terms that differ by one unit often cancel to an exact zero, of which a root makes a hundredth where they do not.
    # On the boundary of a decision that would take the other side for rounding.
    if sample.point.values != BOUNDARY:
        yield from spreads(original, sample.inputs, sample.outputs, SEEDS, ULPS)
    accidents = sorts if sample.point.probes else sample.point.values in TIES or flips
    if accidents:
        yield from jumps(original, sample.inputs, sample.outputs)
        yield from order_changes(original, sample, ties=True)


def sensitive_outputs(rounding: Mapping[str, Array], changes: Sequence[Mapping[str, Array]]) -> set[str]:
    """The outputs whose every change under moved inputs is far over the rounding at most elements.

    A phase summed up in FP64 is right to the last digit of its FP32 output, and turns by a thousandth when an input
    moves by its last digit. Nothing in the original rounds there, so another engine has no such error either. A
    decision near its boundary falls otherwise in some of the changes, not in every one.
    """
    import numpy as np

    def usual(errors: Mapping[str, Array], name: str) -> float:
        return float(np.median(errors[name])) if name in errors else 0.0

    return {
        name
        for name, error in rounding.items()
        if changes
        and error.size >= ENOUGH_ELEMENTS
        and error.any()
        and min(usual(change, name) for change in changes) > SENSITIVITY * float(error.max())
    }


def _adds(change: Mapping[str, Array], errors: Mapping[str, Array]) -> bool:
    import numpy as np

    return any(n not in errors or bool(np.any(change[n] > errors[n])) for n in change)


def has_flips(errors: Mapping[str, Array], outputs: Mapping[str, Array]) -> bool:
    """True where an element's error is over a thousandth of its output's largest: a decision that fell otherwise."""
    import numpy as np

    return any(float(e.max(initial=0.0)) > 1e-3 * float(np.abs(outputs[n]).max(initial=0.0)) for n, e in errors.items())


def jumps(run: Run, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """The changes of `jump_errors`, one run after the other; an empty one last where a run fails."""
    leasts = enumerate((1e-30, 1e-30, 1e-6, 1e-6))
    return _changes_by((partial(run, moved(inputs, *o)) for o in leasts), outputs, (TrtconvError,))


def order_changes(original: Original, sample: ReferenceSample, ties: bool) -> Iterator[dict[str, Array]]:
    """The changes where nearly equal elements are ranked otherwise, and where `ties` equal ones, run by run."""
    reranked = [original.reranked(s, ties) for s in range(MANY_SEEDS)] if isinstance(original, Reordering) else ()
    return _changes_by((partial(run, sample.inputs) for run in reranked if run), sample.outputs, UNABLE)


def jump_errors(run: Run, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """By output its largest change when inputs move by about one unit in their last place, zeros by 1e-30 and by 1e-6.

    A continuous original changes by its rounding; one that sorts or compares equal values jumps. A sigmoid swallows
    1e-30 and no 1e-6.
    """
    return _largest(jumps(run, inputs, outputs))


def flush_errors(original: Original, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """By output its change when denormal numbers count as zero, as GPUs take them.

    A comparison of two denormals (a sort, an argmax, a floor) falls to the other side then, on every such machine.
    """
    import numpy as np

    tiny = float(np.finfo(np.float32).tiny)
    zeroed = {
        n: np.where(np.abs(v) < tiny, v.dtype.type(0), v) if v.dtype.kind == "f" else v for n, v in inputs.items()
    }
    try:
        return larger({}, _changes(original.flushed(zeroed), outputs))
    except TrtconvError:
        return {}


def graph_errors(run: Run, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """By output its largest change when inputs move by up to `ULPS` units in their last place, and a rounding of 1.

    A graph adds up in its own order at every node, beside which one unit at its inputs is little. Normalising a
    constant map divides rounding noise by the root of a tiny epsilon: there one graph differs from itself beside that
    point. What interpolates is also run beside its coordinates, what rounds to steps beside its scales. Tokens have no
    last place: there the weights move.
    """
    largest: dict[str, Array] = {}
    floats = any(v.dtype.kind == "f" for v in inputs.values())
    for seed in range(SEEDS):
        beside = run if floats else run.perturbed(seed) if isinstance(run, Perturbing) else None
        if beside is None:
            break
        try:
            _keep_larger(largest, beside(moved(inputs, seed, 2.0**-24, ULPS)), outputs)
        except TrtconvError:
            return {}
    moved_runs: Sequence[Run] = run.resampled() if isinstance(run, Resampling) else ()
    for other in moved_runs:
        # One side may lose a row, where a length times its scale is a whole number: the other side does not.
        with suppress(TrtconvError):
            _keep_larger(largest, other(inputs), outputs)
    return largest


def moved(inputs: Mapping[str, Array], seed: int, least: float = 0.0, ulps: float = 1.0) -> dict[str, Array]:
    """The inputs with each float moved by at most so many units in its last place and `least`."""
    import numpy as np

    chance = np.random.default_rng(seed)
    result = {}
    for name, array in inputs.items():
        if array.dtype.kind != "f":
            result[name] = array
            continue
        noise = chance.uniform(-1.0, 1.0, array.shape)
        # An infinity stays one: moved by a share of itself it would be NaN. The largest number does not become one.
        size = np.abs(np.where(np.isfinite(array), array, 0.0).astype(np.float64))
        with np.errstate(over="ignore"):
            step = size * float(np.finfo(array.dtype).eps) * ulps + least
            others = (array + noise * step).astype(array.dtype)
        result[name] = np.where(np.isfinite(others), others, array)
    return result


def larger(one: Mapping[str, Array], other: Mapping[str, Array]) -> dict[str, Array]:
    """By output, for each element the larger of two errors."""
    import numpy as np

    both = {n: np.maximum(one[n], other[n]) for n in one if n in other}
    return {**one, **other, **both}


def _keep_larger(largest: dict[str, Array], other: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
    largest |= larger(largest, _changes(other, outputs))


def _changes(other: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """By output |other - output|, of those that have numbers in the same shape."""
    return {
        name: _difference(other[name], value)
        for name, value in outputs.items()
        if name in other and other[name].shape == value.shape and value.dtype.kind in "fiub" and value.size
    }


def _largest(changes: Iterator[dict[str, Array]]) -> dict[str, Array]:
    largest: dict[str, Array] = {}
    for change in changes:
        if not change:
            return {}
        largest = larger(largest, change)
    return largest


def _difference(one: Array, other: Array) -> Array:
    import numpy as np

    with np.errstate(all="ignore"):
        difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
        narrow = difference.astype(np.float32)
    return np.where(np.isfinite(narrow), narrow, np.float32(0.0))

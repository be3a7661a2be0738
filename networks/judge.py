"""How far a file is off, judged by nothing of `trtconv.proof`, and what of that the original does not keep itself.

Two scores that nearly tie fall one way or the other by the last digit, and then whole rows of a detector change
places. That is no fault of a file, if the original's rows change places as well where it computes the same otherwise:
with another number of threads, from inputs and weights beside these by one rounding unit, in FP64. So the original is
asked. Rows are its own noise only where it gives them itself just as the file does, a run of neighbouring rows as a
whole and in all outputs of as many rows at once; everything else is the file's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Run = Callable[[Mapping[str, "Array"]], dict[str, "Array"]]

# Of a root mean square: far above what FP32 loses, far below what a fault makes.
FARTHEST = 1e-3
# Runs beside the inputs: of two scores that tie within their rounding, one in a few puts the other one first.
MOVES = 12


def idle_outputs(samples: list[dict[str, Any]]) -> list[str]:
    """The outputs that were one number at all samples: their equality proves nothing."""
    numbers: dict[str, set[float]] = {}
    for outputs in samples:
        for output, values in outputs.items():
            if values.size:
                numbers.setdefault(output, set()).update((float(values.min()), float(values.max())))
    return [n for n, values in numbers.items() if len(values) == 1]


def distance(expected: Any, actual: Any) -> float:
    """Root mean square of the error over that of the finite expected values; infinite where other numbers are not."""
    import numpy as np

    if expected.shape != actual.shape:
        return float("inf")
    one, other = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(other[finite]).all():
        return float("inf")
    one, other = one[finite], other[finite]
    size = float(np.sqrt(np.mean(one**2))) if one.size else 0.0
    error = float(np.sqrt(np.mean((other - one) ** 2))) if one.size else 0.0
    return error / size if size else error


def own_answers(module: Any, inputs: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """What a module (a `ModuleRunner`) gives for the same inputs where it computes otherwise.

    With another number of threads; with inputs, and in every second run weights, beside its own by one rounding unit;
    in FP64, unless it has none.
    """
    import numpy as np

    yield _at_other_threads(module, inputs)
    floats = any(v.dtype.kind == "f" for v in inputs.values())
    for seed in range(MOVES):
        chance = np.random.default_rng(seed)
        # Tokens have no last place: there the weights move.
        run = (module.perturbed(seed) if seed % 2 or not floats else None) or module
        yield run({n: _beside(v, chance) for n, v in inputs.items()})
    exact = module.exact()
    if exact is not None:
        wide = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in inputs.items()}
        try:
            answer = exact(wide)
        except Exception:
            # A module that insists on FP32 somewhere has no FP64; the other answers stand.
            return
        yield answer


def _at_other_threads(module: Run, inputs: Mapping[str, Array]) -> dict[str, Array]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2 if threads == 1 else 1)
    try:
        return module(inputs)
    finally:
        torch.set_num_threads(threads)


def _beside(values: Array, chance: np.random.Generator) -> Array:
    """Each float is the next one below, itself, or the next one above."""
    import numpy as np

    if values.dtype.kind != "f":
        return values
    toward = chance.choice(np.array([-np.inf, np.nan, np.inf], values.dtype), values.shape)
    return np.where(np.isnan(toward), values, np.nextafter(values, toward)).astype(values.dtype)


def without_own_flips(
    expected: Mapping[str, Array], actual: Mapping[str, Array], answers: Iterable[Mapping[str, Array]]
) -> tuple[dict[str, Array], int]:
    """The actual outputs with the expected rows where the original itself gives what the file does, and their number.

    A run of neighbouring rows in which an answer is far from what is expected counts as one: the file must have all of
    it as that answer has, to `FARTHEST` of each column.
    """
    mended = {n: v.copy() for n, v in actual.items()}
    groups: dict[tuple[int, ...], list[str]] = {}
    for name, values in expected.items():
        if name in actual and actual[name].shape == values.shape and values.size and values.dtype.kind in "fiub":
            groups.setdefault(_lead(values.shape), []).append(name)
    count = 0
    for answer in answers:
        for names in groups.values():
            known = [n for n in names if n in answer and answer[n].shape == expected[n].shape]
            if known:
                count += _take_back(known, expected, mended, answer)
    return mended, count


def _take_back(
    names: list[str], expected: Mapping[str, Array], mended: dict[str, Array], answer: Mapping[str, Array]
) -> int:
    """Put the expected rows back where an answer explains the others; returns how many."""
    import numpy as np

    wanted, given, own = (_table(outputs, names) for outputs in (expected, mended, answer))
    limit = FARTHEST * np.sqrt(np.mean(np.where(np.isfinite(wanted), wanted, 0.0) ** 2, axis=0))
    off, flips, alike = ~_near(wanted, given, limit), ~_near(wanted, own, limit), _near(own, given, limit)
    rows = []
    for run in _runs(flips):
        if alike[run].all() and off[run].any():
            rows += run
    for name in names:
        table = mended[name].reshape(len(wanted), -1)
        table[rows] = expected[name].reshape(len(wanted), -1)[rows]
        mended[name] = table.reshape(expected[name].shape)
    return len(rows)


def _lead(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of an output that count its rows: those of a batch of detections, without a stack of one layer."""
    while len(shape) > 3 and shape[0] == 1:
        shape = shape[1:]
    return shape[:2]


def _table(outputs: Mapping[str, Array], names: list[str]) -> Array:
    """The outputs of as many rows side by side, FP64 [rows, columns]."""
    import numpy as np

    rows = math.prod(_lead(outputs[names[0]].shape))
    return np.concatenate([outputs[n].astype(np.float64).reshape(rows, -1) for n in names], axis=1)


def _near(one: Array, other: Array, limit: Array) -> Array:
    """By row, whether all columns agree."""
    import numpy as np

    with np.errstate(all="ignore"):
        same = (np.abs(one - other) <= limit) | (one == other) | ((one != one) & (other != other))
    return np.asarray(same.all(axis=1))


def _runs(flags: Array) -> Iterator[list[int]]:
    """The indices of neighbours that are True, run by run."""
    run: list[int] = []
    for index, flag in enumerate([*flags.tolist(), False]):
        if flag:
            run.append(index)
        elif run:
            yield run
            run = []
